//! Reach over ssh: the system's ssh makes one connection to each host, and commands and files share it. Which hosts are
//! asked, and what their answers mean, is the launchers' business.
//!
//! A host gives commands to `sh` and files by sftp. A broken connection is re-established; a command whose connection
//! broke is never sent again, because whether it ran is not known.

mod channel;
mod files;
mod greeting;
mod master;
mod pace;
mod refusal;
mod sockets;

pub use master::SshOptions;

use super::process::ProcessReach;
use super::sink::Sink;
use super::{Answer, Command, Host, Reach, ReachError, Wait, removal, shell_text};
use futures::stream::{self, StreamExt};
use master::Master;
use openssh::Session;
use pace::{Pauses, Rest};
use refusal::NotConnected;
use sockets::SocketFolder;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex, Semaphore};
use tokio::time::{Instant, timeout};

/// So many hosts are connected to at the same time where nothing else is said: the key exchange is work for this machine,
/// and a jump host refuses more.
pub const FANOUT: usize = 32;
/// So many commands and transfers share a connection: sshd allows ten where `MaxSessions` is not set.
const SESSIONS: usize = 8;
/// A crowded host is tried so often.
const CONNECT_TRIES: usize = 10;
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(4);
/// Between the times at which a session is asked for that was refused.
const FIRST_SESSION_PAUSE: Duration = Duration::from_millis(50);
const REFUSED_LIMIT: Duration = Duration::from_secs(60);

/// The hosts of a run, each with its connection once it was asked for. `end` ends them all.
pub struct OpenSsh {
    options: SshOptions,
    seed: u64,
    /// Where the sockets of the connections lie, for this person alone.
    folder: SocketFolder,
    /// How many may connect at the same time.
    turns: Semaphore,
    nodes: RefCell<BTreeMap<String, Rc<Node>>>,
}

struct Node {
    name: String,
    /// Its socket's path; the name itself may be longer than a socket's path can be.
    stem: PathBuf,
    master: Mutex<Option<Master>>,
    rest: RefCell<Rest>,
    sessions: Semaphore,
}

impl OpenSsh {
    /// Connects to no host yet.
    pub fn new(options: SshOptions, seed: u64, fanout: usize) -> io::Result<OpenSsh> {
        let folder = SocketFolder::new()?;
        let turns = Semaphore::new(fanout.clamp(1, Semaphore::MAX_PERMITS));
        Ok(OpenSsh { options, seed, folder, turns, nodes: RefCell::default() })
    }

    /// Ends what a harness that was killed has left of its connections. They end by themselves when they are idle, but
    /// their folders do not.
    pub async fn end_orphans(&self) {
        self.folder.end_abandoned().await;
    }

    /// Ends all connections, and with them what still goes over them.
    pub async fn end(&self) {
        let nodes: Vec<Rc<Node>> = self.nodes.borrow().values().cloned().collect();
        let ends = nodes.iter().map(|node| async {
            if let Some(master) = node.master.lock().await.take() {
                master.end().await;
            }
        });
        stream::iter(ends).buffer_unordered(FANOUT).collect::<Vec<()>>().await;
    }

    fn node(&self, name: &str) -> Result<Rc<Node>, ReachError> {
        let odd = |c: char| !(c.is_ascii_alphanumeric() || "-_.:%@".contains(c));
        if name.is_empty() || name.starts_with('-') || name.contains(odd) {
            let why = format!("invalid host name {name:?}");
            return Err(ReachError::Failed { what: "ssh".to_owned(), why });
        }
        let mut nodes = self.nodes.borrow_mut();
        let number = nodes.len();
        let node = nodes.entry(name.to_owned()).or_insert_with(|| {
            Rc::new(Node {
                name: name.to_owned(),
                stem: self.folder.path().join(number.to_string()),
                master: Mutex::new(None),
                rest: RefCell::default(),
                sessions: Semaphore::new(SESSIONS),
            })
        });
        Ok(node.clone())
    }

