//! What the harness assumes of Slurm.

use super::Outcome::{self, Differs, Holds, NotSeen};
use super::evidence::lacks;
use super::node::base_name;
use super::request::srun_options;
use super::{Assumption, Evidence, On, assumption};
use crate::reach::slurm_gres;
use base::text;
use config::facts::compare_versions;
use config::inventory::instance::is_ec2_type;
use job::script::GpuRequest;
use model::artefact::JobProperties;
use std::cmp::Ordering;
use std::collections::BTreeSet;

const CONFIG: &str = "scontrol show config";

pub(super) const ASSUMPTIONS: &[Assumption] = &[
    assumption(
        "slurm.controller",
        "the Slurm controller answers, and Slurm's commands are on PATH",
        "sinfo",
        "ParallelCluster puts /opt/slurm/bin on the PATH of login shells only (cookbook, recipes/config.rb)",
        On::Slurm,
        controller,
    ),
    assumption(
        "slurm.release",
        "Slurm is 20.11 or newer, which knows `srun --overlap`",
        "sbatch --version",
        "Slurm release notes 20.11; tried with 22.05, 24.11 and 26.05",
        On::Slurm,
        release,
    ),
    assumption(
        "slurm.gres",
        "nodes have their GPUs as GRES, or none of them does and `gpus` is \"none\" or \"auto\"",
        "sinfo %G",
        "AWS hyperpod-precheck.py: `--gres` is not supported there by default",
        On::Slurm,
        gres,
    ),
    assumption(
        "slurm.mpi",
        "srun starts MPI programs by the plugin that the inventory names",
        "srun --mpi=list",
        "ParallelCluster builds Slurm with PMIx (cookbook, install_slurm.rb); HyperPod has none by default",
        On::Slurm,
        mpi,
    ),
    assumption(
        "slurm.memory",
        "Slurm does not schedule memory, or `mem` is set",
        CONFIG,
        "ParallelCluster's EnableMemoryBasedScheduling sets CR_CPU_Memory",
        On::Slurm,
        memory,
    ),
    assumption(
        "slurm.processors",
        "a rank may use every processor of its node: jobs are exclusive, or nothing confines their steps",
        CONFIG,
        "man slurm.conf, TaskPlugin and SelectType; man srun: --cpu-bind=none binds no task, and lifts no limit of a cgroup",
        On::Slurm,
        processors,
    ),
    assumption(
        "slurm.limits",
        "no QOS or limit of accounts is enforced, or `qos` is set",
        CONFIG,
        "man slurm.conf, AccountingStorageEnforce",
        On::Slurm,
        limits,
    ),
    assumption(
        "slurm.job_submit",
        "no plugin changes or refuses jobs when they are submitted",
        CONFIG,
        "man slurm.conf, JobSubmitPlugins and CliFilterPlugins",
        On::Slurm,
        job_submit,
    ),
    assumption(
        "slurm.prolog",
        "no prolog delays the start of jobs",
        CONFIG,
        "awsome-distributed-training, HyperPod health_check/prolog_dcgm.sh runs for minutes",
        On::Slurm,
        prolog,
    ),
    assumption(
        "slurm.min_job_age",
        "a job that ended is remembered for at least 60 s",
        CONFIG,
        "man slurm.conf, MinJobAge: 300 s by default",
        On::Slurm,
        min_job_age,
    ),
    assumption(
        "slurm.nodes",
        "Slurm has every node of the inventory",
        "sinfo --Node",
        "node names change where HyperPod replaces a node",
        On::Slurm,
        nodes,
    ),
    assumption(
        "slurm.powered_up",
        "no node has to boot before a job starts on it",
        "sinfo --Node %t",
        "ParallelCluster's dynamic nodes boot in 10 to 20 minutes",
        On::Slurm,
        powered_up,
    ),
    assumption(
        "slurm.boot_time",
        "a node that is powered down boots within the default `queue_limit_s`, 3600 s",
        CONFIG,
        "man slurm.conf, ResumeTimeout; ParallelCluster sets 1800 s",
        On::Slurm,
        boot_time,
    ),
    assumption(
        "slurm.instance_type",
        "the instance types among features and partitions are the inventory's",
        "sinfo --Node %f %P",
        "ParallelCluster has p5.48xlarge among the features, HyperPod ml.p5.48xlarge as partition",
        On::Slurm,
        instance_type,
    ),
    assumption(
        "slurm.srun_options",
        "srun has the options that steps are given on every cluster",
        "srun --help",
        "man srun, and the scripts of jobs: `--overlap` from 20.11 on",
        On::Slurm,
        step_options,
    ),
    assumption(
        "slurm.request",
        "Slurm takes a job with all that the inventory asks for",
        "sbatch --test-only",
        "man sbatch: `--test-only` checks a request and submits no job",
        On::Slurm,
        request,
    ),
    Assumption {
        id: "slurm.pyxis",
        assumed: "srun has the options of Pyxis that jobs are given, `--container-env` among them",
        checked_by: "srun --help",
        source: "NVIDIA/pyxis, args.c",
        on: On::Container,
        check: pyxis,
    },
];

