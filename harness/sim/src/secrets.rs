//! What a job is given beside its script: read from the file that lies in its folder, and gone from there afterwards, as
//! the script's own text has it.

use super::World;
use base::redact::{Reference, reference};
use job::script::{Script, Step, files, secrets};

/// Puts the values where the script says that a shell would; or says what is missing.
pub(crate) fn take(
    world: &mut World,
    folder: &str,
    node: Option<&str>,
    script: &mut Script,
) -> Result<(), String> {
    let wanted = script.steps.iter().find_map(|step| match step {
        Step::Secrets { variables } => Some(variables.clone()),
        _ => None,
    });
    let Some(wanted) = wanted else { return Ok(()) };
    let name = node.map_or_else(|| secrets::FILE.to_owned(), |node| files::node_file(secrets::FILE, node));
    let path = format!("{folder}/{name}");
    let bytes = world.files.remove(&path).ok_or_else(|| format!("no such file: `{path}`"))?;
    let given = secrets::assigned(&String::from_utf8_lossy(&bytes));
    if let Some(missing) = wanted.iter().find(|variable| !given.iter().any(|(name, _)| name == *variable)) {
        return Err(format!("`{path}` assigns nothing to `{missing}`"));
    }
    let value = |word: &String| match reference(word) {
        Reference::To(from) => {
            let argument = secrets::argument(from);
            given.iter().find(|(name, _)| *name == argument).map_or(word.clone(), |(_, value)| value.clone())
        }
        _ => word.clone(),
    };
    for step in &mut script.steps {
        if let Step::Run(run) = step {
            run.argv = run.argv.iter().map(value).collect();
        }
    }
    Ok(())
}
