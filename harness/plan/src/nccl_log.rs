//! What a case that reads NCCL's log needs for one to be there. NCCL writes to the program's output, which comes home
//! in any case, also of a rank that dies, and in the one order of what was printed; files of its own would lie under
//! the names of processes that no plan knows.

use config::suite::Case;
use recipes::catalogue::Catalogue;
use std::collections::BTreeMap;

/// Known since 2.4; calls, and by which algorithm they are carried out, are logged by the last two.
const SUBSYSTEMS: &str = "INIT,ENV,NET,GRAPH,TUNING,COLL";

/// Adds what is missing; what a person set stands, unless there would be no log.
pub(crate) fn ask(
    catalogue: &Catalogue,
    case: &Case,
    variables: &mut BTreeMap<String, String>,
) -> Result<(), String> {
    let reads_log = |name: &&String| catalogue.job_recipe(name).is_some_and(|recipe| recipe.reads_nccl_log);
    let Some(recipe) = case.recipes.iter().find(reads_log) else { return Ok(()) };
    if let Some(why) = case.workload.refuse_nccl_log() {
        return Err(why.to_owned());
    }
    if let Some(file) = variables.get("NCCL_DEBUG_FILE") {
        return Err(format!(
            "`NCCL_DEBUG_FILE={file}` hides NCCL's log from recipe `{recipe}`; remove the variable"
        ));
    }
    match variables.get("NCCL_DEBUG") {
        None => {
            variables.insert("NCCL_DEBUG".to_owned(), "INFO".to_owned());
        }
        Some(level) if ["INFO", "TRACE"].iter().any(|known| level.eq_ignore_ascii_case(known)) => {}
        Some(level) => {
            return Err(format!(
                "`NCCL_DEBUG` is {level}, recipe `{recipe}` needs INFO; remove it or set `NCCL_DEBUG = \"INFO\"`"
            ));
        }
    }
    variables.entry("NCCL_DEBUG_SUBSYS".to_owned()).or_insert_with(|| SUBSYSTEMS.to_owned());
    Ok(())
}
