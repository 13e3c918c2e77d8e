//! Stand-ins for the programs of a cluster, as one executable that answers by the name it is called by: the model of the
//! simulated cluster (`sim`) behind real processes, so that real servers run the very text that a user's cluster would.
//! How real servers are started is the business of tests.
//!
//! A folder holds their state (`state`): what they simulated to be, a tree of counters for each host, and where ranks
//! meet. A workload takes as long as the model says, of which only the last part is lived through: that part at its true
//! pace, on the machine's clock and on the counters alike, and nothing of what was before. What it says of its own
//! times is the model's. Everything that is left says SIMULATED.

mod fabric;
mod flows;
mod job_run;
mod mpirun;
mod nccl_json;
mod nccl_tests;
mod node_tools;
mod nsys;
mod nvidia_smi;
mod place;
mod profiling;
mod python;
mod rank;
mod report;
mod session;
mod setup;
mod state;
#[cfg(test)]
mod tests;
mod torchrun;
mod world;

/// What the text of a stand-in begins with.
use job::script::SIMULATED as MARK;
pub use setup::set_up;
pub(crate) use state::STATE;

use metric::op::Op;
use state::State;
use std::fmt::Display;
use std::io::Write;
use std::path::PathBuf;

/// The programs that there are, beside those of nccl-tests.
const OTHERS: [&str; 16] = [
    "nsys",
    "fi_rma_bw",
    "ib_write_bw",
    "ib_read_bw",
    "mpirun",
    "torchrun",
    "nemo",
    "python3",
    "nvidia-smi",
    "fi_info",
    "ibv_devices",
    "dcgmi",
    "nvbandwidth",
    "stream",
    "stress-ng",
    "fio",
];

/// Every name by which the executable can be called.
pub(crate) fn names() -> Vec<String> {
    Op::ALL.iter().map(|op| op.program()).chain(OTHERS.map(str::to_owned)).collect()
}

/// How a program was called: its name, its arguments, and its path, if known.
pub(crate) struct Call {
    /// Without its folder: `nsys`.
    pub program: String,
    /// Without the program's name.
    pub arguments: Vec<String>,
    /// Absent where the program was given as the first argument.
    pub path: Option<PathBuf>,
}

impl Call {
    /// By the name of the executable, or by the first word where that is the name of none.
    fn read(all: Vec<String>) -> Option<Call> {
        let mut arguments = all.into_iter();
        let own = arguments.next()?;
        let name = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
        if names().contains(&name(&own)) {
            return Some(Call {
                program: name(&own),
                arguments: arguments.collect(),
                path: Some(own.into()),
            });
        }
        Some(Call { program: name(&arguments.next()?), arguments: arguments.collect(), path: None })
    }
}

/// Answers as the program that it was called as; gives the exit code.
pub fn main(arguments: Vec<String>) -> i32 {
    let Some(call) = Call::read(arguments) else {
        eprintln!(
            "standin: call it by the name of a program, or give the program as the first argument: {}",
            names().join(", ")
        );
        return 2;
    };
    if call.program == "set-up" {
        return setup::by_command(&call.arguments);
    }
    let answered = State::find(&call).and_then(|state| answer(&state, &call));
    answered.unwrap_or_else(|why| {
        eprintln!("{}: stand-in: {why}", call.program);
        1
    })
}

/// Prints a line. The reader may have closed the pipe: that is no failure of a program that only reports.
fn print_line(line: impl Display) {
    let _ = writeln!(std::io::stdout(), "{line}");
}

fn answer(state: &State, call: &Call) -> Result<i32, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("no runtime: {error}"))?;
    runtime.block_on(async {
        match call.program.as_str() {
            "nsys" => nsys::answer(state, &call.arguments).await,
            "fi_rma_bw" | "ib_write_bw" | "ib_read_bw" => {
                flows::answer(state, &call.program, &call.arguments).await
            }
            "mpirun" => mpirun::answer(state, &call.arguments).await,
            "torchrun" | "nemo" => torchrun::answer(state, &call.program, &call.arguments).await,
            "python3" => python::answer(state, &call.arguments).await,
            "nvidia-smi" => Ok(nvidia_smi::answer(state, &call.arguments)),
            "fi_info" => Ok(fabric::answer(state, &call.arguments)),
            "ibv_devices" => Ok(fabric::devices(state)),
            "dcgmi" | "nvbandwidth" | "stream" | "stress-ng" | "fio" => {
                node_tools::answer(state, &call.program, &call.arguments).await
            }
            program => match program.strip_suffix("_perf").and_then(Op::from_name) {
                Some(op) => nccl_tests::answer(state, op, &call.arguments).await,
                None => Err(format!("unknown program; known: `{}`", names().join("`, `"))),
            },
        }
    })
}
