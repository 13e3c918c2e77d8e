//! Small tasks in pods that hand over files: a pod each, without devices, found and deleted by the label of their analysis.
//! What a task does, and whether its file is complete, is for its caller to say.

use super::kubectl::{Kubectl, complaint, is_refusal, is_transient};
use super::life::{Life, PodLeft};
use super::maker::this_process;
use super::manifest::{PodOwner, PodTemplate};
use super::state::{PodFacts, PodState};
use crate::interrupt;
use crate::reach::ReachError;
use crate::reach::task_state::Task;
use config::inventory::{Inventory, KubernetesReach};
use serde_json::{Value, json};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio::time::Instant;

/// What the server may say of pods that were asked for.
const ANSWER_LIMIT: usize = 16 << 20;
/// Before pods are asked for again where the server gave no answer.
const PAUSES: [Duration; 3] = [Duration::from_secs(2), Duration::from_secs(10), Duration::from_secs(30)];

/// The pods of the analyses of a run, whichever process made them.
pub struct AnalysisPods {
    kubectl: Kubectl,
    owner: PodOwner,
}

impl AnalysisPods {
    /// Of this run, or of the analysis of this name that is of no run.
    pub fn new(context: Option<&str>, namespace: &str, run: &str, person: &str) -> AnalysisPods {
        // Other pods than those that stand for its nodes.
        let owner = PodOwner { run: analysis_of(run), person: person.to_owned(), process: None };
        AnalysisPods { kubectl: Kubectl::new(context, namespace), owner }
    }

    /// Those that are there.
    pub async fn left(&self) -> Result<Vec<PodLeft>, ReachError> {
        self.life().left().await
    }

    /// Deletes those that are still the same. Gives those that stay, with the reason.
    pub async fn delete(&self, pods: &[PodLeft]) -> Result<Vec<(PodLeft, String)>, ReachError> {
        self.life().delete(pods).await
    }

    fn life(&self) -> Life<'_> {
        Life { kubectl: &self.kubectl, owner: &self.owner }
    }
}

/// The owner of the pods of the analyses of a run, or of the analysis of that name.
pub(super) fn analysis_of(run: &str) -> String {
    format!("analysis-{run}")
}

/// How tasks are asked for.
pub struct PodTasks {
    pods: AnalysisPods,
    template: PodTemplate,
    nodes: Vec<String>,
    script: String,
    /// By the names of their pods, also of those whose making was not answered.
    asked: RefCell<BTreeMap<String, TaskPod>>,
}

struct TaskPod {
    id: String,
    task: usize,
    since: Instant,
}

impl PodTasks {
    /// On the nodes of the inventory; `script` lies in the folder that pods see, and has the task's number as its argument.
    pub fn new(
        inventory: &Inventory,
        reach: &KubernetesReach,
        run: &str,
        person: &str,
        script: String,
    ) -> PodTasks {
        let pods = AnalysisPods::new(reach.context.as_deref(), &reach.namespace, run, person);
        PodTasks {
            pods: AnalysisPods { kubectl: Kubectl::from_reach(reach), ..pods },
            template: PodTemplate::new(reach, &inventory.instance, &inventory.paths.shared).without_devices(),
            nodes: inventory.nodes.clone(),
            script,
            asked: RefCell::default(),
        }
    }

    /// The same of no run: they are found by the process that makes them.
    #[must_use]
    pub fn without_run(mut self) -> PodTasks {
        self.pods.owner.process = this_process();
        self
    }

