//! The version of an nsys, by number: as text 2024.10 would come before 2024.9.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Year, release and patch: `2024.4.1`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct NsysVersion {
    year: u32,
    release: u32,
    patch: u32,
}

impl NsysVersion {
    /// With patch 0.
    pub const fn new(year: u32, release: u32) -> Self {
        NsysVersion { year, release, patch: 0 }
    }

    /// `2024.4`, `2024.4.1`, or either with the build behind it: `2024.4.1.61-244134315967v0`.
    pub fn parse(text: &str) -> Option<Self> {
        let number = text.split('-').next()?;
        let mut parts = number.split('.').map(|part| part.parse::<u32>().ok());
        let year = parts.next()??;
        let release = parts.next()??;
        let patch = parts.next().unwrap_or(Some(0))?;
        // What stands further behind is the build; it is looked at so that `2024.4.1.x` is no version.
        if parts.any(|part| part.is_none()) || !(2018..=2999).contains(&year) {
            return None;
        }
        Some(NsysVersion { year, release, patch })
    }

    /// The version that a folder of a path carries, as the vendor's installer names it.
    pub fn in_path(path: &str) -> Option<Self> {
        path.split('/').rev().find_map(|folder| {
            let tail = folder.rsplit_once("nsight-systems-").map_or(folder, |(_, tail)| tail);
            NsysVersion::parse(tail)
        })
    }
}

impl fmt::Display for NsysVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.patch {
            0 => write!(f, "{}.{}", self.year, self.release),
            patch => write!(f, "{}.{}.{patch}", self.year, self.release),
        }
    }
}

impl TryFrom<String> for NsysVersion {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        NsysVersion::parse(&text).ok_or_else(|| format!("invalid nsys version `{}`", text.escape_debug()))
    }
}

impl From<NsysVersion> for String {
    fn from(version: NsysVersion) -> String {
        version.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_by_number() {
        let version = |text| NsysVersion::parse(text).expect(text);
        assert!(version("2024.10") > version("2024.9.1"));
        assert!(version("2024.4.1.61-244134315967v0") > version("2024.4"));
        assert!(version("2023.4.4") < version("2024.1"));
    }

    #[test]
    fn invalid_versions_are_refused() {
        for text in ["", "2024", "v2024.4", "2024.x", "24.4", "2024.4.1.x", "2024.4.", "nsys"] {
            assert_eq!(NsysVersion::parse(text), None, "{text}");
        }
    }

    #[test]
    fn the_version_is_read_from_the_installation_path() {
        let of = |path| NsysVersion::in_path(path).map(|version| version.to_string());
        assert_eq!(of("/opt/nvidia/nsight-systems/2024.4.1/bin/nsys").as_deref(), Some("2024.4.1"));
        assert_eq!(of("/fsx/nsight-systems-2025.3/target-linux-x64/nsys").as_deref(), Some("2025.3"));
        assert_eq!(of("/fsx/nsight-efa/target-linux-x64/nsys"), None);
    }
}
