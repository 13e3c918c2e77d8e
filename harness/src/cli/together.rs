//! Checks which flags go together: a stored run has its own settings, and a flag that would be ignored is refused.

use super::RunArgs;
use clap::parser::ValueSource;
use clap::{ArgMatches, Command};

/// The kind of run that the flags request.
enum RunMode {
    New,
    Replay,
    ReplayOn,
    Fetch,
    Resume,
    Rerun,
}

/// Flags that say how results are shown go with anything.
const OUTPUT_FLAGS: [&str; 9] =
    ["junit", "junit_flavor", "json", "verbose", "quiet", "color", "format", "test", "nocapture"];

impl RunMode {
    /// The flags that go with it, beside `OUTPUT_FLAGS`; `None` if all do.
    fn allowed(&self) -> Option<&'static [&'static str]> {
        match self {
            RunMode::New => None,
            RunMode::Replay => Some(&["run", "from", "baselines"]),
            // Which cluster reads is no part of the stored run.
            RunMode::ReplayOn => Some(&["run", "from", "baselines", "analyze_on", "inventory"]),
            // Nodes are asked, and how they are reached is no part of the stored run.
            RunMode::Fetch => {
                Some(&["run", "from", "fetch", "baselines", "inventory", "ssh_fanout", "analyze_on"])
            }
            RunMode::Resume => Some(&["run", "resume", "inventory", "ssh_fanout", "analyze_on"]),
            RunMode::Rerun => Some(&[
                "rerun",
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
            ]),
        }
    }

    fn flag(&self) -> &'static str {
        match self {
            RunMode::New => "--suite",
            RunMode::Replay | RunMode::ReplayOn | RunMode::Fetch => "--from",
            RunMode::Resume => "--resume",
            RunMode::Rerun => "--rerun",
        }
    }

    /// Why another flag has nothing to say, and what to do.
    fn because(&self) -> &'static str {
        match self {
            RunMode::New => "",
            RunMode::Replay | RunMode::ReplayOn | RunMode::Fetch => {
                "a replay takes it from the stored run; to run part of it again, use --rerun"
            }
            RunMode::Resume => "a resumed run continues as planned; remove the flag",
            RunMode::Rerun => {
                "a rerun takes it from its parent; for another choice start a new run with --suite"
            }
        }
    }
}

/// Why these arguments say nothing together, if so.
pub(super) fn refused(args: &RunArgs, command: &Command, matches: &ArgMatches) -> Option<String> {
    let mode = match (&args.run, &args.rerun) {
        (Some(_), Some(_)) => {
            return Some(
                "--run and --rerun exclude each other: --run replays a stored run, --rerun starts a new one"
                    .to_owned(),
            );
        }
        (Some(id), None) => match (args.from.is_some(), args.resume) {
            (true, true) => {
                return Some(
                    "--from and --resume exclude each other: a run to be resumed has no results yet"
                        .to_owned(),
                );
            }
            (true, false) if args.fetch => RunMode::Fetch,
            (true, false) if args.analyze_on.is_some() => RunMode::ReplayOn,
            (true, false) => RunMode::Replay,
            (false, true) => RunMode::Resume,
            (false, false) => {
                return Some(format!("--run `{id}`: add --from collect|analyze|judge|report, or --resume"));
            }
        },
        (None, Some(_)) => RunMode::Rerun,
        (None, None) => RunMode::New,
    };
    if args.from.is_none() && args.fetch {
        return Some("--fetch needs `--run ID --from collect`".to_owned());
    }
    if matches!(mode, RunMode::New) {
        let from =
            args.from.is_some().then(|| "--from needs a run: add --run latest, or --run ID".to_owned());
        return from.or_else(|| {
            args.resume.then(|| "--resume needs a run: add --run latest, or --run ID".to_owned())
        });
    }
    let allowed = mode.allowed()?;
    let odd = command.get_arguments().find(|argument| {
        let id = argument.get_id().as_str();
        // An inventory that the environment names is a habit of the shell, and is no part of this command.
        let given = matches.value_source(id) == Some(ValueSource::CommandLine);
        given && !allowed.contains(&id) && !OUTPUT_FLAGS.contains(&id)
    })?;
    let name = match odd.get_long() {
        Some(long) => format!("--{long}"),
        None => "a filter".to_owned(),
    };
    Some(format!("{name} cannot be used with {}: {}", mode.flag(), mode.because()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{CommandFactory, FromArgMatches};

    fn refusal(flags: &str) -> String {
        let command = RunArgs::command();
        let arguments = std::iter::once("harness").chain(flags.split_whitespace());
        let matches = command.clone().try_get_matches_from(arguments).expect("parsed");
        let args = RunArgs::from_arg_matches(&matches).expect("read");
        let message = refused(&args, &command, &matches);
        format!("{flags}\n    {}", message.unwrap_or_else(|| "accepted".to_owned()))
    }

    #[test]
    fn messages() {
        let all = [
            "--suite nccl-p5",
            "--run latest",
            "--run latest --rerun latest",
            "--run latest --from judge --resume",
            "--run latest --from judge",
            "--run latest --from judge --seed 2",
            "--run latest --resume --seed 2",
            "--rerun latest --seed 2",
            "--rerun latest --timeout 60",
            "--run latest --fetch",
            "--from judge",
            "--resume",
        ];
        insta::assert_snapshot!(all.map(refusal).join("\n"));
    }
}
