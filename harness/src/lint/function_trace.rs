//! Lists of Python functions that nsys is to trace (`--python-functions-trace`): what would keep a function from being traced.

use super::json::{self, Kind, Place, Value};
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

pub fn function_trace(text: &str, file: &str) -> Linted {
    let mut lint = Lint { file, linted: Linted::default(), seen: BTreeMap::new() };
    match json::read(text) {
        Err(wrong) => lint.wrong(wrong.place, format!("no JSON: {}", wrong.what), wrong.advice),
        Ok(value) => lint.all(&value),
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
    fn at(&self, place: Place, message: String, advice: &str) -> Diagnostic {
        Diagnostic::at(self.file, place.line, place.column, message).suggest(advice)
    }

    fn wrong(&mut self, place: Place, message: impl Into<String>, advice: &str) {
        let diagnostic = self.at(place, message.into(), advice);
        self.linted.diagnostics.push(diagnostic);
    }

    fn warn(&mut self, place: Place, message: impl Into<String>, advice: &str) {
        let diagnostic = self.at(place, message.into(), advice);
        self.linted.warnings.push(diagnostic);
    }

    fn all(&mut self, value: &Value) {
        let Kind::List(entries) = &value.kind else {
            let message = format!("a list of objects is expected: {}", value.kind.name());
            return self.wrong(value.place, message, "put `[` before it and `]` behind it");
        };
        if entries.is_empty() {
            self.wrong(
                value.place,
                "the list is empty: nothing is traced",
                "name a module and its functions",
            );
        }
        for entry in entries {
            match &entry.kind {
                Kind::Object(fields) => self.entry(entry.place, fields),
                kind => {
                    let message = format!("an object is expected: {}", kind.name());
                    self.wrong(entry.place, message, "write `{\"module\": ..., \"functions\": [...]}`");
                }
            }
        }
    }

    fn entry(&mut self, place: Place, fields: &[(Place, String, Value)]) {
        for (at, (key_place, key, _)) in fields.iter().enumerate() {
            if fields[..at].iter().any(|(_, other, _)| other == key) {
                let message = format!("`{}` stands there twice: the last one counts", key.escape_debug());
                self.wrong(*key_place, message, "take one of them out");
            }
            // By which people write comments.
            if !KEYS.contains(&key.as_str()) && !key.starts_with('_') {
                let message = format!("unknown key: `{}`", key.escape_debug());
                match nearest(key, KEYS) {
                    Some(near) => self.wrong(*key_place, message, &format!("did you mean `{near}`?")),
                    None => self.warn(*key_place, message, &format!("known are {}", KEYS.join(", "))),
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
                self.wrong(
                    place,
                    "`module` is missing",
                    "name the module as it is imported, such as `torch.optim`",
                );
                None
            }
        };
        match field("functions") {
            Some(value) => self.functions(value, module.as_deref()),
            None => {
                self.wrong(
                    place,
                    "`functions` is missing",
                    "name at least one, such as `[\"Linear.forward\"]`",
                );
            }
        }
    }

    fn text(&mut self, name: &str, value: &Value) -> Option<String> {
        match &value.kind {
            Kind::Text(text) if !text.trim().is_empty() => Some(text.clone()),
            Kind::Text(_) => {
                self.wrong(value.place, format!("`{name}` is empty"), "write a name");
                None
            }
            kind => {
                self.wrong(value.place, format!("`{name}` is no text: {}", kind.name()), "write it in \"\"");
                None
            }
        }
    }

    fn module(&mut self, value: &Value) -> Option<String> {
        let module = self.text("module", value)?;
        let shown = module.escape_debug();
        if module == "__main__" {
            let advice = "move them into a file of their own, import it, and name that module";
            self.wrong(value.place, "functions of `__main__` cannot be traced", advice);
        } else if module.contains(['/', '\\']) || module.ends_with(".py") {
            let message = format!("`module` is a file: `{shown}`");
            let plain =
                module.trim_end_matches(".py").trim_matches(['/', '.', '\\']).replace(['/', '\\'], ".");
            self.wrong(
                value.place,
                message,
                &format!("write it as it is imported, such as `{}`", plain.escape_debug()),
            );
        } else if !module.split('.').all(is_name) {
            let message = format!("`module` is no name that can be imported: `{shown}`");
            self.wrong(value.place, message, "write names with dots between, such as `torch.optim`");
        }
        Some(module)
    }

    /// Six or eight hexadecimal digits, or a name.
    fn color(&mut self, value: &Value) {
        let advice = "write it as `\"0xRRGGBB\"`, or by a name such as `blue`";
        match &value.kind {
            Kind::Text(text) => {
                let digits = text.trim_start_matches('#');
                let digits = digits.strip_prefix("0x").or(digits.strip_prefix("0X")).unwrap_or(digits);
                let is_hex = matches!(digits.len(), 6 | 8) && digits.bytes().all(|b| b.is_ascii_hexdigit());
                if !is_hex && !COLORS.contains(&text.to_ascii_lowercase().as_str()) {
                    self.wrong(value.place, format!("no colour: `{}`", text.escape_debug()), advice);
                }
            }
            Kind::Number(number) if *number >= 0.0 && *number <= 4_294_967_295.0 && number.fract() == 0.0 => {
            }
            kind => self.wrong(value.place, format!("no colour: {}", kind.name()), advice),
        }
    }

    fn functions(&mut self, value: &Value, module: Option<&str>) {
        let functions = match &value.kind {
            Kind::List(functions) => functions,
            Kind::Text(_) => {
                return self.wrong(
                    value.place,
                    "`functions` is no list: a text",
                    "put `[` and `]` around it",
                );
            }
            kind => {
                let message = format!("`functions` is no list: {}", kind.name());
                return self.wrong(value.place, message, "write a list of names");
            }
        };
        if functions.is_empty() {
            self.wrong(
                value.place,
                "`functions` is empty: nothing of the module is traced",
                "name at least one",
            );
        }
        for function in functions {
            match &function.kind {
                Kind::Text(name) => self.function(function.place, name, module),
                Kind::Object(_) => {
                    let advice = "a name as text is what every release reads";
                    self.warn(function.place, "a function that is an object is not known here", advice);
                }
                kind => {
                    let message = format!("a function is no text: {}", kind.name());
                    self.wrong(function.place, message, "write its name in \"\"");
                }
            }
        }
    }

    fn function(&mut self, place: Place, name: &str, module: Option<&str>) {
        let shown = name.escape_debug().to_string();
        let bare = name.split('(').next().unwrap_or_default().trim();
        if name.contains('(') {
            let message = format!("a function with its brackets: `{shown}`");
            self.wrong(place, message, &format!("write `{}`", bare.escape_debug()));
        } else if !name.split('.').all(is_name) {
            let advice = "write names with dots between, such as `Linear.forward`; patterns are not known";
            self.wrong(place, format!("no name of a function: `{shown}`"), advice);
        }
        let Some(module) = module else { return };
        if let Some(rest) = name.strip_prefix(module).and_then(|rest| rest.strip_prefix('.')) {
            let message = format!("`{shown}` repeats its module: `{module}.{shown}` is looked for");
            self.warn(place, message, &format!("write `{}`", rest.escape_debug()));
        }
        let key = (module.to_owned(), name.to_owned());
        if let Some(line) = self.seen.insert(key, place.line) {
            let message = format!("`{module}.{shown}` is traced twice, the first time by line {line}");
            self.warn(place, message, "take one of them out: each call would be two ranges");
        }
    }
}

/// Of Python.
fn is_name(word: &str) -> bool {
    word.starts_with(|c: char| c.is_alphabetic() || c == '_')
        && word.chars().all(|c| c.is_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> Vec<String> {
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
        assert_eq!(told(text), [] as [&str; 0]);
    }

    #[test]
    fn each_diagnostic_has_its_place_and_what_to_write() {
        let table = [
            (
                r#"{"module": "a", "functions": ["b"]}"#,
                "f.json:1:1: a list of objects is expected: an object; put `[`",
            ),
            ("[]", "f.json:1:1: the list is empty: nothing is traced; name a module"),
            ("", "f.json:1:1: no JSON: the file ends where a value is expected; close"),
            (
                r#"[{"module": "a", "functions": ["b"],}]"#,
                "f.json:1:36: no JSON: a comma behind the last value; take it out",
            ),
            ("[\n  7]", "f.json:2:3: an object is expected: a number; write"),
            (r#"[{"functions": ["b"]}]"#, "f.json:1:2: `module` is missing; name the module"),
            (r#"[{"module": "a"}]"#, "f.json:1:2: `functions` is missing; name at least one"),
            (
                r#"[{"modul": "a", "module": "a", "functions": ["b"]}]"#,
                "f.json:1:3: unknown key: `modul`; did you mean `module`?",
            ),
            (
                r#"[{"module": "a", "functions": ["b"], "xyzzy": 1}]"#,
                "f.json:1:38: unknown key: `xyzzy`; known are module",
            ),
            (
                r#"[{"module": "a", "module": "a", "functions": ["b"]}]"#,
                "f.json:1:18: `module` stands there twice",
            ),
            (
                r#"[{"module": "__main__", "functions": ["b"]}]"#,
                "f.json:1:13: functions of `__main__` cannot be traced; move",
            ),
            (
                r#"[{"module": "src/a.py", "functions": ["b"]}]"#,
                "f.json:1:13: `module` is a file: `src/a.py`; write it as it is imported, such as `src.a`",
            ),
            (
                r#"[{"module": "a b", "functions": ["b"]}]"#,
                "f.json:1:13: `module` is no name that can be imported",
            ),
            (r#"[{"module": "", "functions": ["b"]}]"#, "f.json:1:13: `module` is empty"),
            (r#"[{"module": 3, "functions": ["b"]}]"#, "f.json:1:13: `module` is no text: a number"),
            (
                r#"[{"module": "a", "functions": "b"}]"#,
                "f.json:1:31: `functions` is no list: a text; put `[` and `]`",
            ),
            (r#"[{"module": "a", "functions": []}]"#, "f.json:1:31: `functions` is empty"),
            (
                r#"[{"module": "a", "functions": ["b()"]}]"#,
                "f.json:1:32: a function with its brackets: `b()`; write `b`",
            ),
            (
                r#"[{"module": "a", "functions": ["b.*"]}]"#,
                "f.json:1:32: no name of a function: `b.*`; write names",
            ),
            (r#"[{"module": "a", "functions": [1]}]"#, "f.json:1:32: a function is no text: a number"),
            (
                r#"[{"module": "a.c", "functions": ["a.c.b"]}]"#,
                "f.json:1:34: `a.c.b` repeats its module: `a.c.a.c.b` is looked for; write `b`",
            ),
            (
                r#"[{"module": "a", "functions": ["b", "b"]}]"#,
                "f.json:1:37: `a.b` is traced twice, the first time by line 1",
            ),
            (
                r#"[{"module": "a", "functions": ["b"], "color": "blurple"}]"#,
                "f.json:1:47: no colour: `blurple`; write it as",
            ),
            (
                r#"[{"module": "a", "functions": ["b"], "domain": []}]"#,
                "f.json:1:48: `domain` is no text: a list",
            ),
            (
                r#"[{"module": "a", "functions": [{"name": "b"}]}]"#,
                "f.json:1:32: a function that is an object is not known here",
            ),
        ];
        for (text, expected) in table {
            let told = told(text);
            assert!(told.len() == 1 && told[0].starts_with(expected), "{text}: {told:?}");
        }
    }
}
