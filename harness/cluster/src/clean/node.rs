//! Leftovers of jobs on one host: the output of `clean.sh` there, read by its own grammar.

use super::{Job, Jobs, Leftover, LeftoverKind, SHARED};
use crate::launch::QUERY_LIMIT;
use crate::reach::{Command, Host, Reach, ReachError};
use base::digest::sha256;
use job::script;
use model::artefact::{FolderAccess, Plan, PlannedFile};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// An argument list has its limits; a run may have hundreds of jobs.
const AT_ONCE: usize = 100;
/// Asking processes to end, ending them, and what lies around that.
const END_LIMIT: Duration = Duration::from_secs(90);

/// What a host says of the jobs that it was asked about.
#[derive(Debug, Default, PartialEq)]
pub(super) struct HostReport {
    pub left: Vec<Leftover>,
    /// A line for each folder that is not looked into, since it may be somebody else's.
    pub refused: Vec<String>,
}

pub(super) async fn ask(
    reach: &dyn Reach,
    host: &Host,
    verb: &str,
    jobs: &[&Job],
) -> Result<HostReport, String> {
    let mut all = HostReport::default();
    // What runs containers is the inventory's, and so that of all jobs which have any.
    let runtime = jobs.iter().find_map(|job| job.runtime);
    for jobs in jobs.chunks(AT_ONCE) {
        let node = match host {
            Host::Here => "-",
            Host::Node(node) => node,
        };
        let words = ["bash", "-c", script::CLEAN_SH, "clean", verb, node].into_iter();
        let containers = runtime.into_iter().flat_map(|runtime| ["--containers", runtime.name()]);
        let argv = words.chain(containers).chain(jobs.iter().map(|job| job.folder.as_str()));
        let limit = if verb == "end" { END_LIMIT } else { QUERY_LIMIT };
        let answer = reach.exec(host, &Command::new(argv, limit)).await.map_err(|error| error.to_string())?;
        if !answer.succeeded() {
            return Err(format!("`clean.sh` ended with {}: {}", answer.status, answer.complaint()));
        }
        let HostReport { left, refused } = read(&answer.stdout_text(), host, jobs)?;
        all.left.extend(left);
        all.refused.extend(refused);
    }
    Ok(all)
}

/// The digest of a file that was put there before its job began.
pub(super) fn digest_of(file: &PlannedFile) -> Option<(String, String)> {
    let digest = match (&file.text, &file.sha256) {
        (Some(text), _) => sha256(text.as_bytes()),
        (None, digest) => digest.clone()?,
    };
    Some((file.name.clone(), digest))
}

/// Removes files of jobs: by a host that answers, and behind no link.
pub(super) async fn remove<'a>(
    plan: &Plan,
    jobs: &Jobs,
    reach: &dyn Reach,
    files: impl Iterator<Item = &'a Leftover>,
) {
    let mut names: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for file in files {
        names.entry(&file.job).or_default().insert(file.which.clone());
    }
    for (name, files) in names {
        let Some(job) = jobs.0.iter().find(|job| job.name == name) else { continue };
        let files: Vec<String> = files.into_iter().collect();
        let hosts = match plan.launcher.facts().folder {
            FolderAccess::Nodes => job.nodes.iter().cloned().map(Host::Node).collect(),
            FolderAccess::ThisMachine => vec![Host::Here],
        };
        for host in &hosts {
            // Whether it worked is seen by looking again.
            match reach.remove(host, &job.folder, &files).await {
                Err(
                    ReachError::Unreachable { .. }
                    | ReachError::TimedOut { .. }
                    | ReachError::NoAccess { .. },
                ) => {}
                Ok(()) | Err(_) => break,
            }
        }
    }
}

