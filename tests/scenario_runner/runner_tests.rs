//! That a scenario with an error is refused and says where, and what patterns and places mean.

use crate::pattern::{is_in, is_whole};
use crate::project::{Project, Ran};
use crate::scenario::Scenario;
use crate::value::Values;
use libtest_mimic::{Failed, Trial};
use serde_json::json;

pub(crate) fn trials() -> Vec<Trial> {
    let all: [(&str, fn()); 3] = [
        ("errors_of_a_scenario_are_reported_with_their_line", errors),
        ("gaps_stay_within_a_line_or_not", gaps),
        ("values_are_found_by_place", places),
    ];
    let trial = |(name, test): (&str, fn())| {
        Trial::test(format!("runner::{name}"), move || {
            std::panic::catch_unwind(test).map_err(|_| Failed::without_message())
        })
    };
    all.into_iter().map(trial).collect()
}

fn errors() {
    for (text, expected) in [
        ("", "no step"),
        ("[[step]]\nrun = \"check\"\n", "the last step expects nothing"),
        ("[[step]]\nrun = \"check\"\nout = [\"\"]\n", "step 1: an empty text is expected"),
        ("[[step]]\nexit = 0\n", "step 1: expects an end and has no `run`"),
        ("[[step]]\nrun = \"check\"\nexti = 1\n", "line 3, column 1"),
        ("[[step]]\nrun = \"check\"\nout = 7\n", "a text or a list of texts"),
        ("each = [{ a = 1 }, { b = 1 }]\n[[step]]\nrun = \"check\"\nexit = 0\n", "differ in their keys"),
    ] {
        let error = Scenario::read(text.to_owned()).err().unwrap_or_default();
        assert!(error.contains(expected), "{text}: {error}");
    }
}

fn gaps() {
    assert!(is_in("a[..]c", "xabcx") && !is_in("a[..]c", "a\nc") && is_in("a[...]c", "a\nc"));
    assert!(is_in("\na[..]a", "a\nba\nab a") && !is_in("\nb", "ab"));
    assert!(
        is_whole("a[..]b", "abb")
            && !is_whole("a[..]b", "abc")
            && is_whole("[...]", "")
            && is_whole("a", "a")
    );
}

fn places() {
    let text = json!({ "all": [{ "name": "a/[1]", "n": 1, "s": "x" }, { "name": "b", "n": 2, "s": "y" }] });
    let (project, ran) =
        (Project::bare(), Ran { code: Some(0), stdout: text.to_string(), stderr: "one\ntwo\n".into() });
    let values = Values { project: &project, ran: &ran };
    for (place, expected) in [
        ("out#/all/1/name", json!("b")),
        ("out#/all[name=a/[1]]/n", json!([1])),
        ("out#/all/*/n", json!([1, 2])),
        ("out#/all/*/n", json!(">0")),
        ("out#/all/*/name,s", json!(["a/[..] x", "b y"])),
        ("out#/all[n=2]/len()", json!(1)),
        ("out#/all/len()", json!("<=2")),
        ("out#/none", json!("absent()")),
        ("lines(err)#[=t*]", json!(["two"])),
        ("text(err)", json!("same as text(err)")),
        ("exists(./none)", json!(false)),
        ("ls(./)", json!([])),
    ] {
        values.check(place, &expected).unwrap_or_else(|error| panic!("{place}: {error}"));
    }
    for (place, expected) in [
        ("out#/all/1/nam", json!("b")),
        ("out#/all[name=c]/n", json!(1)),
        ("out#/all/*/n", json!(">1")),
        ("out#/all", json!("absent()")),
        ("none.json#/a", json!(1)),
        ("lnes(err)#/0", json!("one")),
    ] {
        assert!(values.check(place, &expected).is_err(), "{place}");
    }
}
