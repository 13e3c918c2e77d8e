//! Flags of other programs, such as `--hosts` or `-x`: what to write instead, in place of clap's own guess.

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command};
use std::ffi::OsString;

/// What is typed, and what to do instead.
const FLAGS: [(&str, &str); 31] = [
    ("--config", "write `--inventory NAME` and `--suite NAME`, or settings into `.config/harness.toml`"),
    ("--debug", "write `-v`"),
    ("--dryrun", "write `harness plan`"),
    ("--env", "write `environment` into the workload of the case, or `[environment]` into the inventory"),
    ("--exclude", "write `--exclude-nodes`"),
    ("--exitfirst", "write `--max-fail 1`"),
    ("--fail-fast", "write `--max-fail 1`"),
    ("--fault", "write `--sim-fault`"),
    ("--filter", "write the text without a flag, or `-E EXPRESSION`"),
    ("--host", "write `--nodes`"),
    ("--hostfile", "write `--nodes`"),
    ("--hosts", "write `--nodes`"),
    ("--jobs", "jobs run side by side where nodes are free: leave it out"),
    ("--junitxml", "write `--junit`"),
    ("--loglevel", "write `-v`"),
    ("--maxfail", "write `--max-fail`"),
    ("--nodelist", "write `--nodes`"),
    ("--out", "write `--junit PATH` or `--json PATH`"),
    ("--output", "write `--junit PATH` or `--json PATH`"),
    ("--partition", "write it into the inventory: `reach = { via = \"slurm\", partition = \"p5\" }`"),
    ("--repeat", "write `repeats` into the suite"),
    ("--report", "write `--junit PATH` or `--json PATH`"),
    ("--retries", "write `retry_infrastructure = 1` into the suite, or run `harness rerun`"),
    ("--retry", "write `retry_infrastructure = 1` into the suite, or run `harness rerun`"),
    ("--skip-nodes", "write `--exclude-nodes`"),
    ("-H", "write `--nodes`"),
    ("-N", "write `--nodes`"),
    ("-j", "jobs run side by side where nodes are free: leave it out"),
    ("-k", "write `-E`"),
    ("-w", "write `--nodes`"),
    ("-x", "write `--max-fail 1`"),
];

/// What asks for a report file: flags of verbs that run or judge suites alone.
const REPORTS: [&str; 9] = [
    "--ctrf",
    "--json",
    "--junit",
    "--markdown",
    "--openmetrics",
    "--out",
    "--output",
    "--prometheus",
    "--report",
];

/// The verb that was typed, or the verb of a verb.
pub(super) fn typed_verb<'a>(command: &'a Command, args: &[OsString]) -> &'a Command {
    let mut verb = command;
    for word in args.iter().skip(1) {
        match verb.find_subcommand(word) {
            Some(next) => verb = next,
            None => break,
        }
    }
    verb
}

/// What to write instead of a flag, in this verb.
fn instead(verb: &Command, typed: &str) -> Option<&'static str> {
    let offered: Vec<&Arg> = verb.get_arguments().filter(|argument| !argument.is_hide_set()).collect();
    let has = |long: &str| offered.iter().any(|argument| argument.get_long() == Some(long));
    if typed == "--dryrun" && has("dry-run") {
        return Some("write `--dry-run`");
    }
    if !typed.starts_with('-') {
        let is_filtered = verb.get_positionals().any(|argument| argument.get_id() == "filter");
        return (is_filtered && has("case"))
            .then_some("write `--case NAME` for each case: one FILTER is read");
    }
    if !REPORTS.contains(&typed) || has("junit") {
        return FLAGS.iter().find(|(flag, _)| *flag == typed).map(|(_, instead)| *instead);
    }
    let has_json = offered.iter().any(|argument| {
        argument.get_long() == Some("format")
            && argument.get_possible_values().iter().any(|value| value.get_name() == "json")
    });
    Some(match (typed, has_json) {
        ("--out" | "--report", _) if has("output") => "write `--output`",
        (_, true) => {
            "write `--format json`; reports in files are flags of `harness run` and `harness replay`"
        }
        (_, false) => "reports in files are flags of `harness run` and `harness replay`",
    })
}

/// The same error, with what a person can do about it.
pub(super) fn explained(mut error: clap::Error, verb: &Command) -> clap::Error {
    match error.kind() {
        ErrorKind::UnknownArgument => {
            let typed = match error.get(ContextKind::InvalidArg) {
                Some(ContextValue::String(typed)) => typed.split('=').next().unwrap_or_default().to_owned(),
                _ => return error,
            };
            if let Some(instead) = instead(verb, &typed) {
                error.remove(ContextKind::SuggestedArg);
                error.insert(ContextKind::Suggested, tip(instead));
            } else if error.get(ContextKind::SuggestedArg).is_none() {
                // clap advises to pass a mistyped flag on as a filter.
                error.remove(ContextKind::Suggested);
            }
            error
        }
        ErrorKind::ValueValidation => number(error),
        _ => error,
    }
}

fn tip(text: &'static str) -> ContextValue {
    ContextValue::StyledStrs(vec![StyledStr::from(text)])
}

/// Rust's own words for a text that is no number say nothing to a person.
fn number(mut error: clap::Error) -> clap::Error {
    let is_no_number = error.to_string().contains("invalid digit found in string");
    if is_no_number {
        error.insert(ContextKind::Suggested, tip("a whole number is needed, such as `1`"));
    }
    error
}

#[cfg(test)]
mod tests {
    use super::{FLAGS, REPORTS, instead, typed_verb};
    use crate::cli::verbs;

    #[test]
    fn a_verb_that_writes_no_reports_does_not_advise_to_ask_for_one() {
        let command = verbs::command();
        let advice = |words: &[&str], flag: &str| {
            let args: Vec<std::ffi::OsString> = words.iter().map(Into::into).collect();
            instead(typed_verb(&command, &args), flag).unwrap_or_default()
        };
        assert_eq!(advice(&["harness", "run"], "--report"), "write `--junit PATH` or `--json PATH`");
        assert_eq!(advice(&["harness", "isolate"], "--dryrun"), "write `--dry-run`");
        assert_eq!(advice(&["harness", "run"], "--dryrun"), "write `harness plan`");
        assert_eq!(advice(&["harness", "rma", "p5-001"], "--out"), "write `--output`");
        assert!(advice(&["harness", "isolate"], "--junit").starts_with("write `--format json`; reports"));
        for flag in REPORTS {
            let text = advice(&["harness", "baseline", "show"], flag);
            assert!(!text.contains("--junit"), "{flag}: {text}");
        }
    }

    #[test]
    fn none_of_them_is_a_flag_of_run() {
        for (flag, _) in FLAGS {
            let args = ["harness", "run", "--suite", "x", flag, "1"].map(std::ffi::OsString::from);
            let why = verbs::refusal(args.to_vec());
            assert_eq!(why.as_deref(), Some("printed, exit 2"), "{flag}");
        }
    }
}
