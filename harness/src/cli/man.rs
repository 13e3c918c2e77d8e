//! `harness man`: the manual page of the program, or of a verb, made from the same definitions as the help.

use crate::error::Error;
use base::suggest;
use clap::{Args, Command};
use model::exit_code;

const HOW: &str = "\
Read one:       harness man run | man -l -
Install one:    harness man > ~/.local/share/man/man1/harness.1";

/// `harness man`
#[derive(Debug, Args)]
#[command(about = "Print the manual page of the program, or of a verb.", after_help = HOW)]
pub(super) struct ManArgs {
    /// The verb; the program where absent
    #[arg(value_name = "VERB")]
    verb: Option<String>,
}

pub(super) fn run(args: &ManArgs, program: Command, verbs: Vec<Command>) -> Result<i32, Error> {
    let page = match &args.verb {
        None => clap_mangen::Man::new(program.subcommands(verbs).disable_help_subcommand(true)),
        Some(name) => {
            let names: Vec<String> = verbs.iter().map(|verb| verb.get_name().to_owned()).collect();
            let Some(verb) = verbs.into_iter().find(|verb| verb.get_name() == name) else {
                let near = suggest::nearest(name, names.iter().map(String::as_str));
                let hint = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
                return Err(Error::Usage(format!("no verb `{}`{hint}", name.escape_debug())));
            };
            let title = format!("harness-{name}");
            clap_mangen::Man::new(verb.display_name(title.clone()).bin_name(format!("harness {name}")))
                .title(title)
        }
    };
    let mut text = Vec::new();
    page.render(&mut text).map_err(|error| Error::Usage(error.to_string()))?;
    crate::standard_output::print(&text);
    Ok(exit_code::PASSED)
}
