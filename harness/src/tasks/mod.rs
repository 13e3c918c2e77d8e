//! Recipes in tasks of a Slurm array, or in pods: each node's reports are read by a task of this program where they lie, and the
//! results are joined here. The outcome is the same as that of one machine reading all reports; reports that no task
//! could read are named.

mod gather;
mod job_work;
pub mod local;
#[cfg(test)]
mod message_tests;
mod order;
mod part;
mod program;
mod queue;
mod report_work;
pub mod task;

use base::digest;
use cluster::interrupt;
use cluster::launch::QUERY_LIMIT;
use cluster::launch::slurm_array::Arrays;
use cluster::reach::pods::{PodTasks, current_cluster};
use cluster::reach::process::ProcessReach;
use cluster::reach::slurm_calls::SlurmCalls;
use cluster::reach::{Command, Host, Reach};
use config::inventory::{Inventory, KubernetesReach, SlurmReach};
use gather::{Gathered, gather};
use job_work::JobWork;
use model::analysis_names;
use model::artefact::{self, Analyses, AnalysisPlace, PlannedRecipe};
use order::{FORMAT, Program, TaskOrder, Work, folder_of};
use plan::planned_recipes;
use queue::Queue;
use recipes::catalogue::Catalogue;
use recipes::recipe::of_reports::{Outcome, Part, Progress, Survey, join};
use recipes::recipe::{ExtractStore, JobInput};
use report_work::ReportWork;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The words behind `--analyze-on`.
pub(crate) const SLURM: &str = "slurm";
pub(crate) const KUBERNETES: &str = "kubernetes";

/// The name of a part's file, before the number of its task.
const PART: &str = "part-";
const ORDER: &str = "order.json";
const SCRIPT: &str = "task.sh";
/// This program, where nodes have no copy.
const PROGRAM: &str = "harness";

/// More tasks than this have no place in the arrays of every cluster.
const MOST_TASKS: usize = 1000;

/// The cluster whose nodes read.
pub(crate) struct Cluster {
    starter: Starter,
    shared: String,
    program: (PathBuf, Program),
    /// Where nodes find it; None where it is put into the folder of each analysis.
    on_nodes: Option<String>,
    /// How many reports of unknown nodes one task reads.
    together: usize,
    /// How many reports are open at once in a task, if given.
    jobs: Option<usize>,
}

/// Who starts the tasks.
enum Starter {
    Slurm {
        reach: Box<SlurmReach>,
        /// The folder of Slurm's commands, where the inventory says it.
        tools: Option<String>,
    },
    Pods {
        reach: Box<KubernetesReach>,
        inventory: Box<Inventory>,
    },
}

/// The results of all tasks together.
pub(crate) struct Joined {
    /// One for each recipe.
    pub outcomes: Vec<Outcome>,
    /// Reports that no task could read.
    pub lost: usize,
}

/// Why there is nothing.
pub(crate) enum Failed {
    /// The exit code that goes with the signal.
    Interrupted(i32),
    /// Something that is needed failed, such as Slurm, and how.
    Machinery(String),
}

impl From<String> for Failed {
    fn from(why: String) -> Failed {
        Failed::Machinery(why)
    }
}

impl Cluster {
    /// An error where tasks of this `place` cannot be started on its nodes from this machine.
    pub(crate) fn from_inventory(
        inventory: &Inventory,
        place: &str,
        jobs: Option<usize>,
    ) -> Result<Cluster, String> {
        let name = format!("`{}`", inventory.file);
        if inventory.is_simulated() {
            return Err(format!(
                "--analyze-on {place}: {name} is a simulated cluster, whose nodes run no programs; name a real one with \
                 `--inventory`"
            ));
        }
        let starter = match place {
            KUBERNETES => Cluster::pods(inventory, &name)?,
            _ => Cluster::slurm(inventory, &name)?,
        };
        let program = program::own()?;
        let on_nodes = match (&starter, &inventory.paths.harness) {
            (Starter::Pods { .. }, None) => None,
            _ => Some(program::on_nodes(&inventory.paths, &program, &name)?),
        };
        Ok(Cluster {
            starter,
            shared: inventory.paths.shared.clone(),
            program,
            on_nodes,
            together: inventory.instance.gpus.max(1) as usize,
            jobs,
        })
    }

