//! Reach by processes and files of this machine: for the local launcher, and for a Slurm whose commands are here.

use super::{Answer, Command, Host, Reach, ReachError, Status, Wait};
use std::io::ErrorKind;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Stdio;
use tokio::io::AsyncWriteExt;

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
                    tokio::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).await?;
                }
                let mut options = tokio::fs::OpenOptions::new();
                // Under its own name a file is whole.
                let part = format!("{path}.part");
                let mut file =
                    options.write(true).create(true).truncate(true).mode(0o600).open(&part).await?;
                file.write_all(bytes).await?;
                file.flush().await?;
                tokio::fs::rename(&part, path).await
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
            let read = async {
                // Whoever opens a pipe waits for somebody at its other end.
                let is_file = tokio::fs::metadata(path).await?.is_file();
                if !is_file {
                    return Err(std::io::Error::other("it is no file, but a folder, a pipe or a device"));
                }
                tokio::fs::read(path).await
            };
            match read.await {
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[tokio::test]
    async fn files_are_for_the_user_alone_whole_under_their_names_and_never_waited_for() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name).display().to_string();
        let file = path("deep/er/job.sh");
        ProcessReach.put(&Host::Here, &file, b"text").await.expect("written");
        assert_eq!(ProcessReach.get(&Host::Here, &file).await, Ok(b"text".to_vec()));
        let mode = |path: &str| std::fs::metadata(path).expect("there").mode() & 0o777;
        assert_eq!((mode(&file), mode(&path("deep/er")), mode(&path("deep"))), (0o600, 0o700, 0o700));
        assert!(!Path::new(&format!("{file}.part")).exists());
        nix::unistd::mkfifo(Path::new(&path("pipe")), nix::sys::stat::Mode::S_IRWXU).expect("made");
        for name in ["pipe", "deep"] {
            let why = ProcessReach.get(&Host::Here, &path(name)).await.expect_err("no file").to_string();
            assert!(why.contains("it is no file"), "{why}");
        }
    }
}
