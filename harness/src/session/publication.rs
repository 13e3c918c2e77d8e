//! Publishes a run that has ended, where its inventory names a place for every run. Whatever becomes of it, the exit code
//! of the run stays, and one line says what happened.

use super::output::Output;
use crate::publish::{self, Patience, Source};
use base::text::show;
use cluster::interrupt;
use model::artefact::Plan;
use std::path::Path;
use store::{Home, Store, Stored};

/// Less than a person who publishes has: a run is not to wait for a store that is gone.
const PATIENCE: Patience = Patience { request_timeout_s: 60, retries: 4 };

/// The URL of a run.
fn url(plan: &Plan) -> Option<String> {
    let to = plan.publish.as_ref()?.trim_end_matches('/');
    Some(format!("{to}/{}", plan.run_id))
}

/// Why the run could not be published, before anything is launched.
pub(super) fn refused(plan: &Plan) -> Option<String> {
    let why = publish::refused(&url(plan)?, PATIENCE)?;
    Some(format!("inventory `{}`, [publish]: {why}", show(&plan.inventory)))
}

/// Publishes the run in its folder; `code` is its exit code.
pub(super) fn publish(home: &Home, plan: &Plan, store: &Store, code: i32, output: Output) {
    let Some(url) = url(plan) else { return };
    let done = match interrupt::asked() {
        Some(_) => Err("the run was interrupted".to_owned()),
        None => send(home, &store.folder(), &url),
    };
    match done {
        Ok(line) => output.print(format_args!("published: {line}")),
        Err(why) => eprintln!(
            "error: not published: {why}; the exit code stays {code}; publish it: harness publish {} {}",
            show(&plan.run_id),
            show(&url)
        ),
    }
}

fn send(home: &Home, folder: &Path, url: &str) -> Result<String, String> {
    let run = Stored::open(folder).map_err(|error| error.to_string())?;
    let mut printed = Vec::new();
    let done = publish::publish(home, &Source::Run(Box::new(run)), url, PATIENCE, false, &mut printed);
    done.map_err(|failure| failure.to_string())?;
    Ok(String::from_utf8_lossy(&printed).lines().next().unwrap_or_default().to_owned())
}
