//! The shell text of a script. The grammar is strict and small: `read.rs` reads it back, so that what the simulated
//! cluster obeys is what real shells are sent. What differs where ssh starts the text is in `over_ssh.rs`.

use super::{
    Container, Directives, Flows, GpuRequest, Gpus, Profile, Run, SAMPLER_ENDED, Sampler, Script, Start,
    Step, Turns, files, in_image, is_reordered, over_ssh, secrets,
};
use base::nodeset;
use std::fmt::Write;

/// The complete text of `job.sh`; `read` reads it back.
pub fn render(script: &Script) -> String {
    let mut text = String::from("#!/bin/bash\n");
    if is_reordered(&script.nodes) {
        let _ = writeln!(text, "{RANKS_ALONG}{}", script.nodes.join(" "));
    }
    match &script.start {
        Start::Slurm(directives) => render_directives(&mut text, directives, &script.nodes),
        Start::Bash => text.push_str(&comment_of_nodes(&script.nodes)),
        Start::Ssh => {
            text.push_str(&comment_of_nodes(&script.nodes));
            text.push_str(over_ssh::HEAD);
        }
        Start::Pods => {
            text.push_str(&comment_of_nodes(&script.nodes));
            text.push_str(over_ssh::HEAD_OF_PODS);
        }
    }
    text.push_str("set -u\nstatus=0\n");
    for step in &script.steps {
        text.push('\n');
        match step {
            Step::Secrets { variables } => {
                let file = match script.start.is_on_each_node() {
                    true => format!("\"{}.$HARNESS_NODE\"", secrets::FILE),
                    false => secrets::FILE.to_owned(),
                };
                let _ = writeln!(text, "# secrets: {}", variables.join(" "));
                let _ = writeln!(text, ". ./{file} && rm -f {file} || exit 1");
            }
            Step::Environment { variables } => {
                text.push_str("# environment\n");
                for (name, value) in variables {
                    line(&mut text, &["export".into(), format!("{name}={value}")]);
                }
            }
            Step::CountersBegin(sampler) => counters_begin(&mut text, script, sampler),
            Step::Run(run) if script.start.is_on_each_node() => over_ssh::run(&mut text, script, run),
            Step::Run(run) => workload(&mut text, script, "run", &run_arguments(script, run)),
            Step::Gpus(gpus) => workload(&mut text, script, "gpus", &gpus_arguments(script, gpus)),
            Step::Flows(flows) => workload(&mut text, script, "flows", &flows_arguments(script, flows)),
            Step::CountersEnd if script.start.is_on_each_node() => over_ssh::counters_end(&mut text, script),
            Step::Turns(turns) => {
                let _ = writeln!(text, "# turns\n{}\n{STATUS}", joined(&turns_arguments(turns)));
            }
            Step::Inspector => inspector(&mut text, script),
            Step::CountersEnd => text.push_str("# counters end\n: > stop\nwait \"$sampler\"\n"),
        }
    }
    text.push('\n');
    if matches!(&script.start, Start::Slurm(directives) if directives.stands_alone) {
        text.push_str(LEAVES_CODE);
    }
    text.push_str("exit \"$status\"\n");
    text
}

/// In the head: the nodes in the order of ranks, where that is not the order of their names.
pub(super) const RANKS_ALONG: &str = "# ranks along ";

/// srun takes sbatch's task counts for a step's, and then ignores what the step itself requests.
pub(super) const FORGETS: &str = "unset SLURM_NTASKS SLURM_NPROCS SLURM_NTASKS_PER_NODE\n";
/// sbatch signs in with this token and hands it on: whoever has it acts as the user. No workload is given it.
pub(super) const KEEPS_TOKEN: &str = "unset SLURM_JWT\n";
/// sbatch hands the submitting shell's variables on to the job, as far as the harness hands them on to sbatch
/// (`reach/environment.rs`, which has all of these): those that change what programs do are written down before
/// the script sets its own.
pub(super) const RECORDS: &str = "for name in $(compgen -e); do\n  case $name in\n    \
    NCCL_*|OFI_NCCL_*|FI_*|RDMAV_*|OMPI_*|PMIX_MCA_*|UCX_*|CUDA_*|TORCH_*|PYTORCH_*|LD_LIBRARY_PATH|LD_PRELOAD) \
    printf '%s=%q\\n' \"$name\" \"${!name}\" ;;\n  esac\ndone > environment.txt\n";
/// Complete or absent; a disk that is full changes no exit code.
const LEAVES_CODE: &str = "echo \"$status\" > exit_code.part && mv exit_code.part exit_code\n";

