//! Flags of other programs, such as `--hosts` or `-x`: what to write instead, in place of clap's own guess.

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};

/// What is typed, and what to do instead.
const FLAGS: [(&str, &str); 30] = [
    ("--config", "write `--inventory NAME` and `--suite NAME`, or settings into `.config/harness.toml`"),
    ("--debug", "write `-v`"),
    ("--dryrun", "write `harness plan`"),
    ("--env", "write `environment` into the workload of the case, or `[environment]` into the inventory"),
    ("--exclude", "write `--exclude-nodes`"),
    ("--exitfirst", "write `--max-fail 1`"),
    ("--fail-fast", "write `--max-fail 1`"),
    ("--fault", "write `--sim-fault`"),
    ("--filter", "write the text without a flag, or `-E EXPRESSION`"),
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

/// The same error, with what a person can do about it.
pub(super) fn explained(mut error: clap::Error) -> clap::Error {
    match error.kind() {
        ErrorKind::UnknownArgument => {
            let typed = match error.get(ContextKind::InvalidArg) {
                Some(ContextValue::String(typed)) => typed.split('=').next().unwrap_or_default().to_owned(),
                _ => return error,
            };
            let known = FLAGS.iter().find(|(flag, _)| *flag == typed);
            if let Some((_, instead)) = known {
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
    use super::FLAGS;
    use crate::cli::verbs;

    #[test]
    fn none_of_them_is_a_flag_of_run() {
        for (flag, _) in FLAGS {
            let args = ["harness", "run", "--suite", "x", flag, "1"].map(std::ffi::OsString::from);
            let why = verbs::refusal(args.to_vec());
            assert_eq!(why.as_deref(), Some("printed, exit 2"), "{flag}");
        }
    }
}
