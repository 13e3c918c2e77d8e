//! What to type after a wrong argument: in place of clap's own guess for flags of other programs, such as `--hosts` or `-x`,
//! and where clap names no command.

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

/// Values that a flag or verb needs: what names them, or one as it is written.
const VALUES: [(&str, &str); 9] = [
    ("--case", "`harness list --suite NAME` lists cases"),
    ("--inventory", "`harness list` names inventories"),
    ("--nodes", "nodes are written as `p5-[001-004]` or `p5-001,p5-003`"),
    ("--run", "`harness runs list` lists runs"),
    ("--sim-fault", "a fault is written as `p5-002:hang`"),
    ("--suite", "`harness list` names suites"),
    ("--timeout", "a duration is written as `90s`, `10m` or `1h30m`"),
    ("<A>", "`harness runs list` lists runs"),
    ("<METRIC>", "write a metric, such as `nccl.busbw`"),
];

/// Of `isolate`, which takes the suite of a run.
const SUITE_OF_RUN: &str = "`harness list` names suites; `--run latest` takes that of the newest run";
/// Of `replay`.
const STAGE: &str = "`--from judge` judges it again, `--from report` prints it";
/// Of `logs`, whose files come after their kind.
const KIND_OF_LOG: &str = "name the kind first: `harness logs steps FILE` for a training, `nccl`, `nccl-tests` or `node` for others";

/// The verb that was typed, or the verb of a verb, and how it is typed.
pub(super) fn typed_verb<'a>(command: &'a Command, args: &[OsString]) -> (&'a Command, String) {
    let mut verb = command;
    let mut typed = String::new();
    for word in args.iter().skip(1) {
        let Some(next) = verb.find_subcommand(word) else { break };
        verb = next;
        typed.push(' ');
        typed.push_str(next.get_name());
    }
    (verb, typed)
}

/// The text of an error, with a command to type at its end: clap's own names a flag and no verb.
pub(super) fn text(error: &clap::Error, typed: &str) -> String {
    error.to_string().replace("try '--help'", &format!("type `harness help{typed}`"))
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
        ErrorKind::InvalidValue | ErrorKind::MissingRequiredArgument => missing(error, verb),
        // A file where the kind of log stands.
        ErrorKind::InvalidSubcommand
            if verb.get_name() == "logs" && error.get(ContextKind::SuggestedSubcommand).is_none() =>
        {
            error.insert(ContextKind::Suggested, tip(KIND_OF_LOG));
            error
        }
        _ => error,
    }
}

/// What was left out is named with what can stand there.
fn missing(mut error: clap::Error, verb: &Command) -> clap::Error {
    let is_left_out = match error.get(ContextKind::InvalidValue) {
        Some(ContextValue::String(value)) => value.is_empty(),
        _ => true,
    };
    let first = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(argument)) => Some(argument),
        Some(ContextValue::Strings(arguments)) => arguments.first(),
        _ => None,
    };
    let name = first.and_then(|argument| argument.split(' ').next()).unwrap_or_default();
    let tips = match (verb.get_name(), name) {
        ("isolate", "--suite") if is_left_out => Some(tip(SUITE_OF_RUN)),
        ("replay", "--from") if is_left_out => Some(tip(STAGE)),
        _ => VALUES.iter().find(|(needs, _)| is_left_out && *needs == name).map(|(_, instead)| tip(instead)),
    };
    if let Some(tips) = tips {
        error.insert(ContextKind::Suggested, tips);
    }
    error
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
    use super::{FLAGS, REPORTS, VALUES, explained, instead, text, typed_verb};
    use crate::cli::verbs;
    use std::ffi::OsString;

    #[test]
    fn a_verb_that_writes_no_reports_does_not_advise_to_ask_for_one() {
        let command = verbs::command();
        let advice = |words: &[&str], flag: &str| {
            let args: Vec<OsString> = words.iter().map(Into::into).collect();
            instead(typed_verb(&command, &args).0, flag).unwrap_or_default()
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
            let args = ["harness", "run", "--suite", "x", flag, "1"].map(OsString::from);
            let why = verbs::refusal(args.to_vec());
            assert_eq!(why.as_deref(), Some("printed, exit 2"), "{flag}");
        }
    }

    /// What a person reads after a wrong command line.
    fn answer(line: &str) -> String {
        let args: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let mut command = verbs::command();
        let error = command.try_get_matches_from_mut(&args).expect_err(line);
        let (verb, typed) = typed_verb(&command, &args);
        text(&explained(error, verb), &typed)
    }

    #[test]
    fn a_wrong_command_line_is_answered_with_a_command_to_type() {
        for (line, next) in [
            ("harness run --siute x", "For more information, type `harness help run`."),
            ("harness baseline propose", "For more information, type `harness help baseline propose`."),
            ("harness runs shw", "For more information, type `harness help runs`."),
            ("harness isolate --suite", "tip: `harness list` names suites"),
            ("harness isolate", "tip: `harness list` names suites"),
            ("harness baseline propose", "tip: `harness runs list` lists runs"),
            ("harness compare", "tip: `harness runs list` lists runs"),
            ("harness isolate", "; `--run latest` takes that of the newest run"),
            ("harness logs train.out", "tip: name the kind first: `harness logs steps FILE` for a training"),
            ("harness logs step train.out", "a similar subcommand exists: 'steps'"),
            ("harness replay", "tip: `--from judge` judges it again"),
            ("harness history", "tip: write a metric, such as `nccl.busbw`"),
        ] {
            let answer = answer(line);
            assert!(answer.contains(next), "{line}: {answer}");
            assert!(!answer.contains("try '--help'"), "{line}: {answer}");
        }
    }

    #[test]
    fn each_value_with_an_example_is_one_that_some_verb_needs() {
        let command = verbs::command();
        let names: Vec<String> = command.get_subcommands().flat_map(all_arguments).collect();
        for (needs, _) in VALUES {
            assert!(names.iter().any(|name| name == needs), "{needs}");
        }
    }

    fn all_arguments(verb: &clap::Command) -> Vec<String> {
        let name = |argument: &clap::Arg| match argument.get_long() {
            Some(long) => format!("--{long}"),
            None => {
                let first = argument.get_value_names().and_then(|names| names.first());
                format!("<{}>", first.map_or("", |name| name.as_str()))
            }
        };
        let own = verb.get_arguments().map(name);
        own.chain(verb.get_subcommands().flat_map(all_arguments)).collect()
    }
}
