//! That a scenario with an error is refused and says where, and what patterns and places mean.

use crate::names;
use crate::page::{self, Block};
use crate::pattern::{is_in, is_whole};
use crate::printed_fixes;
use crate::project::{Project, Ran};
use crate::scenario::Scenario;
use crate::screen;
use crate::steps::run;
use crate::value::Values;
use crate::{FOLDER, root, scenarios};
use libtest_mimic::{Failed, Trial};
use serde_json::json;
use std::path::Path;

pub(crate) fn trials() -> Vec<Trial> {
    let all: [(&str, fn()); 12] = [
        ("errors_of_a_scenario_are_reported_with_their_line", errors),
        ("errors_that_show_only_in_a_run_are_reported_with_their_step", errors_in_runs),
        ("trials_are_named_by_all_texts_of_their_rows", labels),
        ("what_lies_where_it_is_no_test_is_found", misplaced),
        ("gaps_stay_within_a_line_or_not", gaps),
        ("values_are_found_by_place", places),
        ("ids_of_runs_are_shown_by_number", names::check),
        ("blocks_of_a_page_are_kept_apart", blocks),
        ("a_block_of_a_page_that_is_none_is_refused", refused_blocks),
        ("a_screen_has_the_last_lines_that_fit_it", screen::check),
        ("at_least_90_errors_of_users_apply_the_fix_as_it_is_printed", printed_fixes::count),
        ("a_first_hour_begins_in_an_empty_folder_and_has_at_most_five_commands", first_hours),
    ];
    let trial = |(name, test): (&str, fn())| {
        Trial::test(format!("runner::{name}"), move || {
            std::panic::catch_unwind(test).map_err(|_| Failed::without_message())
        })
    };
    all.into_iter().map(trial).collect()
}

fn first_hours() {
    let (files, _) = scenarios(&root().join(FOLDER));
    let hours: Vec<_> =
        files.iter().filter(|file| file.parent().is_some_and(|area| area.ends_with("first_hour"))).collect();
    assert_eq!(hours.len(), 3, "an SRE, a CI engineer, a performance engineer: {hours:?}");
    for file in hours {
        let scenario =
            Scenario::read(std::fs::read_to_string(file).expect("a scenario")).expect("a scenario");
        assert!(scenario.bare && scenario.step.len() <= 5, "{}", file.display());
    }
}

fn errors() {
    for (text, expected) in [
        ("", "no step"),
        ("[[step]]\nrun = \"check\"\n", "the last step expects nothing"),
        ("[[step]]\nexit = 0\n", "step 1: expects something of a command and has no `run`"),
        ("[[step]]\nno_out = \"a\"\n", "has no `run`"),
        ("[[step]]\nblamed = []\n", "has no `run`"),
        ("[[step]]\nis = { \"lines(err)#/len()\" = 0 }\n", "has no `run`"),
        ("[[step]]\nrun = \"check\"\nexti = 1\n", "line 3, column 1"),
        ("[[step]]\nrun = \"check\"\nout = 7\n", "a text or a list of texts"),
        ("each = [{ a = 1 }, { b = 1 }]\n[[step]]\nrun = \"check\"\nexit = 0\n", "differ in their keys"),
    ] {
        let error = Scenario::read(text.to_owned()).err().unwrap_or_default();
        assert!(error.contains(expected), "{text}: {error}");
    }
}

fn errors_in_runs() {
    for (step, expected) in [
        ("out = [\"\"]", "out: an empty text is expected"),
        ("no_err = \"{none}\"", "err: an empty text is expected"),
        ("text = { \"./a\" = [\"{none}\"] }", "./a: an empty text is expected"),
        ("no_out = \"{nine}\"", "no variable `nine`"),
        ("env = { A = \"{nine}\" }", "no variable `nine`"),
        ("remove = \"{nine}\"", "no variable `nine`"),
        ("blamed = [\"{nine}\"]", "no variable `nine`"),
        ("err_is = \"{nine}\"", "no variable `nine`"),
        ("no_text = { \"./a\" = \"{nine}\" }", "no variable `nine`"),
        ("is = { \"./{nine}\" = 1 }", "no variable `nine`"),
        ("is = { \"text(./a)\" = [{ b = \"{nine}\" }] }", "no variable `nine`"),
        ("keep = { b = \"text(./{nine})\" }", "no variable `nine`"),
    ] {
        let head = "bare = true\nvars = { none = \"\" }\nfiles = { a = \"{nine}\" }\n[[step]]\nrun = \"--version\"\n";
        let scenario = Scenario::read(format!("{head}{step}\n[[step]]\nruns = 0\n")).expect("a scenario");
        let error = run(&scenario, Path::new(""), "none", None).err().unwrap_or_default();
        assert!(error.contains("step 1: ") && error.contains(expected), "{step}: {error}");
    }
}

