//! Values as YAML: texts of several lines stand as they are, and every other text that could be read as something else has
//! quotes.

use serde_json::Value;

/// One document, with a line break at its end.
pub(super) fn render(value: &Value) -> String {
    let mut text = String::new();
    match value {
        Value::Object(map) if !map.is_empty() => entries(value, 0, &mut text),
        Value::Array(items) if !items.is_empty() => entries(value, 0, &mut text),
        _ => {
            text.push_str(&scalar(value));
            text.push('\n');
        }
    }
    text
}

/// The entries of a map, or the items of a list, each on lines of its own.
fn entries(value: &Value, indent: usize, text: &mut String) {
    let margin = " ".repeat(indent);
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                text.push_str(&format!("{margin}{}:", plain(key)));
                behind(value, indent + 2, text);
            }
        }
        Value::Array(items) => {
            for item in items {
                let mut inner = String::new();
                match is_scalar(item) {
                    true => {
                        text.push_str(&format!("{margin}-"));
                        behind(item, indent + 2, text);
                        continue;
                    }
                    false => entries(item, indent + 2, &mut inner),
                }
                text.push_str(&format!("{margin}- {}", inner.trim_start_matches(' ')));
            }
        }
        _ => {}
    }
}

/// What stands behind a key or the dash of an item.
fn behind(value: &Value, indent: usize, text: &mut String) {
    if let Some(block) = value.as_str().and_then(|text| block(text, indent)) {
        text.push_str(&block);
    } else if is_scalar(value) {
        text.push_str(&format!(" {}\n", scalar(value)));
    } else {
        text.push('\n');
        entries(value, indent, text);
    }
}

fn is_scalar(value: &Value) -> bool {
    match value {
        Value::Object(map) => map.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => true,
    }
}

fn scalar(value: &Value) -> String {
    match value {
        Value::String(text) => plain(text),
        // As JSON has it: `{}`, `[]`, `null`, numbers and truth.
        other => other.to_string(),
    }
}

/// Words that readers of YAML take for something else.
const WORDS: [&str; 8] = ["true", "false", "yes", "no", "on", "off", "null", "y"];

fn plain(text: &str) -> String {
    let inner = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
    let is_plain = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/')
        && text.chars().all(inner)
        && !WORDS.contains(&text.to_ascii_lowercase().as_str())
        && !text.eq_ignore_ascii_case("n");
    if is_plain { text.to_owned() } else { Value::from(text).to_string().chars().map(escaped).collect() }
}

/// JSON leaves some characters as they are that YAML forbids, or takes for the end of a line.
fn escaped(c: char) -> String {
    let is_odd = ('\u{7f}'..='\u{9f}').contains(&c)
        || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}');
    if is_odd { format!("\\u{:04x}", u32::from(c)) } else { c.to_string() }
}

/// A text of several lines as a block; none where a block cannot hold it.
fn block(text: &str, indent: usize) -> Option<String> {
    let holds =
        |c: char| c == '\n' || c == '\t' || (' '..='~').contains(&c) || ('\u{a1}'..='\u{d7ff}').contains(&c);
    // These two break lines, too.
    let breaks = |c: char| c == '\u{2028}' || c == '\u{2029}';
    if !text.contains('\n') || !text.chars().all(holds) || text.contains(breaks) {
        return None;
    }
    let ends = match (text.ends_with('\n'), text.ends_with("\n\n") || text == "\n") {
        (false, _) => "-",
        (true, false) => "",
        (true, true) => "+",
    };
    let margin = " ".repeat(indent);
    let mut block = format!(" |2{ends}\n");
    for line in text.strip_suffix('\n').unwrap_or(text).split('\n') {
        if !line.is_empty() {
            block.push_str(&margin);
            block.push_str(line);
        }
        block.push('\n');
    }
    Some(block)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn texts_that_could_be_read_as_something_else_have_quotes() {
        for text in [
            "yes", "No", "1", "1e3", "", " a", "a: b", "a #b", "-", "~", "0x1f", "null", "a\r\n", "*a", "{",
            "\u{1}",
        ] {
            let rendered = render(&json!({ "k": text }));
            assert_eq!(rendered, format!("k: {}\n", Value::from(text)), "{text}");
        }
        assert_eq!(render(&json!({ "a/b": "/x-1.y", "c": 3 })), "a/b: /x-1.y\nc: 3\n");
    }

    #[test]
    fn characters_that_yaml_forbids_or_folds_are_escaped() {
        let rendered = |text: &str| render(&json!({ "k": text }));
        assert_eq!(rendered("a\u{7f}b\u{85}c\u{2028}d"), "k: \"a\\u007fb\\u0085c\\u2028d\"\n");
        assert_eq!(rendered("a\n\u{9b}\u{feff}"), "k: \"a\\n\\u009b\\ufeff\"\n");
        assert_eq!(rendered("\u{1}é"), "k: \"\\u0001é\"\n");
    }

    #[test]
    fn maps_lists_and_blocks_nest() {
        let value = json!({ "l": [{ "a": [], "b": { "c": true } }, "x y", [1, 2]], "t": "  one\n\n\ttwo\n", "u": "a\nb", "v": "a\n\n" });
        let expected = "\
l:
  - a: []
    b:
      c: true
  - \"x y\"
  - - 1
    - 2
t: |2
    one

  \ttwo
u: |2-
  a
  b
v: |2+
  a

";
        assert_eq!(render(&value), expected);
    }
}
