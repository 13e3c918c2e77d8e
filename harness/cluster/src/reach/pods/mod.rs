//! Reach by pods: each node is a host by the pod that stands for it, and commands and files go there by `kubectl exec`.
//! Launchers above it are those of nodes over ssh. Which pods there are is `life.rs`'s business.
//!
//! An answer comes in-band: the shell in the pod prints markers with a word of this question around it, and its exit code
//! behind it. A stream that breaks off, a kubelet that is away and a command that fails all end kubectl with exit code 1.
//! Inputs are read by their announced length, since older servers cannot close a command's standard input.

mod admission;
mod incoming;
mod kubectl;
mod leaving;
mod life;
mod maker;
mod manifest;
pub(crate) mod node_text;
mod orphans;
mod plugin;
mod server;
mod shared_answer;
mod state;
mod tasks;
#[cfg(test)]
mod tests;

pub(crate) use kubectl::Kubectl;
pub(crate) use leaving::leaving;
pub use life::PodLeft;
pub use maker::{Maker, this_process};
pub use manifest::{PodOwner, PodTemplate};
pub use orphans::{Orphan, Orphans};
pub use server::{cluster_known, cluster_of_context, current_cluster};
pub use state::read as read_pods;
pub use tasks::{AnalysisPods, PodTasks};

use super::output::{head, too_long};
use super::process::ProcessReach;
use super::shell_text::{self, CommandEnd};
use super::sink::{CHUNK, Sink, unwritten};
use super::{Answer, Command, Host, Reach, ReachError, Status, Wait, left_file, removal};
use base::digest::sha256;
use config::inventory::{Inventory, KubernetesReach};
use incoming::{Came, Incoming};
use kubectl::{Output, is_of_server, is_refusal};
use life::{Life, no_pod, over, runs};
use manifest::CONTAINER;
use shared_answer::SharedAnswer;
use state::{PodFacts, PodState};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::sync::{OnceCell, Semaphore};

const PUT: &str = include_str!("put.sh");
const HOSTS: &str = include_str!("hosts.sh");
const GET: &str = concat!(include_str!("../left_file.sh"), include_str!("get.sh"));
/// Reads a text of the announced length, and lets a shell run it.
const RUN: &str = "head -c \"$1\" | sh; exit 0";
/// What a command may print. More goes through files.
const STDOUT_LIMIT: usize = 16 << 20;
/// How long kubectl may take beyond what a command may.
const SLACK: Duration = Duration::from_secs(30);
/// How long a file may take.
const TRANSFER_LIMIT: Duration = Duration::from_secs(3600);
/// A transfer whose stream broke is begun again after these pauses.
const PAUSES: [Duration; 3] = [Duration::from_secs(2), Duration::from_secs(10), Duration::from_secs(20)];
/// The exit code of a script that has no file to give, and of one that got another file than was sent.
const NOT_FOUND: i32 = 44;
const DIFFERS: i32 = 9;
const GONE: &str = "deleted or evicted, or its node was removed";

/// The pods of a run.
pub struct Pods {
    kubectl: Kubectl,
    template: PodTemplate,
    owner: PodOwner,
    nodes: Vec<String>,
    /// Whether pods are made where there are none.
    makes: bool,
    /// Each costs a process here, and a connection to the API server.
    turns: Semaphore,
    asked: Cell<u64>,
    /// Pods may have been made: by this process, or by one whose run it goes on with.
    may_be_there: Cell<bool>,
    ready: OnceCell<BTreeMap<String, Result<String, ReachError>>>,
    /// For commands without an answer. Where a server is restarted those on all nodes lose theirs at once, and a list has all pods.
    listed: SharedAnswer<Listed>,
}

/// The pods by their names.
type Listed = Result<Rc<BTreeMap<String, PodFacts>>, ReachError>;

impl Pods {
    /// For these nodes of a run; nothing is made yet.
    pub fn new(
        inventory: &Inventory,
        reach: &KubernetesReach,
        owner: PodOwner,
        nodes: &[String],
        fanout: usize,
    ) -> Pods {
        Pods {
            kubectl: Kubectl::from_reach(reach),
            template: PodTemplate::new(reach, &inventory.instance, &inventory.paths.shared),
            owner,
            nodes: nodes.to_vec(),
            makes: true,
            turns: Semaphore::new(fanout.clamp(1, Semaphore::MAX_PERMITS)),
            asked: Cell::new(0),
            may_be_there: Cell::new(false),
            ready: OnceCell::new(),
            listed: SharedAnswer::new(),
        }
    }

    /// The same to look at what a run left: with `makes`, by pods that take no device; else by those that are there.
    #[must_use]
    pub fn looking(mut self, makes: bool) -> Pods {
        self.makes = makes;
        self.template = self.template.without_devices();
        self
    }

