//! The rules of `junit-10.xsd` of Jenkins' xUnit plugin, for tests: which elements and attributes may stand where.
//! Written down from the schema: the order of children is free in it, and values are texts but for the time of suites.

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

/// An element: its children, the attributes that it must have, and those that it may have.
type Rule = (&'static str, &'static [&'static str], &'static [&'static str], &'static [&'static str]);

const RESULT: &[&str] = &["type", "message"];
const RULES: [Rule; 9] = [
    ("testsuites", &["testsuite"], &[], &["name", "time", "tests", "failures", "errors"]),
    (
        "testsuite",
        &["testsuite", "properties", "testcase", "system-out", "system-err"],
        &["name", "tests", "failures", "errors"],
        &["group", "time", "skipped", "timestamp", "hostname", "id", "package", "file", "log", "url"],
    ),
    (
        "testcase",
        &["skipped", "error", "failure", "system-out", "system-err"],
        &["name"],
        &["time", "classname", "group"],
    ),
    ("properties", &["property"], &[], &[]),
    ("property", &[], &["name", "value"], &[]),
    ("failure", &[], &[], RESULT),
    ("error", &[], &[], RESULT),
    ("skipped", &[], &[], RESULT),
    ("system-out", &[], &[], &[]),
];

/// All that the schema does not allow, each once.
pub(super) fn violations(document: &[u8]) -> Vec<String> {
    let text = std::str::from_utf8(document).unwrap();
    let mut reader = Reader::from_str(text);
    let mut open: Vec<String> = Vec::new();
    let mut found = Vec::new();
    loop {
        let event = reader.read_event().unwrap();
        match &event {
            Event::Eof => break,
            Event::Start(start) | Event::Empty(start) => {
                let name = start.name().as_ref().to_owned();
                check(&name, open.last().map(String::as_str), start, &mut found);
                if matches!(event, Event::Start(_)) {
                    open.push(name);
                }
            }
            Event::End(_) => {
                open.pop();
            }
            _ => {}
        }
    }
    found.sort();
    found.dedup();
    found
}

fn check(name: &str, parent: Option<&str>, start: &BytesStart, found: &mut Vec<String>) {
    let rule = |name: &str| RULES.iter().find(|(of, ..)| *of == name);
    let Some((_, _, required, allowed)) = rule(name) else {
        return found.push(format!("<{name}> is no element"));
    };
    match parent {
        Some(parent) if !rule(parent).is_some_and(|(_, children, ..)| children.contains(&name)) => {
            found.push(format!("<{name}> in <{parent}>"));
        }
        None if name != "testsuites" => found.push(format!("<{name}> at the root")),
        _ => {}
    }
    let attributes: Vec<(String, String)> = start
        .attributes()
        .map(|attribute| attribute.unwrap())
        .map(|attribute| (attribute.key.as_ref().to_owned(), String::from(attribute.value.as_ref())))
        .collect();
    for key in required.iter().filter(|key| !attributes.iter().any(|(name, _)| name == *key)) {
        found.push(format!("no {key} of <{name}>"));
    }
    for (key, value) in &attributes {
        if !required.contains(&key.as_str()) && !allowed.contains(&key.as_str()) {
            found.push(format!("attribute {key} of <{name}>"));
        }
        let is_time = value.chars().all(|c| c.is_ascii_digit() || c == '.') && value.matches('.').count() < 2;
        if key == "time" && name != "testcase" && !is_time {
            found.push(format!("time of <{name}>: {value}"));
        }
    }
}
