//! The reports of a run, for a person, a CI server and a program; the verdicts are already known.
//! All are pure but the two that write to a terminal while the run works; `store` writes the files.

mod annotations;
mod broken;
mod case_lines;
mod ctrf;
pub(crate) mod culprit_line;
mod dry_run;
mod explained;
#[cfg(test)]
pub(crate) mod fixture;
pub mod json;
mod judged_case;
mod junit;
mod last_line;
mod list;
mod markdown;
pub mod metrics;
pub(crate) mod narrow;
mod pace;
mod paint;
mod past_lines;
mod progress;
mod reds;
mod requested;
mod run_page;
mod skipped;
mod terminal;
pub mod text;
mod trials;
mod unlaunched;
mod webhook;

pub(crate) use annotations::annotations;
pub(crate) use broken::headline;
pub use broken::{broken, last_lines};
pub(crate) use case_lines::case_lines;
pub(crate) use dry_run::dry_run;
pub use dry_run::{estimate_s, node_hours};
pub(crate) use junit::GrowingJunit;
pub(crate) use junit::junit_for;
pub use junit::{JunitFlavor, JunitTarget, junit};
pub(crate) use last_line::last_line;
pub use list::{ListFormat, list};
pub(crate) use markdown::{cut, markdown};
pub(crate) use past_lines::{not_counted, series_changes};
pub use progress::{Mode, Progress};
pub(crate) use requested::{FORMATS, RequestedReport};
pub(crate) use run_page::live::RunState;
pub(crate) use run_page::{node_cells, run_page_at, run_page_live};
pub(crate) use skipped::planned as skipped_of_plan;
pub use terminal::{Ending, closing};
pub(crate) use trials::face;
pub use trials::{Unprinted, trials};
pub(crate) use webhook::webhook_body;

use crate::diagnose::kept::CaseDiagnoses;
use crate::trace::kept::CaseTraces;
use model::artefact::{CaseJobs, CaseVerdict, Plan, Probe, RunCluster, Summary};
use verdict::history::before::RunsBefore;

/// All that a report is made from.
#[derive(Debug, Clone, Copy)]
pub struct Report<'a> {
    /// What was to be run and judged.
    pub plan: &'a Plan,
    /// In the order of the plan.
    pub cases: &'a [CaseVerdict],
    /// Counts, culprits and exit code of the run.
    pub summary: &'a Summary,
    /// Where its pods were, for commands that a person runs there.
    pub cluster: Option<&'a RunCluster>,
    /// How the jobs of cases went, by the name of the case; empty where a report does not show it.
    pub jobs: &'a [(String, CaseJobs)],
    /// Excerpts of failed cases, by the name of the case; empty where a report does not show them.
    pub traces: &'a CaseTraces,
    /// What only the page shows.
    pub context: PageContext<'a>,
}

/// What the page shows beside the verdicts; empty where a report does not show it.
#[derive(Debug, Clone, Copy, Default)]
pub struct PageContext<'a> {
    /// What the nodes reported before the run.
    pub probe: Option<&'a Probe>,
    /// The comparable runs before it, where they were looked for.
    pub before: Option<&'a RunsBefore>,
    /// What limits the work in the reports of each profiled case, by its name.
    pub diagnoses: &'a CaseDiagnoses,
    /// Why the summary of a stored run is not believed.
    pub contradiction: Option<&'a str>,
}

impl<'a> Report<'a> {
    /// Of verdicts alone.
    pub fn new(plan: &'a Plan, cases: &'a [CaseVerdict], summary: &'a Summary) -> Report<'a> {
        Report {
            plan,
            cases,
            summary,
            cluster: None,
            jobs: &[],
            traces: &[],
            context: PageContext::default(),
        }
    }
}

/// A report that is a file of the run's folder.
pub(crate) struct Reporter {
    /// Name of the file, in the run's folder.
    pub file: &'static str,
    /// Gives the bytes of the file.
    pub render: fn(&Report) -> Result<Vec<u8>, ReportError>,
}

/// Every file that a run ends with. A new one is a file in this folder and its entry here.
pub(crate) const REPORTERS: [Reporter; 3] = [
    // One testcase per assertion, for CI servers.
    Reporter { file: "junit.xml", render: junit },
    // The run in one small file, stable, for programs.
    Reporter { file: "summary.json", render: |report| Ok(json::summary_json(report.summary).into_bytes()) },
    // The run as one page, for people.
    Reporter { file: run_page::NAME, render: run_page::run_page },
];

/// Why a report could not be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ReportError(pub String);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixture::Reported as _;
    use model::artefact::{Format, Launcher, kubectl_command};

    #[test]
    fn every_file_of_a_simulated_run_is_marked_simulated() {
        let made = fixture::red();
        for reporter in &REPORTERS {
            let text = String::from_utf8((reporter.render)(&made.report()).unwrap()).unwrap();
            assert!(text.to_lowercase().contains("simulated"), "{}", reporter.file);
        }
    }

    #[test]
    fn a_context_of_eks_loses_its_account_wherever_others_read_and_keeps_it_on_a_terminal() {
        const CONTEXT: &str = "arn:aws:eks:us-west-2:123456789012:cluster/train";
        let cluster = RunCluster {
            format: Format,
            server: "https://a.example".to_owned(),
            namespace: "bench".to_owned(),
            context: Some(CONTEXT.to_owned()),
        };
        let command = kubectl_command(Some(&cluster), &["get", "events"]);
        assert!(command.contains(CONTEXT), "{command}");
        let mut made = fixture::red();
        made.plan.launcher = Launcher::Kubernetes;
        for verdict in made.cases.iter_mut().flat_map(|case| &mut case.verdicts) {
            verdict.message = format!("no pod of {CONTEXT}");
            verdict.next = Some(command.clone());
        }
        made.summary.interrupted = Some(format!("no answer of {CONTEXT}"));
        let report = Report { cluster: Some(&cluster), ..made.report() };
        let mut texts = vec![annotations(&report), webhook_body(&report), markdown(&report)];
        let growing = GrowingJunit::default().add(&report, &<[u8]>::to_vec).unwrap();
        let page = run_page::run_page(&report);
        let documents = [junit(&report).unwrap(), page.unwrap(), ctrf::ctrf(&report).unwrap(), growing];
        texts.extend(documents.map(|text| String::from_utf8(text).unwrap()));
        for text in &texts {
            assert!(!text.contains("123456789012"), "{text}");
        }
        let masked = "arn:aws:eks:us-west-2:[redacted]:cluster/train";
        // In JUnit, CTRF and Markdown at least.
        assert!(texts.iter().filter(|text| text.contains(masked)).count() >= 3);
    }
}