    /// The connection to a host, made where there is none. Concurrent callers wait for the one that makes it.
    async fn session(&self, node: &Node) -> Result<Arc<Session>, ReachError> {
        let mut slot = node.master.lock().await;
        if let Some(master) = slot.take() {
            if master.is_alive().await {
                return Ok(slot.insert(master).session.clone());
            }
            master.end().await;
        }
        if let Some(error) = node.rest.borrow().error(Instant::now()) {
            return Err(error);
        }
        match self.connect(node).await {
            Ok(master) => {
                node.rest.borrow_mut().end();
                Ok(slot.insert(master).session.clone())
            }
            Err(error) => {
                node.rest.borrow_mut().begin(Instant::now(), error.clone());
                Err(error)
            }
        }
    }

    async fn connect(&self, node: &Node) -> Result<Master, ReachError> {
        let mut pauses = Pauses::new(self.seed, &node.name, FIRST_PAUSE, LONGEST_PAUSE);
        let mut tries = 1;
        loop {
            let connected = {
                // The semaphore is never closed.
                let _turn = self.turns.acquire().await;
                Master::connect(&self.options, &node.name, &node.stem).await
            };
            match connected {
                Ok(master) => return Ok(master),
                Err(NotConnected::ForNow(_)) if tries < CONNECT_TRIES => {
                    tries += 1;
                    tokio::time::sleep(pauses.draw()).await;
                }
                Err(NotConnected::ForNow(error) | NotConnected::For(error)) => return Err(error),
            }
        }
    }

    /// Does something on a connection, asking again for a session that was refused: nothing was done then. `what` makes
    /// the pauses of those that were refused together differ.
    async fn with_session<T>(
        &self,
        node: &Node,
        what: &str,
        mut ask: impl AsyncFnMut(Arc<Session>) -> Result<T, channel::Error>,
    ) -> Result<T, ReachError> {
        let key = format!("{} {what}", node.name);
        let mut pauses = Pauses::new(self.seed, &key, FIRST_SESSION_PAUSE, LONGEST_PAUSE);
        let until = Instant::now() + REFUSED_LIMIT;
        loop {
            let session = self.session(node).await?;
            let permit = node.sessions.acquire().await;
            match ask(session).await {
                Err(channel::Error::Refused) if Instant::now() < until => {
                    // The host allows fewer sessions than we take it to.
                    if let Ok(permit) = permit
                        && node.sessions.available_permits() > 0
                    {
                        permit.forget();
                    }
                    tokio::time::sleep(pauses.draw()).await;
                }
                Err(channel::Error::Refused) => {
                    let why = format!(
                        "it refused further sessions for {} s (`MaxSessions` in its sshd_config)",
                        REFUSED_LIMIT.as_secs()
                    );
                    return Err(ReachError::Unreachable { host: node.name.clone(), why });
                }
                Err(channel::Error::For(error)) => return Err(error),
                Ok(done) => return Ok(done),
            }
        }
    }

    async fn exec_on(&self, name: &str, command: &Command) -> Result<Answer, ReachError> {
        let node = self.node(name)?;
        let program = command.argv.first().cloned().unwrap_or_default();
        let text = shell_text::text(command, "")
            .map_err(|why| ReachError::Failed { what: format!("`{program}` on {name}"), why })?;
        let run = self
            .with_session(&node, &text, async |session| channel::run(&session, name, &text, &program).await);
        match timeout(command.limit, run).await {
            Ok(result) => result,
            Err(_) => Err(ReachError::TimedOut {
                what: format!("`{program}` on {name}"),
                limit_s: command.limit.as_secs(),
            }),
        }
    }
}

impl Reach for OpenSsh {
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
                Host::Node(name) => files::put(self, name, path, bytes).await,
            }
        })
    }

    fn get<'a>(&'a self, host: &'a Host, path: &'a str) -> Wait<'a, Result<Vec<u8>, ReachError>> {
        Box::pin(async move {
            match host {
                Host::Here => ProcessReach.get(host, path).await,
                Host::Node(name) => files::get(self, name, path).await,
            }
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
                Host::Node(name) => files::fetch(self, name, path, sink).await,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_no_name_of_a_host_never_reaches_ssh() {
        let reach = OpenSsh::new(SshOptions::default(), 1, FANOUT).expect("a folder");
        for name in ["", "-oProxyCommand=true", "a b", "$(reboot)", "a\nb", "a'b"] {
            let command = Command::new(["true"], Duration::from_secs(5));
            let result = reach.exec(&Host::Node(name.to_owned()), &command).await;
            let why = result.expect_err("refused").to_string();
            assert_eq!(why, format!("ssh: invalid host name {name:?}"));
        }
    }
}
