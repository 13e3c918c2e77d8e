//! dcgmi, nvbandwidth, stream, stress-ng and fio: programs that test their node by itself, and report at their end.

use super::job_run::JobRun;
use super::place::ProcessPlace;
use super::print_line;
use super::state::State;
use super::world::now_ns;
use job::script::{Run, Step};
use sim::work::Work;

pub(crate) async fn answer(state: &State, program: &str, arguments: &[String]) -> Result<i32, String> {
    let place = ProcessPlace::from_environment()?;
    let argv = std::iter::once(program.to_owned()).chain(arguments.iter().cloned()).collect();
    let run = Run { argv, tasks_per_node: 1, mpi: None, container: None, profile: None };
    let nodes = vec![place.node.clone()];
    let life = JobRun::new(state, (&place.case, &place.job), nodes, vec![Step::Run(run)], now_ns());
    let execution = life.execution();
    let Work::Command { stdout, stderr, code, .. } = &execution.work else {
        return Err(format!("`{program}` tests no node"));
    };
    while life.at_s() < execution.work_to_s {
        life.tick().await;
    }
    // What reads stdout reads all of it: the mark stands beside it.
    eprint!("{}", life.mark());
    eprint!("{stderr}");
    for text in stdout {
        print_line(text.trim_end_matches('\n'));
    }
    Ok(*code)
}
