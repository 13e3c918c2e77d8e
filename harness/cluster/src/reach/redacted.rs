//! The world without its secrets: what commands print and what went wrong reaches messages and artefacts only so. Files
//! come as they are, since who collects them counts what was taken out.

use super::sink::Sink;
use super::{Answer, Command, Host, Reach, ReachError, Wait};
use base::redact::Redactor;

/// A reach whose answers and errors are without secrets.
pub struct Redacted<'a> {
    /// The reach below this one.
    pub reach: &'a dyn Reach,
    /// Takes secrets out of stdout, stderr and messages.
    pub redactor: &'a Redactor,
}

impl Redacted<'_> {
    fn answer(&self, answer: Answer) -> Answer {
        let clean = |bytes: Vec<u8>| self.redactor.bytes(&bytes).bytes;
        Answer { status: answer.status, stdout: clean(answer.stdout), stderr: clean(answer.stderr) }
    }

    fn error(&self, error: ReachError) -> ReachError {
        let clean = |text: String| self.redactor.text(&text);
        match error {
            ReachError::NoProgram { host, program } => {
                ReachError::NoProgram { host, program: clean(program) }
            }
            ReachError::NotFound { path } => ReachError::NotFound { path: clean(path) },
            ReachError::Unreachable { host, why } => ReachError::Unreachable { host, why: clean(why) },
            ReachError::NoAccess { by, host, why } => ReachError::NoAccess { by, host, why: clean(why) },
            ReachError::PodOver { host, why } => ReachError::PodOver { host, why: clean(why) },
            ReachError::TimedOut { what, limit_s } => ReachError::TimedOut { what: clean(what), limit_s },
            ReachError::Failed { what, why } => ReachError::Failed { what: clean(what), why: clean(why) },
            ReachError::Unwritten { why } => ReachError::Unwritten { why: clean(why) },
        }
    }
}

impl Reach for Redacted<'_> {
    fn exec<'a>(&'a self, host: &'a Host, command: &'a Command) -> Wait<'a, Result<Answer, ReachError>> {
        Box::pin(async move {
            let result = self.reach.exec(host, command).await;
            result.map(|answer| self.answer(answer)).map_err(|error| self.error(error))
        })
    }

    fn put<'a>(&'a self, host: &'a Host, path: &'a str, bytes: &'a [u8]) -> Wait<'a, Result<(), ReachError>> {
        Box::pin(async move { self.reach.put(host, path, bytes).await.map_err(|error| self.error(error)) })
    }

    fn get<'a>(&'a self, host: &'a Host, path: &'a str) -> Wait<'a, Result<Vec<u8>, ReachError>> {
        Box::pin(async move { self.reach.get(host, path).await.map_err(|error| self.error(error)) })
    }

    fn fetch<'a>(
        &'a self,
        host: &'a Host,
        path: &'a str,
        sink: &'a mut dyn Sink,
    ) -> Wait<'a, Result<u64, ReachError>> {
        Box::pin(async move { self.reach.fetch(host, path, sink).await.map_err(|error| self.error(error)) })
    }

    fn remove<'a>(
        &'a self,
        host: &'a Host,
        folder: &'a str,
        names: &'a [String],
    ) -> Wait<'a, Result<(), ReachError>> {
        Box::pin(
            async move { self.reach.remove(host, folder, names).await.map_err(|error| self.error(error)) },
        )
    }
}
