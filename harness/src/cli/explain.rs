//! `harness explain`: what the code of a culprit means.

use crate::error::Error;
use crate::report::json::line;
use clap::Args;
use model::artefact::Launcher;
use model::exit_code;
use serde_json::json;
use verdict::isolate::code::{CODES, Code};

/// `harness explain`
#[derive(Debug, Args)]
#[command(about = "Explain what the code of a culprit means, and what to do next.")]
pub(super) struct ExplainArgs {
    /// The code, such as `HRN-NIC-SLOW`; all of them where absent
    #[arg(value_name = "CODE")]
    code: Option<String>,
    /// text, or json: one object a line for each code
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = ["text", "json"])]
    format: String,
}

fn object(code: &Code) -> String {
    let drain = |launcher| code.drain(launcher, None, "NODE", "PART");
    line(&json!({
        "code": code.name,
        "severity": code.severity.name(),
        "what": code.what,
        "cause": code.cause,
        "next": code.next,
        "drain": { "slurm": drain(Launcher::Slurm), "kubernetes": drain(Launcher::Kubernetes) },
    }))
}

/// Names, severities and meanings stand below each other.
fn in_list(code: &Code) -> String {
    let longest = CODES.iter().map(|code| code.name.len()).max().unwrap_or_default();
    format!("{:<longest$} {:<9} {}", code.name, code.severity.name(), code.what)
}

pub(super) fn run(args: &ExplainArgs) -> Result<i32, Error> {
    let as_json = args.format == "json";
    let Some(name) = &args.code else {
        for code in CODES {
            match as_json {
                true => println!("{}", object(code)),
                false => println!("{}", in_list(code)),
            }
        }
        return Ok(exit_code::PASSED);
    };
    match Code::find(name) {
        Some(code) if as_json => {
            println!("{}", object(code));
            Ok(exit_code::PASSED)
        }
        Some(code) => {
            print!("{}", code.page());
            Ok(exit_code::PASSED)
        }
        None => {
            let near = base::suggest::nearest(name, CODES.iter().map(|code| code.name));
            let hint = near.map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
            Err(Error::Usage(format!("no code `{name}`; {hint}`harness explain` lists them")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::verbs;

    #[test]
    fn the_columns_of_the_list_are_straight() {
        let places: Vec<Option<usize>> =
            CODES.iter().map(|code| in_list(code).find(&format!(" {}", code.what))).collect();
        assert!(places.iter().all(|place| place.is_some() && *place == places[0]), "{places:?}");
    }

    #[test]
    fn each_command_that_a_code_advises_is_one() {
        let mut commands = 0;
        for code in CODES {
            let quoted = code.next.split('`').skip(1).step_by(2);
            for words in quoted.filter(|words| words.starts_with("harness ")) {
                let command = verbs::command();
                let found = command.try_get_matches_from(words.split_whitespace());
                let found = found.unwrap_or_else(|why| panic!("{}: `{words}`: {why}", code.name));
                let (verb, of_verb) = found.subcommand().expect("a verb");
                let is_read = verb != "stats" || of_verb.contains_id("reports");
                assert!(is_read, "{}: `{words}` names a report as a file", code.name);
                commands += 1;
            }
        }
        assert!(commands > 10, "{commands}");
    }
}