fn read(text: &str, host: &Host, jobs: &[&Job]) -> Result<HostReport, String> {
    let text =
        text.strip_suffix("complete\n").ok_or_else(|| "the answer of `clean.sh` is truncated".to_owned())?;
    let (mut left, mut refused) = (Vec::new(), Vec::new());
    for line in text.lines() {
        let bad = || format!("unexpected answer of `clean.sh`: `{}`", line.escape_debug());
        let mut fields = line.splitn(3, '\t');
        let job = fields.next().and_then(|at| jobs.get(at.parse::<usize>().ok()?)).ok_or_else(bad)?;
        let (kind, which) = fields.next().zip(fields.next()).ok_or_else(bad)?;
        let (what, which, is_shared) = match kind {
            "process" => (LeftoverKind::Process, which, false),
            "container" => (LeftoverKind::Container, which, false),
            "supervisor" => (LeftoverKind::SupervisorState, which, false),
            "secret" => (LeftoverKind::Secret, which, true),
            "part" => (LeftoverKind::Part, which, true),
            "file" => {
                let (digest, name) = which.split_once(' ').ok_or_else(bad)?;
                if job.files.get(name).is_none_or(|planned| planned == digest) {
                    continue;
                }
                (LeftoverKind::Broken, name, true)
            }
            "refused" => {
                let (name, why) = (&job.name, which.escape_debug());
                refused.push(format!("the folder of {name} was left alone: {why}"));
                continue;
            }
            "unasked" => {
                let (name, why) = (&job.name, which.escape_debug());
                refused.push(format!("whether {host} has a container of {name} is not known: {why}"));
                continue;
            }
            _ => return Err(bad()),
        };
        // All nodes see the same folder: what lies there is reported once.
        let at = if is_shared { SHARED.to_owned() } else { host.to_string() };
        left.push(Leftover { at, what, which: which.to_owned(), job: job.name.clone() });
    }
    Ok(HostReport { left, refused })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job() -> Job {
        let files = [("job.sh".to_owned(), "ab".to_owned())].into();
        let (name, folder, queued_as) = ("c/j".to_owned(), "/f/c/j".to_owned(), "r.c.j".to_owned());
        Job { name, folder, nodes: vec!["n1".to_owned()], queued_as, files, runtime: None }
    }

    #[test]
    fn truncated_answers_are_refused() {
        let job = job();
        let parse = |text: &str| read(text, &Host::Node("n1".into()), &[&job]);
        let left = parse(
            "0\tprocess\t7\n0\tcontainer\t0af3\n0\tsupervisor\tsupervisor.n1\n0\tfile\tab job.sh\n0\tfile\tcd job.sh\n0\tsecret\tsecrets.n1\n0\tpart\tx.part\n0\tfile\tab other\ncomplete\n",
        );
        let left: Vec<_> =
            left.expect("read").left.into_iter().map(|left| (left.at, left.what, left.which)).collect();
        let one = |at: &str, what, which: &str| (at.to_owned(), what, which.to_owned());
        let wanted = [
            one("n1", LeftoverKind::Process, "7"),
            one("n1", LeftoverKind::Container, "0af3"),
            one("n1", LeftoverKind::SupervisorState, "supervisor.n1"),
            one(SHARED, LeftoverKind::Broken, "job.sh"),
            one(SHARED, LeftoverKind::Secret, "secrets.n1"),
            one(SHARED, LeftoverKind::Part, "x.part"),
        ];
        assert_eq!(left, wanted);
        assert_eq!(parse("complete\n"), Ok(HostReport::default()));
        let unasked = parse("0\tunasked\t`docker ps` fails there\ncomplete\n").expect("read");
        assert_eq!(
            unasked.refused,
            ["whether n1 has a container of c/j is not known: `docker ps` fails there"]
        );
        let refused = parse("0\trefused\t`/f/\u{1b}c` is a symbolic link\ncomplete\n").expect("read");
        let line = "the folder of c/j was left alone: `/f/\\u{1b}c` is a symbolic link";
        assert_eq!(refused, HostReport { left: Vec::new(), refused: vec![line.to_owned()] });
        for text in [
            "",
            "0\tprocess\t7\n",
            "1\tprocess\t7\ncomplete\n",
            "0\tthing\t7\ncomplete\n",
            "0\nprocess\ncomplete\n",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
