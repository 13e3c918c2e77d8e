//! One connection to a host: the system's ssh is started as the master of a control socket, over which all that follows
//! goes. What it prints where it fails is explained in `refusal.rs`.

use super::refusal::{self, NotConnected};
use crate::reach::ReachError;
use openssh::Session;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;
use tokio::process::Command;
use tokio::time::timeout;

/// How nodes are reached, from the inventory. ssh's own configuration sets everything else.
#[derive(Debug, Clone, Default)]
pub struct SshOptions {
    /// For `-l`; None where ssh's configuration decides.
    pub user: Option<String>,
    /// For `-p`; None where ssh's configuration decides.
    pub port: Option<u16>,
    /// A configuration file for ssh.
    pub config: Option<String>,
}

pub(super) struct Master {
    pub session: Arc<Session>,
    socket: PathBuf,
    log: PathBuf,
}

/// A host that accepts and never answers is given up after this time, by ssh and, should it not, by us.
const CONNECT_LIMIT: Duration = Duration::from_secs(15);
const CONNECT_SLACK: Duration = Duration::from_secs(5);
/// An unused master ends by itself: one whose harness was killed must not stay.
const IDLE_S: u32 = 20;
/// A master whose host has been silent for so long, so many times, ends the connection.
const ALIVE_EVERY_S: u32 = 5;
const ALIVE_TIMES: u32 = 3;
/// How long a master may take to say that it is there, or to end.
const LOCAL_LIMIT: Duration = Duration::from_secs(5);

impl Master {
    /// Connects; `stem` is where the socket and the log lie, and is short: a socket's path has some 100 bytes.
    pub(super) async fn connect(
        options: &SshOptions,
        host: &str,
        stem: &Path,
    ) -> Result<Master, NotConnected> {
        let socket = stem.to_path_buf();
        let log = stem.with_extension("log");
        let mut command = Command::new("ssh");
        command
            .args(["-M", "-N", "-f", "-S"])
            .arg(&socket)
            .arg("-E")
            .arg(&log)
            .args(option_arguments(options))
            .args(["--", host])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // A Ctrl-C at the terminal is for the harness alone.
            .process_group(0)
            .kill_on_drop(true);
        let status = timeout(CONNECT_LIMIT + CONNECT_SLACK, command.status()).await;
        let log_text = std::fs::read(&log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let _ = std::fs::remove_file(&log);
        match status {
            Ok(Ok(status)) if status.success() => {
                let session = Session::resume_mux(socket.clone().into_boxed_path(), None);
                Ok(Master { session: Arc::new(session), socket, log })
            }
            Ok(Ok(_)) => Err(refusal::explain(&log_text.unwrap_or_default(), options, host).await),
            Ok(Err(error)) if error.kind() == ErrorKind::NotFound => {
                let host = "this machine".to_owned();
                Err(NotConnected::For(ReachError::NoProgram { host, program: "ssh".to_owned() }))
            }
            Ok(Err(error)) => Err(NotConnected::For(ReachError::Failed {
                what: "cannot start `ssh`".to_owned(),
                why: error.to_string(),
            })),
            Err(_) => Err(NotConnected::For(ReachError::Unreachable {
                host: host.to_owned(),
                why: format!("no login within {} s", (CONNECT_LIMIT + CONNECT_SLACK).as_secs()),
            })),
        }
    }

    /// Whether its process is there and answers; the host itself is not asked.
    pub(super) async fn is_alive(&self) -> bool {
        matches!(timeout(LOCAL_LIMIT, self.session.check()).await, Ok(Ok(())))
    }

    /// Ends the connection and all that goes over it.
    pub(super) async fn end(self) {
        end(&self.socket).await;
        let _ = std::fs::remove_file(&self.log);
    }
}

/// Ends the master of a socket, if there is one.
async fn end(socket: &Path) {
    ask_to_end(socket).await;
    let _ = std::fs::remove_file(socket);
}

pub(super) async fn ask_to_end(socket: &Path) {
    let asked = Command::new("ssh")
        .args(["-F", "none", "-O", "exit", "-S"])
        .arg(socket)
        // The name of a host is asked for, and means nothing here.
        .args(["--", "host"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .kill_on_drop(true)
        .status();
    // One that does not answer ends when it has been idle.
    let _ = timeout(LOCAL_LIMIT, asked).await;
}

/// What is asked of ssh beyond the person's own configuration: no question is ever put to anybody, no key is taken
/// unseen, and nothing but commands and files goes over the connection.
fn option_arguments(options: &SshOptions) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for option in [
        "BatchMode=yes".to_owned(),
        "StrictHostKeyChecking=yes".to_owned(),
        format!("ConnectTimeout={}", CONNECT_LIMIT.as_secs()),
        format!("ServerAliveInterval={ALIVE_EVERY_S}"),
        format!("ServerAliveCountMax={ALIVE_TIMES}"),
        format!("ControlPersist={IDLE_S}"),
        "ClearAllForwardings=yes".to_owned(),
        "PermitLocalCommand=no".to_owned(),
        "RequestTTY=no".to_owned(),
        // A person's `LogLevel QUIET` would hide why a host is not reached; and only at this level ssh reports a
        // connection that was closed while keys were exchanged.
        "LogLevel=INFO".to_owned(),
    ] {
        words.extend(["-o".to_owned(), option]);
    }
    words.extend(target_arguments(options));
    words
}

/// The part that says where to and as whom.
pub(super) fn target_arguments(options: &SshOptions) -> Vec<String> {
    let mut words = Vec::new();
    let given =
        [("-F", &options.config), ("-l", &options.user), ("-p", &options.port.map(|port| port.to_string()))];
    for (flag, value) in given {
        words.extend(value.iter().flat_map(|value| [flag.to_owned(), value.clone()]));
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ssh_never_asks_and_never_takes_a_key_unseen() {
        let options = SshOptions { user: Some("u".into()), port: Some(22), config: Some("/etc/s".into()) };
        let words = option_arguments(&options).join(" ");
        for part in
            ["BatchMode=yes", "StrictHostKeyChecking=yes", "ControlPersist=20", "-F /etc/s -l u -p 22"]
        {
            assert!(words.contains(part), "{part}: {words}");
        }
        assert_eq!(target_arguments(&SshOptions::default()), Vec::<String>::new());
    }
}
