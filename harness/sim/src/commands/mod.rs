//! The programs, beside nccl-tests and those of trainings (`training`), that a job of the simulated cluster can run, by
//! their names in `COMMANDS`. Anything else is an error.

mod gpu_allocation;
mod links;
mod node_tools;

use crate::active_faults::ActiveFaults;
use crate::cluster::Cluster;
use crate::spread::Spread;
use crate::work::Work;
use job::script::{Run, files};

/// A program: what it does with its arguments.
type Program = fn(&CommandCall<'_>) -> CommandOutput;

/// Each by the name of its file.
const COMMANDS: [(&str, Program); 16] = [
    ("true", succeed),
    ("false", fail),
    ("sleep", sleep),
    ("hostname", hostname),
    ("echo", echo),
    ("bash", bash),
    ("python3", node_tools::torch_burn),
    ("nhc", node_tools::nhc),
    ("dcgmi", node_tools::dcgmi),
    ("nvbandwidth", node_tools::nvbandwidth),
    ("gpu_burn", node_tools::gpu_burn),
    ("stream", node_tools::stream),
    ("fio", node_tools::fio),
    ("stress-ng", node_tools::stress_ng),
    (files::GPU_ALLOCATION_SCRIPT, gpu_allocation::run),
    (files::LINKS_SCRIPT, links::run),
];

/// One call of a program by all ranks of a job.
pub(crate) struct CommandCall<'a> {
    /// The hardware that it runs on.
    pub cluster: &'a Cluster,
    /// Faults of the job's nodes.
    pub active_faults: &'a ActiveFaults,
    /// In the order of the job's script.
    pub nodes: &'a [String],
    /// What starts the ranks.
    pub spread: Spread,
    /// The command line and its tasks.
    pub run: &'a Run,
}

/// What a program prints, and how it ends.
pub(crate) struct CommandOutput {
    /// By node; nothing where no node prints.
    pub stdout: Vec<String>,
    /// Of the whole job.
    pub stderr: String,
    /// Exit code.
    pub code: i32,
    /// How long it runs.
    pub seconds: f64,
}

impl Default for CommandOutput {
    fn default() -> CommandOutput {
        CommandOutput { stdout: Vec::new(), stderr: String::new(), code: 0, seconds: 0.05 }
    }
}

impl CommandCall<'_> {
    /// Without the program.
    pub(crate) fn arguments(&self) -> &[String] {
        watched(&self.run.argv).0.get(1..).unwrap_or_default()
    }

    /// The same line of every task, by node.
    pub(crate) fn printed(&self, line: &dyn Fn(&str) -> String) -> Vec<String> {
        // Where a node's ranks do not find the others, Slurm starts fewer tasks than were asked for.
        let lost = self.active_faults.wrong_ranks();
        let of_node = |(at, node): (usize, &String)| match self.nodes.len() > 1 && lost == Some(at) {
            true => String::new(),
            false => line(node).repeat(self.run.tasks_per_node as usize),
        };
        self.nodes.iter().enumerate().map(of_node).collect()
    }

    /// What the launcher prints of tasks that end with this code. Where each node has a process of its own, there is no
    /// summary of how they ended.
    pub(crate) fn exits(&self, code: i32) -> String {
        match self.spread {
            Spread::Srun => exits(self.nodes, self.run.tasks_per_node, code),
            Spread::Mpirun | Spread::Each => String::new(),
        }
    }
}

/// The command line of a program, and the script that looks at the node while it runs.
fn watched(argv: &[String]) -> (&[String], Option<&str>) {
    match argv {
        [bash, script, _, _, rest @ ..] if bash == "bash" && script == files::GPU_STATE_SCRIPT => {
            (rest, Some(script.as_str()))
        }
        [bash, script, _, rest @ ..] if bash == "bash" && script == files::BUSY_SCRIPT => {
            (rest, Some(script.as_str()))
        }
        _ => (argv, None),
    }
}

