//! What a task does on its node: this very program is started there with the order and the task's number, reads its
//! reports, and leaves a file with what was taken of them.

use super::order::{TaskOrder, Work};
use super::{PART, part, program};
use crate::own_recipes;
use base::digest::sha256;
use model::exit_code;
use std::num::NonZeroUsize;
use std::path::Path;

/// The verb by which the program starts itself; no person types it.
pub(crate) const VERB: &str = "analyze-part";

/// The order's file, and the number of the task.
pub(crate) fn serve(words: &[String]) -> i32 {
    match parse_and_work(words) {
        Ok(()) => exit_code::PASSED,
        Err(why) => {
            eprintln!("error: {why}");
            exit_code::USAGE
        }
    }
}

pub(super) fn parse_and_work(words: &[String]) -> Result<(), String> {
    match words {
        [order, task] => match task.parse() {
            Ok(task) => work(Path::new(order), task),
            Err(_) => Err(format!("not a task number: `{task}`")),
        },
        _ => Err(format!("`{VERB}` is internal to the harness, which reads reports on nodes with it")),
    }
}

pub(super) fn work(path: &Path, task: usize) -> Result<(), String> {
    let bytes = std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let order = TaskOrder::from_bytes(&bytes, path)?;
    program::check(&order.program)?;
    let catalogue = own_recipes::catalogue_of_plan(&order.own)?;
    let share = task.checked_sub(1).and_then(|at| order.shares.get(at));
    let share = share.ok_or_else(|| format!("no task {task}: the order has {}", order.shares.len()))?;
    order.enter()?;
    let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let taken = match order.work {
        Work::Reports(work) => work.read(share, order.jobs.unwrap_or(cores), &catalogue)?,
        Work::Jobs(work) => work.read(share, &catalogue)?,
    };
    let file = part::write(&sha256(&bytes), task, &taken)?;
    let folder = path.parent().unwrap_or(Path::new("."));
    store::write_whole(&folder.join(format!("{PART}{task}")), &file).map_err(|error| error.to_string())
}
