//! The image of a job on its nodes: fetched before the job is started, so that no time of the job passes meanwhile, and the
//! same on all of them. What fails on all nodes is of the image or its registry; what fails on some is theirs.

use super::NotLaunched;
use crate::interrupt;
use crate::reach::{Command, Host, Reach};
use base::text::shorten;
use futures::stream::{self, StreamExt};
use job::script::{self, CONTAINER_SAYS, Runtime, files};
use model::artefact::{Blamed, Ended, PlannedJob};
use std::collections::BTreeMap;
use std::time::Duration;

/// Images have tens of gigabytes.
const LIMIT: Duration = Duration::from_secs(3600);
/// So many nodes are asked at the same time.
const AT_ONCE: usize = 32;
/// Ctrl-C is answered within this time.
const SLICE: Duration = Duration::from_millis(250);

/// What runs the image of a job, and its name.
pub(crate) fn planned(job: &PlannedJob) -> Option<(Runtime, String)> {
    let of_job = |name: &str| job.files.iter().find(|file| file.name == name);
    of_job(files::CONTAINER)?;
    let script = script::read(of_job(files::JOB)?.text.as_deref()?).ok()?;
    script.image().map(|(runtime, image)| (runtime, image.to_owned()))
}

/// Has every node fetch the image that it does not have.
pub(super) async fn pull(
    reach: &dyn Reach,
    job: &PlannedJob,
    (runtime, image): &(Runtime, String),
) -> Result<(), NotLaunched> {
    let script = format!("{}/{}", job.folder, files::CONTAINER);
    let pulls = job.nodes.iter().map(|node| on_node(reach, &script, (*runtime, image), node));
    let pulls = stream::iter(pulls).buffered(AT_ONCE).collect::<Vec<_>>();
    let pulls = tokio::select! {
        biased;
        () = interrupted() => return Err("interrupted while nodes fetched the image".to_owned().into()),
        pulls = pulls => pulls,
    };
    decide(&job.nodes, &pulls)
}

/// The digest of the image there, or what failed.
async fn on_node(
    reach: &dyn Reach,
    script: &str,
    (runtime, image): (Runtime, &str),
    node: &str,
) -> Result<String, String> {
    let argv = ["bash", script, "pull", runtime.name(), image, node];
    let host = Host::Node(node.to_owned());
    match reach.exec(&host, &Command::new(argv, LIMIT)).await {
        Ok(answer) if answer.succeeded() => {
            // A shell's start-up files may print before it.
            let text = answer.stdout_text();
            Ok(text.trim_end().lines().next_back().unwrap_or_default().to_owned())
        }
        Ok(answer) => Err(without_place(&answer.complaint(), node)),
        Err(error) => Err(error.to_string()),
    }
}

async fn interrupted() {
    while interrupt::asked().is_none() {
        tokio::time::sleep(SLICE).await;
    }
}

/// The last line of `container.sh`, without the node.
fn without_place(complaint: &str, node: &str) -> String {
    let line = complaint.lines().rfind(|line| line.starts_with(CONTAINER_SAYS)).unwrap_or(complaint);
    let line = line.trim_start_matches(CONTAINER_SAYS);
    let line = line.strip_prefix(node).and_then(|line| line.strip_prefix(": ")).unwrap_or(line);
    shorten(line.trim(), 400)
}

/// By the digest or the failure of each node.
fn decide(nodes: &[String], pulls: &[Result<String, String>]) -> Result<(), NotLaunched> {
    let failed: Vec<(&String, &String)> =
        nodes.iter().zip(pulls).filter_map(|(node, pull)| Some((node, pull.as_ref().err()?))).collect();
    if let Some((node, why)) = failed.first() {
        let count = failed.len();
        // A registry that is away looks the same: a node is blamed only where another one has the image.
        let blamed = (count < nodes.len()).then_some(node);
        let on = match count {
            1 => format!("on {node}"),
            all if all == nodes.len() => format!("on all {all} nodes"),
            some => format!("on {some} of {} nodes, first {node}", nodes.len()),
        };
        let why = format!("no container {on}: {why}");
        let blamed = blamed.map(|node| Blamed { node: (*node).clone(), evidence: why.clone() });
        return Err(NotLaunched { end: Ended::LaunchFailed { why }, blamed });
    }
    let mut digests: BTreeMap<&String, Vec<&String>> = BTreeMap::new();
    for (node, digest) in nodes.iter().zip(pulls.iter().flatten()) {
        digests.entry(digest).or_default().push(node);
    }
    if digests.len() > 1 {
        let of_each = digests.iter().map(|(digest, nodes)| {
            let short = digest.chars().take(19).collect::<String>();
            format!("{short} on {}", base::nodeset::fold(nodes))
        });
        let list = of_each.take(4).collect::<Vec<_>>().join(", ");
        return Err(format!(
            "the image is not the same on all nodes: {list}; name it by its digest, `NAME@sha256:...`, or pull it there"
        )
        .into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decided(pulls: &[Result<&str, &str>]) -> Result<(), (String, Option<String>)> {
        let nodes: Vec<String> = (1..=pulls.len()).map(|at| format!("n{at}")).collect();
        let owned = |pull: &Result<&str, &str>| pull.map(str::to_owned).map_err(str::to_owned);
        let pulls: Vec<_> = pulls.iter().map(owned).collect();
        let not = decide(&nodes, &pulls);
        not.map_err(|not| (not.why().to_owned(), not.blamed.map(|blamed| blamed.node)))
    }

    #[test]
    fn an_image_that_no_node_gets_blames_none_and_one_that_some_lack_blames_the_first() {
        let failed = |why: &str, node: Option<&str>| Err((why.to_owned(), node.map(str::to_owned)));
        assert_eq!(decided(&[Ok("sha256:a"), Ok("sha256:a")]), Ok(()));
        assert_eq!(decided(&[Err("x"), Err("x")]), failed("no container on all 2 nodes: x", None));
        // Whatever each of them says: there is none to compare with.
        assert_eq!(decided(&[Err("x"), Err("y")]), failed("no container on all 2 nodes: x", None));
        assert_eq!(decided(&[Ok("a"), Err("x")]), failed("no container on n2: x", Some("n2")));
        let two = "no container on 2 of 3 nodes, first n2: x";
        assert_eq!(decided(&[Ok("a"), Err("x"), Err("x")]), failed(two, Some("n2")));
        assert_eq!(decided(&[Err("x")]), failed("no container on n1: x", None));
    }

    #[test]
    fn nodes_with_other_images_under_one_name_are_not_compared() {
        let (a, b) = ("sha256:aaaaaaaaaaaaaaaaaaaa", "sha256:bbbbbbbbbbbbbbbbbbbb");
        let (why, blamed) = decided(&[Ok(a), Ok(b), Ok(a)]).expect_err("refused");
        assert!(why.contains("sha256:aaaaaaaaaaaa on n[1,3], sha256:bbbbbbbbbbbb on n2; "), "{why}");
        assert_eq!(blamed, None);
    }

    #[test]
    fn the_line_of_the_script_is_found_among_others() {
        let text = "warning: x\ncontainer.sh: n1: docker is not installed; next: install it\n";
        assert_eq!(without_place(text, "n1"), "docker is not installed; next: install it");
        assert_eq!(without_place("bash: no such file", "n1"), "bash: no such file");
    }
}
