//! Errors, warnings and notes of files for editors and CI: one JSON object a line.

use config::diagnostic::Diagnostic;
use serde_json::json;

/// The levels, with what is printed of each in text.
pub(crate) const LEVELS: [(&str, &str); 3] = [("error", ""), ("warning", "warning: "), ("note", "note: ")];

/// The object of one; `line` and `column` are from 1, and null for the file as a whole.
pub(crate) fn line(level: &str, diagnostic: &Diagnostic) -> String {
    // JSON leaves some control characters as they are: none reaches a terminal.
    let escape = |c: char| if c.is_control() { format!("\\u{:04x}", u32::from(c)) } else { c.to_string() };
    let place = |at: usize| (diagnostic.line > 0).then_some(at);
    let object = json!({
        "level": level,
        "file": diagnostic.file,
        "line": place(diagnostic.line),
        "column": place(diagnostic.column),
        "message": diagnostic.message,
        "suggestion": diagnostic.suggestion,
    });
    object.to_string().chars().map(escape).collect()
}