fn seen<T>(result: Result<T, Outcome>, then: impl FnOnce(T) -> Outcome) -> Outcome {
    result.map_or_else(|outcome| outcome, then)
}

fn holds_if(holds: bool, seen: String) -> Outcome {
    if holds { Holds(seen) } else { Differs(seen) }
}

fn is_none(value: &str) -> bool {
    matches!(value, "" | "(null)" | "none" | "NONE" | "N/A")
}

fn controller(evidence: &Evidence<'_>) -> Outcome {
    match evidence.here.get("nodes") {
        Some(Ok(section)) if section.status == Some(0) => Holds(text::count(section.lines.len(), "line")),
        Some(Ok(section)) => Differs(section.first().to_owned()),
        // A command that is not there is a fact of the machine; no answer is none.
        Some(Err(why)) if why.contains("no such program") => Differs(why.clone()),
        Some(Err(why)) => NotSeen(why.clone()),
        None => NotSeen("not queried".to_owned()),
    }
}

fn release(evidence: &Evidence<'_>) -> Outcome {
    seen(evidence.cluster("version"), |section| {
        let text = section.first();
        match text.split_whitespace().nth(1).filter(|word| word.starts_with(|c: char| c.is_ascii_digit())) {
            Some(version) => holds_if(compare_versions(version, "20.11") != Ordering::Less, text.to_owned()),
            None => NotSeen(format!("no release in: {text}")),
        }
    })
}

/// Of the inventory's partition, else of the default one, which sbatch takes and `*` marks. Rows are
/// PARTITION|GRES|FEATURES|STATE|NODES.
fn gres(evidence: &Evidence<'_>) -> Outcome {
    let gpus = evidence.inventory.instance.gpus;
    seen(evidence.cluster("partitions"), |section| {
        let Some(slurm) = evidence.inventory.reach.slurm() else { return NotSeen("no Slurm".to_owned()) };
        let is_default = |name: &str| name.ends_with('*');
        let has_default = section.names().any(|row| row.split('|').next().is_some_and(is_default));
        let is_ours = |name: &str| match &slurm.partition {
            Some(wanted) => name.trim_end_matches('*') == wanted.as_str(),
            None => !has_default || is_default(name),
        };
        let rows = section.names().filter_map(|row| {
            let mut fields = row.split('|');
            let name = fields.next()?;
            is_ours(name).then_some(fields.next().unwrap_or_default())
        });
        let mut listed: Vec<&str> = rows.collect();
        listed.sort_unstable();
        listed.dedup();
        let has_gpus = |row: &&str| slurm_gres::gpus(row) == Some(gpus) && slurm_gres::mig(row).is_none();
        let has_none = listed.iter().all(|row| slurm_gres::gpus(row).unwrap_or_default() == 0);
        match listed.as_slice() {
            [] => NotSeen("sinfo lists no such partition".to_owned()),
            // Where the inventory asks for none, there must be none: else jobs would not see their GPUs.
            rows if slurm.gpus == Some(GpuRequest::None) => holds_if(has_none, rows.join("; ")),
            // A run asks for none then.
            rows if slurm.gpus.is_none() && has_none => Holds(rows.join("; ")),
            rows => holds_if(rows.iter().all(has_gpus), rows.join("; ")),
        }
    })
}

