//! The version of an artefact's layout, as part of its type: a file of a newer version is refused while it is read.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

const NEWER: &str = "written in format";

/// Whether this is why an artefact is not read.
pub fn is_newer(why: &str) -> bool {
    why.starts_with(NEWER)
}

/// `format` of an artefact, which declares by `VERSION` what this harness writes. It reads that and all older ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Format<const VERSION: u32>;

impl<const VERSION: u32> Format<VERSION> {
    /// What this harness writes.
    pub const VERSION: u32 = VERSION;
}

impl<const VERSION: u32> Serialize for Format<VERSION> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u32(VERSION)
    }
}

impl<'de, const VERSION: u32> Deserialize<'de> for Format<VERSION> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Format<VERSION>, D::Error> {
        match u64::deserialize(deserializer)? {
            format if format > u64::from(VERSION) => Err(Error::custom(format!(
                "{NEWER} {format}, this harness reads up to {VERSION}; use a newer harness"
            ))),
            _ => Ok(Format),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Format;

    #[test]
    fn each_version_up_to_its_own_is_read_and_its_own_is_written() {
        assert_eq!(serde_json::to_string(&Format::<3>).expect("JSON"), "3");
        for older in ["1", "2", "3"] {
            assert_eq!(serde_json::from_str::<Format<3>>(older).expect(older), Format);
        }
    }

    #[test]
    fn a_newer_version_is_refused_with_what_to_use() {
        let error = serde_json::from_str::<Format<3>>("4").expect_err("newer").to_string();
        assert!(error.starts_with("written in format 4, this harness reads up to 3; use a newer harness"));
        for other in ["-1", "\"3\"", "null", "1.5"] {
            assert!(serde_json::from_str::<Format<3>>(other).is_err(), "{other}");
        }
    }
}
