//! `harness recipe` over the records of NCCL's Inspector of one job, in the place of reports.

use super::folder::Folder;
use super::{Messages, Order, Surveyed, present};
use logs::efa_counters;
use model::exit_code;
use recipes::recipe::of_reports::{Inspected, Outcome, is_inspected, survey_records};
use std::io::Write;
use std::path::{Path, PathBuf};

/// The records among the inputs, if there are some: a file, or the folder of a job that has one and no report.
pub(super) fn records(given: &[PathBuf]) -> Option<Vec<PathBuf>> {
    let of_input = |path: &PathBuf| {
        let inside = path.join(job::script::files::INSPECTOR);
        [path.clone(), inside].into_iter().find(|path| is_inspected(path))
    };
    // Counters stand for reports only where there is neither.
    let is_counters = |path: &PathBuf| {
        path.file_name().and_then(|name| name.to_str()).is_some_and(efa_counters::is_called_so)
    };
    let has_report = |path: &PathBuf| {
        let found = nsys::report_file::find(std::slice::from_ref(path)).reports;
        found.iter().any(|report| !is_counters(&report.named))
    };
    let found: Vec<Option<PathBuf>> = given.iter().map(of_input).collect();
    let is_any =
        found.iter().any(Option::is_some) && !given.iter().any(|path| path.is_dir() && has_report(path));
    is_any.then(|| {
        found.into_iter().zip(given).map(|(found, given)| found.unwrap_or_else(|| given.clone())).collect()
    })
}

/// Tables of one job: ranks of several are not the same.
pub(super) fn recipe(
    order: &Order<'_>,
    records: &[PathBuf],
    out: &mut dyn Write,
    messages: &mut Messages<'_>,
) -> i32 {
    let [path] = records else {
        messages.error(
            "records of NCCL's Inspector are read one job at a time, and not beside reports: give one file",
        );
        return exit_code::USAGE;
    };
    if order.filter.is_some() {
        messages.error("records of NCCL's Inspector have no moments to filter by");
        return exit_code::USAGE;
    }
    let folder = match order.output.as_deref().map(|name| Folder::new(name, order.overwrite)).transpose() {
        Ok(folder) => folder,
        Err(why) => {
            messages.error(&why);
            return exit_code::USAGE;
        }
    };
    let shown = messages.name(&path.display().to_string());
    let (mut outcomes, mut inputs) = (Vec::new(), Vec::new());
    for (recipe, arguments) in &order.asked.recipes {
        let outcome = match survey_records(Path::new(path), &shown, recipe, arguments) {
            Ok(Inspected { outcome, inputs: of_ranks }) => {
                inputs = of_ranks;
                outcome
            }
            Err(why) => {
                messages.error(&format!("{shown}: {why}"));
                Outcome { recipe: recipe.name.to_owned(), ..Outcome::default() }
            }
        };
        outcomes.push(outcome);
    }
    present(
        order,
        Surveyed { inputs: &inputs, outcomes: &outcomes, found: None, lost: 0, folder, apart: None },
        out,
        messages,
    )
}
