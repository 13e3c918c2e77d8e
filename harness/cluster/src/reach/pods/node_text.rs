//! Nodes as kubectl prints them: a line for each, its fields parted by tabs. Maps and lists are printed as JSON, in which no tab
//! stands, and what a node does not have as nothing.

use serde::Deserialize;
use serde::de::DeserializeOwned;

/// A condition of a node.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Condition {
    /// Such as `Ready`.
    #[serde(rename = "type")]
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    #[serde(default)]
    reason: String,
    #[serde(default)]
    message: String,
}

impl Condition {
    /// Reason and message, as far as there are any.
    pub(crate) fn because(&self) -> String {
        let because = [&self.reason, &self.message].map(String::as_str);
        because.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join(": ")
    }
}

/// A node that cannot be read makes the whole answer none: how many there are of a kind would not be known.
pub(crate) fn lines<T>(answer: &[u8], node: impl Fn(&str) -> Result<T, String>) -> Result<Vec<T>, String> {
    let answer = std::str::from_utf8(answer).map_err(|_| "it is no UTF-8".to_owned())?;
    answer.lines().filter(|line| !line.is_empty()).map(node).collect()
}

/// So many fields of a line.
pub(crate) fn fields<const COUNT: usize>(line: &str) -> Result<[&str; COUNT], String> {
    let all: Vec<&str> = line.split('\t').collect();
    let count = all.len();
    all.try_into().map_err(|_| format!("{count} fields of a node, expected {COUNT}"))
}

/// A map or a list of a node.
pub(crate) fn json<T: Default + DeserializeOwned>(text: &str, node: &str, what: &str) -> Result<T, String> {
    if text.is_empty() {
        return Ok(T::default());
    }
    serde_json::from_str(text).map_err(|error| format!("`{what}` of the node `{node}`: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_that_a_node_does_not_have_is_empty_and_one_that_cannot_be_read_names_its_node() {
        let [name, conditions] = fields::<2>("n1\t").expect("two fields");
        let read: Vec<Condition> = json(conditions, name, "conditions").expect("none");
        assert_eq!((name, read.len()), ("n1", 0));
        let ready = r#"[{"type":"Ready","status":"False","reason":"KubeletNotReady"},{"type":"A","status":"True","message":"b"}]"#;
        let read: Vec<Condition> = json(ready, name, "conditions").expect("two");
        let because: Vec<String> = read.iter().map(Condition::because).collect();
        assert_eq!(because, ["KubeletNotReady", "b"]);
        let cut: Result<Vec<Condition>, String> = json("[{", "n1", "conditions");
        assert!(cut.is_err_and(|why| why.starts_with("`conditions` of the node `n1`: ")));
        assert_eq!(fields::<3>("n1\t"), Err("2 fields of a node, expected 3".to_owned()));
    }

    #[test]
    fn one_node_that_cannot_be_read_leaves_no_answer() {
        let number = |line: &str| line.parse::<u8>().map_err(|error| error.to_string());
        assert_eq!(lines(b"1\n\n2\n", number), Ok(vec![1, 2]));
        assert!(lines(b"1\nx\n", number).is_err() && lines(b"\xff", number).is_err());
        assert_eq!(lines(b"", number), Ok(Vec::new()));
    }
}
