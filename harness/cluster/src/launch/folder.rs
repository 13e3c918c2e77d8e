//! A job's folder on the nodes: what is put there and fetched from there, through whichever host answers. The folder is
//! shared, so any node that sees it will do; a host that gives no answer is left for another, and all are tried again
//! before the folder is given up.

use crate::interrupt;
use crate::reach::sink::Sink;
use crate::reach::{Answer, Command, Host, Reach, ReachError};
use model::artefact::{FolderAccess, Launcher, PlannedJob};
use std::cell::{Cell, RefCell};
use std::time::Duration;

/// The folders of a run.
#[derive(Clone, Copy)]
pub struct Folders<'a> {
    /// The path to the hosts that see them.
    pub reach: &'a dyn Reach,
    /// Decides whether nodes are asked or this machine.
    pub launcher: Launcher,
    /// The nodes of the run.
    pub nodes: &'a [String],
}

impl<'a> Folders<'a> {
    /// Where nodes see it, the job's own are asked first, then up to two others of the run.
    pub(crate) fn for_job(&self, job: &PlannedJob) -> Folder<'a> {
        let hosts = match self.launcher.facts().folder {
            FolderAccess::ThisMachine => vec![Host::Here],
            FolderAccess::Nodes => {
                let others = self.nodes.iter().filter(|node| !job.nodes.contains(node)).take(OTHERS);
                job.nodes.iter().chain(others).map(|node| Host::Node(node.clone())).collect()
            }
        };
        Folder {
            reach: self.reach,
            path: job.folder.clone(),
            hosts,
            answered: Cell::new(0),
            refreshed: Cell::new(false),
            given_up: RefCell::new(None),
        }
    }
}

/// Written only to be written.
const LOOKED: &str = "looked";

/// A client of NFS remembers for up to a minute that a file was not there. What is written into its folder here has the
/// client ask the server again.
pub(crate) async fn refresh(reach: &dyn Reach, folder: &str) {
    // Where nothing can be written, what is seen stands.
    let _ = reach.put(&Host::Here, &format!("{folder}/{LOOKED}"), b"\n").await;
}

/// Nodes beside the job's own that are asked for its folder.
const OTHERS: usize = 2;
/// Between one round over the hosts and the next.
const PAUSES: [Duration; 3] = [Duration::from_secs(5), Duration::from_secs(10), Duration::from_secs(20)];

/// The folder of one job.
pub(crate) struct Folder<'a> {
    reach: &'a dyn Reach,
    path: String,
    hosts: Vec<Host>,
    /// The host that answered last is asked first.
    answered: Cell<usize>,
    refreshed: Cell<bool>,
    /// No host answered: the next file does not wait again.
    given_up: RefCell<Option<ReachError>>,
}

