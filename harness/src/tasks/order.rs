//! What the tasks of an analysis are told: the work, who reads which part of it, and by which program. It is a file that all
//! nodes see; what a task hands back for it is told in `part.rs`.

use crate::artefact::PlannedRecipe;
use recipes::recipe::of_reports::{Input, ReportRecipe, Survey, find};
use recipes::report::Arguments;
use recipes::trace::Filter;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The version of this file and of the parts that are made for it. Either is read by the program that wrote the other.
pub const FORMAT: u32 = 1;

#[derive(Debug, Serialize, Deserialize)]
pub struct Order {
    pub format: u32,
    pub program: Program,
    pub work: Work,
    /// Of each task, from 1, the numbers of the reports that it reads.
    pub shares: Vec<Vec<usize>>,
    /// So many reports are open at once in a task; as many as it has cores where nobody says.
    pub jobs: Option<usize>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    pub version: String,
    pub sha256: String,
}

/// What recipes over reports are asked for.
#[derive(Debug, Serialize, Deserialize)]
pub struct Work {
    recipes: Vec<Named>,
    /// Those of them that users wrote.
    own: Vec<PlannedRecipe>,
    filter: Option<Filter>,
    /// What paths of reports are relative to, where they are: they are spoken of as they are written.
    folder: Option<PathBuf>,
    inputs: Vec<Report>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Named {
    name: String,
    arguments: Vec<String>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Report {
    path: PathBuf,
    shown: String,
    side: usize,
}

/// The work once more, as those see it who do it.
pub struct Read {
    pub asked: Vec<(&'static ReportRecipe, Arguments)>,
    pub inputs: Vec<Input>,
    pub filter: Option<Filter>,
}

impl Work {
    pub fn of(survey: &Survey, own: Vec<PlannedRecipe>) -> Result<Work, String> {
        let is_relative = survey.inputs.iter().any(|input| input.path.is_relative());
        let folder = is_relative.then(std::env::current_dir).transpose();
        let folder = folder.map_err(|error| format!("this folder is not known: {error}"))?;
        let named = |(recipe, arguments): &(&'static ReportRecipe, Arguments)| Named {
            name: recipe.name.to_owned(),
            arguments: arguments.words(),
        };
        let report =
            |input: &Input| Report { path: input.path.clone(), shown: input.shown.clone(), side: input.side };
        Ok(Work {
            recipes: survey.asked.iter().map(named).collect(),
            own,
            filter: survey.filter.cloned(),
            folder,
            inputs: survey.inputs.iter().map(report).collect(),
        })
    }

    pub fn own(&self) -> &[PlannedRecipe] {
        &self.own
    }

    /// This process goes where the paths of reports lead somewhere.
    pub fn enter(&self) -> Result<(), String> {
        let Some(folder) = &self.folder else { return Ok(()) };
        std::env::set_current_dir(folder).map_err(|error| {
            format!(
                "this node does not see the folder that reports are named from: {}: {error}",
                folder.display()
            )
        })
    }

    /// The recipes that users wrote must be known already.
    pub fn read(&self) -> Result<Read, String> {
        let named = |named: &Named| {
            let recipe = find(&named.name).ok_or_else(|| format!("no recipe `{}`", named.name))?;
            let words: Vec<&str> = named.arguments.iter().map(String::as_str).collect();
            let arguments = Arguments::read(recipe.name, recipe.arguments, &words);
            Ok((recipe, arguments.map_err(|error| error.to_string())?))
        };
        let input = |report: &Report| Input {
            path: report.path.clone(),
            shown: report.shown.clone(),
            side: report.side,
        };
        Ok(Read {
            asked: self.recipes.iter().map(named).collect::<Result<_, String>>()?,
            inputs: self.inputs.iter().map(input).collect(),
            filter: self.filter.clone(),
        })
    }
}

impl Order {
    pub fn to_bytes(&self) -> Result<Vec<u8>, String> {
        serde_json::to_vec_pretty(self)
            .map_err(|error| format!("what tasks are told cannot be written: {error}"))
    }

    pub fn of_bytes(bytes: &[u8], path: &Path) -> Result<Order, String> {
        let bad = |why: String| format!("{}: {why}", path.display());
        let order: Order = serde_json::from_slice(bytes).map_err(|error| bad(error.to_string()))?;
        match order.format {
            FORMAT => Ok(order),
            other => Err(bad(format!(
                "written in format {other}, this harness reads {FORMAT}: use one and the same"
            ))),
        }
    }
}
