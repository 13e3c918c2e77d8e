//! Stores the extracts that recipes make of each report of a job, where one process reads some of the reports and
//! another one makes metrics of all: kept there, handed over as bytes, and used here as if made here. The caller
//! transports the bytes.

use super::of_reports::encoding;
use super::{InputFile, JobInput};
use metric::finding::Finding;
use metric::lacks::NOT_READ;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// Recipe, and name of the report in messages.
type ExtractKey = (String, String);

/// Empty by default: neither keeps extracts nor has those of other processes.
#[derive(Debug, Default)]
pub struct ExtractStore {
    /// Extracts by other processes, or why there are none.
    received: BTreeMap<ExtractKey, Result<Vec<u8>, String>>,
    recorded: Option<Mutex<BTreeMap<ExtractKey, Vec<u8>>>>,
}

#[derive(Serialize, Deserialize)]
struct StoredExtracts(BTreeMap<ExtractKey, Vec<u8>>);

impl ExtractStore {
    /// A store that keeps every extract.
    pub fn keeping() -> ExtractStore {
        ExtractStore { received: BTreeMap::new(), recorded: Some(Mutex::default()) }
    }

    /// The extracts that it kept, for `add` in another process.
    pub fn to_bytes(&self) -> Result<Vec<u8>, String> {
        let kept =
            self.recorded.as_ref().map(|kept| kept.lock().unwrap_or_else(PoisonError::into_inner).clone());
        encoding::to_bytes(&StoredExtracts(kept.unwrap_or_default()))
    }

    /// Adds the extracts of another process.
    pub fn add(&mut self, bytes: &[u8]) -> Result<(), String> {
        let StoredExtracts(kept) = encoding::from_bytes(bytes)?;
        self.received.extend(kept.into_iter().map(|(place, taken)| (place, Ok(taken))));
        Ok(())
    }

    /// Records why another process has no extract of a report.
    pub fn lose(&mut self, recipe: &str, report: &str, why: &str) {
        self.received.insert((recipe.to_owned(), report.to_owned()), Err(why.to_owned()));
    }
}

impl JobInput {
    /// A recipe's extract of a report, or the finding that says why there is none. `take` fails with a code and a reason.
    pub(crate) fn report_extract<T: Serialize + DeserializeOwned, C: Into<String>>(
        &self,
        recipe: &str,
        file: &InputFile,
        take: impl FnOnce() -> Result<T, (C, String)>,
    ) -> Result<T, Box<Finding>> {
        let place = (recipe.to_owned(), file.shown.clone());
        let lost = |why: &str| Box::new(file.finding(NOT_READ, format!("not analysed: {why}")));
        let taken: Result<T, (String, String)> = match self.kept.received.get(&place) {
            Some(Ok(bytes)) => encoding::from_bytes(bytes).map_err(|why| lost(&why))?,
            Some(Err(why)) => return Err(lost(why)),
            None => take().map_err(|(code, why)| (code.into(), why)),
        };
        if let Some(kept) = &self.kept.recorded {
            let bytes = encoding::to_bytes(&taken).map_err(|why| lost(&why))?;
            kept.lock().unwrap_or_else(PoisonError::into_inner).insert(place, bytes);
        }
        taken.map_err(|(code, why)| Box::new(file.finding(&code, why)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::job;
    use super::super::window::StepWindow;
    use super::super::{FileRole, LIST, Output, Workload};
    use super::*;
    use crate::testing::Made;
    use std::sync::Arc;

    fn made(rank: i64) -> Made {
        let made = Made::begin();
        made.string(1, "cudaLaunchKernel_v7000").string(2, "gemm").string(3, "gemm");
        made.string(4, "ncclDevKernel_AllReduce(x)").string(5, "ncclDevKernel_AllReduce");
        for step in 0..6 {
            let at = step * 1000;
            made.range((at, at + 900), 3, "step");
            made.call((at, at + 5), 3, at, 1).kernel((at + 30, at + 95 + rank), at, 2);
            made.call((at + 6, at + 9), 3, at + 1, 1).kernel((at + 160, at + 190 + rank), at + 1, 4);
        }
        made
    }

    /// A job of three ranks, as a process sees it that has these reports of it.
    fn job_with(reports: &[(u32, &Made)], kept: ExtractStore) -> JobInput {
        let file = |(rank, made): &(u32, &Made)| InputFile {
            role: FileRole::NsysExport,
            path: made.path(),
            shown: format!("rank{rank}"),
            node: Some(format!("n{rank}")),
            part: None,
            rank: Some(*rank),
        };
        let files = reports.iter().map(file).collect();
        let window = Some(StepWindow { first: 0, last: 5, marks: BTreeMap::new(), planned_steps: None });
        let kept = Arc::new(kept);
        JobInput { files, window, kept, ..job(Workload::Command, &[], |rank| format!("n{rank}"), 3) }
    }

    fn outputs(job: &JobInput) -> Vec<Output> {
        LIST.iter().map(|recipe| (recipe.run)(job)).collect()
    }

    /// The extracts of processes that read these reports.
    fn shares(reports: &[&[(u32, &Made)]]) -> ExtractStore {
        let mut all = ExtractStore::default();
        for share in reports {
            let job = job_with(share, ExtractStore::keeping());
            outputs(&job);
            all.add(&job.kept.to_bytes().expect("written")).expect("read back");
        }
        all
    }

    #[test]
    fn metrics_from_extracts_of_other_processes_equal_those_of_one_process() {
        let (zero, one, two) = (made(0), made(7), made(13));
        let all = [(0, &zero), (1, &one), (2, &two)];
        let whole = outputs(&job_with(&all, ExtractStore::default()));
        let kept = shares(&[&all[..1], &all[1..]]);
        // The reports do not exist here.
        let gone = made(0);
        let path = gone.path();
        drop(gone);
        let mut job = job_with(&all, kept);
        job.files.iter_mut().for_each(|file| file.path = path.clone());
        assert_eq!(format!("{:#?}", outputs(&job)), format!("{whole:#?}"));
        assert!(whole.iter().map(|output| output.metrics.len()).sum::<usize>() > 20);
    }

    #[test]
    fn a_report_that_was_not_read_gives_no_metric_of_it_nor_of_the_job() {
        let (zero, one, two) = (made(0), made(7), made(13));
        let all = [(0, &zero), (1, &one), (2, &two)];
        let mut kept = shares(&[&all[..2]]);
        for recipe in LIST {
            kept.lose(recipe.name, "rank2", "its task was lost");
        }
        for (recipe, output) in LIST.iter().zip(outputs(&job_with(&all, kept))) {
            let lost: Vec<_> = output.findings.iter().filter(|finding| finding.code == NOT_READ).collect();
            let reads = recipe.is_cause("report-unreadable") && recipe.name != "nccl_profile";
            assert_eq!(lost.len(), usize::from(reads), "{}: {:?}", recipe.name, output.findings);
            assert!(lost.iter().all(|finding| finding.message.contains("not analysed: its task was lost")));
            let of_rank = |output: &Output| {
                output.metrics.iter().any(|metric| format!("{:?}", metric.dims).contains("n2"))
            };
            assert!(!of_rank(&output), "{}", recipe.name);
        }
    }

    #[test]
    fn bytes_that_are_cut_off_are_refused() {
        let zero = made(0);
        let job = job_with(&[(0, &zero)], ExtractStore::keeping());
        outputs(&job);
        let bytes = job.kept.to_bytes().expect("written");
        assert!(bytes.len() > 100);
        assert!(ExtractStore::default().add(&bytes[..bytes.len() - 1]).is_err());
    }
}
