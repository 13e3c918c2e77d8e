//! How the world is reached: run a command on a host, put a file there, get a file from there.
//! What is run and why is the launchers' business; the simulated cluster (`sim`) implements the same trait.

pub mod environment;
mod left_file;
pub mod login;
pub mod node_folder;
pub mod openssh;
mod output;
pub mod pods;
pub mod process;
pub mod progress;
pub mod redacted;
mod removal;
pub mod shared_folder;
mod shell_text;
pub mod sink;
pub mod slurm_calls;
pub(crate) mod slurm_gres;
pub(crate) mod slurm_refusal;
pub mod slurm_state;
pub mod stall_request;
pub mod task_state;

pub use self::removal::removed;
use self::sink::{Sink, unwritten};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

/// A future that stays on its thread: a run is one thread, so that one seed gives one order of events.
pub type Wait<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// The world, as far as a run touches it. Real and simulated worlds are never mixed in one run.
pub trait Reach {
    /// Runs a command to its end, or to its limit. A command that ran and failed is an `Answer`, not an error.
    fn exec<'a>(&'a self, host: &'a Host, command: &'a Command) -> Wait<'a, Result<Answer, ReachError>>;

    /// Writes a file for the user alone, making its folder where that is absent.
    fn put<'a>(&'a self, host: &'a Host, path: &'a str, bytes: &'a [u8]) -> Wait<'a, Result<(), ReachError>>;

    /// A small file, which is held in memory.
    fn get<'a>(&'a self, host: &'a Host, path: &'a str) -> Wait<'a, Result<Vec<u8>, ReachError>>;

    /// A file of any size that its name allows, chunk by chunk; gives its length. After an error the sink holds a part
    /// of the file, or of an earlier one.
    fn fetch<'a>(
        &'a self,
        host: &'a Host,
        path: &'a str,
        sink: &'a mut dyn Sink,
    ) -> Wait<'a, Result<u64, ReachError>> {
        Box::pin(async move {
            let bytes = self.get(host, path).await?;
            sink.restart().and_then(|()| sink.append(&bytes)).map_err(unwritten)?;
            Ok(bytes.len() as u64)
        })
    }

    /// Removes files of a folder. One that is not there is no failure.
    fn remove<'a>(
        &'a self,
        host: &'a Host,
        folder: &'a str,
        names: &'a [String],
    ) -> Wait<'a, Result<(), ReachError>> {
        Box::pin(removal::by_command(self, host, folder, names))
    }
}

impl<R: Reach + ?Sized> Reach for &R {
    fn exec<'a>(&'a self, host: &'a Host, command: &'a Command) -> Wait<'a, Result<Answer, ReachError>> {
        (**self).exec(host, command)
    }

    fn put<'a>(&'a self, host: &'a Host, path: &'a str, bytes: &'a [u8]) -> Wait<'a, Result<(), ReachError>> {
        (**self).put(host, path, bytes)
    }

    fn get<'a>(&'a self, host: &'a Host, path: &'a str) -> Wait<'a, Result<Vec<u8>, ReachError>> {
        (**self).get(host, path)
    }

    fn fetch<'a>(
        &'a self,
        host: &'a Host,
        path: &'a str,
        sink: &'a mut dyn Sink,
    ) -> Wait<'a, Result<u64, ReachError>> {
        (**self).fetch(host, path, sink)
    }

    fn remove<'a>(
        &'a self,
        host: &'a Host,
        folder: &'a str,
        names: &'a [String],
    ) -> Wait<'a, Result<(), ReachError>> {
        (**self).remove(host, folder, names)
    }
}

/// Where a command runs or a file lies.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Host {
    /// The machine that the harness itself runs on.
    Here,
    /// A node of the inventory, by its name there.
    Node(String),
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Host::Here => f.write_str("this machine"),
            Host::Node(name) => f.write_str(name),
        }
    }
}

/// An argument list, never a line for a shell; and how long it may take.
#[derive(Debug, Clone, PartialEq)]
pub struct Command {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// After this time the result is `TimedOut`.
    pub limit: Duration,
}

impl Command {
    /// `argv` begins with the program.
    pub fn new<S: Into<String>>(argv: impl IntoIterator<Item = S>, limit: Duration) -> Self {
        Command { argv: argv.into_iter().map(Into::into).collect(), limit }
    }
}

/// What a command left that ran to its end.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// Exit code or signal.
    pub status: Status,
    /// As printed; may be invalid UTF-8.
    pub stdout: Vec<u8>,
    /// As printed; may be invalid UTF-8.
    pub stderr: Vec<u8>,
}

impl Answer {
    /// Exit code 0, and nothing on stderr.
    pub fn ok(stdout: impl Into<Vec<u8>>) -> Self {
        Answer { status: Status::Code(0), stdout: stdout.into(), stderr: Vec::new() }
    }