fn comment_of_nodes(nodes: &[String]) -> String {
    format!("# nodes {}\n", nodeset::fold(nodes))
}

fn directive(text: &mut String, name: &str, value: &str) {
    // sbatch takes blanks, quotes and `#` in such lines as a shell does, but for a list in brackets.
    let plain = value.chars().all(|c| c.is_ascii_alphanumeric() || "_-./=:,@%+[]{}&|*!()".contains(c));
    let value = if plain { value.to_owned() } else { quote(value) };
    // Infallible: writing to a string.
    let _ = writeln!(text, "#SBATCH --{name}={value}");
}

fn render_directives(text: &mut String, d: &Directives, nodes: &[String]) {
    directive(text, "job-name", &d.job_name);
    directive(text, "nodes", &nodes.len().to_string());
    directive(text, "nodelist", &nodeset::fold(nodes));
    directive(text, "ntasks-per-node", &d.tasks_per_node.to_string());
    if let Some((name, value)) = d.gpus.option(d.gpus_per_node) {
        directive(text, name, &value);
    }
    directive(text, "time", &d.minutes.to_string());
    for (name, value) in [
        ("partition", &d.partition),
        ("account", &d.account),
        ("reservation", &d.reservation),
        ("constraint", &d.constraint),
        ("qos", &d.qos),
        ("mem", &d.mem),
    ] {
        if let Some(value) = value {
            directive(text, name, value);
        }
    }
    directive(text, "chdir", &d.folder);
    directive(text, "output", files::BATCH_OUT);
    directive(text, "error", files::BATCH_ERR);
    for argument in &d.sbatch {
        match argument.strip_prefix("--").and_then(|argument| argument.split_once('=')) {
            Some((name, value)) => directive(text, name, value),
            None => text.push_str(&format!("#SBATCH {argument}\n")),
        }
    }
    if d.exclusive {
        text.push_str("#SBATCH --exclusive\n");
    }
    // A job that Slurm runs again by itself would be measured twice under one name.
    text.push_str("#SBATCH --no-requeue\n");
    if d.stands_alone {
        text.push_str(FORGETS);
        text.push_str(KEEPS_TOKEN);
    }
    if d.records_environment {
        text.push_str(RECORDS);
    }
}

fn counters_begin(text: &mut String, script: &Script, sampler: &Sampler) {
    text.push_str("# counters begin: one sampler on every node, ready before the workload starts\n");
    let mut words = spread(script, 1, None, None, &options_beside(script.start.gpu_request()));
    words.extend(
        [
            "bash",
            "counters.sh",
            &sampler.root,
            "counters.{host}.txt",
            "ready.{host}",
            "stop",
            &sampler.interval_s.to_string(),
            &sampler.limit_s.to_string(),
        ]
        .map(str::to_owned),
    );
    if script.start == Start::Bash {
        // Without srun the sampler does not know its node.
        words.extend(script.nodes.iter().take(1).cloned());
    }
    text.push_str(&joined(&words));
    match script.start.is_on_each_node() {
        true => text.push_str(" \"$HARNESS_NODE\" &\n"),
        false => {
            let _ = writeln!(text, " > {} 2>&1 &", files::SAMPLER_LOG);
        }
    }
    text.push_str("sampler=$!\n");
    if sampler.watched {
        wait_for_sampler(text, script);
        return;
    }
    let _ = writeln!(text, "for node in {}; do", joined(&script.nodes));
    // Over ssh a node may be started later than the others, after its connection was tried again.
    let tries = if script.start.is_on_each_node() { 600 } else { 150 };
    let _ = writeln!(
        text,
        "  for ((tries = 0; tries < {tries}; tries++)); do [ -e \"ready.$node\" ] && break; sleep 0.2; done"
    );
    text.push_str("done\n");
}

/// Every step of a job: the workload and what looks at it run side by side. Before Slurm 22.05 `--overlap` shares
/// processors alone, and only where both steps have it; without `--mem=0` the first step holds the memory of the job, and
/// the others wait until it has ended.
const SHARES_JOB: [&str; 2] = ["--overlap", "--mem=0"];

/// Options of a step of a job that takes nothing from its workload: no GPU either.
pub fn options_beside(gpus: GpuRequest) -> Vec<&'static str> {
    SHARES_JOB.into_iter().chain(gpus.without()).collect()
}

