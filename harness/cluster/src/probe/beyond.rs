//! Nodes that jobs of an inventory could be placed on and that it does not have: those of its partition, or with the
//! labels of its pods. Where a scheduler does not list them there is nothing to report: the facts of the others say why.

use super::slurm::is_barred;
use crate::discover::kubernetes::{Node, hostname, list, takes_pods};
use crate::reach::pods::Kubectl;
use crate::reach::{Command, Host, Reach};
use base::nodeset;
use base::text::{command_line, count, shorten, show};
use config::inventory::{Inventory, Kind, KubernetesReach, ReachBy, SlurmReach};
use std::collections::BTreeSet;
use std::time::Duration;

const QUERY_LIMIT: Duration = Duration::from_secs(60);
/// Of the names in a note.
const LONGEST: usize = 200;

/// A note with these nodes, and the command that writes an inventory with all.
pub async fn nodes_beyond(reach: &dyn Reach, inventory: &Inventory) -> Option<String> {
    match &inventory.reach {
        ReachBy::Slurm(slurm) => {
            let argv = ["sinfo", "--noheader", "--Node", "--all", "--format=%N|%t|%P|%f"];
            let answer = reach.exec(&Host::Here, &Command::new(argv, QUERY_LIMIT)).await.ok()?;
            if !answer.succeeded() {
                return None;
            }
            let (partition, nodes) = nodes_of_partition(&answer.stdout_text(), slurm, &inventory.nodes)?;
            let mut command = discover(&["--partition", &partition]);
            command.extend(
                slurm.constraint.iter().flat_map(|feature| ["--feature".to_owned(), feature.clone()]),
            );
            Some(note(&format!("of partition `{}`", show(&partition)), &nodes, command, inventory))
        }
        ReachBy::Kubernetes(pods) if inventory.kind == Kind::Real => {
            let selector = selector(pods);
            let listed = list(&Kubectl::from_reach(pods), selector.as_deref()).await.ok()?;
            let nodes = with_labels(&listed, pods, inventory)?;
            let mut command = discover(&["--via", "kubernetes", "--namespace", &pods.namespace]);
            let claim =
                ["--image", &pods.image, "--claim", &pods.shared, "--shared", &inventory.paths.shared];
            command.extend(claim.map(str::to_owned));
            let optional = [
                ("--context", pods.context.as_ref()),
                ("--selector", selector.as_ref()),
                ("--priority-class", pods.priority_class.as_ref()),
            ];
            for (flag, value) in optional {
                command.extend(value.iter().flat_map(|value| [flag.to_owned(), (*value).clone()]));
            }
            let tolerations = pods.tolerations.iter().map(|toleration| toleration.key.clone());
            command.extend(tolerations.flat_map(|key| ["--toleration".to_owned(), key]));
            let of = match &selector {
                Some(labels) => format!("with the labels `{}`", show(labels)),
                None => "of the cluster".to_owned(),
            };
            Some(note(&of, &nodes, command, inventory))
        }
        _ => None,
    }
}

fn discover(options: &[&str]) -> Vec<String> {
    ["harness", "inventory", "discover"].iter().chain(options).map(|word| (*word).to_owned()).collect()
}

fn note(of: &str, nodes: &[String], mut command: Vec<String>, inventory: &Inventory) -> String {
    // What was written into the file by hand stays.
    command.extend(["--output".to_owned(), format!("{}-all", inventory.name)]);
    format!(
        "{} {of} beyond the inventory: {}; next: {}",
        count(nodes.len(), "node"),
        shorten(&show(&nodeset::fold(nodes)), LONGEST),
        command_line(&command)
    )
}

