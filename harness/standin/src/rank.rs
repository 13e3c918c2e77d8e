//! One process of a workload from its first word to its last: it prints, moves the counters of its host where that is
//! its part, leaves a record for a profiler around it, and ends as the model says. Each program makes its own output.

use super::job_run::{Counters, JobRun};
use super::place::ProcessPlace;
use super::report::Record;
use job::script::Step;
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use sim::active_faults::Ending;
use sim::execution::{Execution, Own};
use sim::mangled::mangle;
use std::io::Write;
use std::time::Duration;
use tokio::time::sleep;

/// What a process has printed by a moment of its job, and whether that is all there will be. It only ever grows.
pub(crate) type Text<'a> = &'a dyn Fn(f64) -> String;

/// Its part in a job.
pub(crate) struct Part<'a> {
    pub place: &'a ProcessPlace,
    pub steps: Vec<Step>,
    /// What it does on its host, of so many that do.
    pub local: (u32, u32),
    pub counters: Counters,
    pub text: Text<'a>,
    /// By the end: what the last line looks like where it broke off.
    pub last: String,
}

/// From a rank's death to the moment at which the others notice.
const NOTICE: Duration = Duration::from_millis(1500);

pub(crate) async fn live(life: &JobRun, part: Part<'_>) -> Result<i32, String> {
    let Part { place, steps, local, mut counters, text, last } = part;
    let execution = life.execution();
    let node = execution.nodes.iter().position(|node| *node == place.node);
    let ails = |is: &dyn Fn(usize) -> bool| node.is_some_and(is);
    let silent = ails(&|node| execution.active_faults.output_missing(node));
    let garbled = ails(&|node| execution.active_faults.garbled(node));
    let record = Record::for_process(place, life, steps)?;
    if record.is_some() {
        // A profiler that is killed must not leave behind what it started.
        let _ = set_pdeathsig(Signal::SIGKILL);
    }
    let mut printed = 0;
    loop {
        let at_s = life.at_s();
        counters.show(at_s)?;
        if !silent && !garbled {
            printed = say(&text(at_s), printed)?;
        }
        // By the same look at the clock: what is shown last is all of it.
        if at_s >= execution.work_to_s {
            break;
        }
        life.tick().await;
    }
    match (silent, garbled) {
        (true, _) => {}
        (_, true) => {
            say(&String::from_utf8_lossy(&mangle(last.into_bytes())), 0)?;
        }
        _ => {
            say(&last, printed)?;
        }
    }
    let code = end(execution, node, local).await;
    if let (0, Some(record)) = (code, record) {
        record.close()?;
    }
    Ok(code)
}

/// Prints what was not printed yet.
fn say(text: &str, printed: usize) -> Result<usize, String> {
    let Some(rest) = text.as_bytes().get(printed..).filter(|rest| !rest.is_empty()) else {
        return Ok(printed);
    };
    let mut stdout = std::io::stdout().lock();
    let failed = |error| format!("write error: {error}");
    stdout.write_all(rest).map_err(failed)?;
    stdout.flush().map_err(failed)?;
    Ok(text.len())
}

async fn end(execution: &Execution, node: Option<usize>, (local, locals): (u32, u32)) -> i32 {
    match execution.active_faults.ending {
        // A stand-in does not wait until a watchdog gives up.
        Some((Ending::Hang | Ending::Desync, _)) => loop {
            // An interruption is heard and changes nothing.
            let _ = tokio::signal::ctrl_c().await;
        },
        Some((Ending::RankDies, at)) if Some(at) == node && local == locals / 2 => {
            let _ = kill(Pid::this(), Signal::SIGKILL);
            137
        }
        Some((Ending::RankDies, at)) => {
            sleep(NOTICE).await;
            let host = execution.nodes.get(at).map_or("", String::as_str);
            eprintln!("NCCL WARN remote process exited or there was a network error: {host}");
            1
        }
        Some((Ending::DiskFull, at)) if Some(at) == node => {
            eprintln!("write error: No space left on device");
            1
        }
        Some((Ending::DiskFull, _)) => {
            sleep(NOTICE).await;
            1
        }
        _ => match execution.end {
            Own::Exit(code) => code,
            Own::NodeFail | Own::Preempted => 1,
        },
    }
}
