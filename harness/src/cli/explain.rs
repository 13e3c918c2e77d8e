//! `harness explain`: what the code of a culprit means.

use crate::error::Error;
use clap::Args;
use model::exit_code;
use verdict::isolate::code::{CODES, Code};

/// `harness explain`
#[derive(Debug, Args)]
#[command(about = "Explain what the code of a culprit means, and what to do next.")]
pub(super) struct ExplainArgs {
    /// The code, such as `HRN-NIC-SLOW`; all of them where absent
    #[arg(value_name = "CODE")]
    code: Option<String>,
}

pub(super) fn run(args: &ExplainArgs) -> Result<i32, Error> {
    let Some(name) = &args.code else {
        for code in CODES {
            println!("{:<18} {:<9} {}", code.name, code.severity.name(), code.what);
        }
        return Ok(exit_code::PASSED);
    };
    match Code::find(name) {
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
