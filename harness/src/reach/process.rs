//! Reach by processes and files of this machine: for the local launcher, and for a Slurm whose commands are here.

use super::{Answer, Command, Host, Reach, ReachError, Status, Wait};
use std::io::ErrorKind;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Stdio;

pub struct ProcessReach;

impl Reach for ProcessReach {
    fn exec<'a>(&'a self, host: &'a Host, command: &'a Command) -> Wait<'a, Result<Answer, ReachError>> {
        Box::pin(async move {
            here(host)?;
            let program = command.argv.first().cloned().unwrap_or_default();
            let failed = |why: String| ReachError::Failed { what: format!("`{program}`"), why };
            let child = tokio::process::Command::new(&program)
                .args(command.argv.iter().skip(1))
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                // A group of its own, so that a Ctrl-C at the terminal reaches the harness alone: it must
                // still be able to cancel what it started.
                .process_group(0)
                .kill_on_drop(true)
                .spawn();
            let child = match child {
                Ok(child) => child,
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    return Err(ReachError::NoProgram { host: host.to_string(), program });
                }
                Err(error) => return Err(failed(error.to_string())),
            };
            match tokio::time::timeout(command.limit, child.wait_with_output()).await {
                Err(_) => Err(ReachError::TimedOut {
                    what: format!("`{program}`"),
                    limit_s: command.limit.as_secs(),
                }),
                Ok(Err(error)) => Err(failed(error.to_string())),
                Ok(Ok(output)) => Ok(Answer {
                    status: match output.status.code() {
                        Some(code) => Status::Code(code),
                        None => Status::Signal(output.status.signal().unwrap_or_default()),
                    },
                    stdout: output.stdout,
                    stderr: output.stderr,
                }),
            }
        })
    }

    fn put<'a>(&'a self, host: &'a Host, path: &'a str, bytes: &'a [u8]) -> Wait<'a, Result<(), ReachError>> {
        Box::pin(async move {
            here(host)?;
            let written = async {
                if let Some(folder) = Path::new(path).parent() {
                    tokio::fs::create_dir_all(folder).await?;
                }
                tokio::fs::write(path, bytes).await
            };
            written.await.map_err(|error| ReachError::Failed {
                what: format!("cannot write `{path}`"),
                why: error.to_string(),
            })
        })
    }

    fn get<'a>(&'a self, host: &'a Host, path: &'a str) -> Wait<'a, Result<Vec<u8>, ReachError>> {
        Box::pin(async move {
            here(host)?;
            match tokio::fs::read(path).await {
                Ok(bytes) => Ok(bytes),
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    Err(ReachError::NotFound { path: path.to_owned() })
                }
                Err(error) => {
                    Err(ReachError::Failed { what: format!("cannot read `{path}`"), why: error.to_string() })
                }
            }
        })
    }
}

/// What was meant for a node must never happen on this machine instead.
fn here(host: &Host) -> Result<(), ReachError> {
    match host {
        Host::Here => Ok(()),
        Host::Node(name) => Err(ReachError::Unreachable {
            host: name.clone(),
            why: "only this machine can be reached without ssh".to_owned(),
        }),
    }
}