fn labels() {
    let rows =
        "each = [{ b = \"x y\", a = \"1\", c = 2, d = \"\" }, { a = \"1\", b = \"x y\", c = 3, d = \"\" }]";
    let scenario = Scenario::read(format!("{rows}\n[[step]]\nruns = 0\n")).expect("a scenario");
    assert_eq!([scenario.label(0), scenario.label(1)], ["1-1-x_y", "2-1-x_y"]);
}

fn misplaced() {
    let project = Project::bare();
    for name in ["on_top.toml", "area/one.toml", "area/files/suites/a.toml", "area/below/two.toml"] {
        project.write(name, "");
    }
    let paths = |names: [&str; 1]| names.map(|name| project.path().join(name)).to_vec();
    let (files, others) = scenarios(project.path());
    assert_eq!(files, paths(["area/one.toml"]));
    assert_eq!(others, [paths(["area/below"]), paths(["on_top.toml"])].concat());
}

fn blocks() {
    let text = "`harness a` and `a`\n<!-- run, exit 1: harness b -->\n```console\n$ harness c \\\n> d\none\n\ntwo\n\n$ echo $?\n\
                0\n```\n```toml file=x.toml\na = 1\n```\n```sh\n# why\nharness e # f\n```\n```yaml\n- run: harness g\nx: 1\n```\n    harness h\n";
    let parse = |line, command: &str| Block::Parse { line, command: command.to_owned() };
    let run = |line, command: &str, shown: &str| {
        let begin = text.find(shown).expect("there");
        Block::Run { line, command: command.to_owned(), output: begin..begin + shown.len() }
    };
    let expected = vec![
        parse(1, "harness a"),
        Block::Setup { line: 2, command: "harness b".to_owned(), exit: 1 },
        run(4, "harness c \\\nd", "one\n\ntwo\n"),
        run(10, "echo $?", "0\n"),
        Block::File { line: 13, name: "x.toml".to_owned(), text: "a = 1\n".to_owned() },
        parse(18, "harness e # f"),
        parse(21, "harness g"),
        parse(24, "harness h"),
    ];
    assert_eq!(page::read(text), Ok(expected));
}

fn refused_blocks() {
    for (text, expected) in [
        ("```\nharness a\n```\n", "no such kind of block"),
        ("```rust\n```\n", "no such kind of block"),
        ("```console\nharness a\n```\n", "output of no command"),
        ("```console\n```\n", "a block without a command"),
        ("```text\n$ harness a\n```\n", "a command in a block of `text`"),
        ("<!-- run 1: harness a -->\n", "write `<!-- run"),
    ] {
        let error = page::read(text).err().unwrap_or_default();
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
        ("out#/all/2", json!("absent()")),
        ("out#/all/*/m", json!("absent()")),
        ("out#/all[n=3]", json!("absent()")),
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
        ("out#/all/*/n", json!("absent()")),
        ("out#/all/len()", json!("absent()")),
        ("out#/all/none", json!("absent()")),
        ("out#/all[name=c]/n", json!("absent()")),
        ("out#/nono/x", json!("absent()")),
        ("none.json#/a", json!("absent()")),
        ("lnes(err)", json!("absent()")),
        ("lnes(err)#/0", json!("absent()")),
        ("none.json#/a", json!(1)),
        ("lnes(err)#/0", json!("one")),
    ] {
        assert!(values.check(place, &expected).is_err(), "{place}");
    }
}