impl Folder<'_> {
    /// Writes the file of this name in the folder.
    pub(crate) async fn put(&self, name: &str, bytes: &[u8]) -> Result<(), ReachError> {
        let path = format!("{}/{name}", self.path);
        self.by_any(async |host| self.reach.put(host, &path, bytes).await).await
    }

    /// A small file.
    pub(crate) async fn get(&self, name: &str) -> Result<Vec<u8>, ReachError> {
        let path = format!("{}/{name}", self.path);
        self.by_any(async |host| self.reach.get(host, &path).await).await
    }

    /// A file of any size; gives its length in bytes.
    pub(crate) async fn fetch(&self, name: &str, sink: &mut dyn Sink) -> Result<u64, ReachError> {
        let path = format!("{}/{name}", self.path);
        self.by_any(async |host| self.reach.fetch(host, &path, &mut *sink).await).await
    }

    /// Whether a file that was not there is worth a second look, which is made sure to reach the file system's server. One
    /// such look does for all files, and nodes see what they wrote themselves.
    pub(crate) async fn refresh(&self) -> bool {
        if self.hosts != [Host::Here] || self.refreshed.replace(true) {
            return false;
        }
        refresh(self.reach, &self.path).await;
        true
    }

    /// Removes these files of the folder; absent ones are no failure.
    pub(crate) async fn remove(&self, names: &[String]) -> Result<(), ReachError> {
        self.by_any(async |host| self.reach.remove(host, &self.path, names).await).await
    }

    /// Runs a command on a host that answers; one without an answer may have run it, too.
    pub(crate) async fn exec(&self, command: &Command) -> Result<Answer, ReachError> {
        self.by_any(async |host| self.reach.exec(host, command).await).await
    }

    async fn by_any<T>(
        &self,
        mut ask: impl AsyncFnMut(&Host) -> Result<T, ReachError>,
    ) -> Result<T, ReachError> {
        if let Some(error) = &*self.given_up.borrow() {
            return Err(error.clone());
        }
        let mut pauses = PAUSES.iter();
        loop {
            let mut last = None;
            for at in 0..self.hosts.len() {
                let at = (self.answered.get() + at) % self.hosts.len();
                match ask(&self.hosts[at]).await {
                    Err(error @ (ReachError::Unreachable { .. } | ReachError::TimedOut { .. })) => {
                        last = Some(error);
                    }
                    result => {
                        self.answered.set(at);
                        return result;
                    }
                }
            }
            let error = last.unwrap_or_else(|| ReachError::NotFound { path: self.path.clone() });
            // This machine is no host that may come back.
            let pause = pauses.next().filter(|_| self.hosts != [Host::Here]);
            match pause.filter(|_| interrupt::asked().is_none()) {
                Some(pause) => tokio::time::sleep(*pause).await,
                None => {
                    *self.given_up.borrow_mut() = Some(error.clone());
                    return Err(error);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::ssh::tests::job;
    use crate::reach::Wait;

    /// Each host gives no answer for so many questions; then it has the file.
    struct Silent(RefCell<Vec<(&'static str, u32)>>, Cell<u32>);

    impl Silent {
        fn ask(&self, host: &Host) -> Result<(), ReachError> {
            self.1.set(self.1.get() + 1);
            let mut hosts = self.0.borrow_mut();
            let name = host.to_string();
            let Some((_, left)) = hosts.iter_mut().find(|(known, _)| *known == name) else { return Ok(()) };
            if *left == 0 {
                return Ok(());
            }
            *left -= 1;
            Err(ReachError::Unreachable { host: name, why: "no".into() })
        }
    }

    impl Reach for Silent {
        fn exec<'a>(&'a self, host: &'a Host, _: &'a Command) -> Wait<'a, Result<Answer, ReachError>> {
            Box::pin(async move { self.ask(host).map(|()| Answer::ok("")) })
        }
        fn put<'a>(&'a self, host: &'a Host, _: &'a str, _: &'a [u8]) -> Wait<'a, Result<(), ReachError>> {
            Box::pin(async move { self.ask(host) })
        }
        fn get<'a>(&'a self, host: &'a Host, path: &'a str) -> Wait<'a, Result<Vec<u8>, ReachError>> {
            Box::pin(async move {
                self.ask(host)?;
                match path {
                    "/f/here" => Ok(b"x".to_vec()),
                    _ => Err(ReachError::NotFound { path: path.into() }),
                }
            })
        }
    }

    fn paused<T>(work: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        runtime.expect("a runtime").block_on(work)
    }

    fn tried(
        launcher: Launcher,
        silent: &[(&'static str, u32)],
        name: &str,
    ) -> (Result<Vec<u8>, ReachError>, u32) {
        let reach = Silent(RefCell::new(silent.to_vec()), Cell::new(0));
        let nodes = ["n1", "n2", "n3"].map(str::to_owned);
        let folders = Folders { reach: &reach, launcher, nodes: &nodes };
        let job = job(&["n1", "n2"]);
        let folder = folders.for_job(&job);
        let got = paused(async {
            let got = folder.get(name).await;
            // What was given up is not tried again, and what answered is asked first.
            let asked = reach.1.get();
            let again = folder.get(name).await;
            assert_eq!((reach.1.get() - asked, again.is_ok()), (u32::from(got.is_ok()), got.is_ok()));
            got
        });
        (got, reach.1.get() - u32::from(silent.is_empty()))
    }

    #[test]
    fn a_host_that_gives_no_answer_is_left_for_another_and_tried_again_with_a_limit() {
        let home = Ok(b"x".to_vec());
        assert_eq!(tried(Launcher::Ssh, &[("n1", 9)], "here").0, home);
        assert_eq!(tried(Launcher::Ssh, &[("n1", 9), ("n2", 9)], "here").0, home);
        let all = |times| [("n1", times), ("n2", times), ("n3", times)];
        assert_eq!(tried(Launcher::Ssh, &all(3), "here").0, home);
        let (result, asked) = tried(Launcher::Ssh, &all(9), "here");
        assert!(matches!(result, Err(ReachError::Unreachable { .. })), "{result:?}");
        assert_eq!(asked, 12, "three hosts, four times");
    }

    #[test]
    fn a_file_that_is_not_there_is_an_answer() {
        let reach = Silent(RefCell::new(Vec::new()), Cell::new(0));
        let folders = Folders { reach: &reach, launcher: Launcher::Ssh, nodes: &[] };
        let result = paused(async { folders.for_job(&job(&["n1", "n2"])).get("gone").await });
        assert_eq!(result, Err(ReachError::NotFound { path: "/f/gone".into() }));
        assert_eq!(reach.1.get(), 1);
    }

    #[test]
    fn without_ssh_only_this_machine_is_asked_and_once() {
        let (result, asked) = tried(Launcher::Slurm, &[("this machine", 1)], "here");
        assert!(result.is_err());
        assert_eq!(asked, 1);
    }
}
