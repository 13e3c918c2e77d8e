//! Accounts for each report that the plan expects: whether it is there, whole and readable, and if not, the cause, the
//! rank and the node. A report that is not accounted for feeds no number.

use job::profile::account::{self, Account};
use job::window::mark;
use metric::finding::Finding;
use metric::lacks::NOT_READ;
use model::artefact::{Change, Collected, CollectedFile, FileKind, PlannedJob, PlannedProfile, ProfiledRank};
use std::collections::BTreeMap;

/// Every cause for which a rank's report is unusable. The judge reports them as the cause of a missing number.
pub(crate) const CAUSES: [&str; 12] = [
    "report-missing",
    "report-empty",
    "report-unreadable",
    NOT_READ,
    "report-garbled",
    OUTSIDE_WINDOW,
    mark::NEVER_OPENED,
    mark::MISSED,
    "window-garbled",
    "nsys-missing",
    "nsys-old",
    "table-missing",
];

/// The workload ended before the collection began.
pub(crate) const OUTSIDE_WINDOW: &str = "outside-window";

/// What became of one expected report.
#[derive(Debug, Clone, PartialEq)]
pub struct RankReport {
    /// The rank in the job, as planned.
    pub rank: u32,
    /// As planned, or where the account says that the rank ran.
    pub node: String,
    /// The files of its export, relative to the case's folder; nothing where the report is unusable.
    pub tables: Option<Vec<String>>,
    /// Why it is unusable, with a code of `CAUSES`; or what was odd about it.
    pub findings: Vec<Finding>,
}

/// One entry per profiled rank of the plan. `read` gives the text of a collected file.
pub fn audit(
    planned: &PlannedJob,
    profile: &PlannedProfile,
    collected: &Collected,
    read: &dyn Fn(&CollectedFile) -> Option<String>,
) -> Vec<RankReport> {
    let mut samplers: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    let mut reports: Vec<RankReport> = profile
        .ranks
        .iter()
        .map(|profiled| {
            let mut report = RankReport {
                rank: profiled.rank,
                node: profiled.node.clone(),
                tables: None,
                findings: Vec::new(),
            };
            match account_of(planned, profiled, collected, read) {
                Ok((account, shown)) => {
                    if account.node_sampling {
                        samplers.entry(account.node.clone()).or_default().push(account.rank);
                    }
                    check_account(&mut report, planned, profile, collected, &account, &shown);
                }
                Err((cause, why)) => report.findings.push(finding_of(&report, cause, &why)),
            }
            report
        })
        .collect();
    for (node, ranks) in samplers.iter().filter(|(_, ranks)| ranks.len() > 1) {
        let text =
            format!("ranks {ranks:?} all sampled the counters of their node: values would be counted twice");
        if let Some(first) = reports.first_mut() {
            first.findings.push(Finding::new("node-sampled-twice", text).node(node.as_str()));
        }
    }
    reports
}

/// Whether a file was collected and lost since, on this side: that says nothing about its node.
fn is_gone(collected: &Collected, planned: &PlannedJob, path: &str) -> bool {
    let mut changed = collected.changed.iter();
    changed.any(|file| file.job == planned.name && file.path == path && file.how == Change::Gone)
}

fn finding_of(report: &RankReport, cause: &str, why: &str) -> Finding {
    Finding::new(cause, format!("rank {}: {why}", report.rank)).node(report.node.as_str())
}

/// The account of a rank, and how its file is called in findings.
fn account_of(
    planned: &PlannedJob,
    profiled: &ProfiledRank,
    collected: &Collected,
    read: &dyn Fn(&CollectedFile) -> Option<String>,
) -> Result<(Account, String), (&'static str, String)> {
    let name = account::file_name(profiled.rank);
    let of_rank = |job: &str, kind: FileKind, rank: Option<u32>| {
        job == planned.name && kind == FileKind::ProfileAccount && rank == Some(profiled.rank)
    };
    let Some(file) = collected.files.iter().find(|file| of_rank(&file.job, file.kind, file.rank)) else {
        let missing = collected.missing.iter().find(|file| of_rank(&file.job, file.kind, file.rank));
        let why = missing.map_or("not collected", |missing| missing.why.as_str());
        let path = format!("raw/{}/{name}", planned.name);
        let cause = if is_gone(collected, planned, &path) { NOT_READ } else { "report-missing" };
        return Err((cause, format!("no account `{name}`: {why}")));
    };
    let text = read(file).ok_or(("report-garbled", format!("{}: cannot be read", file.path)))?;
    let account =
        account::read(&text).map_err(|error| ("report-garbled", format!("{}: {error}", file.path)))?;
    if account.rank != profiled.rank {
        return Err(("report-garbled", format!("{}: belongs to rank {}", file.path, account.rank)));
    }
    Ok((account, file.path.clone()))
}