    fn slurm(inventory: &Inventory, name: &str) -> Result<Starter, String> {
        let Some(slurm) = inventory.reach.slurm() else {
            return Err(format!("--analyze-on {SLURM}: the nodes of {name} are not reached through Slurm"));
        };
        if slurm.login.is_some() {
            return Err(format!(
                "{name}: this version runs Slurm's commands on this machine only; run it on the login node and remove \
                 `login`"
            ));
        }
        Ok(Starter::Slurm { reach: Box::new(slurm.clone()), tools: inventory.paths.slurm.clone() })
    }

    fn pods(inventory: &Inventory, name: &str) -> Result<Starter, String> {
        let Some(reach) = inventory.reach.kubernetes() else {
            return Err(format!(
                "--analyze-on {KUBERNETES}: the nodes of {name} are not reached by pods; its `[reach]` needs \
                 `via = \"kubernetes\"`"
            ));
        };
        let shared = &inventory.paths.shared;
        if !Path::new(shared).is_dir() {
            return Err(format!(
                "--analyze-on {KUBERNETES}: this machine does not see `paths.shared` of {name}, {shared}, over which tasks \
                 hand over what they read; mount the claim `{}` there, or run without --analyze-on",
                reach.shared
            ));
        }
        Ok(Starter::Pods { reach: Box::new(reach.clone()), inventory: Box::new(inventory.clone()) })
    }

    /// What is written down of a run before tasks read its reports.
    pub(crate) async fn analyses(&self) -> Analyses {
        let (slurm, kubernetes) = match &self.starter {
            Starter::Slurm { tools, .. } => (tools.clone(), None),
            Starter::Pods { reach, .. } => {
                let (context, namespace) = (reach.context.clone(), reach.namespace.clone());
                // Where it is unknown, no pod can be made either.
                let server = current_cluster(reach, &namespace).await.ok().map(|now| now.server);
                (None, Some(AnalysisPlace { context, namespace, server }))
            }
        };
        Analyses { format: artefact::Format, shared: self.shared.clone(), slurm, kubernetes }
    }

    fn tools(&self) -> Option<&str> {
        match &self.starter {
            Starter::Slurm { tools, .. } => tools.as_deref(),
            Starter::Pods { .. } => None,
        }
    }
}

/// The outcomes of `survey`, with reports read by tasks. `notify` prints messages for a person meanwhile.
pub(crate) fn survey(
    cluster: &Cluster,
    survey: &Survey,
    catalogue: &Catalogue,
    notify: &mut dyn FnMut(&str),
) -> Result<Joined, Failed> {
    interrupt::watch_terminal();
    let order = TaskOrder {
        format: FORMAT,
        program: cluster.program.1.clone(),
        own: planned_recipes(catalogue, survey.asked.iter().map(|(recipe, _)| &recipe.name)),
        folder: folder_of(survey.inputs.iter().map(|input| input.path.as_path()))?,
        work: Work::Reports(ReportWork::from_survey(survey)),
        shares: shares(&report_work::nodes(survey), cluster.together),
        jobs: cluster.jobs,
    };
    let done = Progress { reports: 0, of: survey.inputs.len(), rows: 0 };
    let mut reader = SurveyParts { survey, shares: &order.shares, done };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let gathered = runtime.block_on(read(cluster, None, &order, &mut reader, notify))?;
    let mut lost = BTreeMap::new();
    for (task, why) in &gathered.lost {
        lost.extend(order.shares[task - 1].iter().map(|report| (*report, format!("not analysed: {why}"))));
    }
    Ok(Joined { outcomes: join(survey, gathered.parts, &lost), lost: lost.len() })
}

