//! Scripts cut into commands, words and variables, and whatever else a text may be.

use super::*;
use proptest::prelude::*;

fn arguments(text: &str) -> Vec<Vec<String>> {
    let commands = read(text).commands;
    commands.iter().map(|command| command.words.iter().map(|word| word.text.clone()).collect()).collect()
}

#[test]
fn commands_are_words_whatever_stands_between_them() {
    let text = "a 'b c' \"d $E\" \\\n  f; g | h && if i; then j; fi # k\nl <<'END'\nno words\nEND\nm $(n o)";
    let expected: Vec<Vec<&str>> = vec![
        vec!["a", "b c", "d $E", "f"],
        vec!["g"],
        vec!["h"],
        vec!["i"],
        vec!["j"],
        vec!["l"],
        vec!["n", "o"],
        vec!["m", "$(n o)"],
    ];
    assert_eq!(arguments(text), expected);
}

#[test]
fn lists_have_their_names_and_uses_their_places() {
    let script = read("X=(\n  --a=${B:-1} \\\n  'c $D' # no word\n)\nrun \"${X[@]}\"\n");
    let list = script.commands.iter().find(|command| command.list.is_some()).expect("a list");
    assert_eq!((list.list.as_deref(), list.words.len()), (Some("X"), 2));
    let uses: Vec<(&str, &str, usize, usize, bool)> = script
        .commands
        .iter()
        .flat_map(|command| &command.words)
        .flat_map(|word| &word.uses)
        .map(|it| (it.name.as_str(), it.behind.as_str(), it.line, it.column, it.is_quoted))
        .collect();
    assert_eq!(uses, [("B", ":-1", 2, 7, false), ("D", "", 3, 6, true), ("X", "[@]", 5, 6, false)]);
}

#[test]
fn directives_are_words_that_no_shell_expands() {
    let script = read("#!/usr/bin/env bash\n#SBATCH --nodes=2 # two\n#SBATCH -o $HOME/x\nhostname\n");
    assert_eq!((script.shell.as_deref(), script.directives.len()), (Some("bash"), 2));
    let word = &script.directives[1].words[1];
    assert_eq!((word.text.as_str(), word.line, word.column), ("$HOME/x", 3, 12));
    assert_eq!((word.uses[0].name.as_str(), word.uses[0].column), ("HOME", 12));
}

#[test]
fn blanks_and_comments_behind_a_backslash_are_slips() {
    let slips = |text: &str| read(text).slips.iter().map(|slip| (slip.line, slip.column)).collect::<Vec<_>>();
    assert_eq!(slips("a \\ # why\n  b\n"), [(1, 3)]);
    assert_eq!(slips("a \\  \n b\n"), [(1, 3)]);
    assert_eq!(slips("a \\\n b\\ c\n"), []);
}

#[test]
fn commands_nested_too_deep_are_one_error_and_end_the_reading() {
    let nested = |depth: usize, end: &str| read(&format!("{}a{}", "$(".repeat(depth), end.repeat(depth)));
    assert_eq!(nested(16, ")").slips, []);
    for script in [nested(17, ")"), nested(10_000, ")"), nested(10_000, "")] {
        let [slip] = &script.slips[..] else { panic!("{:?}", script.slips) };
        assert_eq!((slip.line, slip.column), (1, 35));
        assert_eq!(slip.message, "commands nested more than 16 deep, which are not checked");
        assert_eq!(script.commands.len(), 17);
    }
}

#[test]
fn lists_within_lists_are_one_list() {
    let script = read(&"a=(".repeat(20_000));
    assert_eq!((script.commands.len(), script.commands[0].words.len()), (2, 19_999));
}

proptest! {
    #[test]
    fn any_text_is_read_to_its_end(text in "[-a-z$(){}'\"`\\\\#<>|&; \n=]{0,80}") {
        read(&text);
    }
}
