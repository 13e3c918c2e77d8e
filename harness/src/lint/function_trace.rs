//! Lists of Python functions that nsys is to trace (`--python-functions-trace`): what would keep a function from being
//! traced.

use super::json::{self, Position, Value, ValueKind};
use base::suggest::nearest;
use config::diagnostic::Diagnostic;
use config::envlint::Linted;
use std::collections::BTreeMap;

/// A list of objects, each a module with functions, and how their ranges are shown.
const KEYS: [&str; 5] = ["module", "functions", "domain", "category", "color"];

/// Colours that go by name.
const COLORS: [&str; 16] = [
    "black", "white", "red", "green", "blue", "yellow", "magenta", "cyan", "orange", "purple", "pink",
    "brown", "gray", "grey", "lime", "teal",
];

/// Checks one list of functions, which is JSON; `file` is its name in messages.
pub(crate) fn function_trace(text: &str, file: &str) -> Linted {
    let mut lint = Lint { file, linted: Linted::default(), seen: BTreeMap::new() };
    match json::read(text) {
        Err(error) => lint.error(error.place, format!("invalid JSON: {}", error.what), error.advice),
        Ok(value) => lint.list(&value),
    }
    let mut linted = lint.linted;
    linted.diagnostics.sort();
    linted.warnings.sort();
    linted
}

struct Lint<'a> {
    file: &'a str,
    linted: Linted,
    /// Functions with their modules, and the line of each.
    seen: BTreeMap<(String, String), usize>,
}

