//! The plan of a manifest: Kubernetes chooses the nodes, so that each pod has a slot in its place, a word that stands for
//! the node's name wherever the plan has it. The pods, and `run --attach`, put the names there.

use super::{LONGEST_NAME, ManifestRecord, ManifestRequest, check_claim, check_name, name_from};
use crate::session::planning::{make_plan_on, recipes_of_project};
use crate::session::{RunOptions, planning};
use base::digest::sha256;
use base::text::count;
use config::inventory::{Inventory, KubernetesReach, ReachBy};
use job::script;
use model::artefact::{Plan, PlannedCase, PlannedFile, PlannedJob};
use recipes::catalogue::Catalogue;
use serde_json::json;
use std::cell::RefCell;
use store::Home;

/// The word that stands for the node of a pod: its number, with a letter for each digit, since names that differ by digits
/// are written as ranges. `pod.sh` knows it.
pub(crate) fn slot(at: usize) -> String {
    let letter =
        |digit: char| digit.to_digit(10).and_then(|digit| char::from_digit(digit + 10, 36)).unwrap_or(digit);
    let number: String = format!("{at:05}").chars().map(letter).collect();
    format!("{SLOT}{number}")
}

/// Every such word begins with this, and nothing else may.
pub(super) const SLOT: &str = "harness-slot-";

/// Five digits are those of a slot, and of a number in `pod.sh`.
const MOST_PODS: u32 = 10_000;

/// A case planned on slots.
pub(crate) struct SlotPlan {
    /// Of this one case.
    pub plan: Plan,
    pub catalogue: Catalogue,
    pub inventory: Inventory,
    pub reach: KubernetesReach,
    /// The nodes that Kubernetes may choose from.
    pub candidates: Vec<String>,
    pub options: RunOptions,
    pub record: ManifestRecord,
}

impl SlotPlan {
    /// All that is wrong is given in one go.
    pub(crate) fn new(home: &Home, request: &ManifestRequest) -> Result<SlotPlan, Vec<String>> {
        let catalogue = recipes_of_project(home, &request.options)?;
        let found: RefCell<Option<(KubernetesReach, Vec<String>)>> = RefCell::new(None);
        let prepare = |inventory: &mut Inventory| {
            *found.borrow_mut() = Some(take_slots(inventory, request)?);
            Ok(())
        };
        if let Some(claim) = &request.claim {
            check_claim(claim).map_err(|why| vec![format!("--claim: {why}")])?;
        }
        let name = match &request.name {
            Some(name) => name.clone(),
            None => {
                let suite = request.options.suites.first().map_or("", String::as_str);
                let suite = suite.rsplit('/').next().unwrap_or_default().trim_end_matches(".toml");
                let case = request.options.filters.cases.first().map_or("", String::as_str);
                name_from(&format!("{suite}-{case}"), LONGEST_NAME)
            }
        };
        check_name(&name).map_err(|why| vec![format!("--name: {why}")])?;
        // The nodes are chosen already.
        let on_slots = RunOptions { nodes: None, exclude_nodes: None, ..request.options.clone() };
        let (plan, inventory) = make_plan_on(home, &on_slots, &catalogue, Some(&name), &prepare)?;
        let Some((reach, candidates)) = found.into_inner() else {
            return Err(vec!["the inventory was not read".to_owned()]);
        };
        let [case] = plan.cases.as_slice() else {
            let why = format!("no case to render: {}", request.options.nothing_selected(&plan));
            return Err(vec![why]);
        };
        check(case, inventory.nodes.len()).map_err(|why| vec![why])?;
        let record = ManifestRecord {
            harness: env!("CARGO_PKG_VERSION").to_owned(),
            name,
            suite: case.suite.clone(),
            case: case.name.clone(),
            pods: u32::try_from(inventory.nodes.len()).unwrap_or(MOST_PODS),
            digest: digest(case),
        };
        planning::check_holds_no_secret(&plan, &base::redact::Secrets::default()).map_err(|why| vec![why])?;
        Ok(SlotPlan {
            plan,
            catalogue,
            inventory,
            reach,
            candidates,
            options: request.options.clone(),
            record,
        })
    }

    /// The case that is rendered.
    pub(crate) fn case(&self) -> &PlannedCase {
        // `new` has seen that there is one.
        &self.plan.cases[0]
    }

    /// What the pods leave lies here, as they see it.
    pub(crate) fn folder(&self) -> String {
        format!("{}/{}", self.inventory.paths.shared.trim_end_matches('/'), self.record.name)
    }
}

