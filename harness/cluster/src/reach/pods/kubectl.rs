//! The user's own kubectl: what it is given, what it prints, with a bound on time and memory, and what its refusals mean.
//!
//! It is a program and no library on purpose: exec plugins such as `aws eks get-token`, contexts and proxies work as they
//! do for the user at the same prompt, and nothing of Kubernetes is compiled in. Its price is a process for each command
//! in a pod (0.16 s of processor time and 50 MiB each, measured); a client library over one connection would save that,
//! and would be another implementation behind `Reach`.

use super::plugin;
use super::server::Target;
use crate::reach::output::{head, tail};
use crate::reach::{Host, ReachError};
use config::inventory::KubernetesReach;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use std::io::ErrorKind;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWriteExt};
use tokio::process::{ChildStdout, Command};

/// The end of what it may say on stderr, where each object that was refused has a line.
const STDERR_LIMIT: usize = 256 << 10;
/// How long the API server may take to answer one question.
const REQUEST_LIMIT_S: u64 = 60;
/// How much longer it may take for each object that is made: they are made one after another, and webhooks look at each.
const OBJECT_LIMIT_S: u64 = 2;

/// How kubectl is called: in one process always by the same context, and never where that leads elsewhere by then
/// (`server.rs`).
#[derive(Debug, Clone)]
pub(crate) struct Kubectl {
    /// Of the inventory; the one that was kubectl's current one at the first request, where absent.
    pub context: Option<String>,
    /// The only server that is asked, where the inventory names it.
    pub cluster: Option<String>,
    pub namespace: String,
}

/// What it left. Its exit code is 1 whatever failed.
pub(crate) struct Output<T> {
    pub succeeded: bool,
    pub stdout: T,
    pub stderr: Vec<u8>,
}

impl<T> Output<T> {
    /// The last refusal that it printed, which names the cause.
    pub(crate) fn complaint(&self) -> String {
        complaint(&self.stderr)
    }

    /// The last line alone, where what stands before may be another program's.
    pub(super) fn last_line(&self) -> String {
        let text = String::from_utf8_lossy(&self.stderr);
        text.lines().map(str::trim).rfind(|line| !line.is_empty()).map_or_else(silent, render)
    }
}

pub(super) fn complaint(stderr: &[u8]) -> String {
    refusals(stderr).pop().unwrap_or_else(silent)
}

fn silent() -> String {
    "it said nothing".to_owned()
}

fn render(line: &str) -> String {
    const SHOWN: usize = 300;
    line.chars().filter(|c| !c.is_control()).take(SHOWN).collect()
}

/// What it refused, one text for each object: a webhook's refusal has several lines.
pub(super) fn refusals(stderr: &[u8]) -> Vec<String> {
    const BEGINS: [&str; 4] = ["Error from server", "error:", "Unable to connect", "The connection to"];
    let text = String::from_utf8_lossy(stderr);
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("Warning:"));
    let mut all: Vec<String> = Vec::new();
    let mut goes_on = false;
    for line in lines {
        let begins = BEGINS.iter().any(|begin| line.starts_with(begin));
        match all.last_mut().filter(|_| goes_on && !begins) {
            Some(refusal) => {
                refusal.push(' ');
                refusal.push_str(line);
            }
            None => all.push(line.to_owned()),
        }
        goes_on |= begins;
    }
    all.iter().map(|refusal| render(refusal)).collect()
}

impl Kubectl {
    pub(crate) fn new(context: Option<&str>, namespace: &str) -> Kubectl {
        Kubectl { context: context.map(str::to_owned), cluster: None, namespace: namespace.to_owned() }
    }

    pub(crate) fn from_reach(reach: &KubernetesReach) -> Kubectl {
        let cluster = reach.cluster.clone();
        Kubectl { cluster, ..Kubectl::new(reach.context.as_deref(), &reach.namespace) }
    }

    /// Everything that it prints, up to a limit. Nothing is asked where kubectl leads to another server by now.
    pub(crate) async fn ask(
        &self,
        arguments: &[String],
        stdin: &[u8],
        stdout_limit: usize,
    ) -> Result<Output<Vec<u8>>, ReachError> {
        let target = self.checked_target().await?;
        self.ask_at(&target, arguments, stdin, stdout_limit).await
    }