impl Lint<'_> {
    fn at(&self, place: Position, message: String, advice: &str) -> Diagnostic {
        Diagnostic::at(self.file, place.line, place.column, message).suggest(advice)
    }

    fn error(&mut self, place: Position, message: impl Into<String>, advice: &str) {
        let diagnostic = self.at(place, message.into(), advice);
        self.linted.diagnostics.push(diagnostic);
    }

    fn warn(&mut self, place: Position, message: impl Into<String>, advice: &str) {
        let diagnostic = self.at(place, message.into(), advice);
        self.linted.warnings.push(diagnostic);
    }

    fn list(&mut self, value: &Value) {
        let ValueKind::List(entries) = &value.kind else {
            let message = format!("expected a list of objects, found {}", value.kind.name());
            return self.error(value.place, message, "wrap it in `[` and `]`");
        };
        if entries.is_empty() {
            self.error(
                value.place,
                "the list is empty: nothing is traced",
                "name a module and its functions",
            );
        }
        for entry in entries {
            match &entry.kind {
                ValueKind::Object(fields) => self.entry(entry.place, fields),
                kind => {
                    let message = format!("expected an object, found {}", kind.name());
                    self.error(entry.place, message, "write `{\"module\": ..., \"functions\": [...]}`");
                }
            }
        }
    }

    fn entry(&mut self, place: Position, fields: &[(Position, String, Value)]) {
        for (at, (key_place, key, _)) in fields.iter().enumerate() {
            if fields[..at].iter().any(|(_, other, _)| other == key) {
                let message = format!("duplicate key `{}`: the last value is used", key.escape_debug());
                self.error(*key_place, message, "remove one of them");
            }
            // People write comments as keys that begin with `_`.
            if !KEYS.contains(&key.as_str()) && !key.starts_with('_') {
                let message = format!("unknown key: `{}`", key.escape_debug());
                match nearest(key, KEYS) {
                    Some(near) => self.error(*key_place, message, &format!("did you mean `{near}`?")),
                    None => self.warn(*key_place, message, &format!("known keys: {}", KEYS.join(", "))),
                }
            }
        }
        let field =
            |name: &str| fields.iter().rev().find(|(_, key, _)| key == name).map(|(_, _, value)| value);
        for name in ["domain", "category"] {
            if let Some(value) = field(name) {
                self.text(name, value);
            }
        }
        if let Some(value) = field("color") {
            self.color(value);
        }
        let module = match field("module") {
            Some(value) => self.module(value),
            None => {
                self.error(place, "`module` is missing", "write its import name, such as `torch.optim`");
                None
            }
        };
        match field("functions") {
            Some(value) => self.functions(value, module.as_deref()),
            None => {
                self.error(
                    place,
                    "`functions` is missing",
                    "name at least one, such as `[\"Linear.forward\"]`",
                );
            }
        }
    }

    fn text(&mut self, name: &str, value: &Value) -> Option<String> {
        match &value.kind {
            ValueKind::Text(text) if !text.trim().is_empty() => Some(text.clone()),
            ValueKind::Text(_) => {
                self.error(value.place, format!("`{name}` is empty"), "write a name");
                None
            }
            kind => {
                self.error(
                    value.place,
                    format!("`{name}` must be a string, found {}", kind.name()),
                    "put it in \"\"",
                );
                None
            }
        }
    }

    fn module(&mut self, value: &Value) -> Option<String> {
        let module = self.text("module", value)?;
        let shown = module.escape_debug();
        if module == "__main__" {
            let advice = "move them into a module, import it, and name that module";
            self.error(value.place, "functions of `__main__` cannot be traced", advice);
        } else if module.contains(['/', '\\']) || module.ends_with(".py") {
            let message = format!("`module` names a file: `{shown}`");
            let plain =
                module.trim_end_matches(".py").trim_matches(['/', '.', '\\']).replace(['/', '\\'], ".");
            self.error(
                value.place,
                message,
                &format!("write its import name, such as `{}`", plain.escape_debug()),
            );
        } else if !module.split('.').all(is_name) {
            let message = format!("`module` is not a valid import name: `{shown}`");
            self.error(value.place, message, "write dotted names, such as `torch.optim`");
        }
        Some(module)
    }

    /// Six or eight hexadecimal digits, or a name.
    fn color(&mut self, value: &Value) {
        let advice = "write `\"0xRRGGBB\"`, or a name such as `blue`";
        match &value.kind {
            ValueKind::Text(text) => {
                let digits = text.trim_start_matches('#');
                let digits = digits.strip_prefix("0x").or(digits.strip_prefix("0X")).unwrap_or(digits);
                let is_hex = matches!(digits.len(), 6 | 8) && digits.bytes().all(|b| b.is_ascii_hexdigit());
                if !is_hex && !COLORS.contains(&text.to_ascii_lowercase().as_str()) {
                    self.error(value.place, format!("not a colour: `{}`", text.escape_debug()), advice);
                }
            }
            ValueKind::Number(number)
                if *number >= 0.0 && *number <= 4_294_967_295.0 && number.fract() == 0.0 => {}
            kind => self.error(value.place, format!("not a colour: {}", kind.name()), advice),
        }
    }

    fn functions(&mut self, value: &Value, module: Option<&str>) {
        let functions = match &value.kind {
            ValueKind::List(functions) => functions,
            ValueKind::Text(_) => {
                return self.error(
                    value.place,
                    "`functions` must be a list, found a string",
                    "wrap it in `[` and `]`",
                );
            }
            kind => {
                let message = format!("`functions` must be a list, found {}", kind.name());
                return self.error(value.place, message, "write a list of names");
            }
        };
        if functions.is_empty() {
            self.error(
                value.place,
                "`functions` is empty: nothing in the module is traced",
                "name at least one",
            );
        }
        for function in functions {
            match &function.kind {
                ValueKind::Text(name) => self.function(function.place, name, module),
                ValueKind::Object(_) => {
                    let advice = "write its name as a string, which every release reads";
                    self.warn(function.place, "unknown format: a function given as an object", advice);
                }
                kind => {
                    let message = format!("a function must be a string, found {}", kind.name());
                    self.error(function.place, message, "put its name in \"\"");
                }
            }
        }
    }

    fn function(&mut self, place: Position, name: &str, module: Option<&str>) {
        let shown = name.escape_debug().to_string();
        let bare = name.split('(').next().unwrap_or_default().trim();
        if name.contains('(') {
            let message = format!("function name with parentheses: `{shown}`");
            self.error(place, message, &format!("write `{}`", bare.escape_debug()));
        } else if !name.split('.').all(is_name) {
            let advice = "write a dotted name, such as `Linear.forward`; patterns are not supported";
            self.error(place, format!("not a function name: `{shown}`"), advice);
        }
        let Some(module) = module else { return };
        if let Some(rest) = name.strip_prefix(module).and_then(|rest| rest.strip_prefix('.')) {
            let message = format!("`{shown}` repeats its module: nsys looks for `{module}.{shown}`");
            self.warn(place, message, &format!("write `{}`", rest.escape_debug()));
        }
        let key = (module.to_owned(), name.to_owned());
        if let Some(line) = self.seen.insert(key, place.line) {
            let message = format!("`{module}.{shown}` is traced twice, first on line {line}");
            self.warn(place, message, "remove one of them: each call would be recorded as two ranges");
        }
    }
}

