//! The work of tasks where a suite's case is analysed: the recipes of the case over the reports of its jobs. What they
//! take of each report is kept, and numbers are made of it where the case is judged.

use super::report_work::check_visible;
use recipes::catalogue::Catalogue;
use recipes::recipe::{ExtractStore, FileRole, InputFile, JobInput};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

#[derive(Serialize, Deserialize)]
pub(super) struct JobWork {
    recipes: Vec<String>,
    jobs: Vec<JobInput>,
}

impl JobWork {
    pub(super) fn new(recipes: &[String], jobs: Vec<JobInput>) -> JobWork {
        JobWork { recipes: recipes.to_vec(), jobs }
    }

    /// The reports of all jobs, as they are numbered.
    pub(super) fn reports(&self) -> impl Iterator<Item = &InputFile> {
        self.jobs.iter().flat_map(|job| job.files_of(FileRole::NsysExport))
    }

    /// What the recipes take of the reports of these numbers, as bytes.
    pub(super) fn read(self, share: &[usize], catalogue: &Catalogue) -> Result<Vec<u8>, String> {
        check_visible(
            self.reports()
                .enumerate()
                .filter(|(at, _)| share.contains(at))
                .map(|(_, file)| file.path.as_path()),
        )?;
        let kept = Arc::new(ExtractStore::keeping());
        let mut number = 0;
        for mut job in self.jobs {
            let before = number;
            job.files.retain(|file| {
                let is_report = file.role == FileRole::NsysExport;
                number += usize::from(is_report);
                !is_report || share.contains(&(number - 1))
            });
            if !share.iter().any(|at| (before..number).contains(at)) {
                continue;
            }
            job.kept = kept.clone();
            for name in &self.recipes {
                let recipe = catalogue.job_recipe(name).ok_or_else(|| format!("no recipe `{name}`"))?;
                // What it makes of some of the reports is of no use: what it took of each is kept.
                (recipe.run)(&job);
            }
        }
        kept.to_bytes()
    }

    /// Records that the reports of these numbers could not be read.
    pub(super) fn lose(&self, kept: &mut ExtractStore, share: &[usize], why: &str) {
        for (_, file) in self.reports().enumerate().filter(|(at, _)| share.contains(at)) {
            for recipe in &self.recipes {
                kept.lose(recipe, &file.shown, why);
            }
        }
    }
}