/// What the program does, and its name where this world does not have it.
pub(crate) fn run(call: &CommandCall<'_>) -> (Work, Option<String>) {
    let (argv, script) = watched(&call.run.argv);
    let program = argv.first().map(String::as_str).unwrap_or_default();
    let name = match argv {
        [bash, script, ..] if bash == "bash" && script != "-c" => script.as_str(),
        _ => program.rsplit('/').next().unwrap_or_default(),
    };
    let has_it = |node: &String| call.cluster.world.has_program(node, name);
    let known = COMMANDS.iter().find(|(known, _)| *known == name);
    let installed = known.filter(|_| call.nodes.iter().all(has_it));
    let output = installed.map_or_else(|| not_found(call, program, script), |(_, command)| command(call));
    let CommandOutput { stdout, stderr, code, seconds } = output;
    let unknown = known.is_none().then(|| program.to_owned());
    (Work::Command { stdout, stderr, code, seconds }, unknown)
}

fn not_found(call: &CommandCall<'_>, program: &str, script: Option<&str>) -> CommandOutput {
    let (stderr, code) = match (call.spread, script) {
        // What bash says of a program that it is to become.
        (_, Some(script)) => {
            (format!("{script}: line 194: exec: {program}: not found\n{}", call.exits(127)), 127)
        }
        (Spread::Srun, None) => {
            let error = "slurmstepd: error: execve()";
            (format!("{error}: {program}: No such file or directory\n{}", call.exits(2)), 2)
        }
        _ => (format!("job.sh: {program}: command not found\n"), 127),
    };
    CommandOutput { stderr, code, ..CommandOutput::default() }
}

fn succeed(_: &CommandCall<'_>) -> CommandOutput {
    CommandOutput::default()
}

fn fail(call: &CommandCall<'_>) -> CommandOutput {
    CommandOutput { stderr: call.exits(1), code: 1, ..CommandOutput::default() }
}

fn sleep(call: &CommandCall<'_>) -> CommandOutput {
    let word = call.arguments().first().map(String::as_str).unwrap_or_default();
    match word.parse::<f64>() {
        Ok(seconds) if seconds.is_finite() && seconds >= 0.0 => {
            CommandOutput { seconds, ..CommandOutput::default() }
        }
        _ => {
            let stderr = format!("sleep: invalid time interval '{word}'\n{}", call.exits(1));
            CommandOutput { stderr, code: 1, ..CommandOutput::default() }
        }
    }
}

fn hostname(call: &CommandCall<'_>) -> CommandOutput {
    CommandOutput { stdout: call.printed(&|node| format!("{node}\n")), ..CommandOutput::default() }
}

fn echo(call: &CommandCall<'_>) -> CommandOutput {
    let line = format!("{}\n", call.arguments().join(" "));
    CommandOutput { stdout: call.printed(&|_| line.clone()), ..CommandOutput::default() }
}

/// `bash -c 'PROGRAM ARGUMENT... && ...'`: what follows a program that ends well ends well, too.
fn bash(call: &CommandCall<'_>) -> CommandOutput {
    let [option, line, ..] = call.arguments() else { return CommandOutput::default() };
    let words = line.split_whitespace().take_while(|word| *word != "&&");
    let argv: Vec<String> = words.map(str::to_owned).collect();
    let name = argv.first().map(String::as_str).unwrap_or_default();
    let known = COMMANDS.iter().find(|(known, _)| option == "-c" && *known == name && name != "bash");
    let run = Run { argv: argv.clone(), ..call.run.clone() };
    match known {
        Some((_, command)) => command(&CommandCall { run: &run, ..*call }),
        None => {
            let stderr = format!("bash: line 1: {name}: command not found\n{}", call.exits(127));
            CommandOutput { stderr, code: 127, ..CommandOutput::default() }
        }
    }
}

/// What srun says of tasks that did not end with 0.
pub(crate) fn exits(nodes: &[String], tasks_per_node: u32, code: i32) -> String {
    let line = |(at, node): (usize, &String)| {
        let (first, last) = (at as u32 * tasks_per_node, (at as u32 + 1) * tasks_per_node - 1);
        match first == last {
            true => format!("srun: error: {node}: task {first}: Exited with exit code {code}\n"),
            false => format!("srun: error: {node}: tasks {first}-{last}: Exited with exit code {code}\n"),
        }
    };
    nodes.iter().enumerate().map(line).collect()
}