    /// `name` is these tasks' alone, and their id. They are kept off some nodes, unless there are no others. Where one of
    /// them is refused none is there.
    pub async fn submit(
        &self,
        name: &str,
        tasks: &BTreeSet<usize>,
        off: &BTreeSet<String>,
    ) -> Result<String, String> {
        let wanted: BTreeMap<String, usize> =
            tasks.iter().map(|task| (self.pods.owner.pod(&format!("{name} {task}")), *task)).collect();
        let since = Instant::now();
        self.asked.borrow_mut().extend(
            wanted
                .iter()
                .map(|(pod, task)| (pod.clone(), TaskPod { id: name.to_owned(), task: *task, since })),
        );
        let mut missing = wanted.clone();
        let mut pauses = PAUSES.iter();
        loop {
            let why = match self.create(name, &missing, off).await {
                Ok(()) => return Ok(name.to_owned()),
                Err(why) => why,
            };
            // An answer that was lost may be that of pods which are there.
            match self.pods.life().list().await {
                Ok(listed) => {
                    missing.retain(|pod, _| !listed.contains_key(pod));
                    if missing.is_empty() {
                        return Ok(name.to_owned());
                    }
                    if !is_transient(&why) && (why.contains("Error from server (") || is_refusal(&why)) {
                        self.cancel(&BTreeSet::from([name.to_owned()])).await;
                        return Err(why);
                    }
                }
                Err(error) if is_refusal(&error.to_string()) => return Err(why),
                Err(_) => {}
            }
            match pauses.next() {
                Some(pause) if interrupt::asked().is_none() => tokio::time::sleep(*pause).await,
                _ => {
                    self.cancel(&BTreeSet::from([name.to_owned()])).await;
                    return Err(why);
                }
            }
        }
    }

    async fn create(
        &self,
        name: &str,
        pods: &BTreeMap<String, usize>,
        off: &BTreeSet<String>,
    ) -> Result<(), String> {
        let others: Vec<&str> =
            self.nodes.iter().filter(|node| !off.contains(*node)).map(String::as_str).collect();
        let nodes = match others.is_empty() {
            true => self.nodes.iter().map(String::as_str).collect(),
            false => others,
        };
        let items: Vec<Value> =
            pods.iter().map(|(pod, task)| self.pod(pod, &format!("{name} {task}"), &nodes, *task)).collect();
        let list = json!({ "apiVersion": "v1", "kind": "List", "items": items }).to_string();
        let said = self.pods.kubectl.create(list.as_bytes(), pods.len(), ANSWER_LIMIT).await;
        match said {
            Ok(output) if output.succeeded => Ok(()),
            Ok(output) => Err(format!("`kubectl create`: {}", complaint(&output.stderr))),
            Err(error) => Err(error.to_string()),
        }
    }

    fn pod(&self, pod: &str, about: &str, nodes: &[&str], task: usize) -> Value {
        let mut spec = self.template.spec(nodes, &["bash", &self.script, &task.to_string()]);
        // What they write belongs to who reads it, and they read what that person may.
        spec["securityContext"] = json!({
            "runAsUser": nix::unistd::geteuid().as_raw(), "runAsGroup": nix::unistd::getegid().as_raw(),
        });
        json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": pod, "labels": self.template.labels(&self.pods.owner),
                "annotations": PodTemplate::annotations(&self.pods.owner, "harness/analysis", about),
            },
            "spec": spec,
        })
    }

    /// The tasks of these ids.
    pub async fn poll(&self, ids: &BTreeSet<String>) -> Result<BTreeMap<(String, usize), Task>, String> {
        let listed = self.pods.life().list().await.map_err(|error| error.to_string())?;
        let limit = Duration::from_secs(self.template.reach.start_limit_s);
        let asked = self.asked.borrow();
        let known = asked.iter().filter(|(_, asked)| ids.contains(&asked.id)).map(|(pod, asked)| {
            let late = asked.since.elapsed() >= limit;
            let task = listed.get(pod).map_or_else(gone, |facts| state(facts, late));
            ((asked.id.clone(), asked.task), task)
        });
        Ok(known.collect())
    }

    /// Ids, or single tasks as `ID_TASK`: their pods are deleted.
    pub async fn cancel(&self, which: &BTreeSet<String>) {
        let is_meant = |asked: &TaskPod| {
            which.contains(&asked.id) || which.contains(&format!("{}_{}", asked.id, asked.task))
        };
        let names: BTreeSet<String> = self
            .asked
            .borrow()
            .iter()
            .filter(|(_, asked)| is_meant(asked))
            .map(|(pod, _)| pod.clone())
            .collect();
        // What stays is seen, and reported, at the end.
        if let Ok(mut left) = self.pods.left().await {
            left.retain(|pod| names.contains(&pod.name));
            let _ = self.pods.delete(&left).await;
        }
    }

    /// Deletes the pods of all tasks that were asked for.
    pub async fn end(&self) -> Result<(), String> {
        let ended = async {
            let mut left = self.pods.left().await?;
            left.retain(|pod| self.asked.borrow().contains_key(&pod.name));
            self.pods.delete(&left).await
        };
        match ended.await.map_err(|error| error.to_string())?.first() {
            Some((pod, why)) => Err(format!("pod {} is left: {why}", pod.name)),
            None => Ok(()),
        }
    }
}

