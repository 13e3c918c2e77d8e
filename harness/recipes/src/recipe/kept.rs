//! What recipes take of each report of a job, where one process reads some of the reports and another one makes numbers of
//! all: kept there, handed over as bytes, and had here as if it had been taken here. How the bytes get here is not told.

use super::of_reports::written;
use super::{InputFile, JobInput};
use metric::finding::Finding;
use metric::lacks::NOT_READ;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// By recipe, and by report as it is spoken of.
type Place = (String, String);

/// Nothing is kept and nothing is had of another process, unless somebody says so.
#[derive(Debug, Default)]
pub struct Kept {
    /// What was taken, or why nobody could.
    had: BTreeMap<Place, Result<Vec<u8>, String>>,
    keeps: Option<Mutex<BTreeMap<Place, Vec<u8>>>>,
}

#[derive(Serialize, Deserialize)]
struct Written(BTreeMap<Place, Vec<u8>>);

impl Kept {
    /// From now on all that is taken is kept.
    pub fn keeping() -> Kept {
        Kept { had: BTreeMap::new(), keeps: Some(Mutex::default()) }
    }

    pub fn to_bytes(&self) -> Result<Vec<u8>, String> {
        let kept =
            self.keeps.as_ref().map(|kept| kept.lock().unwrap_or_else(PoisonError::into_inner).clone());
        written::to_bytes(&Written(kept.unwrap_or_default()))
    }

    /// Adds what another process kept.
    pub fn add(&mut self, bytes: &[u8]) -> Result<(), String> {
        let Written(kept) = written::from_bytes(bytes)?;
        self.had.extend(kept.into_iter().map(|(place, taken)| (place, Ok(taken))));
        Ok(())
    }

    /// Nobody could take from a report what this recipe would.
    pub fn lose(&mut self, recipe: &str, report: &str, why: &str) {
        self.had.insert((recipe.to_owned(), report.to_owned()), Err(why.to_owned()));
    }
}

impl JobInput {
    /// What a recipe takes from a report, or the finding that says why nothing: where it does not read the report, it says
    /// so by a code and a reason.
    pub(crate) fn of_report<T: Serialize + DeserializeOwned, C: Into<String>>(
        &self,
        recipe: &str,
        file: &InputFile,
        take: impl FnOnce() -> Result<T, (C, String)>,
    ) -> Result<T, Box<Finding>> {
        let place = (recipe.to_owned(), file.shown.clone());
        let lost = |why: &str| Box::new(file.tells(NOT_READ, format!("not analysed: {why}")));
        let taken: Result<T, (String, String)> = match self.kept.had.get(&place) {
            Some(Ok(bytes)) => written::from_bytes(bytes).map_err(|why| lost(&why))?,
            Some(Err(why)) => return Err(lost(why)),
            None => take().map_err(|(code, why)| (code.into(), why)),
        };
        if let Some(kept) = &self.kept.keeps {
            let bytes = written::to_bytes(&taken).map_err(|why| lost(&why))?;
            kept.lock().unwrap_or_else(PoisonError::into_inner).insert(place, bytes);
        }
        taken.map_err(|(code, why)| Box::new(file.tells(&code, why)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::job;
    use super::super::window::Asked;
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
    fn of(reports: &[(u32, &Made)], kept: Kept) -> JobInput {
        let file = |(rank, made): &(u32, &Made)| InputFile {
            role: FileRole::NsysExport,
            path: made.path(),
            shown: format!("rank{rank}"),
            node: Some(format!("n{rank}")),
            part: None,
            rank: Some(*rank),
        };
        let files = reports.iter().map(file).collect();
        let window = Some(Asked { first: 0, last: 5, marks: BTreeMap::new(), planned_steps: None });
        let kept = Arc::new(kept);
        JobInput { files, window, kept, ..job(Workload::Command, &[], |rank| format!("n{rank}"), 3) }
    }

    fn outputs(job: &JobInput) -> Vec<Output> {
        LIST.iter().map(|recipe| (recipe.run)(job)).collect()
    }

    /// What processes took that read these reports.
    fn shares(reports: &[&[(u32, &Made)]]) -> Kept {
        let mut all = Kept::default();
        for share in reports {
            let job = of(share, Kept::keeping());
            outputs(&job);
            all.add(&job.kept.to_bytes().expect("written")).expect("read back");
        }
        all
    }

    #[test]
    fn numbers_of_reports_that_other_processes_read_are_those_of_one() {
        let (zero, one, two) = (made(0), made(7), made(13));
        let all = [(0, &zero), (1, &one), (2, &two)];
        let whole = outputs(&of(&all, Kept::default()));
        let kept = shares(&[&all[..1], &all[1..]]);
        // Nobody can look at the reports here.
        let gone = made(0);
        let path = gone.path();
        drop(gone);
        let mut job = of(&all, kept);
        job.files.iter_mut().for_each(|file| file.path = path.clone());
        assert_eq!(format!("{:#?}", outputs(&job)), format!("{whole:#?}"));
        assert!(whole.iter().map(|output| output.metrics.len()).sum::<usize>() > 20);
    }

    #[test]
    fn of_a_report_that_nobody_read_there_is_no_number_and_none_of_the_job() {
        let (zero, one, two) = (made(0), made(7), made(13));
        let all = [(0, &zero), (1, &one), (2, &two)];
        let mut kept = shares(&[&all[..2]]);
        for recipe in LIST {
            kept.lose(recipe.name, "rank2", "its task was lost");
        }
        for (recipe, output) in LIST.iter().zip(outputs(&of(&all, kept))) {
            let told: Vec<_> = output.findings.iter().filter(|finding| finding.code == NOT_READ).collect();
            let reads = recipe.causes.contains(&"report-unreadable") && recipe.name != "nccl_profile";
            assert_eq!(told.len(), usize::from(reads), "{}: {:?}", recipe.name, output.findings);
            assert!(told.iter().all(|told| told.message.contains("not analysed: its task was lost")));
            let of_rank = |output: &Output| {
                output.metrics.iter().any(|metric| format!("{:?}", metric.dims).contains("n2"))
            };
            assert!(!of_rank(&output), "{}", recipe.name);
        }
    }

    #[test]
    fn bytes_that_are_cut_off_are_refused() {
        let zero = made(0);
        let job = of(&[(0, &zero)], Kept::keeping());
        outputs(&job);
        let bytes = job.kept.to_bytes().expect("written");
        assert!(bytes.len() > 100);
        assert!(Kept::default().add(&bytes[..bytes.len() - 1]).is_err());
    }
}
