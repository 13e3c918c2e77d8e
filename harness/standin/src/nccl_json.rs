//! The file that `-J` names: what a program of nccl-tests prints, as JSON in the words of its newer versions, with the
//! whole environment, as they have it. It is made at once and filled as the program ends, so that one that was cut off
//! is incomplete.

use super::MARK;
use super::job_run::JobRun;
use super::state::State;
use super::world::now_ns;
use serde_json::{Map, Value, json};
use sim::nccl;
use sim::options::{Options, Step};
use sim::software::NCCL_CODE;
use sim::work::{Row, Table, noise_of};
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write};
use store::iso8601;

const NAMES: [&str; 2] = ["-J", "--output_file"];

/// The file that is asked for, and the other words.
pub(crate) fn asked(arguments: &[String]) -> Result<(Option<String>, Vec<String>), String> {
    let (mut file, mut others) = (None, Vec::new());
    let mut arguments = arguments.iter();
    while let Some(word) = arguments.next() {
        let glued = NAMES.iter().find_map(|name| word.strip_prefix(name));
        match glued.map(|rest| rest.strip_prefix('=').unwrap_or(rest)) {
            Some("") => file = Some(arguments.next().ok_or("option requires an argument -- 'J'")?.clone()),
            Some(name) => file = Some(name.to_owned()),
            None => others.push(word.clone()),
        }
    }
    Ok((file, others))
}

/// The contents of the file.
pub(crate) struct Contents<'a> {
    pub state: &'a State,
    pub life: &'a JobRun,
    pub table: &'a Table,
    pub argv: Vec<String>,
}

/// The file while the program runs, and what is still to be written.
pub(crate) struct Output {
    file: File,
    name: String,
    rest: String,
}

impl Output {
    /// A file that is there is never written over: the name gets a number.
    pub(crate) fn begin(name: &str, contents: &Contents<'_>) -> Result<Output, String> {
        let mut names = std::iter::once(name.to_owned()).chain((0..1000).map(|nth| format!("{name}.{nth}")));
        let (mut file, name) = loop {
            let name = names.next().ok_or_else(|| format!("too many files of that name: {name}"))?;
            match OpenOptions::new().write(true).create_new(true).open(&name) {
                Ok(file) => break (file, name),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(format!("{name}: {error}")),
            }
        };
        let text = format!("{:#}\n", contents.value());
        let (head, _) = text.split_once("\"results\"").ok_or("no results")?;
        let rest = text.get(head.len()..).unwrap_or_default().to_owned();
        file.write_all(head.as_bytes()).map_err(|error| format!("{name}: {error}"))?;
        Ok(Output { file, name, rest })
    }

    pub(crate) fn end(mut self) -> Result<(), String> {
        let now = clock();
        let rest = self.rest.replace(END, &now);
        self.file.write_all(rest.as_bytes()).map_err(|error| format!("{}: {error}", self.name))
    }
}

/// Stands for a moment that is still to come.
const END: &str = "not ended";

/// As these programs write it.
fn clock() -> String {
    let text = iso8601(now_ns() as f64 * 1e-9).replace('T', " ");
    text.chars().take(19).collect()
}

impl Contents<'_> {
    fn value(&self) -> Value {
        let table = self.table;
        let environment: Vec<String> = std::env::vars_os()
            .map(|(name, value)| format!("{}={}", name.display(), value.display()))
            .collect();
        let (wrong, mean) = nccl::closing(table);
        json!({
            "version": 1,
            "simulated": self.life.mark().trim_end(),
            "start_time": clock(),
            "args": self.argv,
            "env": environment,
            "nccl_version": NCCL_CODE,
            "config": config(&table.options, self.devices()),
            "results": table.rows.iter().map(|row| result(table, row)).collect::<Vec<_>>(),
            "out_of_bounds": { "count": wrong, "okay": (wrong == 0).to_string() },
            "average_bus_bandwidth": { "bandwidth": mean, "okay": "unchecked" },
            "end_time": END,
            "errors": [""],
        })
    }

    fn devices(&self) -> Vec<Value> {
        let (cluster, execution, table) = (&self.state.cluster, self.life.execution(), self.table);
        let hosts = execution.nodes.get(table.world.nodes.clone()).unwrap_or_default();
        let per_node = (table.ranks as usize / hosts.len().max(1)).max(1);
        let what = format!("pid{:?}{:?}", table.world.nodes, table.world.gpu);
        let first = nccl::first_pid(&mut noise_of(cluster, &execution.case, &execution.job, &what));
        let device = |rank: usize| {
            let local = rank % per_node;
            let gpu = table.world.gpu.map_or(local, |gpu| gpu as usize + local);
            json!({
                "rank": rank,
                "group": nccl::group_of(table, rank),
                "pid": first + (rank / table.options.gpus.max(1) as usize) as u64,
                "hostname": hosts.get(rank / per_node),
                "device": local,
                "device_hex": format!("0000:{:02x}:00", sim::pci::bus(cluster.gpus, gpu)),
                "device_info": cluster.gpu_name,
            })
        };
        (0..table.ranks as usize).map(device).collect()
    }
}

fn config(options: &Options, devices: Vec<Value>) -> Value {
    let mut config = Map::new();
    let mut set = |name: &str, value: Value| config.insert(name.to_owned(), value);
    set("nthreads", json!(1));
    set("ngpus", json!(options.gpus));
    set("minimum_bytes", json!(options.min_bytes));
    set("maximum_bytes", json!(options.max_bytes));
    match options.step {
        Step::Bytes(bytes) => set("step_bytes", json!(bytes)),
        Step::Factor(factor) => set("step_factor", json!(factor)),
    };
    set("warmup_iters", json!(options.warmup));
    set("iterations", json!(options.iterations));
    set("aggregated_iterations", json!(options.aggregated));
    set("validation", json!(u8::from(options.check)));
    set("graph", json!(options.graph_launches));
    set("blocking_collectives", json!("false"));
    set("parallel_init", json!("false"));
    set("devices", Value::Array(devices));
    Value::Object(config)
}

fn result(table: &Table, row: &Row) -> Value {
    let (redop, root) = nccl::redop_and_root(&table.options);
    let half = |us: f64, checks: bool| {
        let (algbw, busbw) = nccl::bandwidth(table, row.bytes, us);
        let wrong = checks.then_some(row.wrong);
        json!({ "time": us, "alg_bw": algbw, "bus_bw": busbw, "nwrong": wrong })
    };
    json!({
        "size": row.bytes,
        "count": row.count,
        "type": table.options.dtype,
        "redop": redop,
        "root": format!("{root:>6}"),
        "out_of_place": half(row.out_us, table.options.check),
        "in_place": half(row.in_us, nccl::checks_in_place(&table.options)),
        "actual_iterations": table.options.iterations,
        "experiment_name": MARK,
    })
}
