//! Which jobs of a plan share an allocation of Slurm: those that follow each other on the same nodes. When an
//! allocation is asked for and who is next in it is the run's business.

use base::digest::sha256;
use base::nodeset;
use config::inventory::Inventory;
use job::script::{self, Directives, Script, Start, Step, Turn, Turns, files};
use model::artefact::{Plan, PlannedAllocation, PlannedFile, PlannedJob, PlannedTurn};
use std::collections::BTreeMap;

/// No case has such a name, so their folders lie apart.
const FOLDER: &str = "+allocations";
/// Where no turn comes for so long, an allocation ends by itself: longer than the numbers of a case take to be made,
/// short enough for nodes that are no longer used.
const IDLE_S: u64 = 600;
/// Slurm looks every half minute, and the harness ends what is over its limit itself: the limit that is kept for a job
/// stands behind the harness's own, as it does for a job that has an allocation to itself.
const BEHIND_S: u64 = 180;
/// Between the end of one job and the beginning of the next: a look at the first, and its numbers.
const BETWEEN_S: u64 = 60;

/// Re-decides it for all jobs that are launched at all, where the inventory wants it.
pub fn share(mut plan: Plan, inventory: &Inventory) -> Plan {
    let slurm = inventory.reach.slurm().filter(|_| plan.launcher == inventory.reach.launcher());
    let longest_s = slurm.and_then(|slurm| slurm.share);
    plan.allocations = longest_s.map(|longest_s| allocations(&plan, longest_s)).unwrap_or_default();
    plan
}

/// The name under which Slurm knows an allocation.
pub fn name_of_allocation(run_id: &str, allocation: &str) -> String {
    format!("{run_id}.{FOLDER}.{allocation}")
}

struct Group<'a> {
    nodes: Vec<&'a str>,
    jobs: Vec<(&'a str, &'a PlannedJob)>,
}

impl Group<'_> {
    fn seconds(&self) -> u64 {
        IDLE_S + self.jobs.iter().map(|(_, job)| kept_s(job) + BETWEEN_S).sum::<u64>()
    }
}

fn kept_s(job: &PlannedJob) -> u64 {
    job.limit_s + BEHIND_S
}

fn allocations(plan: &Plan, longest_s: u64) -> Vec<PlannedAllocation> {
    let mut groups: Vec<Group> = Vec::new();
    // The group that used a node last: a job joins it only where nothing else comes between on any of its nodes.
    let mut last: BTreeMap<&str, usize> = BTreeMap::new();
    // A second attempt is mostly none at all.
    let takes_part = |job: &&PlannedJob| {
        job.again_of.is_none() && !plan.left_out.iter().any(|left| job.nodes.contains(&left.node))
    };
    for case in plan.cases.iter().filter(|case| case.skip.is_none()) {
        for job in case.jobs.iter().filter(takes_part) {
            let mut nodes: Vec<&str> = job.nodes.iter().map(String::as_str).collect();
            nodes.sort_unstable();
            let before = nodes.first().and_then(|node| last.get(node).copied());
            let joins = before.filter(|at| {
                let group = &groups[*at];
                group.nodes == nodes
                    && nodes.iter().all(|node| last.get(node) == Some(at))
                    && group.seconds() + kept_s(job) + BETWEEN_S <= longest_s
            });
            match joins {
                Some(at) => groups[at].jobs.push((&case.name, job)),
                None => {
                    last.extend(nodes.iter().map(|node| (*node, groups.len())));
                    groups.push(Group { nodes, jobs: vec![(&case.name, job)] });
                }
            }
        }
    }
    let shared = groups.iter().filter(|group| group.jobs.len() > 1).zip(1..);
    shared.filter_map(|(group, number)| allocation(plan, group, &format!("a{number}"))).collect()
}

/// Nothing where a job's script is none of Slurm's.
fn allocation(plan: &Plan, group: &Group, name: &str) -> Option<PlannedAllocation> {
    let mut directives: Vec<Directives> =
        group.jobs.iter().map(|(_, job)| directives(job)).collect::<Option<_>>()?;
    let tasks_per_node = directives.iter().map(|of_job| of_job.tasks_per_node).max()?;
    let folder = format!("{}/{FOLDER}/{name}", plan.folder);
    let turn = |(case, job): &(&str, &PlannedJob)| PlannedTurn {
        case: (*case).to_owned(),
        job: job.name.clone(),
        limit_s: kept_s(job),
    };
    let jobs: Vec<PlannedTurn> = group.jobs.iter().map(turn).collect();
    let limit_s = group.seconds().div_ceil(60) * 60;
    let start = Start::Slurm(Directives {
        job_name: name_of_allocation(&plan.run_id, name),
        folder: folder.clone(),
        tasks_per_node,
        minutes: limit_s / 60,
        // Its jobs start steps, and write down what they inherit.
        srun: Vec::new(),
        records_environment: false,
        ..directives.swap_remove(0)
    });
    let mut nodes: Vec<String> = group.nodes.iter().map(|node| (*node).to_owned()).collect();
    nodeset::sort(&mut nodes);
    let of_job = |((_, job), turn): (&(&str, &PlannedJob), &PlannedTurn)| Turn {
        folder: job.folder.clone(),
        limit_s: turn.limit_s,
    };
    let turns = Turns { idle_s: IDLE_S, jobs: group.jobs.iter().zip(&jobs).map(of_job).collect() };
    let text = script::render(&Script { start, nodes: nodes.clone(), steps: vec![Step::Turns(turns)] });
    let helper = sha256(script::ALLOCATION_SH.as_bytes());
    let put = vec![
        PlannedFile { name: files::JOB.to_owned(), text: Some(text), sha256: None },
        PlannedFile { name: files::ALLOCATION.to_owned(), text: None, sha256: Some(helper) },
    ];
    let batch_job = PlannedJob {
        name: name.to_owned(),
        nodes,
        round: 1,
        ranks: 0,
        launch: ["sbatch".to_owned(), "--parsable".to_owned(), format!("{folder}/{}", files::JOB)].to_vec(),
        folder,
        files: put,
        expected: Vec::new(),
        estimate_s: group.jobs.iter().map(|(_, job)| job.estimate_s).sum(),
        limit_s,
        secrets: Vec::new(),
        profile: None,
        control_run: None,
        again_of: None,
        evidence: None,
    };
    Some(PlannedAllocation { batch_job, jobs })
}

fn directives(job: &PlannedJob) -> Option<Directives> {
    let text = job.files.iter().find(|file| file.name == files::JOB)?.text.as_deref()?;
    match script::read(text).ok()?.start {
        Start::Slurm(directives) => Some(directives),
        Start::Bash | Start::Ssh | Start::Pods => None,
    }
}