    /// The same, where that has been looked at for several requests at once.
    pub(super) async fn ask_at(
        &self,
        target: &Target,
        arguments: &[String],
        stdin: &[u8],
        stdout_limit: usize,
    ) -> Result<Output<Vec<u8>>, ReachError> {
        self.ask_by(target.context.as_deref(), arguments, stdin, stdout_limit).await
    }

    /// Makes the objects of a list, which are so many.
    pub(super) async fn create(
        &self,
        list: &[u8],
        objects: usize,
        stdout_limit: usize,
    ) -> Result<Output<Vec<u8>>, ReachError> {
        let target = self.checked_target().await?;
        let words = ["create", "--filename=-", "--output=name"].map(str::to_owned);
        let limit = creation_limit(objects);
        self.ask_within(limit, target.context.as_deref(), &words, list, stdout_limit).await
    }

    /// By this context or else kubectl's current one, whatever it leads to.
    async fn ask_by(
        &self,
        context: Option<&str>,
        arguments: &[String],
        stdin: &[u8],
        stdout_limit: usize,
    ) -> Result<Output<Vec<u8>>, ReachError> {
        self.ask_within(creation_limit(0), context, arguments, stdin, stdout_limit).await
    }

    pub(super) async fn ask_within(
        &self,
        limit: Duration,
        context: Option<&str>,
        arguments: &[String],
        stdin: &[u8],
        stdout_limit: usize,
    ) -> Result<Output<Vec<u8>>, ReachError> {
        let mut all = vec![format!("--request-timeout={REQUEST_LIMIT_S}s")];
        all.extend_from_slice(arguments);
        let take = async |stdout| head(stdout, stdout_limit).await;
        let output = self.call(context, &all, stdin, limit, take).await?;
        let what = || format!("`kubectl {}`", arguments.first().map_or("", String::as_str));
        let failed = |why: String| ReachError::Failed { what: what(), why };
        match output.stdout {
            Ok(Some(stdout)) => Ok(Output { succeeded: output.succeeded, stdout, stderr: output.stderr }),
            Ok(None) => Err(crate::reach::output::too_long(what(), stdout_limit)),
            Err(error) => Err(failed(error.to_string())),
        }
    }

    /// `take` reads its stdout, to its end or as far as it likes. What it leads to is not looked at again: a pod that is
    /// asked for by its name is in one cluster alone.
    pub(super) async fn run<T>(
        &self,
        arguments: &[String],
        stdin: &[u8],
        limit: Duration,
        take: impl AsyncFnOnce(ChildStdout) -> T,
    ) -> Result<Output<T>, ReachError> {
        let target = self.target().await?;
        self.call(target.context.as_deref(), arguments, stdin, limit, take).await
    }

    async fn call<T>(
        &self,
        context: Option<&str>,
        arguments: &[String],
        stdin: &[u8],
        limit: Duration,
        take: impl AsyncFnOnce(ChildStdout) -> T,
    ) -> Result<Output<T>, ReachError> {
        let failed = |why: String| ReachError::Failed { what: "`kubectl`".to_owned(), why };
        let context = context.map(|context| format!("--context={context}"));
        let child = Command::new("kubectl")
            .args(context)
            .arg(format!("--namespace={}", self.namespace))
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // A Ctrl-C at the terminal reaches the harness alone.
            .process_group(0)
            .kill_on_drop(true)
            .spawn();
        let mut child = match child {
            Ok(child) => child,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(ReachError::NoProgram {
                    host: Host::Here.to_string(),
                    program: "kubectl".into(),
                });
            }
            Err(error) => return Err(failed(error.to_string())),
        };
        let mut group = Group(child.id());
        let (Some(mut into), Some(stdout), Some(stderr)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(failed("it has no streams".to_owned()));
        };
        let ended = async {
            let feed = async {
                // Whether it took all of it is seen by what comes back.
                let _ = into.write_all(stdin).await;
                drop(into);
            };
            let ((), stdout, stderr) = tokio::join!(feed, take(stdout), errors(stderr));
            (child.wait().await, stdout, stderr)
        };
        let plugin = self.plugin();
        let ended = tokio::select! {
            biased;
            ended = tokio::time::timeout(limit, ended) => ended,
            () = plugin::hangs(plugin.as_deref(), group.0) => return Err(plugin::error(plugin.as_deref())),
        };
        if ended.is_ok() {
            group.0 = None;
        }
        match ended {
            Err(_) => Err(ReachError::TimedOut { what: "`kubectl`".to_owned(), limit_s: limit.as_secs() }),
            Ok((Err(error), ..)) => Err(failed(error.to_string())),
            Ok((Ok(status), stdout, stderr)) => Ok(Output { succeeded: status.success(), stdout, stderr }),
        }
    }
}