    /// This exit code, and nothing on stdout.
    pub fn failed(code: i32, stderr: impl Into<Vec<u8>>) -> Self {
        Answer { status: Status::Code(code), stdout: Vec::new(), stderr: stderr.into() }
    }

    /// Whether it ended with exit code 0.
    pub fn succeeded(&self) -> bool {
        self.status == Status::Code(0)
    }

    /// Invalid UTF-8 is replaced.
    pub fn stdout_text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// The last lines of stderr, for a message to a person; of stdout where it has none, as a wrapper of the site's may
    /// complain there.
    pub fn complaint(&self) -> String {
        let is_silent = self.stderr.trim_ascii().is_empty();
        let text = String::from_utf8_lossy(if is_silent { &self.stdout } else { &self.stderr });
        let text = text.trim();
        match text.char_indices().rev().nth(400) {
            Some((at, _)) => format!("...{}", &text[at..]),
            None => text.to_owned(),
        }
    }
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// It exited with this code.
    Code(i32),
    /// The number of the signal that ended it.
    Signal(i32),
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Status::Code(code) => write!(f, "exit code {code}"),
            Status::Signal(signal) => write!(f, "signal {signal}"),
        }
    }
}

/// What lies between a host and us, when that is what fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Its sshd, our key, its login shell.
    Ssh,
    /// The pod that stands for it.
    Pod,
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Access::Ssh => "ssh to",
            Access::Pod => "pod of",
        })
    }
}

/// Why a command has no `Answer`, or why a file could not be read or written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReachError {
    /// The program to run is not there.
    #[error("no such program on {host}: `{program}`")]
    NoProgram {
        /// The node, or `this machine`.
        host: String,
        /// As it was called; of Slurm's commands also where they were looked for.
        program: String,
    },
    /// The file is not there.
    #[error("no such file: `{path}`")]
    NotFound {
        /// As it was asked for.
        path: String,
    },
    /// The host gave no answer at all: whether the command ran there is not known.
    #[error("{host} cannot be reached: {why}")]
    Unreachable {
        /// The node, or the login host.
        host: String,
        /// Such as ssh's own message.
        why: String,
    },
    /// The host answers and does not let us work there: its key, our key, its login shell, or no sftp. It says nothing
    /// about the node itself, so it is not attributable to the node.
    #[error("{by} {host}: {why}")]
    NoAccess {
        /// What lies between the host and us.
        by: Access,
        /// The node, or the login host.
        host: String,
        /// What a person has to settle, with ssh's message.
        why: String,
    },
    /// The pod that stands for the host has ended, or will never run: nothing runs in it any more. It says nothing about
    /// the node itself.
    #[error("pod of {host}: {why}")]
    PodOver {
        /// The node.
        host: String,
        /// What ended it, in Kubernetes' words.
        why: String,
    },
    /// There was no answer within the limit.
    #[error("{what}: no answer within {limit_s} s")]
    TimedOut {
        /// The command or the file, for a message.
        what: String,
        /// Seconds.
        limit_s: u64,
    },
    /// Everything else that can go wrong.
    #[error("{what}: {why}")]
    Failed {
        /// What could not be done, with the command or the file.
        what: String,
        /// The system's message, or stderr.
        why: String,
    },
    /// What came cannot be written on this machine.
    #[error("cannot write on this machine: {why}")]
    Unwritten {
        /// The system's message.
        why: String,
    },
}

impl ReachError {
    /// Whether the node itself may be at fault, and not what lies between it and us: a pod, a key, an API server.
    pub(crate) fn may_be_fault_of(&self, node: &str) -> bool {
        match self {
            ReachError::NoAccess { .. } | ReachError::PodOver { .. } => false,
            ReachError::Unreachable { host, .. } => host == node,
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages() {
        let host = || "p5-002".to_owned();
        let errors = [
            ReachError::NoProgram { host: host(), program: "nsys".into() },
            ReachError::NotFound { path: "/fsx/run/stdout".into() },
            ReachError::Unreachable { host: host(), why: "connection timed out".into() },
            ReachError::NoAccess { by: Access::Ssh, host: host(), why: "its host key is not known".into() },
            ReachError::PodOver { host: host(), why: "OOMKilled".into() },
            ReachError::TimedOut { what: "`sinfo`".into(), limit_s: 60 },
            ReachError::Failed {
                what: "cannot read `/fsx/run/stdout`".into(),
                why: "permission denied".into(),
            },
            ReachError::Unwritten { why: "no space left on device".into() },
        ];
        insta::assert_snapshot!(errors.map(|error| error.to_string()).join("\n"));
    }
}
