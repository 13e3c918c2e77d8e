//! The work of tasks where a person names reports: recipes with their arguments, and which reports there are.

use base::digest::sha256;
use nsys::trace::Filter;
use nsys::trace::Trace;
use recipes::catalogue::Catalogue;
use recipes::recipe::of_reports::{Input, Part, ReportRecipe, Survey, part};
use recipes::report::Arguments;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

#[derive(Serialize, Deserialize)]
pub(super) struct ReportWork {
    recipes: Vec<RecipeRef>,
    filter: Option<Filter>,
    inputs: Vec<ReportRef>,
}

#[derive(Serialize, Deserialize)]
struct RecipeRef {
    name: String,
    arguments: Vec<String>,
    /// Of all that the recipe says of itself: two of one name may be two recipes.
    sha256: String,
}

#[derive(Serialize, Deserialize)]
struct ReportRef {
    path: PathBuf,
    shown: String,
    side: usize,
}

impl ReportWork {
    pub(super) fn from_survey(survey: &Survey) -> ReportWork {
        let named = |(recipe, arguments): &(ReportRecipe<'_>, Arguments)| RecipeRef {
            name: recipe.name.to_owned(),
            arguments: arguments.to_strings(),
            sha256: sha256(recipe.definition.as_bytes()),
        };
        let report = |input: &Input| ReportRef {
            path: input.path.clone(),
            shown: input.shown.clone(),
            side: input.side,
        };
        ReportWork {
            recipes: survey.asked.iter().map(named).collect(),
            filter: survey.filter.cloned(),
            inputs: survey.inputs.iter().map(report).collect(),
        }
    }

    /// What the reports of these numbers give, as bytes.
    pub(super) fn read(
        &self,
        share: &[usize],
        jobs: usize,
        catalogue: &Catalogue,
    ) -> Result<Vec<u8>, String> {
        let named = |named: &RecipeRef| {
            let recipe =
                catalogue.report_recipe(&named.name).ok_or_else(|| format!("no recipe `{}`", named.name))?;
            if sha256(recipe.definition.as_bytes()) != named.sha256 {
                return Err(format!("recipe `{}` is not the one that was requested", named.name));
            }
            let words: Vec<&str> = named.arguments.iter().map(String::as_str).collect();
            let arguments = Arguments::read(recipe.name, recipe.arguments, &words);
            Ok((recipe, arguments.map_err(|error| error.to_string())?))
        };
        let asked = self.recipes.iter().map(named).collect::<Result<Vec<_>, String>>()?;
        let input = |report: &ReportRef| Input {
            path: report.path.clone(),
            shown: report.shown.clone(),
            side: report.side,
        };
        let inputs: Vec<Input> = self.inputs.iter().map(input).collect();
        check_visible(share.iter().filter_map(|number| Some(inputs.get(*number)?.path.as_path())))?;
        let filter = self.filter.as_ref();
        let survey = Survey { asked: &asked, inputs: &inputs, filter, jobs, progress: &|_| {} };
        part(&survey, share)?.to_bytes(&asked)
    }
}

/// Checks that this node sees the reports. A report that it does not see is a lost task, and not an unreadable report.
pub(super) fn check_visible<'a>(mut paths: impl Iterator<Item = &'a Path>) -> Result<(), String> {
    match paths.find(|path| !path.exists()) {
        None => Ok(()),
        Some(path) => Err(format!(
            "this node does not see a report, which must be in a folder that all nodes share: {}",
            path.display()
        )),
    }
}

/// Parses the file of a task, which must have exactly the reports of its share.
pub(super) fn parse_part(survey: &Survey, share: &[usize], bytes: &[u8]) -> Result<Part, String> {
    let part = Part::from_bytes(survey.asked, bytes)?;
    match part.reports().eq(share.iter().copied()) {
        true => Ok(part),
        false => Err("it belongs to other reports".to_owned()),
    }
}

/// The node of each report, if the report has it. The task of a report says why it cannot be read.
pub(super) fn nodes(survey: &Survey) -> Vec<Option<String>> {
    let host = |input: &Input| Trace::open(&input.path).and_then(|trace| trace.host()).ok().flatten();
    survey.inputs.iter().map(host).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use nsys::tables::{KernelRow, write};
    use recipes::recipe::of_reports::{find, join, survey};
    use std::collections::BTreeMap;
    use std::fs;

    fn export(folder: &Path, ns: i64) -> PathBuf {
        let rows: Vec<KernelRow> = (0..6)
            .map(|at| KernelRow {
                start: at * 100,
                end: at * 100 + ns + at,
                device_id: 0,
                context_id: 1,
                stream_id: 7,
                correlation_id: None,
                global_pid: None,
                short_name: 1,
                demangled_name: 1,
            })
            .collect();
        let folder = folder.join(format!("of{ns}_pqtdir"));
        fs::create_dir_all(&folder).expect("made");
        for (table, bytes) in [
            ("CUPTI_ACTIVITY_KIND_KERNEL", write::kernels(&rows)),
            ("StringIds", write::strings(&[(1, "gemm<1, 2>::of".to_owned())])),
            ("META_DATA_EXPORT", write::meta("3.20.0", "2025.3.1")),
        ] {
            fs::write(folder.join(format!("{table}.parquet")), bytes.expect("made")).expect("written");
        }
        folder
    }

    #[test]
    fn arguments_and_a_filter_arrive_at_a_task_as_they_were_given() {
        let folder = tempfile::tempdir().expect("a folder");
        let inputs = [30, 50].map(|ns| {
            let path = export(folder.path(), ns);
            Input { shown: format!("of {ns}"), path, side: 0 }
        });
        let named = |name: &str, word: &str| {
            let recipe = find(name).expect("there");
            (recipe, Arguments::read(name, recipe.arguments, &[word]).expect("an argument"))
        };
        let asked = [named("cuda_gpu_kern_hist", "name=gemm<1, 2>::of"), named("cuda_gpu_kern_sum", "base")];
        let filter = Filter::Time("150/430".parse().expect("a span"));
        let wanted =
            Survey { asked: &asked, inputs: &inputs, filter: Some(&filter), jobs: 1, progress: &|_| {} };
        let order = serde_json::to_vec(&ReportWork::from_survey(&wanted)).expect("written");
        let task: ReportWork = serde_json::from_slice(&order).expect("read back");
        let parts = [1, 0].map(|number| {
            let bytes = task.read(&[number], 1, &Catalogue::built_in()).expect("read");
            assert!(parse_part(&wanted, &[1 - number], &bytes).is_err(), "of the other report");
            parse_part(&wanted, &[number], &bytes).expect("its own report")
        });
        let joined = join(&wanted, parts.into_iter().collect(), &BTreeMap::new());
        assert_eq!(format!("{joined:?}"), format!("{:?}", survey(&wanted).expect("threads")));
        assert!(joined.iter().all(|outcome| !outcome.tables.is_empty()));
    }

    #[test]
    fn a_task_that_does_not_see_a_report_has_not_read_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = export(folder.path(), 30);
        let inputs = [Input { shown: "r".to_owned(), path: path.clone(), side: 0 }];
        let asked = [(find("breakdown").expect("there"), Arguments::default())];
        let wanted = Survey { asked: &asked, inputs: &inputs, filter: None, jobs: 1, progress: &|_| {} };
        let work = ReportWork::from_survey(&wanted);
        assert!(work.read(&[0], 1, &Catalogue::built_in()).is_ok());
        fs::remove_dir_all(&path).expect("gone");
        assert!(
            work.read(&[0], 1, &Catalogue::built_in())
                .is_err_and(|why| why.contains("does not see a report"))
        );
    }
}
