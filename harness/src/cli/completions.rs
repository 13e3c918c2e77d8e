//! `harness completions`: a script by which a shell completes verbs and flags.

use super::run_suites::RunArgs;
use crate::session::report_error;
use clap::{Arg, Args, Command};
use clap_complete::Shell;
use model::exit_code;
use std::io::{self, Write};

const HOW: &str = "\
bash, in ~/.bashrc:                   source <(harness completions bash)
zsh, in ~/.zshrc behind `compinit`:   source <(harness completions zsh)
fish, in ~/.config/fish/config.fish:  harness completions fish | source";

/// `harness completions`
#[derive(Debug, Args)]
#[command(about = "Print a script that completes verbs and flags in a shell.", after_help = HOW)]
pub(super) struct CompletionsArgs {
    /// The shell that reads the script
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

/// The script for the flags of the default verb, and for these verbs with theirs.
pub(super) fn run(args: &CompletionsArgs, verbs: Vec<Command>) -> i32 {
    let names: Vec<String> = verbs.iter().map(|verb| verb.get_name().to_owned()).collect();
    let help =
        Command::new("help").about("Print the help of a verb").arg(Arg::new("VERB").value_parser(names));
    let program = RunArgs::augment_args(Command::new("harness").disable_help_subcommand(true));
    let mut command = program.subcommands(verbs).subcommand(help);
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "harness", &mut script);
    match io::stdout().lock().write_all(&script) {
        // A reader that has gone away has read enough.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => report_error(&error.to_string()),
        _ => exit_code::PASSED,
    }
}