/// One deadline for all nodes; an ended sampler is not waited for. Listing the folder makes a network file
/// system look again. What is written is looked for by `recipes::recipe::efa_traffic`.
fn wait_for_sampler(text: &mut String, script: &Script) {
    let on_each_node = script.start.is_on_each_node();
    // Over ssh a node may be started later than the others, after its connection was tried again.
    let limit_s = if on_each_node { 120 } else { 30 };
    let _ = writeln!(text, "{WATCHED} + {limit_s}))");
    let _ = writeln!(text, "for node in {}; do", joined(&script.nodes));
    text.push_str("  until ls > /dev/null; [ -e \"ready.$node\" ] || ((SECONDS >= deadline)); do\n");
    text.push_str("    kill -0 \"$sampler\" 2> /dev/null || break 2\n    sleep 0.2\n  done\ndone\n");
    let log = if on_each_node { String::new() } else { format!(" >> {}", files::SAMPLER_LOG) };
    let _ = writeln!(text, "if ! kill -0 \"$sampler\" 2> /dev/null; then");
    let _ = writeln!(text, "  wait \"$sampler\"\n  echo \"{SAMPLER_ENDED} $?\"{log}");
    if on_each_node {
        text.push_str("  : > \"ready.$HARNESS_NODE\"\n");
    }
    text.push_str("fi\n");
}

/// Begins the wait for a sampler that is watched.
pub(super) const WATCHED: &str = "deadline=$((SECONDS";

fn workload(text: &mut String, script: &Script, name: &str, words: &[String]) {
    let _ = writeln!(text, "# {name}");
    text.push_str(&joined(words));
    match script.start.is_on_each_node() {
        true => text.push_str(over_ssh::TO_OWN_FILES),
        false => {
            let _ = writeln!(text, " > {} 2> {}", files::STDOUT, files::STDERR);
        }
    }
    let _ = writeln!(text, "{STATUS}");
}

/// Every rank writes into the folder of the job, which all nodes see.
fn inspector(text: &mut String, script: &Script) {
    let limit = crate::inspector::LIMIT;
    let words = ["bash", files::INSPECTOR_SCRIPT, crate::inspector::FOLDER, &limit.to_string()];
    let command = format!("{} > {}", joined(&words), files::INSPECTOR);
    let _ = match script.start.is_on_each_node() {
        true => writeln!(
            text,
            "# inspector: by the first node\nif [ \"$HARNESS_NODE\" = {} ]; then\n  {command}\nfi",
            joined(script.nodes.get(..1).unwrap_or_default())
        ),
        false => writeln!(text, "# inspector\n{command}"),
    };
}

/// What keeps the exit code of the step before it.
pub(super) const STATUS: &str = "status=$?";

fn turns_arguments(turns: &Turns) -> Vec<String> {
    let mut words = ["bash", files::ALLOCATION, &turns.idle_s.to_string()].map(str::to_owned).to_vec();
    words.extend(turns.jobs.iter().flat_map(|turn| [turn.folder.clone(), turn.limit_s.to_string()]));
    words
}

fn run_arguments(script: &Script, run: &Run) -> Vec<String> {
    let mut words =
        spread(script, run.tasks_per_node, run.mpi.as_deref(), run.container.as_ref(), &SHARES_JOB);
    if is_reordered(&script.nodes) && matches!(script.start, Start::Slurm(_)) {
        // Releases differ in whether `--nodes` may stand beside it; tasks and list give the number of nodes.
        let tasks = run.tasks_per_node as usize * script.nodes.len();
        if let Some(nodes) = words.get_mut(1) {
            *nodes = format!("--ntasks={tasks}");
        }
        let list = format!("--nodelist=./{}", files::HOSTFILE);
        words.splice(2..2, [list, "--distribution=arbitrary".to_owned()]);
    } else if matches!(script.start, Start::Slurm(_)) && script.nodes.len() > 1 {
        words.insert(3, IN_ORDER.trim_start().to_owned());
    }
    if let Some(profile) = &run.profile {
        words.extend(profile_arguments(profile));
    }
    words.extend(run.argv.iter().cloned());
    words
}

/// From 26.05 on srun numbers ranks along its topology where no distribution is named: `man srun`, `--distribution`, and
/// CR_NO_DIST_TOPO_BLOCK of `man slurm.conf`. The plan has them along the names of nodes.
const IN_ORDER: &str = " --distribution=block";

/// The text as older versions wrote it: the last ones named no distribution, and those before them had steps that did not
/// share all of their job either.
pub(super) fn as_older_versions(text: &str) -> [String; 2] {
    let shares = format!(" {}", SHARES_JOB.join(" "));
    let form = |change: &dyn Fn(&str) -> String| -> String {
        let line = |line: &str| if line.starts_with("srun ") { change(line) } else { line.to_owned() };
        text.split_inclusive('\n').map(line).collect()
    };
    let without_order = |line: &str| line.replacen(IN_ORDER, "", 1);
    let without_both = |line: &str| match line.ends_with(" &\n") {
        true => line.replacen(" --mem=0", "", 1),
        false => without_order(line).replacen(&shares, "", 1),
    };
    [form(&without_order), form(&without_both)]
}

