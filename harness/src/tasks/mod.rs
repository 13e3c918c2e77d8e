//! Recipes over reports in tasks of a Slurm array: each node's reports are read by a task of this very program where they
//! lie, and what the tasks took of them is joined here. What comes of it is what one machine makes of all reports; what no
//! task could read is named.

mod gather;
mod order;
mod part;
mod program;
pub mod task;

use crate::inventory::{Inventory, ReachBy, SlurmReach};
use crate::launch::QUERY_LIMIT;
use crate::launch::slurm_array::Arrays;
use crate::reach::process::ProcessReach;
use crate::reach::{Command, Host, Reach};
use crate::recipe::own;
use crate::{digest, interrupt};
use gather::gather;
use order::{FORMAT, Order, Program, Work};
use recipes::recipe::of_reports::{Outcome, Survey, join};
use recipes::trace::Trace;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The word behind `--analyze-on`.
pub const SLURM: &str = "slurm";

/// The name of a part's file, before the number of its task.
const PART: &str = "part-";
const ORDER: &str = "order.json";
const SCRIPT: &str = "task.sh";

/// More tasks than this have no place in the arrays of every cluster.
const MOST_TASKS: usize = 1000;

/// The cluster whose nodes read.
pub struct Cluster {
    slurm: SlurmReach,
    shared: String,
    program: (PathBuf, Program),
    /// Where nodes find it.
    on_nodes: String,
    /// So many reports that do not tell their node are read by one task.
    together: usize,
    /// So many reports are open at once in a task, where a person says it.
    jobs: Option<usize>,
}

pub struct Joined {
    pub outcomes: Vec<Outcome>,
    /// Reports that no task could read.
    pub lost: usize,
}

/// Why there is nothing.
pub enum Failed {
    /// The exit code that goes with the signal.
    Interrupted(i32),
    Machinery(String),
}

impl From<String> for Failed {
    fn from(why: String) -> Failed {
        Failed::Machinery(why)
    }
}

impl Cluster {
    pub fn of(inventory: &Inventory, jobs: Option<usize>) -> Result<Cluster, String> {
        let name = format!("`{}`", inventory.file);
        if inventory.is_simulated() {
            return Err(format!(
                "--analyze-on {SLURM}: {name} is a pretend cluster, whose nodes run no programs; name a real one with \
                 `--inventory`"
            ));
        }
        let ReachBy::Slurm(slurm) = &inventory.reach else {
            return Err(format!("--analyze-on {SLURM}: the nodes of {name} are not reached through Slurm"));
        };
        if slurm.login.is_some() {
            return Err(format!(
                "{name}: this version runs Slurm's commands on this machine only; run it on the login node and leave \
                 `login` out"
            ));
        }
        let program = program::own()?;
        let on_nodes = program::on_nodes(&inventory.paths, &program, &name)?;
        Ok(Cluster {
            slurm: slurm.clone(),
            shared: inventory.paths.shared.clone(),
            program,
            on_nodes,
            together: inventory.instance.gpus.max(1) as usize,
            jobs,
        })
    }
}

/// What `survey` of recipes gives, read by tasks. `tell` is told what a person should know meanwhile.
pub fn survey(cluster: &Cluster, survey: &Survey, tell: &mut dyn FnMut(&str)) -> Result<Joined, Failed> {
    interrupt::watch();
    let order = Order {
        format: FORMAT,
        program: cluster.program.1.clone(),
        work: Work::of(survey, own::planned(survey.asked.iter().map(|(recipe, _)| recipe.name)))?,
        shares: shares(survey, cluster.together),
        jobs: cluster.jobs,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let (reach, host) = (ProcessReach, Host::Here);
    runtime.block_on(async {
        let folder = folder(&reach, &host, &cluster.shared).await?;
        let read =
            read(cluster, survey, &order, &Place { reach: &reach, host: &host, folder: &folder }, tell).await;
        // What tasks that were lost said is all that tells why.
        match &read {
            Ok(joined) if joined.lost > 0 => tell(&format!("what tasks said is kept in: {folder}")),
            _ => {
                let clear = Command::new(["rm", "-r", "-f", "--", &folder], QUERY_LIMIT);
                let _ = reach.exec(&host, &clear).await;
            }
        }
        read
    })
}

/// The folder of one analysis, which tasks see too.
struct Place<'a> {
    reach: &'a dyn Reach,
    host: &'a Host,
    folder: &'a str,
}