/// Whether a word is a Python identifier.
fn is_name(word: &str) -> bool {
    word.starts_with(|c: char| c.is_alphabetic() || c == '_')
        && word.chars().all(|c| c.is_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages_of(text: &str) -> Vec<String> {
        let Linted { diagnostics, warnings, notes } = function_trace(text, "f.json");
        diagnostics.iter().chain(&warnings).chain(&notes).map(Diagnostic::to_string).collect()
    }

    #[test]
    fn a_list_as_it_is_meant_has_no_diagnostic() {
        let text = r#"[
  {"_comment": "optimizer", "domain": "PyTorch", "category": "optim", "color": "0x76B900",
   "module": "torch.optim", "functions": ["Adam.step", "SGD.step"]},
  {"module": "my_model.data", "color": "blue", "functions": ["load"]},
  {"module": "cupy", "color": "E8B795", "functions": ["random.random", "dot"]}
]"#;
        assert_eq!(messages_of(text), [] as [&str; 0]);
    }

    #[test]
    fn messages() {
        let faulty = [
            r#"{"module": "a", "functions": ["b"]}"#,
            "[]",
            "",
            r#"[{"module": "a", "functions": ["b"],}]"#,
            "[\n  7]",
            r#"[{"functions": ["b"]}]"#,
            r#"[{"module": "a"}]"#,
            r#"[{"modul": "a", "module": "a", "functions": ["b"]}]"#,
            r#"[{"module": "a", "functions": ["b"], "xyzzy": 1}]"#,
            r#"[{"module": "a", "module": "a", "functions": ["b"]}]"#,
            r#"[{"module": "__main__", "functions": ["b"]}]"#,
            r#"[{"module": "src/a.py", "functions": ["b"]}]"#,
            r#"[{"module": "a b", "functions": ["b"]}]"#,
            r#"[{"module": "", "functions": ["b"]}]"#,
            r#"[{"module": 3, "functions": ["b"]}]"#,
            r#"[{"module": "a", "functions": "b"}]"#,
            r#"[{"module": "a", "functions": []}]"#,
            r#"[{"module": "a", "functions": ["b()"]}]"#,
            r#"[{"module": "a", "functions": ["b.*"]}]"#,
            r#"[{"module": "a", "functions": [1]}]"#,
            r#"[{"module": "a.c", "functions": ["a.c.b"]}]"#,
            r#"[{"module": "a", "functions": ["b", "b"]}]"#,
            r#"[{"module": "a", "functions": ["b"], "color": "blurple"}]"#,
            r#"[{"module": "a", "functions": ["b"], "domain": []}]"#,
            r#"[{"module": "a", "functions": [{"name": "b"}]}]"#,
        ];
        let mut all = String::new();
        for text in faulty {
            let found = messages_of(text);
            assert_eq!(found.len(), 1, "{text}: {found:?}");
            all += &format!("{text}\n    {}\n", found[0]);
        }
        insta::assert_snapshot!(all);
    }
}