/// What stands before the command of each rank.
pub(super) fn profile_arguments(profile: &Profile) -> Vec<String> {
    let tables = if profile.tables.is_empty() { "all".to_owned() } else { profile.tables.join(",") };
    let mut words = vec![
        "bash".to_owned(),
        "profile.sh".to_owned(),
        profile.nsys.clone(),
        profile.version.to_string(),
        profile.tasks.to_string(),
        profile.ranks.to_string(),
        profile.node_ranks.to_string(),
        profile.name.clone(),
        profile.export.clone(),
        tables,
    ];
    words.extend(profile.window.as_ref().map(ToString::to_string));
    words.extend(profile.words.every.iter().cloned());
    words.push("--".to_owned());
    words.extend(profile.words.once_per_node.iter().cloned());
    words.push("--".to_owned());
    words
}

fn gpus_arguments(script: &Script, gpus: &Gpus) -> Vec<String> {
    // No MPI: each process is a world of one rank.
    let mut words = spread(script, 1, Some("none"), gpus.container.as_ref(), &SHARES_JOB);
    words.extend(["bash".to_owned(), "gpus.sh".to_owned(), gpus.gpus.to_string()]);
    words.extend(gpus.argv.iter().cloned());
    words
}

fn flows_arguments(script: &Script, flows: &Flows) -> Vec<String> {
    let mut words = spread(script, 1, Some("none"), None, &SHARES_JOB);
    words.extend(
        ["bash", "flows.sh", &flows.tool, &flows.op, &flows.server, &flows.client].map(str::to_owned),
    );
    words.push(flows.base_port.to_string());
    words.push(flows.message_bytes.to_string());
    words.push(flows.iterations.to_string());
    words.push(flows.limit_s.to_string());
    words.push(flows.memory.name().to_owned());
    let gpu = |at: usize| flows.gpus.get(at).copied().unwrap_or_default();
    words.extend(flows.devices.iter().enumerate().map(|(at, device)| format!("{device}={}", gpu(at))));
    words
}

/// The arguments that start the same thing on every node: srun under Slurm, nothing where the text is on the node itself.
fn spread(
    script: &Script,
    tasks_per_node: u32,
    mpi: Option<&str>,
    container: Option<&Container>,
    more: &[&str],
) -> Vec<String> {
    if matches!(script.start, Start::Bash | Start::Ssh | Start::Pods) {
        return in_image::arguments(container);
    }
    let mut words = vec![
        "srun".to_owned(),
        format!("--nodes={}", script.nodes.len()),
        format!("--ntasks-per-node={tasks_per_node}"),
        "--cpu-bind=none".to_owned(),
    ];
    if let Start::Slurm(directives) = &script.start {
        words.extend(directives.srun.iter().cloned());
    }
    words.extend(more.iter().map(|word| (*word).to_owned()));
    if let Some(mpi) = mpi {
        words.push(format!("--mpi={mpi}"));
    }
    if let Some(container) = container {
        words.push(format!("--container-image={}", container.image));
        if !container.mounts.is_empty() {
            words.push(format!("--container-mounts={}", container.mounts.join(",")));
        }
        // Both are always set: what a cluster's own settings default to is not known here.
        let no = |wanted: bool| if wanted { "" } else { "no-" };
        words.push(format!("--{}container-mount-home", no(container.mount_home)));
        words.push(format!("--{}container-remap-root", no(container.remap_root)));
        if let Some(folder) = &container.workdir {
            words.push(format!("--container-workdir={folder}"));
        }
        if !container.env.is_empty() {
            words.push(format!("--container-env={}", container.env.join(",")));
        }
        if let Some(name) = &container.name {
            words.push(format!("--container-name={name}"));
        }
    }
    words
}

fn line(text: &mut String, words: &[String]) {
    text.push_str(&joined(words));
    text.push('\n');
}

/// Arguments as a shell line, each quoted where it must be. A NUL cannot be in an argument list; the plan refuses it.
pub(super) fn joined<S: AsRef<str>>(words: &[S]) -> String {
    words.iter().map(|word| quote(word.as_ref())).collect::<Vec<_>>().join(" ")
}

fn quote(word: &str) -> String {
    if let Some(rendered) = secrets::rendered(word) {
        return rendered;
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./=:,@%+[]{}".contains(c);
    if !word.is_empty() && word.chars().all(plain) && !word.contains(['[', '{']) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}
