//! Spellings of the last release: each is turned into its new one, with a warning that names it. They go with the next
//! release.

use std::ffi::{OsStr, OsString};

/// Flags of the program without a verb that are verbs now, in the order in which they are looked for.
const VERBS: [(&str, &str); 4] =
    [("--rerun", "rerun"), ("--resume", "resume"), ("--from", "replay"), ("--dry-run", "plan")];

/// A verb, its old flag, and what is written instead.
const FLAGS: [(&str, &str, &[&str]); 11] = [
    ("accept", "--out", &["--output"]),
    ("bundle", "--out", &["--output"]),
    ("compare", "--all", &["--verbose"]),
    ("field-kit", "--json", &["--format", "json"]),
    ("inventory", "--json", &["--format", "json"]),
    ("logs", "--json", &["--format", "json"]),
    ("plan", "--dry-run", &[]),
    ("run", "--rerun", &["rerun"]),
    ("run", "--resume", &["resume"]),
    ("run", "--from", &["replay"]),
    ("run", "--dry-run", &["plan"]),
];

/// The arguments as they are written now, and a warning for each that was written otherwise.
pub(super) fn renew(args: Vec<OsString>) -> (Vec<OsString>, Vec<String>) {
    let mut warnings = Vec::new();
    let first = args.get(1).map(|first| first.to_string_lossy().into_owned()).unwrap_or_default();
    let args = match first.is_empty() || first.starts_with('-') {
        true => with_verb(args, &mut warnings),
        false => args,
    };
    (with_new_flags(args, &mut warnings), warnings)
}

/// Where a flag stands in front of `--`, with `=` and its value or without.
fn position(args: &[OsString], flag: &str) -> Option<usize> {
    let end = args.iter().position(|argument| argument == "--").unwrap_or(args.len());
    args[..end].iter().position(|argument| is_flag(argument, flag))
}

fn is_flag(argument: &OsStr, flag: &str) -> bool {
    let text = argument.to_string_lossy();
    text == flag || text.strip_prefix(flag).is_some_and(|rest| rest.starts_with('='))
}

fn with_verb(mut args: Vec<OsString>, warnings: &mut Vec<String>) -> Vec<OsString> {
    let found = VERBS.iter().find_map(|(flag, verb)| Some((*flag, *verb, position(&args, flag)?)));
    let Some((flag, verb, at)) = found else { return args };
    let (old, new) = match flag {
        "--rerun" => {
            let text = args[at].to_string_lossy().replacen("--rerun", "--run", 1);
            args[at] = text.into();
            ("--rerun RUN", "rerun --run RUN")
        }
        "--resume" => {
            args.remove(at);
            ("--run RUN --resume", "resume --run RUN")
        }
        "--from" => ("--run RUN --from STAGE", "replay --run RUN --from STAGE"),
        _ => {
            args.remove(at);
            ("--suite NAME --dry-run", "plan --suite NAME")
        }
    };
    warnings.push(format!("`harness {old}` is now `harness {new}`"));
    args.insert(1, verb.into());
    args
}

fn with_new_flags(mut args: Vec<OsString>, warnings: &mut Vec<String>) -> Vec<OsString> {
    let verb = args.get(1).map(|first| first.to_string_lossy().into_owned()).unwrap_or_default();
    for (_, old, new) in FLAGS.iter().filter(|(of, ..)| *of == verb) {
        let Some(at) = position(&args, old) else { continue };
        match new {
            [verb] if !verb.starts_with('-') => {
                let mut without_verb = args.clone();
                without_verb.remove(1);
                return with_verb(without_verb, warnings);
            }
            [] => {
                args.remove(at);
                warnings.push(format!("`harness {verb}` needs no `{old}`"));
            }
            [flag] => {
                args[at] = args[at].to_string_lossy().replacen(old, flag, 1).into();
                warnings.push(format!("`{old}` of `harness {verb}` is now `{flag}`"));
            }
            several => {
                args.splice(at..=at, several.iter().map(OsString::from));
                warnings.push(format!("`{old}` of `harness {verb}` is now `{}`", several.join(" ")));
            }
        }
    }
    args
}

#[cfg(test)]
mod tests {
    use super::*;

    fn renewed(line: &str) -> String {
        let args = std::iter::once("harness").chain(line.split_whitespace()).map(OsString::from).collect();
        let (args, warnings) = renew(args);
        let args: Vec<_> = args.iter().map(|argument| argument.to_string_lossy().into_owned()).collect();
        format!("{line}\n    {}\n    {}", args.join(" "), warnings.join("; "))
    }

    #[test]
    fn old_spellings_become_new_ones() {
        let all = [
            "--suite nccl-p5 -q",
            "--suite nccl-p5 --dry-run pair",
            "--run latest --from judge",
            "--from=judge --run=latest",
            "--run latest --resume",
            "--rerun latest -q",
            "--rerun=latest --dry-run",
            "run --rerun latest",
            "run --suite nccl-p5 --dry-run",
            "plan --suite nccl-p5 --dry-run",
            "--suite nccl-p5 -- --resume",
            "bundle --run latest --out x.tar.gz",
            "accept --nodes p5-001 --out=d",
            "compare --all 2026 latest",
            "isolate --suite nccl-p5 --dry-run",
            "isolate --resume 2026",
            "logs nccl-tests --json x",
            "recipe all --json x",
        ];
        insta::assert_snapshot!(all.map(renewed).join("\n"));
    }
}
