//! The version of a library, by number, as it is written in files, log lines and names of packages.

use std::fmt;

/// Major, minor and patch, ordered by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    major: u32,
    minor: u32,
    patch: u32,
}

impl Version {
    /// With patch 0.
    pub(crate) const fn new(major: u32, minor: u32) -> Version {
        Version { major, minor, patch: 0 }
    }

    /// `2.18.5`, `2.30.7+cuda12.9`, `1.22.0amzn4.0`, `v1.13.2-aws`: the numbers at the beginning, two at least.
    pub fn parse(text: &str) -> Option<Version> {
        let text = text.trim();
        let text = text.strip_prefix('v').unwrap_or(text);
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let number = text.get(..end)?.trim_end_matches('.');
        let mut parts = number.split('.').map(|part| part.parse::<u32>().ok());
        let (major, minor) = (parts.next()??, parts.next()??);
        let patch = parts.next().unwrap_or(Some(0))?;
        Some(Version { major, minor, patch })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.patch {
            0 => write!(f, "{}.{}", self.major, self.minor),
            patch => write!(f, "{}.{}.{patch}", self.major, self.minor),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Version;

    #[test]
    fn versions_are_read_out_of_what_libraries_call_themselves() {
        for (text, version) in [
            ("2.18.5", Some("2.18.5")),
            ("2.30.7+cuda12.9", Some("2.30.7")),
            ("1.22.0amzn4.0", Some("1.22")),
            ("v1.13.2-aws", Some("1.13.2")),
            (" 1.7 ", Some("1.7")),
            ("2", None),
            ("two.one", None),
            ("", None),
            ("..", None),
        ] {
            assert_eq!(Version::parse(text).map(|version| version.to_string()).as_deref(), version, "{text}");
        }
        assert!(Version::parse("2.9.9") < Version::parse("2.10"));
    }
}
