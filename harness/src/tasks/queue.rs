//! Who starts the tasks of an analysis: an array of Slurm, or a pod for each.

use cluster::launch::slurm_array::Arrays;
use cluster::reach::pods::PodTasks;
use cluster::reach::task_state::Task;
use std::collections::{BTreeMap, BTreeSet};

pub(super) enum Queue<'a> {
    Slurm(Arrays<'a>),
    Pods(Box<PodTasks>),
}

impl Queue<'_> {
    /// As messages name it.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Queue::Slurm(_) => "Slurm",
            Queue::Pods(_) => "Kubernetes",
        }
    }

    /// The id of these tasks, whose `name` is theirs alone.
    pub(super) async fn submit(
        &self,
        name: &str,
        tasks: &BTreeSet<usize>,
        off: &BTreeSet<String>,
        known: &BTreeSet<String>,
    ) -> Result<String, String> {
        match self {
            Queue::Slurm(arrays) => arrays.submit(name, tasks, off, known).await,
            Queue::Pods(pods) => pods.submit(name, tasks, off).await,
        }
    }

    pub(super) async fn poll(
        &self,
        ids: &BTreeSet<String>,
    ) -> Result<BTreeMap<(String, usize), Task>, String> {
        match self {
            Queue::Slurm(arrays) => arrays.poll(ids).await,
            Queue::Pods(pods) => pods.poll(ids).await,
        }
    }

    /// Ids, or single tasks as `ID_TASK`.
    pub(super) async fn cancel(&self, which: &BTreeSet<String>) {
        match self {
            Queue::Slurm(arrays) => arrays.cancel(which).await,
            Queue::Pods(pods) => pods.cancel(which).await,
        }
    }

    /// All that was submitted under these names, also where no answer came, and what has these ids.
    pub(super) async fn cancel_all(&self, names: &[String], ids: &BTreeSet<String>) {
        match self {
            Queue::Slurm(arrays) => {
                let names = names.iter().map(|name| format!("--name={name}"));
                arrays.cancel(&names.chain(ids.iter().cloned()).collect()).await;
            }
            Queue::Pods(pods) => pods.cancel(&names.iter().cloned().collect()).await,
        }
    }

    /// Nothing of it may stay. Why something does.
    pub(super) async fn end(&self) -> Result<(), String> {
        match self {
            Queue::Slurm(_) => Ok(()),
            Queue::Pods(pods) => pods.end().await,
        }
    }
}
