//! Refuses arguments that would act on the terminal or on the CI job as soon as a message repeats them: names of branches and
//! files of a pull request become arguments, and values of the harness's own environment variables.

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

/// Why the harness's own variables are refused, by the first whose value acts. The value may be secret and is not shown.
pub(super) fn refused_variable(
    environment: impl IntoIterator<Item = (OsString, OsString)>,
) -> Option<String> {
    let own = environment.into_iter().map(|(name, value)| (name.to_string_lossy().into_owned(), value));
    let mut own = own.filter(|(name, _)| name.starts_with("HARNESS_"));
    own.find(|(name, value)| acts(name) || acts(&value.to_string_lossy())).map(|(name, _)| {
        format!(
            "environment variable `{}` has a control character or a command of CI; unset it or write it without",
            show(&name)
        )
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
    fn variables_of_the_harness_that_act_are_refused_by_name() {
        let why = |name: &str, value: &str| refused_variable([(OsString::from(name), OsString::from(value))]);
        for value in ["default\n::error::b", "::add-mask::b", "a\u{1b}[2J", "a\rb"] {
            let why = why("HARNESS_INVENTORY", value).expect(value);
            assert!(why.starts_with("environment variable `HARNESS_INVENTORY` has a control"), "{why}");
            assert!(!why.contains("::") && !why.contains(char::is_control), "{why:?}");
        }
        let named = why("HARNESS_\n::error::b", "a").expect("refused");
        assert!(!named.contains(char::is_control), "{named:?}");
        assert_eq!(why("HARNESS_INVENTORY", "a\n b"), None);
        assert_eq!(why("PS1", "a\n::error::b\u{1b}[0m"), None);
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