/// The extracts that the recipes of a case take of the reports of its jobs, read by tasks. For a report that could not
/// be read, the reason.
pub(crate) async fn extract(
    cluster: &Cluster,
    run: &str,
    jobs: Vec<JobInput>,
    recipes: &[String],
    own: &[PlannedRecipe],
    notify: &mut dyn FnMut(&str),
) -> ExtractStore {
    let mut kept = ExtractStore::default();
    let work = JobWork::new(recipes, jobs);
    let nodes: Vec<Option<String>> = work.reports().map(|report| report.node.clone()).collect();
    if nodes.is_empty() {
        return kept;
    }
    let shares = shares(&nodes, cluster.together);
    let all: Vec<usize> = (0..nodes.len()).collect();
    let folder = match folder_of(work.reports().map(|report| report.path.as_path())) {
        Ok(folder) => folder,
        Err(why) => {
            work.lose(&mut kept, &all, &why);
            return kept;
        }
    };
    let order = TaskOrder {
        format: FORMAT,
        program: cluster.program.1.clone(),
        own: own.to_vec(),
        folder,
        work: Work::Jobs(work),
        shares,
        jobs: None,
    };
    let gathered = read(cluster, Some(run), &order, &mut Extracts, notify).await;
    let TaskOrder { work: Work::Jobs(work), shares, .. } = &order else { return kept };
    match gathered {
        Ok(gathered) => {
            for bytes in &gathered.parts {
                // It was read once already.
                let _ = kept.add(bytes);
            }
            for (task, why) in &gathered.lost {
                work.lose(&mut kept, &shares[task - 1], why);
            }
        }
        Err(Failed::Interrupted(_)) => work.lose(&mut kept, &all, "the analysis was interrupted"),
        Err(Failed::Machinery(why)) => work.lose(&mut kept, &all, &why),
    }
    kept
}

/// Parts of a survey.
struct SurveyParts<'a> {
    survey: &'a Survey<'a>,
    shares: &'a [Vec<usize>],
    done: Progress,
}

impl gather::PartReader for SurveyParts<'_> {
    type Part = Part;

    fn part(&self, task: usize, bytes: &[u8]) -> Result<Part, String> {
        report_work::parse_part(self.survey, &self.shares[task - 1], bytes)
    }

    fn done(&mut self, part: &Part) {
        self.done.reports += part.reports().count();
        self.done.rows += part.rows();
        (self.survey.progress)(&self.done);
    }
}

/// What was kept for a case.
struct Extracts;

impl gather::PartReader for Extracts {
    type Part = Vec<u8>;

    fn part(&self, _: usize, bytes: &[u8]) -> Result<Vec<u8>, String> {
        ExtractStore::default().add(bytes)?;
        Ok(bytes.to_vec())
    }

    fn done(&mut self, _: &Vec<u8>) {}
}

/// Runs all tasks in a folder of their own, which is removed afterwards.
async fn read<R: gather::PartReader>(
    cluster: &Cluster,
    run: Option<&str>,
    order: &TaskOrder,
    reader: &mut R,
    notify: &mut dyn FnMut(&str),
) -> Result<Gathered<R::Part>, Failed> {
    if let Starter::Pods { reach, .. } = &cluster.starter
        && reach.cluster.is_some()
    {
        current_cluster(reach, &reach.namespace).await?;
    }
    let (reach, host) = (SlurmCalls::new(ProcessReach, cluster.tools()), Host::Here);
    let folder = folder(&reach, &host, &cluster.shared, run).await?;
    let place = AnalysisFolder { reach: &reach, host: &host, folder: &folder };
    let gathered = read_at(cluster, run, order, &place, reader, notify).await;
    // The logs of lost tasks are the only evidence.
    match &gathered {
        Ok(gathered) if !gathered.lost.is_empty() => {
            notify(&format!("the logs of the tasks are kept in {folder}"))
        }
        _ => {
            let clear = Command::new(["rm", "-r", "-f", "--", &folder], QUERY_LIMIT);
            let _ = reach.exec(&host, &clear).await;
        }
    }
    gathered
}

