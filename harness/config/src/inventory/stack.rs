//! A software stack: what of an inventory's software a run is made with, in place of what its file says. `harness bisect`
//! compares such stacks.

use std::collections::BTreeMap;
use std::fmt;
use toml::{Table, Value};

/// Settings by name: `image`, `paths.KEY`, or an environment variable. None for a variable that is not set.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stack(BTreeMap<String, Option<String>>);

const IMAGE: &str = "image";
const PATHS: &str = "paths.";

impl Stack {
    /// Of words such as `image=REGISTRY/IMAGE:TAG`, `NCCL_ALGO=Ring`, `NCCL_ALGO=` and `paths.nccl_tests=/opt/tests`.
    /// A word without `=` is an image.
    pub fn parse<'a>(words: impl IntoIterator<Item = &'a str>) -> Result<Stack, String> {
        let mut stack = Stack::default();
        for word in words {
            let (name, value) = match word.split_once('=') {
                Some((name, value)) => (name, value),
                None if word.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_') => {
                    return Err(format!("`{}`: write `NAME=VALUE`, or `image=IMAGE`", word.escape_debug()));
                }
                None => (IMAGE, word),
            };
            // A value may be a secret.
            let shown = name.escape_debug();
            let is_letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let is_variable = name.chars().all(is_letter) && !name.starts_with(|c: char| c.is_ascii_digit());
            let is_path = name.strip_prefix(PATHS).is_some_and(|key| key.chars().all(is_letter));
            if name.is_empty() || !(is_variable || is_path) {
                return Err(format!("`{shown}`: write `image=IMAGE`, `NAME=VALUE` or `paths.KEY=/PATH`"));
            }
            if value.chars().any(char::is_control) {
                return Err(format!("`{shown}`: a value must be one line"));
            }
            let value = match (value, is_path || name == IMAGE) {
                ("", true) => return Err(format!("`{shown}`: the value is missing")),
                ("", false) => None,
                (value, _) => Some(value.to_owned()),
            };
            if stack.0.insert(name.to_owned(), value).is_some() {
                return Err(format!("`{shown}` is given twice; a word without `=` is an image"));
            }
        }
        Ok(stack)
    }

    /// Whether it says nothing: a run is made with what the inventory's file says.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The names of what differs from `other`.
    pub fn differing(&self, other: &Stack) -> Vec<String> {
        let names = self.0.keys().chain(other.0.keys());
        let mut names: Vec<String> =
            names.filter(|name| self.0.get(*name) != other.0.get(*name)).cloned().collect();
        names.sort();
        names.dedup();
        names
    }

    /// The same with one setting as `other` has it.
    #[must_use]
    pub fn with(&self, name: &str, other: &Stack) -> Stack {
        let mut changed = self.clone();
        match other.0.get(name) {
            Some(value) => changed.0.insert(name.to_owned(), value.clone()),
            None => changed.0.remove(name),
        };
        changed
    }

    /// One setting as people read it: `Ring`, `not set`, or `as in the inventory`.
    pub fn value(&self, name: &str) -> &str {
        match self.0.get(name) {
            Some(Some(value)) => value,
            Some(None) => "not set",
            None => "as in the inventory",
        }
    }

    /// Each as it is written, in the order of their names.
    pub fn settings(&self) -> impl Iterator<Item = String> {
        self.0.iter().map(|(name, value)| format!("{name}={}", value.as_deref().unwrap_or_default()))
    }

    /// The text of an inventory with its settings in place of the file's own.
    pub fn overlay(&self, text: &str) -> Result<String, String> {
        if self.is_empty() {
            return Ok(text.to_owned());
        }
        // What is wrong with the file itself is reported by its reader, with its line.
        let Ok(mut file) = text.parse::<Table>() else { return Ok(text.to_owned()) };
        for (name, value) in &self.0 {
            let (table, key) = match name.strip_prefix(PATHS) {
                Some(key) => ("paths", key),
                None if name == IMAGE => (if is_kubernetes(&file) { "reach" } else { "container" }, IMAGE),
                None => ("environment", name.as_str()),
            };
            let table = file.entry(table).or_insert_with(|| Value::Table(Table::new()));
            let Value::Table(table) = table else { continue };
            match value {
                Some(value) => table.insert(key.to_owned(), Value::String(value.clone())),
                None => table.remove(key),
            };
        }
        toml::to_string(&file).map_err(|error| error.to_string())
    }
}

fn is_kubernetes(file: &Table) -> bool {
    let via = file.get("reach").and_then(|reach| reach.get("via")).and_then(Value::as_str);
    via == Some("kubernetes")
}

impl fmt::Display for Stack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.is_empty() {
            true => f.write_str("as in the inventory"),
            false => f.write_str(&self.settings().collect::<Vec<_>>().join(" ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stack(words: &[&str]) -> Stack {
        Stack::parse(words.iter().copied()).expect("a stack")
    }

    #[test]
    fn images_variables_and_paths_are_distinguished() {
        let parsed =
            stack(&["registry/nccl:2.27", "NCCL_ALGO=Ring", "FI_PROVIDER=", "paths.nccl_tests=/opt/t"]);
        assert_eq!(parsed.value("image"), "registry/nccl:2.27");
        assert_eq!(parsed.value("NCCL_ALGO"), "Ring");
        assert_eq!(parsed.value("FI_PROVIDER"), "not set");
        assert_eq!(parsed.value("NCCL_PROTO"), "as in the inventory");
        assert_eq!(parsed.value("paths.nccl_tests"), "/opt/t");
        for wrong in ["", "=x", "1A=x", "a b=x", "image=", "paths.shared/x=/y", "A=x\ny"] {
            assert!(Stack::parse([wrong]).is_err() || wrong.is_empty(), "{wrong:?}");
        }
        assert!(Stack::parse(["A=1", "A=2"]).is_err());
    }

    #[test]
    fn settings_take_the_place_of_those_of_the_file() {
        let text = "kind = \"real\"\n[environment]\nNCCL_ALGO = \"Tree\"\nFI_PROVIDER = \"efa\"\n[reach]\nvia = \"slurm\"\n";
        let changed = stack(&["image:1", "NCCL_ALGO=Ring", "FI_PROVIDER="]).overlay(text).expect("changed");
        let file: Table = changed.parse().expect("TOML");
        assert_eq!(file["environment"]["NCCL_ALGO"].as_str(), Some("Ring"));
        assert!(file["environment"].get("FI_PROVIDER").is_none());
        assert_eq!(file["container"]["image"].as_str(), Some("image:1"));
        let pods =
            stack(&["image:1"]).overlay("[reach]\nvia = \"kubernetes\"\nimage = \"old\"\n").expect("changed");
        assert_eq!(pods.parse::<Table>().expect("TOML")["reach"]["image"].as_str(), Some("image:1"));
        assert_eq!(Stack::default().overlay(text).expect("unchanged"), text);
    }

    #[test]
    fn one_setting_after_the_other_leads_from_one_stack_to_the_other() {
        let (good, bad) = (stack(&["image:1", "A=x"]), stack(&["image:2", "B=y"]));
        assert_eq!(good.differing(&bad), ["A", "B", "image"]);
        let mut at = good.clone();
        for name in good.differing(&bad) {
            at = at.with(&name, &bad);
        }
        assert_eq!(at, bad);
    }
}