    /// What a person may look at where pods do not come to run.
    pub fn events_command(&self) -> String {
        self.kubectl.command(&["get", "events"])
    }

    /// Whether a run's folder knows of them.
    pub fn are_of_run(&self) -> bool {
        self.owner.process.is_none()
    }

    /// The pods that are there under the label of the run.
    pub async fn left(&self) -> Result<Vec<PodLeft>, ReachError> {
        self.life().left().await
    }

    /// Deletes those that are still the same. Gives those that stay, with the reason.
    pub async fn delete(&self, pods: &[PodLeft]) -> Result<Vec<(PodLeft, String)>, ReachError> {
        self.life().delete(pods).await
    }

    /// Deletes all pods of the run, if it asked for any.
    pub async fn end(&self) -> Result<(), String> {
        if !self.may_be_there.get() {
            return Ok(());
        }
        let ended = async { self.delete(&self.left().await?).await };
        match ended.await.map_err(|error| error.to_string())?.first() {
            Some((pod, why)) => Err(format!("pod {} is left: {why}", pod.name)),
            None => Ok(()),
        }
    }

    fn life(&self) -> Life<'_> {
        Life { kubectl: &self.kubectl, owner: &self.owner }
    }

    /// The pod of a node. The first who asks makes those of all nodes, and others wait.
    async fn pod(&self, node: &str) -> Result<String, ReachError> {
        let ready = self.ready.get_or_try_init(|| self.make()).await?;
        match ready.get(node) {
            Some(Ok(name)) => Ok(name.clone()),
            Some(Err(error)) => Err(error.clone()),
            None => Err(no_pod(node, "it is no node of this run".to_owned())),
        }
    }

    async fn make(&self) -> Result<BTreeMap<String, Result<String, ReachError>>, ReachError> {
        let template = self.makes.then_some(&self.template);
        self.may_be_there.set(true);
        let pods = self.life().ready(&self.nodes, template).await?;
        let hosts: Vec<(String, String)> = pods
            .iter()
            .filter_map(|(node, pod)| Some((node.clone(), pod.as_ref().ok()?.ip.clone()?)))
            .collect();
        let named = pods.into_iter().map(|(node, pod)| {
            let name = self.owner.pod(&node);
            (node, pod.map(|_| name))
        });
        let mut named: BTreeMap<String, Result<String, ReachError>> = named.collect();
        if self.makes && hosts.len() > 1 {
            let known = named.clone();
            let each = known.iter().filter_map(|(node, name)| Some((node, name.as_ref().ok()?)));
            let each = each.map(|(node, name)| self.introduce(node, name, &hosts));
            let failed = futures::future::join_all(each).await;
            named.extend(failed.into_iter().filter_map(|(node, done)| Some((node, Err(done.err()?)))));
        }
        Ok(named)
    }

    /// Lets a pod know the others by the names of their nodes: no DNS does.
    async fn introduce(
        &self,
        node: &str,
        pod: &str,
        hosts: &[(String, String)],
    ) -> (String, Result<(), ReachError>) {
        let lines = hosts.iter().map(|(node, ip)| format!("{ip} {node}"));
        let argv = ["sh", "-c", HOSTS, "sh", "/etc/hosts"].map(str::to_owned).into_iter().chain(lines);
        let command = Command::new(argv, Duration::from_secs(60));
        let done = match self.exec_in(node, pod, &command).await {
            Ok(answer) if answer.succeeded() => Ok(()),
            Ok(answer) => Err(no_pod(
                node,
                format!(
                    "its /etc/hosts cannot be written, which names the other pods: {}",
                    answer.complaint()
                ),
            )),
            Err(error) => Err(error),
        };
        (node.to_owned(), done)
    }

    /// A word that no other question has.
    fn mark(&self) -> String {
        self.asked.set(self.asked.get() + 1);
        let text = format!("{} {} {}", self.owner.run, std::process::id(), self.asked.get());
        sha256(text.as_bytes()).chars().take(16).collect()
    }

    fn arguments(pod: &str, script: &str, arguments: &[&str]) -> Vec<String> {
        let head = ["exec", "--stdin", pod, "--container", CONTAINER, "--", "sh", "-c", script, "sh"];
        head.iter().chain(arguments).map(|word| (*word).to_owned()).collect()
    }

    async fn exec_on(&self, node: &str, command: &Command) -> Result<Answer, ReachError> {
        let pod = self.pod(node).await?;
        self.exec_in(node, &pod, command).await
    }

    async fn exec_in(&self, node: &str, pod: &str, command: &Command) -> Result<Answer, ReachError> {
        let program = command.argv.first().cloned().unwrap_or_default();
        let mark = self.mark();
        let text = shell_text::text(command, &mark)
            .map_err(|why| ReachError::Failed { what: format!("`{program}` on {node}"), why })?;
        let words = Self::arguments(pod, RUN, &[&text.len().to_string()]);
        let what = format!("`{program}` on {node}");
        // The semaphore is never closed.
        let _turn = self.turns.acquire().await;
        let limit = STDOUT_LIMIT + shell_text::AROUND;
        let ran = self
            .kubectl
            .run(&words, text.as_bytes(), command.limit + SLACK, async |stdout| head(stdout, limit).await);
        let output = match tokio::time::timeout(command.limit, ran).await {
            Err(_) => {
                let late = ReachError::TimedOut { what, limit_s: command.limit.as_secs() };
                return Err(self.cause_of_silence(node, pod).await.unwrap_or(late));
            }
            // Without credentials no command gets to a node.
            Ok(Err(ReachError::Failed { why, .. })) if is_refusal(&why) => return Err(no_pod(node, why)),
            Ok(output) => output?,
        };
        let (succeeded, stderr) = (output.succeeded, output.stderr);
        let printed = match output.stdout {
            Ok(Some(printed)) => printed,
            Ok(None) => return Err(too_long(what, STDOUT_LIMIT)),
            Err(error) => return Err(ReachError::Failed { what, why: error.to_string() }),
        };
        match shell_text::parse_output(printed, &mark) {
            CommandEnd::Ended { code, stdout } => Ok(Answer { status: Status::Code(code), stdout, stderr }),
            CommandEnd::Absent => Err(ReachError::NoProgram { host: node.to_owned(), program }),
            CommandEnd::Cut | CommandEnd::NeverBegan { .. } => {
                Err(self.cause(node, pod, Output { succeeded, stdout: (), stderr }).await)
            }
        }
    }

    /// Why a pod gives no answer, as far as the server says it.
    async fn cause_of_silence(&self, node: &str, pod: &str) -> Option<ReachError> {
        match self.listed.get(async || self.life().list().await.map(Rc::new)).await {
            Ok(pods) => {
                let Some(facts) = pods.get(pod).cloned() else { return Some(over(node, GONE.to_owned())) };
                let is_silent = matches!(facts.state, PodState::NodeSilent(_));
                let error = runs(node, facts).err()?;
                let leaves = if is_silent { leaving::announced(&self.kubectl, node).await } else { None };
                // A machine that is taken away falls silent through no fault of its own.
                Some(leaves.map_or(error, |why| no_pod(node, format!("its node is leaving: {why}"))))
            }
            Err(ReachError::Failed { why, .. }) if is_refusal(&why) => Some(no_pod(node, why)),
            // Whatever keeps it from answering is no node's fault.
            Err(error) => {
                Some(ReachError::Unreachable { host: "the API server".to_owned(), why: error.to_string() })
            }
        }
    }

    /// Why a command has no answer: what the server says of the pod, else what kubectl said.
    async fn cause(&self, node: &str, pod: &str, output: Output<()>) -> ReachError {
        if let Some(cause) = self.cause_of_silence(node, pod).await {
            return cause;
        }
        let (said, refusal) = (output.last_line(), output.complaint());
        if is_of_server(&refusal) {
            return ReachError::Unreachable { host: "the API server".to_owned(), why: refusal };
        }
        match is_refusal(&said) {
            true => no_pod(node, said),
            false => ReachError::Unreachable {
                host: node.to_owned(),
                why: format!("kubectl lost its pod, whether the command finished is unknown: {said}"),
            },
        }
    }

    async fn put_on(&self, node: &str, path: &str, bytes: &[u8]) -> Result<(), ReachError> {
        let failed =
            |why: String| ReachError::Failed { what: format!("cannot write `{path}` on {node}"), why };
        checked(path).map_err(&failed)?;
        let pod = self.pod(node).await?;
        let (above, own) = left_file::split(path);
        let (size, sum) = (bytes.len().to_string(), sha256(bytes));
        let mut pauses = PAUSES.iter();
        loop {
            let mark = self.mark();
            let words = Self::arguments(&pod, PUT, &[&mark, path, &size, &sum, above, own]);
            let output = {
                let _turn = self.turns.acquire().await;
                let take = async |stdout| head(stdout, shell_text::AROUND + (64 << 10)).await;
                self.kubectl.run(&words, bytes, TRANSFER_LIMIT, take).await?
            };
            let (succeeded, stderr) = (output.succeeded, output.stderr);
            let printed = output.stdout.ok().flatten().unwrap_or_default();
            let error = match shell_text::parse_output(printed, &mark) {
                CommandEnd::Ended { code: 0, .. } => return Ok(()),
                CommandEnd::Ended { code: DIFFERS, .. } => {
                    failed("another file came than was sent".to_owned())
                }
                CommandEnd::Ended { .. } => return Err(failed(Answer::failed(1, stderr).complaint())),
                _ => self.cause(node, &pod, Output { succeeded, stdout: (), stderr }).await,
            };
            match pauses.next().filter(|_| !is_final(&error)) {
                Some(pause) => tokio::time::sleep(*pause).await,
                None => return Err(error),
            }
        }
    }

    async fn get_from(
        &self,
        node: &str,
        path: &str,
        limit: u64,
        sink: &mut dyn Sink,
    ) -> Result<u64, ReachError> {
        let failed =
            |why: String| ReachError::Failed { what: format!("cannot read `{path}` on {node}"), why };
        checked(path).map_err(&failed)?;
        let pod = self.pod(node).await?;
        let (above, own) = left_file::split(path);
        let mut pauses = PAUSES.iter();
        loop {
            let mark = self.mark();
            let words = Self::arguments(&pod, GET, &[&mark, path, &limit.to_string(), above, own]);
            let mut incoming = Incoming::new(&mark, limit, &mut *sink).map_err(unwritten)?;
            let output = {
                let _turn = self.turns.acquire().await;
                let take = async |mut stdout: tokio::process::ChildStdout| {
                    let mut chunk = vec![0; CHUNK];
                    // A stream that breaks is seen by what it lacks.
                    while let Ok(read @ 1..) = stdout.read(&mut chunk).await {
                        incoming.append(&chunk[..read])?;
                    }
                    Ok::<Came, std::io::Error>(incoming.finish())
                };
                self.kubectl.run(&words, b"", TRANSFER_LIMIT, take).await?
            };
            let error = match output.stdout.map_err(unwritten)? {
                Came::Whole(bytes) => return Ok(bytes),
                Came::Refused(NOT_FOUND) => return Err(ReachError::NotFound { path: path.to_owned() }),
                Came::Refused(_) => return Err(failed(Answer::failed(1, output.stderr).complaint())),
                Came::Changed => {
                    failed("its content changes with each read; something still writes it".to_owned())
                }
                Came::Cut => {
                    let output = Output { succeeded: output.succeeded, stdout: (), stderr: output.stderr };
                    self.cause(node, &pod, output).await
                }
            };
            match pauses.next().filter(|_| !is_final(&error)) {
                Some(pause) => tokio::time::sleep(*pause).await,
                None => return Err(error),
            }
        }
    }
}

