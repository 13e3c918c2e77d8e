//! Orders the ranks of an inventory by the topology that it names, and says where it cannot.

use base::digest::sha256;
use config::diagnostic::Diagnostic;
use config::inventory::{Inventory, Topology};
use config::toml_reader::{file, line_of};
use model::artefact::Source;
use std::path::Path;

/// A file that is read is a source of the plan. A topology that does not fit the nodes is a warning, and ranks keep the
/// order of names; a file that cannot be read is an error.
pub(crate) fn order(
    project: &Path,
    inventory: &mut Inventory,
    text: &str,
) -> Result<(Option<Source>, Vec<Diagnostic>), Diagnostic> {
    let Some(wanted) = &inventory.topology else { return Ok((None, Vec::new())) };
    let name = &wanted.file;
    let message = |what: String| Diagnostic::at(&inventory.file, line_of(text, "topology"), 1, what);
    let printed = file::read(&project.join(name)).map_err(|error| {
        let why = message(format!("topology `{name}`: {error}"));
        why.suggest("save the output of `scontrol show topology` there")
    })?;
    let source = Source { file: name.clone(), sha256: sha256(printed.as_bytes()) };
    let reads = Topology::read(&printed, wanted, &inventory.nodes);
    let reads = reads.and_then(|network| match distribution(inventory) {
        Some(option) => Err(format!("srun is given `{option}`, which orders them")),
        None => Ok(network),
    });
    match reads {
        Ok(network) => {
            inventory.network = Some(network);
            Ok((Some(source), Vec::new()))
        }
        Err(why) => {
            let why = format!("ranks are in the order of names, not of topology `{name}`: {why}");
            Ok((Some(source), vec![message(why)]))
        }
    }
}

/// An option of the site's own that says which rank runs where.
fn distribution(inventory: &Inventory) -> Option<&String> {
    let slurm = inventory.reach.slurm()?;
    slurm.srun.iter().find(|option| option.starts_with("--dist"))
}