/// The partition of jobs, the first where there are several, and which further nodes of theirs take jobs. A reservation has
/// nodes of its own, and a constraint that is more than a feature is Slurm's business.
fn nodes_of_partition(text: &str, slurm: &SlurmReach, known: &[String]) -> Option<(String, Vec<String>)> {
    let is_feature = |text: &String| text.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
    if slurm.reservation.is_some() || slurm.constraint.as_ref().is_some_and(|text| !is_feature(text)) {
        return None;
    }
    let known: BTreeSet<&str> = known.iter().map(String::as_str).collect();
    let (mut first, mut nodes) = (None, BTreeSet::new());
    for line in text.lines() {
        let fields: Vec<&str> = line.splitn(4, '|').map(str::trim).collect();
        let [node, state, partition, features] = fields[..] else { continue };
        let is_meant = match slurm.partition.as_deref() {
            Some(names) => names.split(',').any(|name| name.trim() == partition.trim_end_matches('*')),
            None => partition.ends_with('*'),
        };
        let has_feature =
            slurm.constraint.as_deref().is_none_or(|one| features.split(',').any(|its| its == one));
        if is_meant && has_feature && !is_barred(state) && !known.contains(node) && is_name(node) {
            first.get_or_insert_with(|| partition.trim_end_matches('*').to_owned());
            nodes.insert(node.to_owned());
        }
    }
    Some((first?, sorted(nodes)))
}

/// As `--selector` takes them.
fn selector(pods: &KubernetesReach) -> Option<String> {
    let labels: Vec<String> =
        pods.node_selector.iter().map(|(key, value)| format!("{key}={value}")).collect();
    (!labels.is_empty()).then(|| labels.join(","))
}

/// Those that are of the inventory's instance and take its pods.
fn with_labels(listed: &[Node], pods: &KubernetesReach, inventory: &Inventory) -> Option<Vec<String>> {
    let borne: Vec<String> = pods.tolerations.iter().map(|toleration| toleration.key.clone()).collect();
    let known: BTreeSet<&str> = inventory.nodes.iter().map(String::as_str).collect();
    let fits = |node: &&Node| takes_pods(node, &inventory.instance, &borne);
    let names = listed.iter().filter(fits).filter_map(hostname);
    let nodes: BTreeSet<String> = names.filter(|name| !known.contains(name)).map(str::to_owned).collect();
    (!nodes.is_empty()).then(|| sorted(nodes))
}

fn is_name(node: &str) -> bool {
    nodeset::expand(node) == Ok(vec![node.to_owned()])
}

fn sorted(nodes: BTreeSet<String>) -> Vec<String> {
    let mut nodes: Vec<String> = nodes.into_iter().collect();
    nodeset::sort(&mut nodes);
    nodes
}

#[cfg(test)]
mod tests {
    use super::*;

    const LISTED: &str = "n1|idle|gpu*|efa\nn2|alloc|gpu*|efa,h100\nn3|mix|gpu*|h100\nn3|mix|all|h100\n\
                          n4|drng|gpu*|efa\nn5|idle*|gpu*|efa\nn10|idle~|gpu*|efa\nc1|idle|cpu|(null)\nodd\nn[7-8]|idle|gpu*|efa\n";

    fn found(slurm: &SlurmReach, known: &[&str]) -> Option<(String, Vec<String>)> {
        let known: Vec<String> = known.iter().map(|name| (*name).to_owned()).collect();
        nodes_of_partition(LISTED, slurm, &known)
    }

    #[test]
    fn nodes_of_the_partition_that_take_jobs_are_named_and_no_others() {
        let of = |partition: Option<&str>, constraint: Option<&str>| SlurmReach {
            partition: partition.map(str::to_owned),
            constraint: constraint.map(str::to_owned),
            ..SlurmReach::default()
        };
        let all = |partition: &str, nodes: &[&str]| {
            Some((partition.to_owned(), nodes.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()))
        };
        assert_eq!(found(&of(Some("gpu"), None), &["n1"]), all("gpu", &["n2", "n3", "n10"]));
        // Without a partition it is that with a star.
        assert_eq!(found(&of(None, None), &["n1", "n2"]), all("gpu", &["n3", "n10"]));
        assert_eq!(found(&of(Some("cpu, all"), None), &[]), all("all", &["c1", "n3"]));
        assert_eq!(found(&of(Some("gpu"), Some("efa")), &["n1", "n10"]), all("gpu", &["n2"]));
        assert_eq!(found(&of(Some("gpu"), None), &["n1", "n2", "n3", "n10"]), None);
        let reserved = SlurmReach { reservation: Some("r".into()), ..of(Some("gpu"), None) };
        for slurm in [of(Some("gone"), None), of(Some("gpu"), Some("efa&h100")), reserved] {
            assert_eq!(found(&slurm, &[]), None, "{slurm:?}");
        }
    }
}
