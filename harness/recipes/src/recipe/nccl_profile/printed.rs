//! The output of nccl-tests: its rows, and the calls that it must have made for them.

use super::super::nccl_tests::declared_size;
use super::super::{FileRole, JobInput, Workload};
use logs::nccl_tests::{self as source, NcclRun, element_bytes};
use metric::op::Op;
use nsys::nccl::sequence::{Plan, doubled};
use std::fs::File;
use std::io::BufReader;

pub(crate) struct Printed {
    pub op: Op,
    /// Of one communicator.
    pub ranks: u32,
    /// In the order in which they were measured.
    pub rows: Vec<Row>,
    /// The calls that each rank must have made, with the current and the older warm-up.
    pub plans: [Plan; 2],
    /// Operations between two readings of the clock.
    pub timed: u64,
    /// Operations of one call: more than one are put into a group.
    pub aggregated: u32,
}

/// One placement of one size.
pub(crate) struct Row {
    /// Which of the plan's.
    pub number: u32,
    pub size_bytes: u64,
    pub place: &'static str,
    pub time_us: f64,
    /// The largest rounding error.
    pub rounding_us: f64,
}

impl Printed {
    /// Fails with the reason why there is nothing to compare a report with.
    pub(crate) fn read(job: &JobInput) -> Result<Printed, String> {
        let Workload::NcclTests { op, ranks_per_communicator, .. } = &job.workload else {
            return Err("the workload is not nccl-tests".to_owned());
        };
        if *op == Op::Hypercube {
            return Err("hypercube makes several calls of several sizes per counted operation".to_owned());
        }
        let run = table(job)?;
        if run.cpu_time {
            return Err("nccl-tests printed CPU times, which reports of GPUs lack".to_owned());
        }
        let said = run.parameters.as_ref().ok_or("the output lacks the parameters of nccl-tests")?;
        if said.graph.is_some_and(|launches| launches > 0) {
            return Err("nccl-tests launched CUDA graphs, whose calls are traced only once".to_owned());
        }
        let number = |what: &str, value: Option<u64>| {
            let value = value.and_then(|value| u32::try_from(value).ok());
            value.ok_or_else(|| format!("the output lacks the number of {what}"))
        };
        let iterations = number("iterations", said.iterations)?;
        let warmup = number("warm-up iterations", said.warmup)?;
        let checks = number("checks", said.validation)?;
        // Old versions have one at a time, and do not say so.
        let aggregated = number("aggregated iterations", said.agg_iterations.or(Some(1)))?.max(1);
        let ranks = ranks_per_communicator.unwrap_or(run.ranks.len() as u32);
        if iterations == 0 || ranks < 2 {
            return Err(format!("nothing to compare: {iterations} iterations of {ranks} ranks"));
        }
        let sizes = |run: &NcclRun| {
            let bytes = run.rows.iter().map(|row| row.count.checked_mul(element_bytes(&row.dtype)?));
            bytes.collect::<Option<Vec<u64>>>()
        };
        let least = said.min_bytes.or(run.rows.first().map(|row| row.size_bytes)).unwrap_or_default();
        let most = said.max_bytes.or(run.rows.last().map(|row| row.size_bytes)).unwrap_or_default();
        let plan = |warmups: usize| Plan {
            rows: sizes(&run).unwrap_or_default(),
            // Only the number of warm-up rows is known: the part of one rank is rounded.
            warmup_rows: if warmup == 0 { Vec::new() } else { vec![0; warmups] },
            warmup,
            iterations,
            // Aggregated operations are one group, and one call here.
            aggregated: 1,
            checks,
            in_place: run.rows.iter().any(|row| row.in_place.is_some()),
            cycles: 1,
        };
        let plans = [plan(doubled(least, most).len()), plan(2)];
        if plans[0].rows.len() != run.rows.len() {
            return Err("a row has a data type of unknown size".to_owned());
        }
        let timed = u64::from(iterations) * u64::from(aggregated);
        Ok(Printed { op: *op, ranks, rows: rows(job, &run, ranks), plans, timed, aggregated })
    }
}

/// The one table of the job.
fn table(job: &JobInput) -> Result<NcclRun, String> {
    let mut runs = Vec::new();
    for file in job.files_of(FileRole::NcclTests) {
        let opened = File::open(&file.path).map(BufReader::new);
        let read = opened.and_then(|from| source::read_stream(from, &file.shown));
        let read = read.map_err(|error| format!("{}: {error}", file.shown))?;
        let read = read.map_err(|error| format!("{}: {error}", file.shown))?;
        runs.extend(read.runs.into_iter().filter(|run| !run.rows.is_empty()));
    }
    match (runs.pop(), runs.is_empty()) {
        (Some(run), true) => Ok(run),
        (None, _) => Err("no table of nccl-tests to compare the reports with".to_owned()),
        (Some(_), false) => Err(format!("{} tables of nccl-tests, expected 1", runs.len() + 1)),
    }
}

fn rows(job: &JobInput, run: &NcclRun, ranks: u32) -> Vec<Row> {
    let mut rows = Vec::new();
    for (number, row) in run.rows.iter().enumerate() {
        // The smallest sizes are rounded to nothing, which is no measurement.
        let Some(size_bytes) = declared_size(row.size_bytes, job, Some(ranks)) else { continue };
        for (place, half) in [("out", &row.out_of_place), ("in", &row.in_place)] {
            let Some(half) = half else { continue };
            rows.push(Row {
                number: number as u32,
                size_bytes,
                place,
                time_us: half.time_us,
                rounding_us: half.rounding.time_us,
            });
        }
    }
    rows
}
