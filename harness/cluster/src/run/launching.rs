//! How a planned job comes to run: its files, its secrets and its start. Which jobs are launched, and when, is decided by
//! the runner.

use super::secret_files;
use crate::launch::folder::Folders;
use crate::launch::{self, Launch, NotLaunched};
use crate::reach::Reach;
use base::redact::Secrets;
use job::script;
use model::artefact::{Plan, PlannedJob};
use std::rc::Rc;

/// All that a launch needs of a run; several go on side by side.
pub(super) struct Launching<'a> {
    pub plan: &'a Plan,
    pub reach: &'a dyn Reach,
    pub launcher: Rc<dyn Launch>,
    /// What jobs are given that no artefact holds.
    pub secrets: &'a Secrets,
    /// The process before this one was ended: its last launches may not be recorded.
    pub resumed: bool,
}

impl<'a> Launching<'a> {
    /// The handle of a job that runs from here on. One that was launched by the process before, whose answer was lost
    /// with it, is found by its name and not launched again.
    pub(super) async fn launch(&self, planned: &PlannedJob) -> Result<String, NotLaunched> {
        if self.resumed
            && let Some(handle) = self.launcher.find_started(self.reach, planned).await?
        {
            return Ok(handle);
        }
        self.put_files(planned).await?;
        self.launcher.submit(self.reach, planned).await
    }

    pub(super) async fn put_files(&self, job: &PlannedJob) -> Result<(), NotLaunched> {
        let folder = self.folders().for_job(job);
        for file in &job.files {
            let text = match &file.text {
                Some(text) => text.as_str(),
                None => script::shared_text(&file.name)
                    .ok_or_else(|| format!("no such script in this harness: `{}`", file.name))?,
            };
            folder
                .put(&file.name, text.as_bytes())
                .await
                .map_err(|error| NotLaunched::on_folder(self.plan.launcher, &error, job))?;
        }
        let given = job.secrets.iter().map(|secret| (secret.variable.as_str(), secret.from.as_str()));
        let text = script::secrets::assignments(given, self.secrets)?;
        for file in secret_files(self.plan.launcher, job) {
            let put = folder.put(&file, text.as_bytes()).await;
            put.map_err(|error| launch::ssh::on_folder(&error, job))?;
        }
        Ok(())
    }

    pub(super) fn folders(&self) -> Folders<'a> {
        Folders { reach: self.reach, launcher: self.plan.launcher, nodes: &self.plan.nodes }
    }
}
