//! How the text of a script differs where ssh starts it, or kubectl in pods: the same text runs on every node, so each
//! step asks which node it is on. `supervisor.sh` starts it there and ends it.

use super::render::{joined, profile_arguments};
use super::{AWS_MPIRUN, FIND_MPIRUN, Run, Script, Start, Step, files, in_image, is_mpirun, secrets};
use std::fmt::Write;

/// In the head, after the nodes.
pub(super) const HEAD: &str =
    "# over ssh: this text on every node, each named by supervisor.sh in HARNESS_NODE\n";

/// The same in pods.
pub(super) const HEAD_OF_PODS: &str =
    "# in pods: this text on every node, each named by supervisor.sh in HARNESS_NODE\n";

/// Behind what runs on every node.
pub(super) const TO_OWN_FILES: &str = " > \"stdout.$HARNESS_NODE\" 2> \"stderr.$HARNESS_NODE\"\n";
/// The same as a word.
pub(super) const OWN_STDOUT: &str = "stdout.$HARNESS_NODE";

/// Where the ranks of a program find each other, by the convention of torchrun.
const MASTER_PORT: &str = "MASTER_PORT=29500";

pub(super) fn run(text: &mut String, script: &Script, run: &Run) {
    match run.mpi {
        Some(ref mpirun) => by_mpirun(text, script, run, mpirun),
        None => by_processes(text, script, run),
    }
}

/// One mpirun for the job, on its first node.
fn by_mpirun(text: &mut String, script: &Script, run: &Run, mpirun: &str) {
    let ranks = run.tasks_per_node as usize * script.nodes.len();
    let mut words = vec![
        "-np".to_owned(),
        ranks.to_string(),
        "-N".to_owned(),
        run.tasks_per_node.to_string(),
        "--hostfile".to_owned(),
        files::HOSTFILE.to_owned(),
        "--bind-to".to_owned(),
        "none".to_owned(),
    ];
    // Other nodes see the variables that are named here, and no others.
    for name in exported(script) {
        words.extend(["-x".to_owned(), name.to_owned()]);
    }
    words.extend(command(run));
    let inside = in_image::arguments(run.container.as_ref());
    // Neither pods nor containers run an sshd.
    if script.start == Start::Pods || !inside.is_empty() {
        return by_agent(text, script, mpirun, &inside, &words);
    }
    text.push_str("# run: mpirun on the first node, which starts the ranks of all\n");
    let program = if mpirun == FIND_MPIRUN { FOUND.to_owned() } else { joined(&[mpirun]) };
    // Infallible, here and below: writing to a string.
    let _ = writeln!(text, "if [ \"$HARNESS_NODE\" = {} ]; then", joined(first(script)));
    if mpirun == FIND_MPIRUN {
        let _ = writeln!(text, "  mpirun=$(command -v mpirun || echo {AWS_MPIRUN})");
    }
    let _ = writeln!(text, "  {program} {} > {} 2> {}", joined(&words), files::STDOUT, files::STDERR);
    text.push_str("  status=$?\nfi\n");
}

/// The same where mpirun reaches the other nodes by `agent.sh`.
fn by_agent(text: &mut String, script: &Script, mpirun: &str, inside: &[String], words: &[String]) {
    text.push_str("# run: mpirun on the first node, which starts the ranks of all by agent.sh\n");
    let _ = writeln!(text, "if [ \"$HARNESS_NODE\" = {} ]; then", joined(first(script)));
    let agent = |words: &[&str]| {
        let agent = ["bash", files::AGENT].iter().chain(words).map(|word| (*word).to_owned());
        joined(&inside.iter().cloned().chain(agent).collect::<Vec<_>>())
    };
    let start = agent(&["mpirun", mpirun]);
    let _ = writeln!(text, "  {start} {} > {} 2> {}", joined(words), files::STDOUT, files::STDERR);
    let _ = writeln!(text, "else\n  {}\nfi\nstatus=$?", agent(&["listen"]));
}

/// How the one that was found is called, and what stands before it in its block.
const FOUND: &str = "\"$mpirun\"";
const FOUND_WORD: &str = "$mpirun";