/// Whether there is a node for each pod.
pub(crate) fn check_pods(pods: u32, nodes: usize, inventory: &str) -> Result<(), String> {
    match pods {
        0 => Err("0 pods, expected 1 or more".to_owned()),
        _ if pods > MOST_PODS => Err(format!("{pods} pods, the limit is {MOST_PODS}")),
        _ if pods as usize > nodes => Err(format!(
            "{}, and {} for them in {inventory}",
            count(pods, "pod"),
            count(nodes as u64, "node")
        )),
        _ => Ok(()),
    }
}

/// Puts slots in the place of the inventory's nodes. Gives how pods are made, and the nodes that they may be on.
fn take_slots(
    inventory: &mut Inventory,
    request: &ManifestRequest,
) -> Result<(KubernetesReach, Vec<String>), String> {
    let ReachBy::Kubernetes(reach) = &inventory.reach else {
        return Err(format!(
            "{}: its jobs are launched by {}; a manifest needs `[reach]` with `via = \"kubernetes\"`, such as `inventory/eks.toml`",
            inventory.file,
            inventory.reach.launcher().name()
        ));
    };
    let reach = match &request.claim {
        Some(claim) => KubernetesReach { shared: claim.clone(), ..reach.clone() },
        None => reach.clone(),
    };
    let options = &request.options;
    let candidates = inventory.select(options.nodes.as_deref(), options.exclude_nodes.as_deref())?;
    let pods = request.pods.unwrap_or_else(|| u32::try_from(candidates.len()).unwrap_or(u32::MAX));
    check_pods(pods, candidates.len(), &inventory.file)?;
    inventory.nodes = (0..pods as usize).map(slot).collect();
    // They speak of nodes by their names.
    inventory.groups.clear();
    (inventory.topology, inventory.network) = (None, None);
    Ok((reach, candidates))
}

/// Why pods of a manifest cannot run a case.
fn check(case: &PlannedCase, pods: usize) -> Result<(), String> {
    let name = &case.name;
    if let Some(why) = &case.skip {
        return Err(format!("case `{name}` is not run: {why}"));
    }
    // Such a job's folder would have the name of a node, which is unknown when the file is rendered.
    if name.contains(SLOT) || jobs(case).any(|job| job.name.contains(SLOT)) {
        return Err(format!(
            "case `{name}` names its jobs by their nodes, and Kubernetes chooses those later: give it \
             `placement = \"all\"`, or start it by `harness run`"
        ));
    }
    if let Some(job) = jobs(case).find(|job| job.nodes.len() != pods) {
        let on = job.nodes.len();
        return Err(format!(
            "case `{name}` has a job on {on} of {pods} nodes; a manifest has one pod for each node of each job: \
             give `--nodes {on}`, or a case with `placement = \"all\"`"
        ));
    }
    if let Some(secret) = jobs(case).flat_map(|job| &job.secrets).next() {
        return Err(format!(
            "case `{name}` is given a secret, `env:{}`, and a manifest holds none; start it by `harness run`",
            secret.from
        ));
    }
    if jobs(case).next().is_none() {
        return Err(format!("case `{name}` has no job"));
    }
    Ok(())
}

/// The jobs that pods run one after the other. Second attempts are not made.
pub(crate) fn jobs(case: &PlannedCase) -> impl Iterator<Item = &PlannedJob> {
    let mut jobs: Vec<&PlannedJob> = case.jobs.iter().filter(|job| job.again_of.is_none()).collect();
    jobs.sort_by_key(|job| job.round);
    jobs.into_iter()
}

/// The text of a job's file, and whether slots may stand in it.
pub(super) fn text(file: &PlannedFile) -> Result<(&str, bool), String> {
    match (&file.text, script::shared_text(&file.name)) {
        (Some(text), _) => Ok((text, true)),
        (None, Some(text)) => Ok((text, false)),
        (None, None) => Err(format!("no such script in this harness: `{}`", file.name)),
    }
}

/// Of what the pods run and leave. How it is judged may change meanwhile.
fn digest(case: &PlannedCase) -> String {
    let jobs: Vec<_> = jobs(case)
        .map(|job| {
            json!([
                job.name,
                job.nodes,
                job.round,
                job.ranks,
                job.folder,
                job.files,
                job.expected,
                job.limit_s,
                job.profile
            ])
        })
        .collect();
    sha256(json!([case.suite, case.name, jobs]).to_string().as_bytes())
}