/// The server lists each pod from its making to its end.
fn gone() -> Task {
    Task::Ended { state: super::GONE.to_owned(), completed: false, node: String::new() }
}

/// `late`: it should run by now.
fn state(facts: &PodFacts, late: bool) -> Task {
    let node = || facts.node.clone().unwrap_or_default();
    match &facts.state {
        PodState::Running => Task::Running,
        PodState::Waiting(why) => Task::Waiting { never: late.then(|| why.clone()) },
        PodState::Over(why) => {
            Task::Ended { state: why.clone(), completed: facts.has_succeeded, node: node() }
        }
        // What it hands over is the same, should it come after all.
        PodState::NodeSilent(why) => {
            Task::Ended { state: format!("its node is silent: {why}"), completed: false, node: node() }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::state::read;
    use super::*;

    fn task(pod: &Value, late: bool) -> Task {
        let list = json!({ "items": [pod] }).to_string();
        state(&read(list.as_bytes()).expect("a list")["a"], late)
    }

    fn pod(status: &Value) -> Value {
        json!({ "metadata": { "name": "a", "uid": "1" }, "spec": { "nodeName": "n1" }, "status": status })
    }

    #[test]
    fn a_task_is_over_well_only_where_its_container_ended_with_0() {
        let ended = |phase: &str, code: i32, reason: &str| {
            let ended = json!({ "exitCode": code, "reason": reason });
            task(
                &pod(
                    &json!({ "phase": phase, "containerStatuses": [{ "name": "work", "state": { "terminated": ended } }] }),
                ),
                false,
            )
        };
        let of = |state: &str, completed: bool| Task::Ended {
            state: state.to_owned(),
            completed,
            node: "n1".to_owned(),
        };
        assert_eq!(ended("Succeeded", 0, "Completed"), of("Completed: exit code 0", true));
        assert_eq!(ended("Failed", 2, "Error"), of("Error: exit code 2", false));
        assert_eq!(ended("Failed", 137, "OOMKilled"), of("OOMKilled: exit code 137", false));
        let evicted = pod(&json!({ "phase": "Failed", "reason": "Evicted", "message": "disk" }));
        assert_eq!(task(&evicted, false), of("Evicted: disk", false));
    }

    #[test]
    fn a_pod_that_waits_too_long_is_refused_in_the_words_of_kubernetes() {
        let waits = pod(&json!({ "phase": "Pending", "conditions": [
            { "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/2 nodes" }] }));
        assert_eq!(task(&waits, false), Task::Waiting { never: None });
        assert_eq!(task(&waits, true), Task::Waiting { never: Some("Unschedulable: 0/2 nodes".to_owned()) });
        let silent = pod(
            &json!({ "phase": "Running", "containerStatuses": [{ "name": "work", "ready": true, "state": { "running": {} } }],
            "conditions": [{ "type": "Ready", "status": "False" }] }),
        );
        assert!(matches!(task(&silent, false), Task::Ended { completed: false, .. }));
    }
}
