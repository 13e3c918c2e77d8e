//! A run is named in one of two ways, as an argument or by `--run`: what a verb takes in one way is taken in the other too.

use clap::Command;
use std::ffi::{OsStr, OsString};

const FLAG: &str = "--run";

/// The arguments as the verb has them: `replay latest` as `replay --run latest`, and `page --run latest` as `page latest`.
pub(super) fn as_declared(mut args: Vec<OsString>, command: &Command) -> Vec<OsString> {
    let Some((verb, at)) = verb_of(&args, command) else { return args };
    let has_flag = verb.get_arguments().any(|argument| argument.get_long() == Some("run"));
    let takes_run = verb.get_positionals().next().map(|argument| {
        let names = argument.get_value_names().unwrap_or_default();
        names.iter().any(|name| name.contains("RUN"))
    });
    let end = args.iter().position(|argument| argument == "--").unwrap_or(args.len());
    let flag = args[..end].iter().position(|argument| is_flag(argument));
    match (has_flag, takes_run, flag) {
        (true, None, None) if args.get(at).is_some_and(|word| is_word(word)) => args.insert(at, FLAG.into()),
        // Where the place is that of a filter, such as of `replay`.
        (true, Some(false), None) if args.get(at).is_some_and(|word| names_a_run(word)) => {
            args.insert(at, FLAG.into());
        }
        (false, Some(true), Some(flag)) => {
            let joined = args[flag].to_str().and_then(|text| text.strip_prefix("--run=")).map(OsString::from);
            match joined {
                Some(run) => args[flag] = run,
                None if args.get(flag + 1).is_some_and(|word| is_word(word)) => {
                    args.remove(flag);
                }
                None => {}
            }
        }
        _ => {}
    }
    args
}

/// The verb that is called, and the place of its first argument.
fn verb_of<'a>(args: &[OsString], command: &'a Command) -> Option<(&'a Command, usize)> {
    let verb = command.find_subcommand(args.get(1)?)?;
    match verb.has_subcommands() {
        true => Some((verb.find_subcommand(args.get(2)?)?, 3)),
        false => Some((verb, 2)),
    }
}

fn is_flag(argument: &OsStr) -> bool {
    argument.to_str().is_some_and(|text| text == FLAG || text.starts_with("--run="))
}

/// `latest`, or what begins as the ids of runs do: with a time.
fn names_a_run(argument: &OsStr) -> bool {
    let is_time = |text: &str| {
        let shape: String = text.chars().take(16).map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
        shape == "00000000T000000Z"
    };
    argument.to_str().is_some_and(|text| text == "latest" || is_time(text))
}

fn is_word(argument: &OsStr) -> bool {
    argument.to_str().is_some_and(|text| !text.is_empty() && !text.starts_with('-'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::verbs;

    #[test]
    fn a_run_is_taken_by_its_place_and_by_its_flag() {
        for (typed, declared) in [
            ("replay latest --from judge", "replay --run latest --from judge"),
            ("replay 20260101T000001Z-nccl-p5-0001", "replay --run 20260101T000001Z-nccl-p5-0001"),
            ("replay nic-pairs", "replay nic-pairs"),
            ("isolate latest", "isolate --run latest"),
            ("bundle latest", "bundle --run latest"),
            ("clean latest", "clean --run latest"),
            ("runs show latest", "runs show --run latest"),
            ("page --run latest", "page latest"),
            ("watch --run=latest", "watch latest"),
            ("diagnose --run latest", "diagnose latest"),
            ("page --run", "page --run"),
            ("replay --run latest", "replay --run latest"),
            ("replay --from judge", "replay --from judge"),
            ("run nic-pairs", "run nic-pairs"),
            ("explain HRN-NIC-SLOW", "explain HRN-NIC-SLOW"),
            ("nothing latest", "nothing latest"),
        ] {
            let words = format!("harness {typed}");
            let args = words.split(' ').map(OsString::from).collect();
            let found = as_declared(args, &verbs::command());
            let found: Vec<&str> = found.iter().filter_map(|word| word.to_str()).collect();
            assert_eq!(found.join(" "), format!("harness {declared}"), "{typed}");
        }
    }
}
