//! The short list of programs, beside nccl-tests and the training program (`training`), that a job of the simulated cluster can run: `true`, `false`, `sleep`,
//! `hostname` and `echo`. Anything else is an error.

use super::active_faults::ActiveFaults;
use super::spread::Spread;
use super::work::Work;
use job::script::Run;

/// What the program does, and its name where this world does not have it.
pub(crate) fn run(
    active_faults: &ActiveFaults,
    nodes: &[String],
    spread: Spread,
    run: &Run,
) -> (Work, Option<String>) {
    let program = run.argv.first().map(String::as_str).unwrap_or_default();
    let arguments = run.argv.get(1..).unwrap_or_default();
    // Where a node's ranks do not find the others, Slurm starts fewer tasks than were asked for.
    let lost = active_faults.wrong_ranks();
    let each = |line: &dyn Fn(&str) -> String| -> Vec<String> {
        let of_node = |(at, node): (usize, &String)| match nodes.len() > 1 && lost == Some(at) {
            true => String::new(),
            false => line(node).repeat(run.tasks_per_node as usize),
        };
        nodes.iter().enumerate().map(of_node).collect()
    };
    // Where each node has a process of its own, there is no summary of how they ended.
    let exits = |code| match spread {
        Spread::Srun => exits(nodes, run.tasks_per_node, code),
        Spread::Mpirun | Spread::Each => String::new(),
    };
    let mut command = (Vec::new(), String::new(), 0, 0.05);
    match program.rsplit('/').next().unwrap_or_default() {
        "true" => {}
        "false" => {
            command.1 = exits(1);
            command.2 = 1;
        }
        "sleep" => match arguments.first().and_then(|seconds| seconds.parse::<f64>().ok()) {
            Some(seconds) if seconds.is_finite() && seconds >= 0.0 => command.3 = seconds,
            _ => {
                let word = arguments.first().map(String::as_str).unwrap_or_default();
                command.1 = format!("sleep: invalid time interval '{word}'\n{}", exits(1));
                command.2 = 1;
            }
        },
        "hostname" => command.0 = each(&|node| format!("{node}\n")),
        "echo" => command.0 = each(&|_| format!("{}\n", arguments.join(" "))),
        _ => {
            (command.1, command.2) = match spread {
                Spread::Srun => {
                    let error = "slurmstepd: error: execve()";
                    (format!("{error}: {program}: No such file or directory\n{}", exits(2)), 2)
                }
                _ => (format!("job.sh: {program}: command not found\n"), 127),
            };
            let (stdout, stderr, code, seconds) = command;
            return (Work::Command { stdout, stderr, code, seconds }, Some(program.to_owned()));
        }
    }
    let (stdout, stderr, code, seconds) = command;
    (Work::Command { stdout, stderr, code, seconds }, None)
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
