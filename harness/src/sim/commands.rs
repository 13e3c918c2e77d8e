//! The short list of programs, beside nccl-tests, that a job of the pretend cluster can run: `true`, `false`, `sleep`,
//! `hostname` and `echo`. Anything else is a loud error.

use super::ailments::Ailments;
use super::work::Work;
use crate::script::Run;

/// What the program does, and its name where this world does not have it.
pub fn run(ailments: &Ailments, nodes: &[String], run: &Run) -> (Work, Option<String>) {
    let program = run.argv.first().map(String::as_str).unwrap_or_default();
    let arguments = run.argv.get(1..).unwrap_or_default();
    // Where a node's ranks do not find the others, Slurm starts fewer tasks than were asked for.
    let lost = ailments.wrong_ranks();
    let tasks = nodes.iter().enumerate().filter(|(node, _)| nodes.len() == 1 || lost != Some(*node));
    let each = tasks.flat_map(|(_, node)| (0..run.tasks_per_node).map(move |_| node));
    let mut command = (String::new(), String::new(), 0, 0.05);
    match program.rsplit('/').next().unwrap_or_default() {
        "true" => {}
        "false" => {
            command.1 = exits(nodes, run.tasks_per_node, 1);
            command.2 = 1;
        }
        "sleep" => match arguments.first().and_then(|seconds| seconds.parse::<f64>().ok()) {
            Some(seconds) if seconds.is_finite() && seconds >= 0.0 => command.3 = seconds,
            _ => {
                let word = arguments.first().map(String::as_str).unwrap_or_default();
                command.1 =
                    format!("sleep: invalid time interval '{word}'\n{}", exits(nodes, run.tasks_per_node, 1));
                command.2 = 1;
            }
        },
        "hostname" => command.0 = each.map(|node| format!("{node}\n")).collect(),
        "echo" => command.0 = each.map(|_| format!("{}\n", arguments.join(" "))).collect(),
        _ => {
            command.1 = format!("slurmstepd: error: execve(): {program}: No such file or directory\n");
            command.1.push_str(&exits(nodes, run.tasks_per_node, 2));
            command.2 = 2;
            let (stdout, stderr, code, seconds) = command;
            return (Work::Command { stdout, stderr, code, seconds }, Some(program.to_owned()));
        }
    }
    let (stdout, stderr, code, seconds) = command;
    (Work::Command { stdout, stderr, code, seconds }, None)
}

/// What srun says of tasks that did not end with 0.
pub fn exits(nodes: &[String], tasks_per_node: u32, code: i32) -> String {
    let line = |(at, node): (usize, &String)| {
        let (first, last) = (at as u32 * tasks_per_node, (at as u32 + 1) * tasks_per_node - 1);
        match first == last {
            true => format!("srun: error: {node}: task {first}: Exited with exit code {code}\n"),
            false => format!("srun: error: {node}: tasks {first}-{last}: Exited with exit code {code}\n"),
        }
    };
    nodes.iter().enumerate().map(line).collect()
}
