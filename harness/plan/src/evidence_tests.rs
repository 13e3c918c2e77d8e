//! Which source each job is recorded by, by what its nodes report, and what then is in its script.

use super::evidence::{evidence_lacks, evidence_notes};
use super::message_tests::request;
use super::{EvidenceLacks, Request, plan};
use config::inventory::{Instances, Inventory};
use config::suite::Suite;
use model::artefact::{EvidenceSource, Format, Plan, PlannedJob, Probe, ProbedNode, Value};
use recipes::catalogue::Catalogue;
use std::collections::BTreeMap;
use std::path::Path;

fn inventory(more: &str) -> Inventory {
    let home = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("a root");
    let instances = Instances::load(home).expect("sound instances");
    let text = format!(
        "kind = \"real\"\ninstance = \"p5\"\nnodes = \"n[1-4]\"\npaths = {{ shared = \"/fsx\" }}\n\
         reach = {{ via = \"slurm\" }}\n{more}\n"
    );
    Inventory::read(&text, "inventory/x.toml", &instances).map_err(|why| why.to_string()).expect("good")
}

const NSYS: &str = "nsys_version = \"2025.3.1\"";

/// Of a case on three nodes that wants these sources.
fn planned(placement: &str, sources: &str, inventory: &Inventory, evidence: Option<EvidenceLacks>) -> Plan {
    let text = format!(
        "instance = \"p5\"\nabout = \"x\"\n[[case]]\nname = \"one\"\nplacement = \"{placement}\"\nrecipes = [\"nccl_tests\", \
         \"nccl_profile\"]\nworkload = {{ kind = \"nccl-tests\", op = \"all_reduce\", from = \"1MiB\", to = \"1MiB\" }}\n\
         evidence = {sources}\n"
    );
    let suite = Suite::read(&text, "suites/x.toml", &Catalogue::built_in());
    let suite = suite.map_err(|why| why.to_string()).expect("good");
    plan(&[suite], inventory, None, Request { evidence, ..request(3) }).expect("a plan")
}

/// The first node has all, the second no nsys, the third nothing.
fn lacks() -> EvidenceLacks {
    let nsys = (EvidenceSource::Nsys, "no such program: nsys".to_owned());
    let inspector = (EvidenceSource::Inspector, "no library".to_owned());
    [("n1", vec![]), ("n2", vec![nsys.clone()]), ("n3", vec![nsys, inspector])]
        .map(|(node, lacks)| (node.to_owned(), lacks.into_iter().collect::<BTreeMap<_, _>>()))
        .into()
}

fn sources(plan: &Plan) -> Vec<&'static str> {
    plan.cases[0].jobs.iter().map(|job| job.evidence.as_ref().map_or("-", |it| it.name())).collect()
}

fn writes_log(job: &PlannedJob) -> bool {
    let script = job.files.iter().find(|file| file.name == job::script::files::JOB);
    script.and_then(|file| file.text.as_deref()).is_some_and(|text| text.contains("NCCL_DEBUG=INFO"))
}

const ALL: &str = "[\"nsys\", \"inspector\", \"log\"]";

#[test]
fn each_job_is_recorded_by_the_first_source_that_all_of_its_nodes_have() {
    let plan = planned("each", ALL, &inventory(NSYS), Some(lacks()));
    assert_eq!(sources(&plan), ["nsys", "inspector", "log"]);
    let jobs = &plan.cases[0].jobs;
    assert_eq!(jobs.iter().map(|job| job.profile.is_some()).collect::<Vec<_>>(), [true, false, false]);
    assert_eq!(jobs.iter().map(PlannedJob::is_inspected).collect::<Vec<_>>(), [false, true, false]);
    assert_eq!(jobs.iter().map(writes_log).collect::<Vec<_>>(), [false, false, true]);
    let without = |at: usize| jobs[at].evidence.as_ref().map(|it| it.without.clone()).unwrap_or_default();
    assert_eq!(without(0), ["inspector", "nccl_log"]);
    assert_eq!(without(2), ["nccl_profile", "inspector"]);
}

#[test]
fn a_control_run_stands_beside_each_job_that_nsys_or_inspector_records_and_beside_no_other() {
    let sources = format!("{ALL}\nprofile = {{ unprofiled_control_run = true }}");
    let plan = planned("each", &sources, &inventory(NSYS), Some(lacks()));
    let jobs = &plan.cases[0].jobs;
    assert_eq!(
        jobs.iter().map(PlannedJob::is_recorded).collect::<Vec<_>>(),
        [true, true, false, false, false]
    );
    let bare: Vec<&PlannedJob> = jobs.iter().filter(|job| job.is_bare()).collect();
    assert_eq!(bare.iter().map(|job| job.nodes.concat()).collect::<Vec<_>>(), ["n1", "n2"]);
    assert!(bare.iter().all(|job| job.evidence.is_none() && !writes_log(job)));
}

