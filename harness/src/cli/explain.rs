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
