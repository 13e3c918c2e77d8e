//! Checks which flags go together: a stored run has its own settings, and a flag that would be ignored is refused.

use crate::report::FORMATS;
use clap::parser::ValueSource;
use clap::{ArgMatches, Command};

/// Flags that say how results are shown go with anything.
const OUTPUT_FLAGS: [&str; 11] = [
    "junit",
    "junit_flavor",
    "json",
    "webhook",
    "webhook_secret_env",
    "verbose",
    "quiet",
    "color",
    "format",
    "test",
    "nocapture",
];
const REPLAY: [&str; 3] = ["run", "from", "baselines"];
const RESUME: [&str; 4] = ["run", "inventory", "ssh_fanout", "analyze_on"];
const RERUN: [&str; 24] = [
    "tags",
    "cases",
    "expressions",
    "run",
    "recipe_path",
    "baselines",
    "dry_run",
    "list",
    "ignored",
    "include_ignored",
    "filter",
    "exact",
    "skip",
    "timeout",
    "max_fail",
    "strict",
    "errors",
    "keep_bad_nodes",
    "reservation",
    "ssh_fanout",
    "no_probe",
    "probe",
    "allow_busy",
    "analyze_on",
];

/// What only a run that is launched does: `plan` and `list` would be silent about them.
const OF_LAUNCHED: [&str; 8] =
    ["junit", "junit_flavor", "json", "webhook", "webhook_secret_env", "max_fail", "errors", "analyze_on"];
/// What a plan shows, and a list of assertions does not.
const OF_PLAN: [&str; 2] = ["timeout", "on_failure"];

/// Whether a verb that launches nothing has no use for a flag.
fn is_idle(verb: &str, id: &str) -> bool {
    let of_launched = || OF_LAUNCHED.contains(&id) || FORMATS.iter().any(|format| format.flag == id);
    match verb {
        "plan" => of_launched(),
        "list" => of_launched() || OF_PLAN.contains(&id),
        _ => false,
    }
}

/// Whether a flag says how results are shown, or where a report is written.
fn is_of_output(id: &str) -> bool {
    OUTPUT_FLAGS.contains(&id) || FORMATS.iter().any(|format| format.flag == id)
}

/// The flags of a verb about a stored run that have a meaning there, beside `OUTPUT_FLAGS`; `None` if all do.
fn allowed(verb: &str, given: &dyn Fn(&str) -> bool) -> Option<Vec<&'static str>> {
    let mut allowed = match verb {
        "replay" => REPLAY.to_vec(),
        "resume" => RESUME.to_vec(),
        "rerun" => RERUN.to_vec(),
        _ => return None,
    };
    if verb == "replay" {
        allowed.extend(["fetch", "analyze_on"]);
        // Nodes are asked, and how they are reached is no part of the stored run; nor is which cluster reads.
        allowed.extend(given("analyze_on").then_some("inventory"));
        allowed.extend(["inventory", "ssh_fanout"].into_iter().filter(|_| given("fetch")));
    }
    Some(allowed)
}

/// Why another flag has nothing to say, and what to do.
fn because(verb: &str) -> &'static str {
    match verb {
        "replay" => "a replay takes it from the stored run; to run part of it again, use `harness rerun`",
        "resume" => "a resumed run continues as planned; remove the flag",
        "plan" | "list" => "nothing is launched; give it to `harness run`",
        _ => "a rerun takes it from its parent; for another choice start a new run with --suite",
    }
}

/// Leaves flags that would be refused out of the help of a verb.
pub(super) fn without_refused(verb: Command) -> Command {
    let name = verb.get_name().to_owned();
    let allowed = allowed(&name, &|_| true);
    verb.mut_args(|argument| {
        let is_shown = !is_refused(&name, allowed.as_deref(), argument.get_id().as_str());
        if is_shown { argument } else { argument.hide(true) }
    })
}

fn is_refused(verb: &str, allowed: Option<&[&str]>, id: &str) -> bool {
    is_idle(verb, id) || allowed.is_some_and(|allowed| !allowed.contains(&id) && !is_of_output(id))
}

/// Why the arguments of a verb say nothing together, if so. `matches` are those of the verb.
pub(super) fn refused(verb: &Command, matches: &ArgMatches) -> Option<String> {
    // An inventory that the environment names is a habit of the shell, and is no part of this command.
    let given = |id: &str| matches.value_source(id) == Some(ValueSource::CommandLine);
    let name = verb.get_name();
    let allowed = allowed(name, &given);
    let odd = verb.get_arguments().find(|argument| {
        let id = argument.get_id().as_str();
        is_refused(name, allowed.as_deref(), id) && given(id)
    })?;
    let flag = match odd.get_long() {
        Some(long) => format!("--{long}"),
        None => {
            let word = matches.try_get_one::<String>("filter").ok().flatten();
            // `resume latest`: the run stands behind its flag.
            if let Some(word) = word.filter(|word| word.as_str() == "latest" || is_id(word)) {
                let flag = format!("--run {}", word.escape_debug());
                return Some(format!(
                    "`{}` is no filter of `harness {name}`; write `{flag}`",
                    word.escape_debug()
                ));
            }
            "a filter".to_owned()
        }
    };
    Some(format!("{flag} cannot be used with `harness {name}`: {}", because(name)))
}

/// Whether a word begins as the id of a run does: `20260101T000001Z-nccl-p5-3f9c`.
fn is_id(word: &str) -> bool {
    let (day, rest) = word.split_at_checked(8).unwrap_or((word, ""));
    day.len() == 8 && day.bytes().all(|byte| byte.is_ascii_digit()) && rest.starts_with('T')
}

#[cfg(test)]
mod tests {
    use crate::cli::verbs;
    use std::ffi::OsString;

    fn refusal(line: &str) -> String {
        let args: Vec<OsString> =
            std::iter::once("harness").chain(line.split_whitespace()).map(OsString::from).collect();
        let message = verbs::refusal(args);
        format!("{line}\n    {}", message.unwrap_or_else(|| "accepted".to_owned()))
    }

    #[test]
    fn messages() {
        let all = [
            "run --suite nccl-p5",
            "replay --from judge",
            "resume latest",
            "replay --from judge 20260101T000001Z-nccl-p5-3f9c",
            "replay --run latest --from judge --seed 2",
            "replay --from judge --inventory x",
            "replay --from collect --fetch --inventory x",
            "resume --run latest --seed 2",
            "resume some-filter",
            "rerun --run latest --seed 2",
            "rerun --timeout 10m",
            "plan --suite nccl-p5 --timeout 10m",
            "plan --suite nccl-p5 --junit x.xml",
            "plan --suite nccl-p5 --markdown x.md",
            "list --suite nccl-p5 --max-fail 1",
            "list --suite nccl-p5 --timeout 10m",
        ];
        insta::assert_snapshot!(all.map(refusal).join("\n"));
    }
}
