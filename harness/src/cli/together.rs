//! Which flags go together: a stored run brings along what a new one is told, and a flag that would be ignored is refused.

use super::RunArgs;
use clap::parser::ValueSource;
use clap::{ArgMatches, Command};

/// What is asked for, by the flags that name a stored run.
enum Asked {
    New,
    Replay,
    ReplayOn,
    Fetch,
    Resume,
    Rerun,
}

/// Flags that say how results are shown go with anything.
const SHOWN: [&str; 8] = ["junit", "json", "verbose", "quiet", "color", "format", "test", "nocapture"];

impl Asked {
    /// The flags that go with it, beside those of `SHOWN`; nothing where all do.
    fn allowed(&self) -> Option<&'static [&'static str]> {
        match self {
            Asked::New => None,
            Asked::Replay => Some(&["run", "from", "baselines"]),
            // Which cluster reads is no part of the stored run.
            Asked::ReplayOn => Some(&["run", "from", "baselines", "analyze_on", "inventory"]),
            // Nodes are asked, and how they are reached is no part of the stored run.
            Asked::Fetch => {
                Some(&["run", "from", "fetch", "baselines", "inventory", "ssh_fanout", "analyze_on"])
            }
            Asked::Resume => Some(&["run", "resume", "inventory", "ssh_fanout", "analyze_on"]),
            Asked::Rerun => Some(&[
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
            Asked::New => "--suite",
            Asked::Replay | Asked::ReplayOn | Asked::Fetch => "--from",
            Asked::Resume => "--resume",
            Asked::Rerun => "--rerun",
        }
    }

    /// Why another flag has nothing to say, and what to do.
    fn because(&self) -> &'static str {
        match self {
            Asked::New => "",
            Asked::Replay | Asked::ReplayOn | Asked::Fetch => {
                "a replay takes all of it from the stored run; to run part of it again, use --rerun"
            }
            Asked::Resume => "a run goes on as it was planned; leave it out",
            Asked::Rerun => {
                "a rerun takes it from its parent; for another choice begin a new run with --suite"
            }
        }
    }
}

/// Why these arguments say nothing together, if so.
pub(super) fn refused(args: &RunArgs, command: &Command, matches: &ArgMatches) -> Option<String> {
    let asked = match (&args.run, &args.rerun) {
        (Some(_), Some(_)) => {
            return Some(
                "--run and --rerun: one goes through a stored run, the other begins a new one".to_owned(),
            );
        }
        (Some(id), None) => match (args.from.is_some(), args.resume) {
            (true, true) => {
                return Some("--from and --resume: a run that is to go on has no results yet".to_owned());
            }
            (true, false) if args.fetch => Asked::Fetch,
            (true, false) if args.analyze_on.is_some() => Asked::ReplayOn,
            (true, false) => Asked::Replay,
            (false, true) => Asked::Resume,
            (false, false) => {
                return Some(format!(
                    "--run: what is to be done with it? --from collect|analyze|judge|report, or --resume: `{id}`"
                ));
            }
        },
        (None, Some(_)) => Asked::Rerun,
        (None, None) => Asked::New,
    };
    if args.from.is_none() && args.fetch {
        return Some("--fetch: it goes with `--run ID --from collect`".to_owned());
    }
    if matches!(asked, Asked::New) {
        let from = args.from.is_some().then(|| "--from: which run? --run latest, or --run ID".to_owned());
        return from
            .or_else(|| args.resume.then(|| "--resume: which run? --run latest, or --run ID".to_owned()));
    }
    let allowed = asked.allowed()?;
    let odd = command.get_arguments().find(|argument| {
        let id = argument.get_id().as_str();
        // An inventory that the environment names is a habit of the shell, and is no part of this command.
        let given = matches.value_source(id) == Some(ValueSource::CommandLine);
        given && !allowed.contains(&id) && !SHOWN.contains(&id)
    })?;
    let name = match odd.get_long() {
        Some(long) => format!("--{long}"),
        None => "a filter".to_owned(),
    };
    Some(format!("{name} does not go with {}: {}", asked.flag(), asked.because()))
}