impl Place<'_> {
    fn path(&self, name: &str) -> String {
        format!("{}/{name}", self.folder)
    }

    async fn put(&self, name: &str, bytes: &[u8]) -> Result<(), String> {
        self.reach.put(self.host, &self.path(name), bytes).await.map_err(|error| error.to_string())
    }
}

async fn read(
    cluster: &Cluster,
    survey: &Survey<'_>,
    order: &Order,
    place: &Place<'_>,
    tell: &mut dyn FnMut(&str),
) -> Result<Joined, Failed> {
    let bytes = order.to_bytes()?;
    place.put(ORDER, &bytes).await?;
    place.put(SCRIPT, script(&cluster.on_nodes, &place.path(ORDER))?.as_bytes()).await?;
    let arrays = Arrays {
        reach: place.reach,
        host: place.host,
        options: options(&cluster.slurm, cluster.jobs, place.folder),
        script: place.path(SCRIPT),
    };
    let gathered = gather(&arrays, place, &digest::sha256(&bytes), order, survey, tell).await?;
    let mut lost = BTreeMap::new();
    for (task, why) in &gathered.lost {
        for report in &order.shares[task - 1] {
            lost.insert(*report, format!("not analysed: {why}"));
        }
    }
    Ok(Joined { outcomes: join(survey, gathered.parts, &lost), lost: lost.len() })
}

/// Private to the user, and nobody else's.
async fn folder(reach: &dyn Reach, host: &Host, shared: &str) -> Result<String, String> {
    let failed = |why: String| format!("no folder for the analysis in `paths.shared`: {shared}: {why}");
    let pattern = format!("{shared}/analysis-XXXXXXXX");
    let make = Command::new(["mktemp", "-d", "--", &pattern], QUERY_LIMIT);
    let answer = reach.exec(host, &make).await.map_err(|error| failed(error.to_string()))?;
    match answer.succeeded() {
        true => Ok(answer.stdout_text().trim_end_matches('\n').to_owned()),
        false => Err(failed(answer.complaint())),
    }
}

fn script(program: &str, order: &str) -> Result<String, String> {
    let words =
        shlex::try_join([program, task::VERB, order]).map_err(|error| format!("{program}: {error}"))?;
    Ok(format!(
        "#!/bin/bash\n# Reads the reports of one task and leaves what was taken of them; the harness joins it.\n\
         exec {words} \"$SLURM_ARRAY_TASK_ID\"\n"
    ))
}

fn options(slurm: &SlurmReach, jobs: Option<usize>, folder: &str) -> Vec<String> {
    // A percent sign begins a word that Slurm fills in.
    let mut options = vec![format!("--output={}/task-%a.log", folder.replace('%', "%%"))];
    let named = [
        ("partition", &slurm.partition),
        ("account", &slurm.account),
        ("reservation", &slurm.reservation),
        ("constraint", &slurm.constraint),
    ];
    options
        .extend(named.into_iter().filter_map(|(name, value)| Some(format!("--{name}={}", value.as_ref()?))));
    options.extend(jobs.map(|jobs| format!("--cpus-per-task={jobs}")));
    options
}

/// The reports of one node together, in the order in which they are numbered; so many at a time where a report does not tell
/// its node. Which reports one task reads changes nothing of what comes of them.
fn shares(survey: &Survey, together: usize) -> Vec<Vec<usize>> {
    let (mut of_hosts, mut others): (BTreeMap<String, Vec<usize>>, Vec<usize>) = Default::default();
    for (number, input) in survey.inputs.iter().enumerate() {
        match Trace::open(&input.path).and_then(|trace| trace.host()) {
            Ok(Some(host)) => of_hosts.entry(host).or_default().push(number),
            // Why it cannot be read is told by the task.
            Ok(None) | Err(_) => others.push(number),
        }
    }
    let mut shares: Vec<Vec<usize>> = of_hosts.into_values().collect();
    shares.extend(others.chunks(together).map(<[usize]>::to_vec));
    let of_one = shares.len().div_ceil(MOST_TASKS).max(1);
    shares.chunks(of_one).map(<[Vec<usize>]>::concat).collect()
}