/// One process on every node, each with its rank among them.
fn by_processes(text: &mut String, script: &Script, run: &Run) {
    let count = script.nodes.len();
    text.push_str("# run: one process on every node\n");
    let _ = writeln!(text, "nodes=({})", joined(&script.nodes));
    text.push_str(
        "for rank in \"${!nodes[@]}\"; do [ \"${nodes[rank]}\" = \"$HARNESS_NODE\" ] && break; done\n",
    );
    let _ = writeln!(
        text,
        "export NNODES={count} NODE_RANK=\"$rank\" WORLD_SIZE={count} RANK=\"$rank\" LOCAL_WORLD_SIZE=1 LOCAL_RANK=0"
    );
    let _ = writeln!(text, "export MASTER_ADDR={} {MASTER_PORT}", joined(first(script)));
    let words = [in_image::arguments(run.container.as_ref()), command(run)].concat();
    let _ = write!(text, "{}{TO_OWN_FILES}", joined(&words));
    text.push_str("status=$?\n");
}

/// The sampling goes on until the workload has ended everywhere: what one node still sends, another receives. Listing
/// the folder makes a network file system look again; a sampler that is gone has met its own limit, and ends the wait.
pub(super) fn counters_end(text: &mut String, script: &Script) {
    text.push_str("# counters end: once the workload has ended on every node\n: > \"done.$HARNESS_NODE\"\n");
    let _ = writeln!(text, "for node in {}; do", joined(&script.nodes));
    text.push_str(
        "  until ls > /dev/null; [ -e \"done.$node\" ] || ! kill -0 \"$sampler\" 2> /dev/null; do sleep 0.5; done\n",
    );
    text.push_str("done\n: > stop\nwait \"$sampler\"\n");
}

/// The run of a block that was written here, and the arguments of each rank.
pub(super) fn read_run(words: &[String]) -> Option<(Run, &[String])> {
    let run = |tasks_per_node, mpi: Option<&str>| Run {
        argv: Vec::new(),
        tasks_per_node,
        mpi: mpi.map(str::to_owned),
        container: None,
        profile: None,
    };
    if let [word, _, _, _, _, _, _then, rest @ ..] = words
        && word == "if"
    {
        let (container, rest) = in_image::read(rest)?;
        let found = rest.iter().position(|word| word == FOUND_WORD);
        let (mpirun, rest) = match rest {
            [_bash, script, verb, mpirun, rest @ ..] if script == files::AGENT && verb == "mpirun" => {
                (mpirun.as_str(), rest)
            }
            _ => {
                let [mpirun, rest @ ..] = rest.get(found.unwrap_or_default()..)? else { return None };
                (if found.is_some() { FIND_MPIRUN } else { mpirun.as_str() }, rest)
            }
        };
        let [_np, _ranks, _n, tasks_per_node, _hostfile, _file, _bind, _none, rest @ ..] = rest else {
            return None;
        };
        let mut argv = rest;
        while let [flag, _name, more @ ..] = argv
            && flag == "-x"
        {
            argv = more;
        }
        let run = Run { container, ..run(tasks_per_node.parse().ok()?, Some(mpirun)) };
        return is_mpirun(mpirun).then_some((run, argv));
    }
    let is_head = words.first().is_some_and(|word| word.starts_with("nodes=("));
    let at = words.iter().position(|word| word == MASTER_PORT).filter(|_| is_head)?;
    let (container, argv) = in_image::read(words.get(at + 1..)?)?;
    Some((Run { container, ..run(1, None) }, argv))
}

/// What each rank runs.
fn command(run: &Run) -> Vec<String> {
    let mut words = run.profile.as_ref().map(profile_arguments).unwrap_or_default();
    words.extend(run.argv.iter().cloned());
    words
}

fn first(script: &Script) -> &[String] {
    script.nodes.get(..1).unwrap_or_default()
}

fn exported(script: &Script) -> impl Iterator<Item = &str> {
    script.steps.iter().flat_map(|step| match step {
        Step::Environment { variables } => variables.keys().map(String::as_str).collect(),
        Step::Secrets { variables } => {
            let seen = variables.iter().filter(|variable| !secrets::is_argument(variable));
            seen.map(String::as_str).collect()
        }
        _ => Vec::new(),
    })
}
