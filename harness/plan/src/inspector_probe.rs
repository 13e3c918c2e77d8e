//! Nodes on which NCCL's Inspector leaves no records, or few of them, by what they report to the probe.

use base::nodeset;
use config::facts::compare_versions;
use job::inspector::{LIBRARY, PLUGIN, USUAL_PLUGIN};
use job::script::{self, Run, Step, files};
use model::artefact::{Plan, PlannedJob, Probe, ProbedNode, Value};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

/// The first release of NCCL with an Inspector, and the first that keeps every call between two writings.
const FIRST: &str = "2.28";
const KEEPS_CALLS: &str = "2.30";

/// What is lacking on nodes of a job, with the next step; where the program runs in a container, nodes report nothing of it. A
/// node that did not report it is not among them.
pub fn without_inspector(job: &PlannedJob, probe: &Probe) -> Vec<String> {
    lines(reasons(job, probe), |nodes, why| format!("{nodes}: {why}"))
}

/// The same of all jobs of a plan, with the cases that have fewer records for it.
pub fn inspector_notes(plan: &Plan, probe: &Probe) -> Vec<String> {
    let mut all: BTreeMap<String, (BTreeSet<String>, BTreeSet<&str>)> = BTreeMap::new();
    for case in plan.cases.iter().filter(|case| case.skip.is_none()) {
        for (why, nodes) in case.jobs.iter().flat_map(|job| reasons(job, probe)) {
            let (all_nodes, cases) = all.entry(why).or_default();
            all_nodes.extend(nodes);
            cases.insert(&case.name);
        }
    }
    let line = |(why, (nodes, cases)): (String, (BTreeSet<String>, BTreeSet<&str>))| {
        let (nodes, cases): (Vec<String>, Vec<&str>) =
            (nodes.into_iter().collect(), cases.into_iter().collect());
        let without = "what needs NCCL Inspector's records of these nodes is inconclusive in";
        format!("{}: {why}; {without} {}", nodeset::fold(&nodes), cases.join(", "))
    };
    all.into_iter().map(line).collect()
}

fn lines(
    reasons: BTreeMap<String, BTreeSet<String>>,
    line: impl Fn(String, String) -> String,
) -> Vec<String> {
    let folded = |nodes: BTreeSet<String>| nodeset::fold(&nodes.into_iter().collect::<Vec<_>>());
    reasons.into_iter().map(|(why, nodes)| line(folded(nodes), why)).collect()
}

/// Each reason with its nodes.
fn reasons(job: &PlannedJob, probe: &Probe) -> BTreeMap<String, BTreeSet<String>> {
    let mut reasons: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let Some(plugin) = plugin(job) else { return reasons };
    for node in probe.nodes.iter().filter(|node| node.unprobed.is_none() && job.nodes.contains(&node.node)) {
        if let Some(why) = lack(node, &plugin) {
            reasons.entry(why).or_default().insert(node.node.clone());
        }
    }
    reasons
}

/// The plugin that the ranks of a job load, where they run beside what was probed.
fn plugin(job: &PlannedJob) -> Option<String> {
    if !job.is_inspected() {
        return None;
    }
    let file = job.files.iter().find(|file| file.name == files::JOB)?;
    let script = script::read(file.text.as_deref()?).ok()?;
    let in_container = |step: &Step| matches!(step, Step::Run(Run { container: Some(_), .. }));
    if script.steps.iter().any(in_container) {
        return None;
    }
    script.steps.iter().find_map(|step| match step {
        Step::Environment { variables } => variables.get(PLUGIN).cloned(),
        _ => None,
    })
}

fn lack(node: &ProbedNode, plugin: &str) -> Option<String> {
    if let Some(Value::Text(version)) = node.facts.get("nccl") {
        let is_before = |release: &str| compare_versions(version, release) == Ordering::Less;
        if is_before(FIRST) {
            return Some(format!("NCCL {version} has no Inspector; install NCCL {KEEPS_CALLS} or later"));
        }
        if is_before(KEEPS_CALLS) {
            return Some(format!(
                "the Inspector of NCCL {version} keeps only the last call between two writings; install NCCL {KEEPS_CALLS} or \
                 later"
            ));
        }
    }
    let why = node.unknown.get("nccl_inspector").filter(|_| !node.facts.contains_key("nccl_inspector"))?;
    // The probe looked for this very library: the job may load another one, of which nothing is known.
    let library = if plugin == USUAL_PLUGIN { LIBRARY } else { plugin };
    why.contains(library).then(|| format!("{why}; set `nccl_inspector` of `[paths]`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(nccl: &str, unknown: Option<&str>) -> ProbedNode {
        let unknown = unknown.map(|why| ("nccl_inspector".to_owned(), why.to_owned()));
        ProbedNode {
            facts: BTreeMap::from([("nccl".to_owned(), Value::Text(nccl.to_owned()))]),
            unknown: unknown.into_iter().collect(),
            ..ProbedNode::default()
        }
    }

    const ABSENT: &str = "no libnccl-profiler-inspector.so in the loader's folders";
    const NO_FILE: &str = "no such file, or not readable: /opt/inspector.so";

    #[test]
    fn what_is_too_old_or_absent_is_named_with_the_next_step() {
        for (nccl, unknown, plugin, expected) in [
            ("2.27.7", None, USUAL_PLUGIN, Some("NCCL 2.27.7 has no Inspector; install NCCL 2.30 or later")),
            ("2.9.9", None, USUAL_PLUGIN, Some("NCCL 2.9.9 has no Inspector; install NCCL 2.30 or later")),
            ("2.29.3", None, USUAL_PLUGIN, Some("the Inspector of NCCL 2.29.3 keeps only the last call")),
            (
                "2.30.4",
                Some(ABSENT),
                USUAL_PLUGIN,
                Some("in the loader's folders; set `nccl_inspector` of `[paths]`"),
            ),
            ("2.30.4", Some(NO_FILE), "/opt/inspector.so", Some("/opt/inspector.so; set `nccl_inspector`")),
            ("2.30.4", None, USUAL_PLUGIN, None),
            // The job loads another library than the one that was looked for.
            ("2.30.4", Some(ABSENT), "/opt/inspector.so", None),
            ("2.30.4", Some(NO_FILE), USUAL_PLUGIN, None),
            // An older probe did not look for it.
            ("2.30.4", Some("nothing on the node reported it"), USUAL_PLUGIN, None),
        ] {
            let why = lack(&node(nccl, unknown), plugin);
            match expected {
                Some(part) => assert!(why.as_ref().is_some_and(|why| why.contains(part)), "{nccl}: {why:?}"),
                None => assert_eq!(why, None, "{nccl} {plugin}"),
            }
        }
        let unread = ProbedNode::default();
        assert_eq!(lack(&unread, USUAL_PLUGIN), None, "what is not reported speaks against no node");
    }

    #[test]
    fn a_job_without_the_inspector_lacks_nothing() {
        let plan = fixture::plan();
        let probe = Probe {
            format: model::artefact::Format,
            harness: String::new(),
            simulated: true,
            inventory: String::new(),
            instance: String::new(),
            at: String::new(),
            nodes: plan
                .nodes
                .iter()
                .map(|name| ProbedNode { node: name.clone(), ..node("2.18.3", None) })
                .collect(),
        };
        assert_eq!(inspector_notes(&plan, &probe), [] as [String; 0]);
    }
}
