//! Lines as Docker keeps them: `{"log":"text\\n","stream":"stdout","time":"2025-11-20T10:00:01.5Z"}`.

use serde::Deserialize;

/// What a program wrote, and when.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Unwrapped {
    pub log: String,
    #[serde(rename = "stream")]
    _stream: String,
    pub time: Option<String>,
    #[serde(rename = "attrs")]
    _attrs: Option<serde_json::Value>,
}

/// Nothing where a line is another.
pub(super) fn unwrap(line: &str) -> Option<Unwrapped> {
    let line = line.trim();
    if !line.starts_with("{\"log\":") || !line.ends_with('}') {
        return None;
    }
    let mut unwrapped: Unwrapped = serde_json::from_str(line).ok()?;
    let length = unwrapped.log.trim_end_matches(['\r', '\n']).len();
    unwrapped.log.truncate(length);
    // A line within a line is none: what is unwrapped is not unwrapped again.
    (!unwrapped.log.trim_start().starts_with("{\"log\":")).then_some(unwrapped)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_a_line_is_taken_out_and_other_json_is_left() {
        let line = r#"{"log":"a \u001b[1mb\n","stream":"stderr","time":"2025-11-20T10:00:01.5Z"}"#;
        let read = unwrap(line).expect("a line of Docker");
        assert_eq!(
            (read.log.as_str(), read.time.as_deref()),
            ("a \u{1b}[1mb", Some("2025-11-20T10:00:01.5Z"))
        );
        for line in
            [r#"{"log":"a"}"#, r#"{"log":"a","stream":"x","other":1}"#, r#"{"log":"a","#, "{\"a\": 1}"]
        {
            assert!(unwrap(line).is_none(), "{line}");
        }
        let nested = serde_json::json!({"log": line, "stream": "stdout"}).to_string();
        assert!(unwrap(&nested).is_none());
    }
}
