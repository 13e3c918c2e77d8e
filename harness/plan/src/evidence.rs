//! By what the calls of each job are recorded: the first source of its case's list that all of its nodes have.

use super::{Context, workload};
use base::nodeset;
use config::inventory::Inventory;
use config::suite::{Case, Evidence};
use job::profile::NsysVersion;
use model::artefact::{EvidenceSource, Plan, PlannedEvidence, Probe, ProbedNode, Value};
use recipes::recipe::nccl_log;
use std::collections::BTreeMap;

/// What nodes lack for a source, as they report it to the probe: by node, then by source. A node that is not in it was not
/// probed.
pub type EvidenceLacks = BTreeMap<String, BTreeMap<EvidenceSource, String>>;

const ALL_HAVE_IT: &str = "all nodes have it";
const NOT_PROBED: &str = "nodes are not probed";
const IN_CONTAINER: &str = "it runs in a container, into which no probe looks";

/// The first release of NCCL with an Inspector.
const FIRST_NCCL: &str = "2.28";

/// By the reports of the nodes, what each lacks.
pub fn evidence_lacks(probe: &Probe, inventory: &Inventory) -> EvidenceLacks {
    let nodes = probe.nodes.iter().map(|node| (node.node.clone(), lacks(node, inventory.nsys_version)));
    nodes.collect()
}

fn lacks(node: &ProbedNode, needed: Option<NsysVersion>) -> BTreeMap<EvidenceSource, String> {
    let mut lacks = BTreeMap::new();
    if let Some(why) = &node.unprobed {
        for source in [EvidenceSource::Nsys, EvidenceSource::Inspector] {
            lacks.insert(source, why.clone());
        }
        return lacks;
    }
    let unknown = |fact: &str| match node.unknown.get(fact) {
        Some(why) => why.clone(),
        None => "nothing on the node reported it".to_owned(),
    };
    let nsys = match node.facts.get("nsys") {
        Some(Value::Text(text)) => match (NsysVersion::parse(text), needed) {
            (None, _) => Some(format!("`{text}` is no version of nsys")),
            (Some(version), Some(needed)) if version < needed => {
                Some(format!("nsys {version} is older than `nsys_version` {needed}"))
            }
            _ => None,
        },
        _ => Some(unknown("nsys")),
    };
    lacks.extend(nsys.map(|why| (EvidenceSource::Nsys, why)));
    let is_old = |version: &str| config::facts::compare_versions(version, FIRST_NCCL).is_lt();
    let inspector = match (node.facts.get("nccl"), node.facts.contains_key("nccl_inspector")) {
        (Some(Value::Text(version)), _) if is_old(version) => {
            Some(format!("NCCL {version} has none; {FIRST_NCCL} and later have"))
        }
        (_, true) => None,
        (_, false) => Some(unknown("nccl_inspector")),
    };
    lacks.extend(inspector.map(|why| (EvidenceSource::Inspector, why)));
    lacks
}

/// The source of a job on these nodes.
pub(crate) fn choose(context: &Context, case: &Case, nodes: &[String]) -> PlannedEvidence {
    let inventory = context.inventory;
    let in_container = inventory.container.is_some() || workload::planner(&case.workload).image().is_some();
    let lacks = context.request.evidence.as_ref().filter(|_| !in_container);
    let mut passed = Vec::new();
    let mut chosen = None;
    for source in &case.evidence.order {
        let lacking = match (source, inventory.nsys_version, lacks) {
            (EvidenceSource::Log, ..) => BTreeMap::new(),
            (EvidenceSource::Nsys, None, _) => {
                let why = "the inventory has no `nsys_version`, and not all nodes report one";
                BTreeMap::from([(why, nodes.to_vec())])
            }
            (_, _, None) => BTreeMap::new(),
            (_, _, Some(lacks)) => lacking(*source, nodes, lacks),
        };
        if lacking.is_empty() {
            chosen = Some(*source);
            break;
        }
        passed.extend(
            lacking
                .into_iter()
                .map(|(why, nodes)| format!("no {} on {}: {why}", source.name(), nodeset::fold(&nodes))),
        );
    }
    let is_known = lacks.is_some() || matches!(chosen, None | Some(EvidenceSource::Log));
    match (is_known, passed.is_empty()) {
        (true, true) => passed.push(ALL_HAVE_IT.to_owned()),
        (true, false) => {}
        (false, is_first) => {
            let why = if in_container { IN_CONTAINER } else { NOT_PROBED };
            let which = if is_first { "first" } else { "next" };
            passed.push(format!("{why}, so the {which} of the list"));
        }
    }
    let without = without(context, case, chosen);
    PlannedEvidence { source: chosen, why: passed.join("; "), without }
}

/// The nodes without a source, by reason.
fn lacking<'a>(
    source: EvidenceSource,
    nodes: &[String],
    lacks: &'a EvidenceLacks,
) -> BTreeMap<&'a str, Vec<String>> {
    let mut lacking: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for node in nodes {
        let why = match lacks.get(node) {
            None => Some("not probed"),
            Some(lacks) => lacks.get(&source).map(String::as_str),
        };
        if let Some(why) = why {
            lacking.entry(why).or_default().push(node.clone());
        }
    }
    lacking
}

/// Recipes that read another source than the chosen one.
fn without(context: &Context, case: &Case, chosen: Option<EvidenceSource>) -> Vec<String> {
    let has_nothing_to_read = |name: &&String| {
        let is = |source| chosen == Some(source);
        if case.evidence.adds_log && *name == nccl_log::SPEC.name {
            return !is(EvidenceSource::Log);
        }
        let Some(recipe) = context.catalogue.job_recipe(name) else { return false };
        let by_inspector = recipe.reads_inspector && is(EvidenceSource::Inspector);
        match recipe.tables.is_empty() {
            false => !is(EvidenceSource::Nsys) && !by_inspector,
            true => recipe.reads_inspector && !by_inspector,
        }
    };
    case.recipes.iter().filter(has_nothing_to_read).cloned().collect()
}

/// The case as a job runs it that is recorded by one source, or by none.
pub(crate) fn with_source(case: &Case, source: Option<EvidenceSource>) -> Case {
    let mut case = case.clone();
    if source != Some(EvidenceSource::Nsys) {
        case.profile = None;
    }
    if case.evidence.adds_log && source != Some(EvidenceSource::Log) {
        case.recipes.retain(|recipe| recipe != nccl_log::SPEC.name);
    }
    let inspector = source == Some(EvidenceSource::Inspector);
    case.evidence = Evidence { inspector, ..Evidence::default() };
    case
}

/// Which evidence the jobs of all cases leave, where it is not the source that the suite wants most, or it is unknown whether nodes have it.
pub fn evidence_notes(plan: &Plan) -> Vec<String> {
    let mut notes = Vec::new();
    for case in &plan.cases {
        let is_sure = |line: &&String| line.ends_with(ALL_HAVE_IT);
        let lines = case.evidence_lines();
        notes.extend(
            lines.iter().filter(|line| !is_sure(line)).map(|line| format!("case {}: {line}", case.name)),
        );
    }
    notes
}

/// Whether a job of the plan leaves evidence that depends on what its nodes have. What is skipped may, too.
pub fn asks_for_evidence(plan: &Plan) -> bool {
    plan.cases.iter().any(|case| case.skip.is_some() || case.jobs.iter().any(|job| job.evidence.is_some()))
}