/// The folder of one analysis, which tasks see too.
struct AnalysisFolder<'a> {
    reach: &'a dyn Reach,
    host: &'a Host,
    folder: &'a str,
}

impl AnalysisFolder<'_> {
    fn path(&self, name: &str) -> String {
        format!("{}/{name}", self.folder)
    }

    async fn put(&self, name: &str, bytes: &[u8]) -> Result<(), String> {
        self.reach.put(self.host, &self.path(name), bytes).await.map_err(|error| error.to_string())
    }
}

async fn read_at<R: gather::PartReader>(
    cluster: &Cluster,
    run: Option<&str>,
    order: &TaskOrder,
    place: &AnalysisFolder<'_>,
    reader: &mut R,
    notify: &mut dyn FnMut(&str),
) -> Result<Gathered<R::Part>, Failed> {
    let bytes = order.to_bytes()?;
    let on_nodes = match &cluster.on_nodes {
        Some(there) => there.clone(),
        None => {
            let there = place.path(PROGRAM);
            program::put(&cluster.program, Path::new(&there))?;
            there
        }
    };
    place.put(ORDER, &bytes).await?;
    let in_pods = matches!(cluster.starter, Starter::Pods { .. });
    place.put(SCRIPT, script(&on_nodes, place.folder, in_pods)?.as_bytes()).await?;
    let script = place.path(SCRIPT);
    let queue = match &cluster.starter {
        Starter::Slurm { reach, .. } => Queue::Slurm(Arrays {
            reach: place.reach,
            host: place.host,
            options: options(reach, cluster.jobs, place.folder),
            script,
        }),
        Starter::Pods { reach, inventory } => {
            let person = std::env::var("USER").unwrap_or_default();
            let name = place.folder.rsplit('/').next().unwrap_or_default();
            let tasks = PodTasks::new(inventory, reach, run.unwrap_or(name), &person, script);
            Queue::Pods(Box::new(if run.is_none() { tasks.without_run() } else { tasks }))
        }
    };
    let gathered = gather(&queue, place, &digest::sha256(&bytes), order.shares.len(), reader, notify).await;
    if let Err(why) = queue.end().await {
        let next = if run.is_some() { "clean --all" } else { "clean --kubernetes" };
        notify(&format!(
            "pods of the analysis may be left: {why}; `harness {next}` looks for them; Kubernetes ends one only `longest_s` \
             after its start"
        ));
    }
    gathered
}

/// A new folder that only the user can read.
async fn folder(reach: &dyn Reach, host: &Host, shared: &str, run: Option<&str>) -> Result<String, String> {
    let failed =
        |why: String| format!("cannot create a folder for the analysis in `paths.shared`, {shared}: {why}");
    let pattern = format!("{shared}/{}", analysis_names::pattern(run));
    let make = Command::new(["mktemp", "-d", "--", &pattern], QUERY_LIMIT);
    let answer = reach.exec(host, &make).await.map_err(|error| failed(error.to_string()))?;
    match answer.succeeded() {
        true => Ok(answer.stdout_text().trim_end_matches('\n').to_owned()),
        false => Err(failed(answer.complaint())),
    }
}