/// Another attempt would come to the same.
fn is_final(error: &ReachError) -> bool {
    matches!(error, ReachError::NoAccess { .. } | ReachError::PodOver { .. })
}

/// A relative path would mean the working folder of the image.
fn checked(path: &str) -> Result<(), String> {
    match path.starts_with('/') && !path.contains('\0') {
        true => Ok(()),
        false => Err(format!("its path must begin with `/` and hold no zero byte: {path:?}")),
    }
}

impl Reach for Pods {
    fn exec<'a>(&'a self, host: &'a Host, command: &'a Command) -> Wait<'a, Result<Answer, ReachError>> {
        Box::pin(async move {
            match host {
                Host::Here => ProcessReach.exec(host, command).await,
                Host::Node(name) => self.exec_on(name, command).await,
            }
        })
    }

    fn put<'a>(&'a self, host: &'a Host, path: &'a str, bytes: &'a [u8]) -> Wait<'a, Result<(), ReachError>> {
        Box::pin(async move {
            match host {
                Host::Here => ProcessReach.put(host, path, bytes).await,
                Host::Node(name) => self.put_on(name, path, bytes).await,
            }
        })
    }

    fn get<'a>(&'a self, host: &'a Host, path: &'a str) -> Wait<'a, Result<Vec<u8>, ReachError>> {
        Box::pin(async move {
            let Host::Node(name) = host else { return ProcessReach.get(host, path).await };
            let mut bytes = Vec::new();
            self.get_from(name, path, left_file::held_limit(path), &mut bytes).await?;
            Ok(bytes)
        })
    }

    fn fetch<'a>(
        &'a self,
        host: &'a Host,
        path: &'a str,
        sink: &'a mut dyn Sink,
    ) -> Wait<'a, Result<u64, ReachError>> {
        Box::pin(async move {
            match host {
                Host::Here => ProcessReach.fetch(host, path, sink).await,
                Host::Node(name) => self.get_from(name, path, left_file::limit(path), sink).await,
            }
        })
    }

    fn remove<'a>(
        &'a self,
        host: &'a Host,
        folder: &'a str,
        names: &'a [String],
    ) -> Wait<'a, Result<(), ReachError>> {
        Box::pin(async move {
            match host {
                Host::Here => ProcessReach.remove(host, folder, names).await,
                Host::Node(_) => removal::by_command(self, host, folder, names).await,
            }
        })
    }
}