/// Compares an account with what was planned.
fn check_account(
    report: &mut RankReport,
    planned: &PlannedJob,
    profile: &PlannedProfile,
    collected: &Collected,
    account: &Account,
    shown: &str,
) {
    if account.node != report.node && !account.node.is_empty() {
        let text = format!("ran on {}, planned on {}", account.node, report.node);
        report.findings.push(finding_of(report, "rank-elsewhere", &text).file(shown));
        // The number is true of the node that the rank ran on.
        report.node = account.node.clone();
    }
    if let Some(what) = &account.recovered {
        let text = format!("report recovered from an unfinished collection, may end early: {what}");
        report.findings.push(finding_of(report, "report-recovered", &text).file(shown));
    }
    match failing(report, planned, profile, collected, account) {
        Ok(tables) => report.tables = Some(tables),
        Err((cause, why)) => {
            let mut finding = finding_of(report, cause, &why).file(shown);
            if cause == mark::MISSED {
                // A program that runs fewer steps than the suite expects is no fault of the node.
                finding.node = None;
            }
            report.findings.push(finding);
        }
    }
}

fn failing(
    report: &RankReport,
    planned: &PlannedJob,
    profile: &PlannedProfile,
    collected: &Collected,
    account: &Account,
) -> Result<Vec<String>, (&'static str, String)> {
    if let Some((cause, why)) = &account.bare {
        return Err(match cause.as_str() {
            "nsys-old" => {
                ("nsys-old", format!("{why}; install it there, or set `nsys_version` in the inventory"))
            }
            _ => {
                let searched = match why.as_str() {
                    "find" => "PATH, CUDA, /opt/nvidia and beside the shared folder".to_owned(),
                    path => format!("`{path}`"),
                };
                (
                    "nsys-missing",
                    format!("nsys not found in {searched}; install it there, or set `paths.nsys`"),
                )
            }
        });
    }
    let Some(file) = &account.report else {
        if !account.complete && account.missing.is_none() {
            return Err(("report-missing", "stopped before its report was written".to_owned()));
        }
        if let Some(seconds) = account.seconds.filter(|seconds| *seconds <= profile.delay_s as f64) {
            let delay = profile.delay_s;
            return Err((
                OUTSIDE_WINDOW,
                format!("the collection starts after {delay} s, the workload took only {seconds} s"),
            ));
        }
        if let Some(window) = &profile.window {
            let mark = account.window.as_deref().map(mark::read).transpose();
            let mark = mark.map_err(|why| ("window-garbled", format!("unreadable capture marker: {why}")))?;
            if let Some(cause) = mark::never_opened(window, mark.as_ref()) {
                return Err(cause);
            }
        }
        let why = account.unrecovered.as_deref().or(account.missing.as_deref()).unwrap_or("no reason given");
        return Err(("report-missing", why.to_owned()));
    };
    if file.bytes == 0 {
        return Err(("report-empty", format!("the report is empty: {}", file.name)));
    }
    match &account.export {
        // No recipe of the case reads tables.
        Some((form, _)) if form == "none" => return Ok(Vec::new()),
        Some((_, 0)) => {}
        Some((_, code)) => {
            let name = &file.name;
            return Err(("report-unreadable", format!("nsys cannot export it, exit code {code}: {name}")));
        }
        None => return Err(("report-missing", "stopped before its report was exported".to_owned())),
    }
    if !account.complete {
        return Err(("report-missing", "stopped before its report was exported".to_owned()));
    }
    if account.tables.is_empty() {
        return Err(("report-empty", format!("nothing was traced: {} has no tables", file.name)));
    }
    let mut tables = Vec::new();
    for table in &account.tables {
        let path = format!("raw/{}/{}", planned.name, table.name);
        if collected.files.iter().any(|home| home.path == path) {
            tables.push(path);
            continue;
        }
        let of_table = |missing: &&model::artefact::MissingFile| {
            missing.job == planned.name && missing.rank == Some(report.rank) && missing.name == table.name
        };
        let why =
            collected.missing.iter().find(of_table).map_or("not collected", |missing| missing.why.as_str());
        let cause = if is_gone(collected, planned, &path) { NOT_READ } else { "table-missing" };
        return Err((cause, format!("{}: {why}", table.name)));
    }
    Ok(tables)
}

#[cfg(test)]
mod other_files_tests;
#[cfg(test)]
mod tests;
