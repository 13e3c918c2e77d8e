//! NCCL's Inspector in the plan of a job: what is set when its ranks start. With NCCL's own defaults nothing is written.

use super::container_path::path_inside;
use config::inventory::Inventory;
use job::inspector::{self, DUMP_DIR, PLUGIN};
use job::script::{Run, Step};
use std::collections::BTreeMap;

/// Adds what is missing; what a person set stands, unless there would be no file to read.
pub(crate) fn ask(
    variables: &mut BTreeMap<String, String>,
    inventory: &Inventory,
    step: &Step,
    folder: &str,
) -> Result<(), String> {
    let seen = match step {
        Step::Run(Run { container: Some(container), .. }) => path_inside(container, folder),
        _ => Some(folder.to_owned()),
    };
    let Some(seen) = seen else {
        return Err(format!(
            "its container does not mount the job's folder `{folder}`, where NCCL's Inspector writes; add a mount of \
             `paths.shared` to `[container]`"
        ));
    };
    let needed = [
        ("NCCL_INSPECTOR_ENABLE", "1"),
        ("NCCL_INSPECTOR_DUMP_THREAD_ENABLE", "1"),
        ("NCCL_INSPECTOR_PROM_DUMP", "0"),
    ];
    for (name, value) in needed {
        if let Some(own) = variables.get(name).filter(|own| own.as_str() != value) {
            return Err(format!(
                "`{name}={own}` leaves no records of NCCL's Inspector; remove the variable or `evidence`"
            ));
        }
    }
    if let Some(own) = variables.get(DUMP_DIR) {
        return Err(format!(
            "`{DUMP_DIR}={own}` hides NCCL's Inspector from recipe `inspector`; remove the variable"
        ));
    }
    if let Some(own) = variables.get(PLUGIN).filter(|own| !own.contains("inspector")) {
        return Err(format!(
            "`{PLUGIN}={own}` is another plugin than NCCL's Inspector; remove it or `evidence`"
        ));
    }
    for (name, value) in inspector::variables(&seen, inventory.paths.nccl_inspector.as_deref()) {
        variables.entry(name.to_owned()).or_insert(value);
    }
    Ok(())
}
