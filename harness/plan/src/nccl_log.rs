//! What a case that reads NCCL's log needs for one to be there. NCCL writes to the program's output, which comes home in any case, also of
//! a rank that dies, and in the one order of what was printed; files of its own would lie under the names of processes that no plan
//! knows.

use config::suite::{Case, Workload};
use recipes::recipe::nccl_log::SPEC;
use std::collections::BTreeMap;

/// Known since 2.4; calls, and by which algorithm they are carried out, are told by the last two.
const SUBSYSTEMS: &str = "INIT,ENV,NET,GRAPH,TUNING,COLL";

/// Adds what is missing; what a person set stands, unless there would be no log.
pub(crate) fn ask(case: &Case, variables: &mut BTreeMap<String, String>) -> Result<(), String> {
    if !case.recipes.iter().any(|recipe| recipe == SPEC.name) {
        return Ok(());
    }
    if matches!(case.workload, Workload::NicPairs(_)) {
        return Err(
            "nothing of NCCL runs in a `nic-pairs` workload: leave `nccl_log` out of `recipes`".to_owned()
        );
    }
    if let Some(file) = variables.get("NCCL_DEBUG_FILE") {
        return Err(format!(
            "`nccl_log` reads what NCCL prints, and `NCCL_DEBUG_FILE` sends that elsewhere: leave it out: {file}"
        ));
    }
    match variables.get("NCCL_DEBUG") {
        None => {
            variables.insert("NCCL_DEBUG".to_owned(), "INFO".to_owned());
        }
        Some(level) if ["INFO", "TRACE"].iter().any(|known| level.eq_ignore_ascii_case(known)) => {}
        Some(level) => {
            return Err(format!(
                "`nccl_log` needs `NCCL_DEBUG = \"INFO\"`, leave it out or set it so, not: {level}"
            ));
        }
    }
    variables.entry("NCCL_DEBUG_SUBSYS".to_owned()).or_insert_with(|| SUBSYSTEMS.to_owned());
    Ok(())
}
