//! `harness schema`: the JSON Schema of a kind of file, for editors.

use super::{home, settings};
use crate::error::Error;
use crate::library::Library;
use crate::own_recipes;
use base::suggest::nearest;
use clap::Args;
use config::diagnostic::Diagnostics;
use config::schema::FileKind;
use model::exit_code;

const HOW: &str = "\
The schema has the recipes and metrics of this project. An editor that knows TOML by schemas, such as VS Code with \
Even Better TOML, checks and completes a file whose first line names one: #:schema ./suite.schema.json";

/// `harness schema`
#[derive(Debug, Args)]
#[command(about = "Print the JSON Schema of a kind of file, for editors.", after_help = HOW)]
pub(super) struct SchemaArgs {
    /// The kind, such as `suite`; all of them with their files where absent
    #[arg(value_name = "KIND")]
    kind: Option<String>,
}

/// Every kind of file that people write.
pub fn kinds() -> impl Iterator<Item = &'static FileKind> {
    config::schema::KINDS.iter().chain([&own_recipes::KIND, &settings::KIND])
}

pub(super) fn run(args: &SchemaArgs) -> Result<i32, Error> {
    let Some(name) = &args.kind else {
        for kind in kinds() {
            println!("{:<10} {:<30} {}", kind.name, kind.files.join(" "), kind.about);
        }
        return Ok(exit_code::PASSED);
    };
    let Some(kind) = kinds().find(|kind| kind.name == name) else {
        let near = nearest(name, kinds().map(|kind| kind.name));
        let hint = near.map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
        let why = format!("no kind of file `{}`; {hint}`harness schema` lists them", name.escape_debug());
        return Err(Error::Usage(why));
    };
    let library = Library::for_project(home()?.path());
    let catalogue = own_recipes::load(Some(&library), None)
        .map_err(|diagnostics| Error::Files(Diagnostics(diagnostics)))?;
    println!("{:#}", kind.schema(&catalogue));
    Ok(exit_code::PASSED)
}
