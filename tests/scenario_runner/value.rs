//! Values by place, such as `summary.json#/counts/error`, and whether they are as expected.

use crate::pattern::is_whole;
use crate::project::{Project, Ran, rows};
use serde_json::Value;
use std::fs;
use std::path::PathBuf;

/// Where values are read: the project, and what its last command printed.
pub(crate) struct Values<'a> {
    pub project: &'a Project,
    pub ran: &'a Ran,
}

/// What a path leads to: one value, or those of several that it goes through.
enum Selected {
    One(Value),
    Many(Vec<Value>),
}

impl Values<'_> {
    /// In the newest run, or with `./` in the project.
    fn path(&self, file: &str) -> PathBuf {
        match file.strip_prefix("./") {
            Some(file) => self.project.path().join(file),
            None => self.project.latest().join(file),
        }
    }

    /// stdout, stderr, or a file.
    pub(crate) fn text(&self, name: &str) -> Result<String, String> {
        match name {
            "out" => Ok(self.ran.stdout.clone()),
            "err" => Ok(self.ran.stderr.clone()),
            _ => {
                let bytes = fs::read(self.path(name)).map_err(|error| format!("{name}: {error}"))?;
                Ok(String::from_utf8_lossy(&bytes).into_owned())
            }
        }
    }

    fn subject(&self, subject: &str) -> Result<Value, String> {
        let Some((how, name)) = subject.strip_suffix(')').and_then(|call| call.split_once('(')) else {
            return documents(&self.text(subject)?, subject);
        };
        match how {
            "text" => self.text(name).map(Value::from),
            "lines" => Ok(self.text(name)?.lines().collect()),
            "exists" => Ok(Value::from(self.path(name).symlink_metadata().is_ok())),
            "csv" if self.path(name).is_file() => {
                serde_json::to_value(rows(&self.path(name))).map_err(|error| error.to_string())
            }
            "ls" => {
                let entries = fs::read_dir(self.path(name)).map_err(|error| format!("{name}: {error}"))?;
                let mut names: Vec<String> =
                    entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
                names.sort();
                Ok(Value::from(names))
            }
            _ => Err(format!("cannot read `{subject}`: there are text(), lines(), csv(), ls() and exists()")),
        }
    }

    /// The value at a place; several are a list.
    pub(crate) fn at(&self, place: &str) -> Result<Value, String> {
        Ok(match self.selected(place)? {
            Selected::One(value) => value,
            Selected::Many(values) => Value::from(values),
        })
    }

    fn selected(&self, place: &str) -> Result<Selected, String> {
        let (subject, path) = place.split_once('#').unwrap_or((place, ""));
        parts(path)?.into_iter().try_fold(Selected::One(self.subject(subject)?), step)
    }

    /// What is at a place whose last key may lead nowhere, and nothing else of it.
    fn any(&self, place: &str) -> Result<Selected, String> {
        let (subject, path) = place.split_once('#').unwrap_or((place, ""));
        let all = parts(path)?;
        let (last, before) = all.split_last().ok_or_else(|| format!("no path in `{place}`"))?;
        let key = last.trim_start_matches('/');
        let lacks = |value: &Value| match value {
            _ if key.starts_with(['[', '*']) || key.contains(',') || key == "len()" => false,
            Value::Array(values) => key.parse::<usize>().is_ok_and(|at| at >= values.len()),
            Value::Object(fields) => !fields.contains_key(key),
            _ => false,
        };
        match before.iter().copied().try_fold(Selected::One(self.subject(subject)?), step)? {
            Selected::One(value) if lacks(&value) => Ok(Selected::Many(Vec::new())),
            Selected::Many(values) if values.is_empty() => Err(format!("nothing is left before `{last}`")),
            Selected::Many(mut values) => {
                values.retain(|value| !lacks(value));
                step(Selected::Many(values), last)
            }
            one => step(one, last),
        }
    }

    /// What is wrong with the value at a place, if anything.
    pub(crate) fn check(&self, place: &str, expected: &Value) -> Result<(), String> {
        if expected == "absent()" {
            return match self.any(place)? {
                Selected::One(value) if !value.is_null() => Err(format!("expected none, found {value}")),
                Selected::Many(values) if !values.is_empty() => {
                    Err(format!("expected none, found {}", Value::from(values)))
                }
                _ => Ok(()),
            };
        }
        let other = expected.as_str().and_then(|text| text.strip_prefix("same as "));
        let expected = other.map_or_else(|| Ok(expected.clone()), |place| self.at(place))?;
        let (is, found) = match self.selected(place)? {
            Selected::One(value) => (agree(&expected, &value), value),
            Selected::Many(values) if expected.is_array() => {
                let found = Value::from(values);
                (agree(&expected, &found), found)
            }
            Selected::Many(values) => (
                !values.is_empty() && values.iter().all(|value| agree(&expected, value)),
                Value::from(values),
            ),
        };
        if is { Ok(()) } else { Err(format!("expected {expected}, found {found}")) }
    }
}