/// Slurm shows a task its number in a variable, and keeps what it prints; a pod has it as an argument.
fn script(program: &str, folder: &str, in_pods: bool) -> Result<String, String> {
    let quoted = |words: &[&str]| {
        shlex::try_join(words.iter().copied()).map_err(|error| format!("{}: {error}", words.join(" ")))
    };
    let words = quoted(&[program, task::VERB, &format!("{folder}/{ORDER}")])?;
    let (log, number) = match in_pods {
        true => (format!("exec > {}\"$1\".log 2>&1\n", quoted(&[&format!("{folder}/task-")])?), "$1"),
        false => (String::new(), "$SLURM_ARRAY_TASK_ID"),
    };
    Ok(format!(
        "#!/bin/bash\n# Reads the reports of one task and leaves what was taken of them; the harness joins it.\n\
         {log}exec {words} \"{number}\"\n"
    ))
}

fn options(slurm: &SlurmReach, jobs: Option<usize>, folder: &str) -> Vec<String> {
    // A percent sign begins a word that Slurm fills in.
    let mut options = vec![format!("--output={}/task-%a.log", folder.replace('%', "%%"))];
    options.extend(slurm.named().map(|(name, value)| format!("--{name}={value}")));
    options.extend(slurm.sbatch.iter().cloned());
    options.extend(jobs.map(|jobs| format!("--cpus-per-task={jobs}")));
    options
}

/// The reports of one node together, in the order in which they are numbered; so many at a time where it is not known of
/// which node they are. Which reports one task reads changes nothing of what comes of them.
fn shares(nodes: &[Option<String>], together: usize) -> Vec<Vec<usize>> {
    let (mut of_nodes, mut others): (BTreeMap<&str, Vec<usize>>, Vec<usize>) = Default::default();
    for (number, node) in nodes.iter().enumerate() {
        match node {
            Some(node) => of_nodes.entry(node).or_default().push(number),
            None => others.push(number),
        }
    }
    let mut shares: Vec<Vec<usize>> = of_nodes.into_values().collect();
    shares.extend(others.chunks(together).map(<[usize]>::to_vec));
    let of_one = shares.len().div_ceil(MOST_TASKS).max(1);
    let joined = shares.chunks(of_one).map(|shares| {
        let mut share = shares.concat();
        share.sort_unstable();
        share
    });
    joined.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_node_has_a_task_and_reports_of_unknown_nodes_are_read_some_at_a_time() {
        let nodes = ["b", "a", "", "b", "", "", "a"]
            .map(|node| Some(node.to_owned()).filter(|node| !node.is_empty()));
        assert_eq!(shares(&nodes, 2), [vec![1, 6], vec![0, 3], vec![2, 4], vec![5]]);
        assert!(shares(&[], 8).is_empty());
        let many: Vec<Option<String>> = (0..2500).map(|node| Some(format!("n{node:04}"))).collect();
        let shares = shares(&many, 8);
        assert_eq!((shares.len(), shares.concat().len()), (834, 2500));
    }

    #[test]
    fn options_of_the_inventory_reach_sbatch_and_the_shell_unchanged() {
        let slurm = SlurmReach {
            partition: Some("gpu queue".to_owned()),
            constraint: Some("efa&h100".to_owned()),
            qos: Some("low".to_owned()),
            sbatch: vec!["--comment=team a".to_owned()],
            ..SlurmReach::default()
        };
        assert_eq!(
            options(&slurm, Some(4), "/fsx/100%"),
            [
                "--output=/fsx/100%%/task-%a.log",
                "--partition=gpu queue",
                "--constraint=efa&h100",
                "--qos=low",
                "--comment=team a",
                "--cpus-per-task=4"
            ]
        );
        let words = "exec '/fsx/a b/harness' analyze-part '/fsx/$(x)/order.json'";
        let of = |in_pods| script("/fsx/a b/harness", "/fsx/$(x)", in_pods).expect("quoted");
        assert!(of(false).ends_with(&format!("\n{words} \"$SLURM_ARRAY_TASK_ID\"\n")), "{}", of(false));
        let log = "exec > '/fsx/$(x)/task-'\"$1\".log 2>&1";
        assert!(of(true).ends_with(&format!("\n{log}\n{words} \"$1\"\n")), "{}", of(true));
    }
}