fn mpi(evidence: &Evidence<'_>) -> Outcome {
    let Some(slurm) = evidence.inventory.reach.slurm() else { return NotSeen("no Slurm".to_owned()) };
    seen(evidence.cluster("mpi"), |section| {
        // From 20.11 on one to a line; the specific versions behind a colon, before that with a mark of its own.
        let words: Vec<&str> = section
            .lines
            .iter()
            .filter(|line| !line.contains("are...") && !line.contains("versions available"))
            .flat_map(|line| line.split(|c: char| c.is_whitespace() || c == ','))
            .filter(|word| !word.is_empty() && !word.ends_with(':'))
            .collect();
        holds_if(words.contains(&slurm.mpi.as_str()), words.join(" "))
    })
}

fn memory(evidence: &Evidence<'_>) -> Outcome {
    let is_set = evidence.inventory.reach.slurm().is_some_and(|slurm| slurm.mem.is_some());
    seen(evidence.config("SelectTypeParameters"), |value| {
        holds_if(is_set || !value.to_ascii_uppercase().contains("MEMORY"), value.to_owned())
    })
}

fn limits(evidence: &Evidence<'_>) -> Outcome {
    let is_set = evidence.inventory.reach.slurm().is_some_and(|slurm| slurm.qos.is_some());
    seen(evidence.config("AccountingStorageEnforce"), |value| {
        let enforced = value.split(',').any(|word| matches!(word.trim(), "limits" | "qos" | "safe"));
        holds_if(is_set || !enforced, value.to_owned())
    })
}

fn job_submit(evidence: &Evidence<'_>) -> Outcome {
    seen(evidence.config("JobSubmitPlugins"), |submit| {
        // Older releases have no filter of the command line.
        let filter = evidence.config("CliFilterPlugins").unwrap_or_default();
        holds_if(
            is_none(submit) && is_none(filter),
            format!("JobSubmitPlugins {submit}, CliFilterPlugins {filter}"),
        )
    })
}

fn prolog(evidence: &Evidence<'_>) -> Outcome {
    seen(evidence.configs("Prolog"), |prolog| {
        seen(evidence.configs("PrologSlurmctld"), |controller| {
            let are_none = prolog.iter().chain(&controller).all(|value| is_none(value));
            let shown = |values: Vec<&str>| match values.is_empty() {
                true => "none".to_owned(),
                false => values.join(" "),
            };
            holds_if(are_none, format!("Prolog {}, PrologSlurmctld {}", shown(prolog), shown(controller)))
        })
    })
}

fn min_job_age(evidence: &Evidence<'_>) -> Outcome {
    seen(evidence.config("MinJobAge"), |value| {
        match value.split_whitespace().next().and_then(|word| word.parse::<u64>().ok()) {
            // Slurm never forgets at 0.
            Some(seconds) => holds_if(seconds == 0 || seconds >= 60, value.to_owned()),
            None => NotSeen(format!("MinJobAge is not a number: {value}")),
        }
    })
}

/// Rows are NODE|STATE|PARTITION|FEATURES.
fn nodes(evidence: &Evidence<'_>) -> Outcome {
    seen(evidence.cluster("nodes"), |section| {
        let known: Vec<&str> = section.names().filter_map(|row| row.split('|').next()).collect();
        let missing: Vec<&String> =
            evidence.inventory.nodes.iter().filter(|node| !known.contains(&node.as_str())).collect();
        match missing.as_slice() {
            [] => Holds(text::count(evidence.inventory.nodes.len(), "node")),
            [first] => Differs(format!("Slurm does not know {first}")),
            [first, rest @ ..] => Differs(format!("Slurm does not know {first} and {} more", rest.len())),
        }
    })
}

fn powered_up(evidence: &Evidence<'_>) -> Outcome {
    seen(evidence.cluster("nodes"), |section| {
        let states = section.names().filter_map(|row| {
            let mut fields = row.split('|');
            Some((fields.next()?, fields.next()?))
        });
        let ours: Vec<(&str, &str)> =
            states.filter(|(node, _)| evidence.inventory.nodes.iter().any(|known| known == node)).collect();
        let down: Vec<&(&str, &str)> =
            ours.iter().filter(|(_, state)| state.contains(['~', '#', '%'])).collect();
        match (down.as_slice(), ours.len()) {
            (_, 0) => NotSeen("sinfo lists no node of the inventory".to_owned()),
            ([], all) => Holds(text::count(all, "node")),
            ([(node, state), ..], _) => {
                let nodes = text::count(down.len(), "node");
                Differs(format!("{nodes} must boot first, such as {node}: {state}"))
            }
        }
    })
}

