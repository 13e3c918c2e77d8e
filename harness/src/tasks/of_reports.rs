//! The work of tasks where a person names reports: recipes with their arguments, and which reports there are.

use crate::digest::sha256;
use recipes::recipe::of_reports::{Input, Part, ReportRecipe, Survey, find, part};
use recipes::report::Arguments;
use recipes::trace::{Filter, Trace};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

#[derive(Serialize, Deserialize)]
pub struct OfReports {
    recipes: Vec<Named>,
    filter: Option<Filter>,
    inputs: Vec<Report>,
}

#[derive(Serialize, Deserialize)]
struct Named {
    name: String,
    arguments: Vec<String>,
    /// Of all that the recipe says of itself: two of one name may be two recipes.
    sha256: String,
}

#[derive(Serialize, Deserialize)]
struct Report {
    path: PathBuf,
    shown: String,
    side: usize,
}

impl OfReports {
    pub fn of(survey: &Survey) -> OfReports {
        let named = |(recipe, arguments): &(&'static ReportRecipe, Arguments)| Named {
            name: recipe.name.to_owned(),
            arguments: arguments.words(),
            sha256: sha256(recipe.definition.as_bytes()),
        };
        let report =
            |input: &Input| Report { path: input.path.clone(), shown: input.shown.clone(), side: input.side };
        OfReports {
            recipes: survey.asked.iter().map(named).collect(),
            filter: survey.filter.cloned(),
            inputs: survey.inputs.iter().map(report).collect(),
        }
    }

    /// What the reports of these numbers give, as bytes. The recipes that users wrote must be known already.
    pub fn read(&self, share: &[usize], jobs: usize) -> Result<Vec<u8>, String> {
        let named = |named: &Named| {
            let recipe = find(&named.name).ok_or_else(|| format!("no recipe `{}`", named.name))?;
            if sha256(recipe.definition.as_bytes()) != named.sha256 {
                return Err(format!("another recipe has this name: `{}`", named.name));
            }
            let words: Vec<&str> = named.arguments.iter().map(String::as_str).collect();
            let arguments = Arguments::read(recipe.name, recipe.arguments, &words);
            Ok((recipe, arguments.map_err(|error| error.to_string())?))
        };
        let asked = self.recipes.iter().map(named).collect::<Result<Vec<_>, String>>()?;
        let input = |report: &Report| Input {
            path: report.path.clone(),
            shown: report.shown.clone(),
            side: report.side,
        };
        let inputs: Vec<Input> = self.inputs.iter().map(input).collect();
        seen(share.iter().filter_map(|number| Some(inputs.get(*number)?.path.as_path())))?;
        let filter = self.filter.as_ref();
        let survey = Survey { asked: &asked, inputs: &inputs, filter, jobs, progress: &|_| {} };
        part(&survey, share)?.to_bytes(&asked)
    }
}

/// Where a report lies is no matter of what is in it: a task that cannot see one has not read it.
pub fn seen<'a>(mut paths: impl Iterator<Item = &'a Path>) -> Result<(), String> {
    match paths.find(|path| !path.exists()) {
        None => Ok(()),
        Some(path) => Err(format!(
            "this node does not see a report, which must lie in a folder of all nodes: {}",
            path.display()
        )),
    }
}

/// What a task left, which has the reports of its share and no other.
pub fn taken(survey: &Survey, share: &[usize], bytes: &[u8]) -> Result<Part, String> {
    let part = Part::of_bytes(survey.asked, bytes)?;
    match part.reports().eq(share.iter().copied()) {
        true => Ok(part),
        false => Err("it is of other reports".to_owned()),
    }
}

/// The node of each report, as far as it tells it. Why a report cannot be read is told by its task.
pub fn nodes(survey: &Survey) -> Vec<Option<String>> {
    let host = |input: &Input| Trace::open(&input.path).and_then(|trace| trace.host()).ok().flatten();
    survey.inputs.iter().map(host).collect()
}
