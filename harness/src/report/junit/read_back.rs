//! A reader of the document for tests, strict about what XML allows, that knows nothing of how it was made.

use quick_xml::events::{BytesStart, Event};
use quick_xml::{Reader, XmlVersion};
use std::collections::BTreeMap;

#[derive(Debug, Default)]
pub(super) struct Element {
    pub attributes: BTreeMap<String, String>,
    pub properties: BTreeMap<String, String>,
    pub result: Option<(String, BTreeMap<String, String>)>,
    pub text: String,
}

#[derive(Debug, Default)]
pub(super) struct Document {
    pub whole: Element,
    pub suites: Vec<(Element, Vec<Element>)>,
}

fn attributes(start: &BytesStart) -> BTreeMap<String, String> {
    let pair = |attribute: quick_xml::events::attributes::Attribute| {
        let value = attribute.normalized_value(XmlVersion::Explicit1_0).unwrap().into_owned();
        (attribute.key.as_ref().to_owned(), value)
    };
    start.attributes().map(|attribute| pair(attribute.unwrap())).collect()
}

pub(super) fn read(bytes: &[u8]) -> Document {
    let text = std::str::from_utf8(bytes).unwrap();
    assert!(
        text.chars()
            .all(|c| matches!(c, '\n' | '\t' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..))
    );
    let mut reader = Reader::from_str(text);
    let mut document = Document::default();
    let mut in_case = false;
    loop {
        let event = reader.read_event().unwrap();
        let opened = matches!(event, Event::Start(_));
        match &event {
            Event::Eof => return document,
            Event::Start(start) | Event::Empty(start) => {
                let name = start.name().as_ref().to_owned();
                let attributes = attributes(start);
                match name.as_str() {
                    "testsuites" => document.whole.attributes = attributes,
                    "testsuite" => {
                        document.suites.push((Element { attributes, ..Element::default() }, vec![]));
                    }
                    "testcase" => {
                        in_case = opened;
                        let cases = &mut document.suites.last_mut().unwrap().1;
                        cases.push(Element { attributes, ..Element::default() });
                    }
                    "property" => {
                        let pair = (attributes["name"].clone(), attributes["value"].clone());
                        current(&mut document, in_case).properties.extend([pair]);
                    }
                    "failure" | "error" | "skipped" => {
                        current(&mut document, in_case).result = Some((name, attributes));
                    }
                    "properties" | "system-out" => (),
                    other => panic!("{other}"),
                }
            }
            Event::End(end) if end.name().as_ref() == "testcase" => in_case = false,
            Event::CData(data) => current(&mut document, in_case).text.push_str(&data.xml10_content()),
            Event::Text(data) if data.chars().all(char::is_whitespace) => (),
            Event::Text(data) => panic!("text outside of CDATA: {data:?}"),
            _ => (),
        }
    }
}

fn current(document: &mut Document, in_case: bool) -> &mut Element {
    let (suite, cases) = document.suites.last_mut().unwrap();
    if in_case { cases.last_mut().unwrap() } else { suite }
}
