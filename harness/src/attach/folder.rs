//! The folder that the pods of a manifest left, on a claim that is mounted or as a copy of it: files are read as those of a
//! run are, without following a link, and nothing in it is changed or run.

use cluster::reach::process::ProcessReach;
use cluster::reach::sink::Sink;
use cluster::reach::{Answer, Command, Host, Reach, ReachError, Wait};

/// Reads files of the pods' folder in the place of those that the plan names.
pub(super) struct AttachedFolder {
    /// The folder as the pods saw it, and as it is here.
    there: String,
    here: String,
}

impl AttachedFolder {
    pub(super) fn new(there: String, here: String) -> AttachedFolder {
        AttachedFolder { there, here }
    }

    fn path(&self, path: &str) -> Result<String, ReachError> {
        let within = path.strip_prefix(&self.there).filter(|rest| rest.starts_with('/'));
        let within = within.filter(|rest| !rest.split('/').any(|part| part == ".."));
        let failed = || refused(format!("cannot read `{path}`"), "it is not in the folder of the job");
        within.map(|rest| format!("{}{rest}", self.here)).ok_or_else(failed)
    }
}

fn refused(what: String, why: &str) -> ReachError {
    ReachError::Failed { what, why: why.to_owned() }
}

const READ_ONLY: &str = "the folder of a job that others started is only read";

impl Reach for AttachedFolder {
    fn exec<'a>(&'a self, _: &'a Host, command: &'a Command) -> Wait<'a, Result<Answer, ReachError>> {
        let program = command.argv.first().cloned().unwrap_or_default();
        Box::pin(async move { Err(refused(format!("cannot run `{program}`"), READ_ONLY)) })
    }

    fn put<'a>(&'a self, _: &'a Host, path: &'a str, _: &'a [u8]) -> Wait<'a, Result<(), ReachError>> {
        Box::pin(async move { Err(refused(format!("cannot write `{path}`"), READ_ONLY)) })
    }

    fn get<'a>(&'a self, _: &'a Host, path: &'a str) -> Wait<'a, Result<Vec<u8>, ReachError>> {
        Box::pin(async move { ProcessReach.get(&Host::Here, &self.path(path)?).await })
    }

    fn fetch<'a>(
        &'a self,
        _: &'a Host,
        path: &'a str,
        sink: &'a mut dyn Sink,
    ) -> Wait<'a, Result<u64, ReachError>> {
        Box::pin(async move { ProcessReach.fetch(&Host::Here, &self.path(path)?, sink).await })
    }

    fn remove<'a>(
        &'a self,
        _: &'a Host,
        folder: &'a str,
        _: &'a [String],
    ) -> Wait<'a, Result<(), ReachError>> {
        Box::pin(async move { Err(refused(format!("cannot remove files of `{folder}`"), READ_ONLY)) })
    }
}