fn boot_time(evidence: &Evidence<'_>) -> Outcome {
    let most_s = JobProperties::default().queue_limit_s;
    seen(evidence.config("ResumeTimeout"), |value| {
        match value.split_whitespace().next().and_then(|word| word.parse::<u64>().ok()) {
            Some(seconds) => holds_if(seconds <= most_s, value.to_owned()),
            None => NotSeen(format!("ResumeTimeout is not a number: {value}")),
        }
    })
}

/// Rows are NODE|STATE|PARTITION|FEATURES.
fn instance_type(evidence: &Evidence<'_>) -> Outcome {
    let wanted = base_name(&evidence.inventory.instance);
    seen(evidence.cluster("nodes"), |section| {
        let ours = section.names().filter(|row| {
            let node = row.split('|').next().unwrap_or_default();
            evidence.inventory.nodes.iter().any(|known| known == node)
        });
        let words = ours.flat_map(|row| row.split('|').skip(2).flat_map(|field| field.split(',')));
        let types: BTreeSet<&str> =
            words.map(|word| word.trim().trim_end_matches('*')).filter(|word| is_ec2_type(word)).collect();
        let family = |name: &str| name.trim_start_matches("ml.").split('.').next() == Some(wanted);
        let shown = types.iter().copied().collect::<Vec<_>>().join(" ");
        match (types.is_empty(), types.iter().all(|name| family(name))) {
            (true, _) => NotSeen("no feature or partition names an instance type".to_owned()),
            (false, true) => Holds(shown),
            (false, false) => Differs(format!("{shown}, the inventory has {wanted}")),
        }
    })
}

fn request(evidence: &Evidence<'_>) -> Outcome {
    match evidence.here.get("request") {
        Some(Ok(section)) if section.status == Some(0) => Holds("accepted".to_owned()),
        Some(Ok(section)) => {
            // Plugins that look at jobs may speak first.
            let why = section.names().last().unwrap_or("no message").to_owned();
            let is_silent = why.contains("contact slurm controller") || why.contains("timed out");
            if is_silent { NotSeen(why) } else { Differs(why) }
        }
        Some(Err(why)) => NotSeen(why.clone()),
        None => NotSeen("not queried: sinfo gives no answer".to_owned()),
    }
}

/// A job that is not exclusive is given a processor for each rank, and plugins keep its steps on those.
fn processors(evidence: &Evidence<'_>) -> Outcome {
    let is_exclusive = evidence.inventory.reach.slurm().is_some_and(|slurm| slurm.exclusive);
    seen(evidence.config("TaskPlugin"), |plugins| {
        let confines = ["task/affinity", "task/cgroup"].iter().any(|plugin| plugins.contains(plugin));
        let is_whole = evidence.config("SelectType").is_ok_and(|select| select == "select/linear");
        match is_exclusive || is_whole || !confines {
            true => Holds(plugins.to_owned()),
            false => Differs(format!("{plugins}, and the inventory has `exclusive = false`")),
        }
    })
}

/// `--cpu-bind` is read by every srun, and listed only where a plugin binds tasks.
fn step_options(evidence: &Evidence<'_>) -> Outcome {
    let Some(slurm) = evidence.inventory.reach.slurm() else { return NotSeen("no Slurm".to_owned()) };
    seen(evidence.cluster("srun_help"), |section| lacks(section, &srun_options(slurm.gpu_request())))
}

fn pyxis(evidence: &Evidence<'_>) -> Outcome {
    const GIVEN: [&str; 6] = [
        "--container-image",
        "--container-mounts",
        "--container-env",
        "--container-workdir",
        "--container-mount-home",
        "--container-remap-root",
    ];
    let keeps = evidence.inventory.container.as_ref().is_some_and(|container| container.reuse);
    seen(evidence.cluster("srun_help"), |section| {
        let given = GIVEN.into_iter().chain(keeps.then_some("--container-name"));
        let missing: Vec<&str> = given.filter(|option| !section.contains(option)).collect();
        match missing.is_empty() {
            true => Holds("all of them".to_owned()),
            false => Differs(format!("srun has no {}", missing.join(", "))),
        }
    })
}
