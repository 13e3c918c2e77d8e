//! How jobs ask Slurm for GPUs where the inventory leaves it open: settled by what Slurm reports, before anything is launched. The
//! scripts of the plan hold the answer, so that a resumed run does not ask again.

use config::inventory::{GresReport, Inventory};
use job::script::{self, GpuRequest, Start, files};
use model::artefact::Plan;

/// How jobs ask, where that is not by GRES; nothing where the inventory leaves nothing open. A decision that may surprise is
/// printed.
pub(crate) fn settled(inventory: &Inventory, report: &GresReport, is_quiet: bool) -> Option<GpuRequest> {
    if !inventory.leaves_gpu_request_open() {
        return None;
    }
    if let Some(note) = report.note().filter(|_| !is_quiet) {
        eprintln!("note: {note}");
    }
    Some(report.request()).filter(|request| *request != GpuRequest::default())
}

/// As a stored plan has it.
pub(crate) fn from_plan(plan: &Plan) -> Option<GpuRequest> {
    let scripts = plan.cases.iter().flat_map(|case| &case.jobs).flat_map(|job| &job.files);
    let texts = scripts.filter(|file| file.name == files::JOB).filter_map(|file| file.text.as_deref());
    let mut read = texts.filter_map(|text| script::read(text).ok());
    read.find_map(|script| match script.start {
        Start::Slurm(directives) => Some(directives.gpus),
        Start::Bash | Start::Ssh | Start::Pods => None,
    })
}