#[test]
fn one_node_decides_for_all_nodes_of_its_job_and_is_named() {
    let plan = planned("all", ALL, &inventory(NSYS), Some(lacks()));
    let line =
        "evidence: log on n[1-3]: no nsys on n[2-3]: no such program: nsys; no inspector on n3: no library";
    assert_eq!(plan.cases[0].evidence_lines(), [line]);
    assert_eq!(evidence_notes(&plan), [format!("case one: {line}")]);
    let none = planned("all", "[\"nsys\", \"inspector\"]", &inventory(NSYS), Some(lacks()));
    assert_eq!(sources(&none), ["none"]);
    assert!(!writes_log(&none.cases[0].jobs[0]) && none.cases[0].jobs[0].profile.is_none());
}

#[test]
fn without_a_probe_or_in_a_container_the_first_of_the_list_is_taken_and_said_so() {
    let unprobed = planned("all", ALL, &inventory(NSYS), None);
    assert_eq!(
        unprobed.cases[0].evidence_lines(),
        ["evidence: nsys on n[1-3]: nodes are not probed, so the first of the list"]
    );
    let mounts = "container = { image = \"/fsx/x.sqsh\", mounts = [\"/fsx:/fsx\"] }";
    let image = inventory(&format!("{NSYS}\n{mounts}"));
    let inside = planned("all", "[\"inspector\", \"log\"]", &image, Some(lacks()));
    assert_eq!(sources(&inside), ["inspector"]);
    assert!(inside.cases[0].evidence_lines()[0].contains("into which no probe looks"));
    // Which switches its nsys takes is unknown.
    let unknown = planned("all", ALL, &inventory(""), None);
    assert_eq!(sources(&unknown), ["inspector"]);
    assert!(
        unknown.cases[0].skip.is_none() && unknown.cases[0].evidence_lines()[0].contains("`nsys_version`")
    );
}

#[test]
fn what_all_nodes_have_is_no_note() {
    let plan = planned("all", "[\"log\"]", &inventory(""), Some(lacks()));
    assert_eq!(plan.cases[0].evidence_lines(), ["evidence: log on n[1-3]: all nodes have it"]);
    assert_eq!(evidence_notes(&plan), [] as [String; 0]);
}

#[test]
fn facts_of_the_probe_say_what_a_node_lacks() {
    let text = |text: &str| Value::Text(text.to_owned());
    let node = |name: &str, facts: &[(&str, &str)], unknown: &[(&str, &str)]| ProbedNode {
        node: name.to_owned(),
        facts: facts.iter().map(|(fact, value)| ((*fact).to_owned(), text(value))).collect(),
        unknown: unknown.iter().map(|(fact, why)| ((*fact).to_owned(), (*why).to_owned())).collect(),
        ..ProbedNode::default()
    };
    let plugin = ("nccl_inspector", "/usr/lib/libnccl-profiler-inspector.so");
    let new = ("nccl", "2.30.4");
    let nodes = vec![
        node("all", &[("nsys", "2025.3.1"), plugin, new], &[]),
        node("old", &[("nsys", "2023.2.1"), plugin, ("nccl", "2.27.7")], &[]),
        node("bare", &[new], &[("nsys", "no such program: nsys"), ("nccl_inspector", "no library")]),
        ProbedNode { unprobed: Some("no answer".to_owned()), ..node("mute", &[], &[]) },
    ];
    let probe = Probe {
        format: Format,
        harness: String::new(),
        simulated: false,
        inventory: String::new(),
        instance: String::new(),
        at: String::new(),
        nodes,
    };
    let lacks = evidence_lacks(&probe, &inventory(NSYS));
    let of = |node: &str| {
        let why = |source| lacks[node].get(&source).cloned().unwrap_or_default();
        [why(EvidenceSource::Nsys), why(EvidenceSource::Inspector)]
    };
    assert_eq!(of("all"), ["", ""]);
    let old =
        ["nsys 2023.2.1 is older than `nsys_version` 2025.3.1", "NCCL 2.27.7 has none; 2.28 and later have"];
    assert_eq!(of("old"), old);
    assert_eq!(of("bare"), ["no such program: nsys", "no library"]);
    assert_eq!(of("mute"), ["no answer", "no answer"]);
}
