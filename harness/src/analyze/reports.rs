//! The reports of a job's profiled ranks, as recipes get them: those that are accounted for, and a finding for each
//! that is not.

use job::profile::{account, nsys_output};
use job::window::mark;
use metric::finding::Finding;
use model::artefact::{Collected, FileKind, PlannedJob};
use recipes::recipe::window::StepWindow;
use recipes::recipe::{FileRole, InputFile};
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;
use verdict::profile_audit::{self, RankReport};

/// One entry per profiled rank of the plan.
pub(super) fn audit(planned: &PlannedJob, collected: &Collected, folder: &Path) -> Vec<RankReport> {
    let Some(profile) = &planned.profile else { return Vec::new() };
    let read = |file: &model::artefact::CollectedFile| account(&folder.join(&file.path));
    profile_audit::audit(planned, profile, collected, &read)
}

/// Larger accounts are not read.
const MOST_BYTES: u64 = 4 << 20;

fn account(path: &Path) -> Option<String> {
    let mut bytes = Vec::new();
    let length = File::open(path).ok()?.take(MOST_BYTES + 1).read_to_end(&mut bytes).ok()?;
    (length as u64 <= MOST_BYTES).then(|| String::from_utf8_lossy(&bytes).into_owned())
}

/// What a recipe opens: the folder of a report's tables, or the one file that holds them all.
pub(super) fn export(report: &RankReport, folder: &Path) -> Option<InputFile> {
    let first = report.tables.as_ref()?.first()?;
    let shown = match first.rsplit_once('/') {
        Some((parent, _)) if parent.ends_with("_pqtdir") => parent,
        _ => first.as_str(),
    };
    Some(InputFile {
        role: FileRole::NsysExport,
        path: folder.join(shown),
        shown: shown.to_owned(),
        node: Some(report.node.clone()),
        part: None,
        rank: Some(report.rank),
    })
}

/// The requested steps, with the window of each session as the nodes recorded it. A mark that cannot be read is ignored.
pub(super) fn window(planned: &PlannedJob, collected: &Collected, folder: &Path) -> Option<StepWindow> {
    let window = planned.profile.as_ref()?.window.as_ref()?;
    let (steps, planned_steps) = (window.steps, window.ends_after.map(|last| last + 1));
    let accounts = collected
        .files
        .iter()
        .filter(|file| file.job == planned.name && file.kind == FileKind::ProfileAccount);
    let marks = accounts.filter_map(|file| {
        let account = account::read(&account(&folder.join(&file.path))?).ok()?;
        Some((account.rank, mark::read(&account.window?).ok()?))
    });
    Some(StepWindow { first: steps.first, last: steps.last, marks: marks.collect(), planned_steps })
}

/// Complaints of nsys among the workload's lines.
pub(super) fn chatter(planned: &PlannedJob, collected: &Collected, folder: &Path) -> Vec<Finding> {
    if planned.profile.is_none() {
        return Vec::new();
    }
    let speaks = |kind: FileKind| {
        matches!(kind, FileKind::NcclTests | FileKind::Stdout | FileKind::Stderr | FileKind::Log)
    };
    let files = collected.files.iter().filter(|file| file.job == planned.name && speaks(file.kind));
    files
        .filter_map(|file| Some((file, File::open(folder.join(&file.path)).ok()?)))
        .flat_map(|(file, opened)| nsys_output::findings(&file.path, BufReader::new(opened)))
        .collect()
}
