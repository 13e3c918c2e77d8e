//! What NCCL is asked to write of itself.

use std::collections::BTreeMap;

/// What a job's environment asks NCCL to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    subsystems: Vec<String>,
}

impl Wanted {
    /// Nothing where nothing is asked for, or it is written elsewhere.
    pub(crate) fn from_variables(variables: &BTreeMap<String, String>) -> Option<Wanted> {
        let is_info = |level: &String| ["info", "trace"].contains(&level.to_ascii_lowercase().as_str());
        variables.get("NCCL_DEBUG").filter(|level| is_info(level))?;
        if variables.contains_key("NCCL_DEBUG_FILE") {
            return None;
        }
        let subsystems = variables.get("NCCL_DEBUG_SUBSYS").map_or("INIT,ENV", String::as_str);
        Some(Wanted {
            subsystems: subsystems.split(',').map(|word| word.trim().to_ascii_uppercase()).collect(),
        })
    }

    pub(crate) fn has(&self, subsystem: &str) -> bool {
        self.subsystems.iter().any(|known| known == subsystem || known == "ALL")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_asked_for_is_written() {
        let of = |variables: &[(&str, &str)]| {
            Wanted::from_variables(
                &variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
            )
        };
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[("NCCL_DEBUG", "WARN")]), None);
        assert_eq!(of(&[("NCCL_DEBUG", "INFO"), ("NCCL_DEBUG_FILE", "/tmp/x")]), None);
        let plain = of(&[("NCCL_DEBUG", "info")]).expect("asked");
        assert_eq!((plain.has("INIT"), plain.has("COLL")), (true, false));
        let all = of(&[("NCCL_DEBUG", "INFO"), ("NCCL_DEBUG_SUBSYS", "all")]).expect("asked");
        assert!(all.has("COLL"));
    }
}