/// The process group of a kubectl that has not ended: the plugin that gets its credentials is in it too, and would go on.
struct Group(Option<u32>);

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(group) = self.0.and_then(|id| i32::try_from(id).ok()) {
            // It may have ended by itself.
            let _ = killpg(Pid::from_raw(group), Signal::SIGKILL);
        }
    }
}

/// Of a call that makes so many objects.
fn creation_limit(objects: usize) -> Duration {
    Duration::from_secs(2 * REQUEST_LIMIT_S + OBJECT_LIMIT_S * objects as u64)
}

async fn errors(stderr: impl AsyncRead + Unpin) -> Vec<u8> {
    tail(stderr, STDERR_LIMIT).await
}

/// Whether what it said is about us and not about a node: no answer of the server, no permission, no such pod.
pub(super) fn is_refusal(complaint: &str) -> bool {
    const SIGNS: [&str; 9] = [
        "(Forbidden)",
        "(Unauthorized)",
        "You must be logged in",
        "(NotFound)",
        "executable file not found",
        "getting credentials",
        "context \"",
        "cannot locate context",
        "cannot exec into a container in a completed pod",
    ];
    SIGNS.iter().any(|sign| complaint.contains(sign))
}

/// Whether the server, or what stands before it, refused a command for a pod that runs: a policy, too many requests, a
/// server that is about to end, a kubelet's certificate that is not known or not approved yet, a kubelet that does not let the server
/// in, or a proxy that knows no streams.
pub(super) fn is_of_server(refusal: &str) -> bool {
    const SIGNS: [&str; 8] = [
        "denied the request",
        "(TooManyRequests)",
        "(ServiceUnavailable)",
        "(Timeout)",
        "x509: ",
        "remote error: tls: ",
        "unable to upgrade connection: ",
        "Upgrade request required",
    ];
    (refusal.starts_with("Error from server") || refusal.starts_with("error: "))
        && SIGNS.iter().any(|sign| refusal.contains(sign))
}

/// Whether the server, or a webhook that it asks, did not get to a request: another attempt may be taken. Pods that are made
/// at the same time change the same quota.
pub(super) fn is_transient(refusal: &str) -> bool {
    const SIGNS: [&str; 8] = [
        "(TooManyRequests)",
        "(ServiceUnavailable)",
        "(Timeout)",
        "(ServerTimeout)",
        "(InternalError)",
        "Operation cannot be fulfilled on resourcequotas",
        "The connection to the server ",
        "Unable to connect to the server",
    ];
    SIGNS.iter().any(|sign| refusal.contains(sign))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As a plugin for credentials does that waits for a person: kubectl waits for it, and it holds kubectl's streams.
    #[tokio::test]
    async fn what_kubectl_started_ends_with_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("plugin");
        let script = format!("sleep 60 & echo $! > '{}'; wait", file.display());
        let mut command = Command::new("bash");
        let mut child =
            command.args(["-c", &script]).process_group(0).kill_on_drop(true).spawn().expect("bash");
        let group = Group(child.id());
        let plugin = loop {
            let text = std::fs::read_to_string(&file).unwrap_or_default();
            match text.strip_suffix('\n') {
                Some(id) => break id.to_owned(),
                None => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        };
        drop(group);
        child.wait().await.expect("ended");
        // It may be waited for by no one, and stay as a zombie.
        let is_alive = || {
            let status = std::fs::read_to_string(format!("/proc/{plugin}/stat")).unwrap_or_default();
            status.rsplit(") ").next().is_some_and(|state| !state.is_empty() && !state.starts_with('Z'))
        };
        for _ in 0..400 {
            if !is_alive() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        panic!("the plugin {plugin} goes on");
    }

    /// Policies, meshes and queues look at each pod, some for half a second.
    #[test]
    fn five_hundred_pods_may_take_longer_to_make_than_one_question() {
        assert_eq!(creation_limit(0), Duration::from_secs(120));
        assert!(creation_limit(512) >= Duration::from_millis(512 * 500));
    }
}
