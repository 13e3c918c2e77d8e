//! What `harness lint` prints beside the findings, and what it reports of lists of functions that are not JSON.

use super::tests::show;
use super::{LintCommand, function_trace};

#[test]
fn messages() {
    let script = "#!/bin/bash\nexport RDMAV_FORM_SAFE=1\nprog --data $DATA\n";
    let (_, out, err) = show(&[("a.sh", script), ("gone.sh", "")], LintCommand::Script);
    let two = show(&[("a.json", "[]"), ("b.json", "{}")], LintCommand::FunctionTrace).1;
    insta::assert_snapshot!([err, out, two].concat());
}

#[test]
fn where_no_file_can_be_read_none_are_counted() {
    let (_, out, err) = show(&[("gone.yaml", "")], LintCommand::Manifest);
    assert_eq!(out, "");
    assert!(err.starts_with("gone.yaml: "), "{err}");
}

#[test]
fn messages_of_json() {
    let texts = [
        ("comment", "[1] // all".to_owned()),
        ("trailing comma", "[1,\n 2,]".to_owned()),
        ("quotation marks", "[\u{201c}a\u{201d}]".to_owned()),
        ("key without quotation marks", "[{a: 1}]".to_owned()),
        ("key without a colon", "[{\"a\" 1}]".to_owned()),
        ("key without a value", "[{\"a\": }]".to_owned()),
        ("value that is none", "[0x10]".to_owned()),
        ("no comma", "[1 2]".to_owned()),
        ("open bracket", "[1,".to_owned()),
        ("open string", "[\"a\n\"]".to_owned()),
        ("escape", "[\"\\x\"]".to_owned()),
        ("escape without its digits", "[\"\\u12\"]".to_owned()),
        ("two values", "[] []".to_owned()),
        ("many levels", "[".repeat(1000)),
        ("colour that is a list", "[{\"module\": \"a\", \"functions\": [\"b\"], \"color\": []}]".to_owned()),
        ("functions that are a number", "[{\"module\": \"a\", \"functions\": 7}]".to_owned()),
    ];
    let lines = texts.map(|(what, text)| {
        let found = function_trace(&text, "f.json").diagnostics;
        let found: Vec<String> = found.iter().map(ToString::to_string).collect();
        format!("{what}: {}", found.join("\n  "))
    });
    insta::assert_snapshot!(lines.join("\n"));
}
