//! Refuses arguments that would act on the terminal or on the CI job as soon as a message repeats them: names of branches and
//! files of a pull request become arguments.

use base::text::show;
use std::ffi::OsString;

/// Commands that GitHub Actions obeys at the begin of a line of a log.
const COMMANDS: [&str; 16] = [
    "error",
    "warning",
    "notice",
    "debug",
    "group",
    "endgroup",
    "echo",
    "add-mask",
    "add-matcher",
    "remove-matcher",
    "add-path",
    "set-env",
    "set-output",
    "save-state",
    "stop-commands",
    "internal-set-repo-path",
];

/// Why these arguments are refused, by the first that acts.
pub(super) fn refused(arguments: &[OsString]) -> Option<String> {
    let mut texts = arguments.iter().skip(1).map(|argument| argument.to_string_lossy());
    texts.find(|text| acts(text)).map(|text| {
        format!("argument with a control character or a command of CI: `{}`; write it without", show(&text))
    })
}

fn acts(text: &str) -> bool {
    text.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\t')) || text.lines().any(is_command)
}

fn is_command(line: &str) -> bool {
    let Some(rest) = line.trim_start().strip_prefix("::") else { return false };
    COMMANDS.iter().any(|command| {
        let behind = rest.get(command.len()..);
        behind.is_some_and(|behind| behind.starts_with("::") || behind.starts_with(' '))
            && rest[..command.len()].eq_ignore_ascii_case(command)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn why(argument: &str) -> Option<String> {
        refused(&["harness".into(), "plan".into(), argument.into()])
    }

    #[test]
    fn what_acts_on_a_terminal_or_a_job_is_refused_and_shown_as_text() {
        for argument in [
            "a\u{1b}[2J",
            "a\rb",
            "a\n::error::b",
            "::stop-commands::x",
            "a\n ::Add-Mask::b",
            "::error file=x::y",
        ] {
            let why = why(argument).expect(argument);
            assert!(why.starts_with("argument with a control") && !why.contains(char::is_control), "{why:?}");
        }
    }

    #[test]
    fn names_filters_and_texts_of_several_lines_are_taken() {
        for argument in
            ["nccl-p5", "::case::", "suite::error::x", "args=[\"a\",\n\t\"b\"]", "Grüße", "::errors::", "::é"]
        {
            assert_eq!(why(argument), None, "{argument}");
        }
    }
}