/// One document, or a list of those that stand one after another.
fn documents(text: &str, name: &str) -> Result<Value, String> {
    let all = serde_json::Deserializer::from_str(text).into_iter().collect::<Result<Vec<Value>, _>>();
    let mut all = all.map_err(|error| format!("{name}: {error}"))?;
    Ok(if all.len() == 1 && !name.ends_with(".jsonl") { all.remove(0) } else { Value::from(all) })
}

/// `/key`, `/0`, `/*`, `/a,b`, `/len()` and `[key=pattern]`; brackets within brackets belong to the pattern.
fn parts(path: &str) -> Result<Vec<&str>, String> {
    let (mut parts, mut depth, mut from) = (Vec::new(), 0, 0);
    for (at, c) in path.char_indices().chain([(path.len(), '/')]) {
        if depth == 0 && (c == '/' || c == '[') {
            parts.extend(Some(&path[from..at]).filter(|part| !part.is_empty()));
            from = at;
        }
        depth += i32::from(c == '[') - i32::from(c == ']');
    }
    if depth != 0 || !path.is_empty() && !path.starts_with(['/', '[']) {
        return Err(format!("not a path: `{path}`"));
    }
    Ok(parts)
}

fn step(selected: Selected, part: &str) -> Result<Selected, String> {
    if let Some(filter) = part.strip_prefix('[').and_then(|part| part.strip_suffix(']')) {
        let (key, wanted) = filter.split_once('=').ok_or_else(|| format!("no `=` in [{filter}]"))?;
        let pattern = wanted.replace('*', "[...]");
        let shown = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let is = |value: &Value| {
            let cell = if key.is_empty() { Some(value) } else { value.get(key) };
            cell.is_some_and(|cell| is_whole(&pattern, &shown(cell)))
        };
        return all_of(selected, part).map(|values| Selected::Many(values.into_iter().filter(is).collect()));
    }
    let key = part.trim_start_matches('/');
    match (key, selected) {
        ("*", selected) => all_of(selected, part).map(Selected::Many),
        ("len()", Selected::Many(values)) => Ok(Selected::One(Value::from(values.len()))),
        (_, Selected::Many(values)) => {
            values.iter().map(|value| child(value, key)).collect::<Result<_, _>>().map(Selected::Many)
        }
        (_, Selected::One(value)) => child(&value, key).map(Selected::One),
    }
}

fn all_of(selected: Selected, part: &str) -> Result<Vec<Value>, String> {
    let inner = |value: Value| match value {
        Value::Array(values) => Ok(values),
        Value::Object(fields) => Ok(fields.into_iter().map(|(_, value)| value).collect()),
        value => Err(format!("`{part}` of what is no list: {value}")),
    };
    match selected {
        Selected::One(value) => inner(value),
        // A filter behind another one, or behind `*`, goes over the same values.
        Selected::Many(values) if part.starts_with('[') && !values.iter().all(Value::is_array) => Ok(values),
        Selected::Many(values) => Ok(values.into_iter().map(inner).collect::<Result<Vec<_>, _>>()?.concat()),
    }
}

fn child(value: &Value, key: &str) -> Result<Value, String> {
    if key == "len()" {
        let long = match value {
            Value::Array(values) => values.len(),
            Value::Object(fields) => fields.len(),
            Value::String(text) => text.len(),
            _ => return Err(format!("no length: {value}")),
        };
        return Ok(Value::from(long));
    }
    if key.contains(',') {
        let cell = |key: &str| {
            let cell = value.get(key).filter(|cell| !cell.is_null())?;
            Some(cell.as_str().map_or_else(|| cell.to_string(), str::to_owned))
        };
        let cells: Vec<String> = key.split(',').filter_map(cell).collect();
        return Ok(Value::from(cells.join(" ")));
    }
    let found = match value {
        Value::Array(values) => key.parse::<usize>().ok().and_then(|at| values.get(at)),
        _ => value.get(key),
    };
    let keys = || value.as_object().map(|fields| fields.keys().cloned().collect::<Vec<_>>().join(", "));
    found.cloned().ok_or_else(|| format!("no `{key}` in {}", keys().unwrap_or_else(|| value.to_string())))
}

/// Texts may have gaps; `>5` compares a number.
fn agree(expected: &Value, found: &Value) -> bool {
    match (expected, found) {
        (Value::String(pattern), Value::String(text)) => is_whole(pattern, text),
        (Value::String(condition), Value::Number(number)) => {
            let compared =
                |sign: &str| condition.strip_prefix(sign).and_then(|limit| limit.trim().parse::<f64>().ok());
            let number = number.as_f64().unwrap_or(f64::NAN);
            match (compared(">="), compared("<="), compared(">"), compared("<")) {
                (Some(limit), ..) => number >= limit,
                (_, Some(limit), ..) => number <= limit,
                (.., Some(limit), _) => number > limit,
                (.., Some(limit)) => number < limit,
                _ => false,
            }
        }
        (Value::Number(one), Value::Number(other)) => one.as_f64() == other.as_f64(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| agree(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(key, one)| other.get(key).is_some_and(|other| agree(one, other)))
        }
        _ => expected == found,
    }
}
