//! Which kernels were launched within ranges of NCCL: kernel and launching call are matched by correlation id, call
//! and range by thread and time.

use super::Kernel;
use super::events::Event;
use crate::export::{ExportError, Rows};
use crate::tables::KERNEL;
use crate::trace::Trace;
use crate::trace::launches::{Calls, Launch};
use crate::trace::nesting::Stack;
use polars::prelude::PlHashMap;
use rayon::prelude::*;

/// Kernels of owners, and those of NCCL that have none, as rows of their table: most of what there is to say of them is
/// read when it is known which are looked at, and in which order.
#[derive(Default)]
pub(super) struct Joined {
    /// Owner and row, by owner and start.
    pub owned: Vec<(u32, u32)>,
    pub of_none: Vec<u32>,
    table: Option<Table>,
}

struct Table {
    rows: Rows,
    calls: Option<Calls>,
    /// Of each row the call that launched it.
    launch_of: Vec<u32>,
    names: Vec<String>,
    /// By id the number of the name, and whether it is a kernel of NCCL.
    named: PlHashMap<i64, (u32, bool)>,
}

pub(super) fn join(trace: &Trace, events: &[Event], of_event: &[Option<u32>]) -> Result<Joined, ExportError> {
    let columns = ["start", "end", "deviceId", "streamId", "correlationId", "globalPid", "shortName"];
    let Some(rows) = trace.export().columns(&KERNEL, &columns)? else { return Ok(Joined::default()) };
    let (starts, ends, devices) = (rows.ints("start")?, rows.ints("end")?, rows.ints("deviceId")?);
    let (ids, strings) = (rows.ints("shortName")?, trace.strings()?);
    let mut owner_of = vec![NO_OWNER; rows.len()];
    let mut launch_of = vec![NO_LAUNCH; rows.len()];
    let calls = Calls::read(trace, &[])?;
    if let Some(calls) = &calls {
        let launches = calls.launches(trace, "kernels", &rows)?;
        // Of several calls with one correlation the first one launched.
        launches.iter().rev().for_each(|launch| launch_of[launch.operation as usize] = launch.call);
        own(calls, launches, events, of_event, &mut owner_of)?;
    }
    let mut joined = Joined::default();
    let (mut names, mut named) = (Vec::new(), PlHashMap::default());
    let mut last = None;
    for row in 0..rows.len() {
        if ends[row] < starts[row] {
            continue;
        }
        let of_nccl = match last {
            Some((id, of_nccl)) if id == ids[row] => of_nccl,
            _ => {
                let (_, of_nccl) = *named.entry(ids[row]).or_insert_with(|| {
                    let name = strings.render(ids[row]).into_owned();
                    let of_nccl = name.starts_with("nccl");
                    names.push(name);
                    (names.len() as u32 - 1, of_nccl)
                });
                of_nccl
            }
        };
        last = Some((ids[row], of_nccl));
        match owner_of[row] {
            NO_OWNER if of_nccl => joined.of_none.push(row as u32),
            NO_OWNER => {}
            owner => joined.owned.push((owner, row as u32)),
        }
    }
    let key = |(owner, row): &(u32, u32)| (*owner, starts[*row as usize], devices[*row as usize], *row);
    if !joined.owned.is_sorted_by_key(key) {
        joined.owned.sort_unstable_by_key(key);
    }
    joined.table = Some(Table { rows, calls, launch_of, names, named });
    Ok(joined)
}

const NO_OWNER: u32 = u32::MAX;
const NO_LAUNCH: u32 = u32::MAX;

/// Of each kernel the owner in whose range it was launched.
fn own(
    calls: &Calls,
    launches: Vec<Launch>,
    events: &[Event],
    of_event: &[Option<u32>],
    owner_of: &mut [u32],
) -> Result<(), ExportError> {
    let (begun, done) = (calls.rows().ints("start")?, calls.rows().ints("end")?);
    let tids = calls.rows().maybe_ints("globalTid")?;
    let threads: Vec<&[Event]> = events.chunk_by(|a, b| a.global_tid == b.global_tid).collect();
    let numbers: PlHashMap<i64, usize> =
        threads.iter().enumerate().map(|(number, thread)| (thread[0].global_tid, number)).collect();
    let mut of_thread: Vec<Vec<Launch>> = threads.iter().map(|_| Vec::new()).collect();
    let mut last: Option<(i64, Option<usize>)> = None;
    for launch in launches {
        let Some(tid) = tids.get(launch.call as usize) else { continue };
        let number = match last {
            Some((known, number)) if known == tid => number,
            _ => numbers.get(&tid).copied(),
        };
        last = Some((tid, number));
        if let Some(number) = number {
            of_thread[number].push(launch);
        }
    }
    let mut first = 0;
    for (thread, mut launched) in threads.into_iter().zip(of_thread) {
        let span = |launch: &Launch| (begun[launch.call as usize], done[launch.call as usize]);
        if !launched.is_sorted_by_key(|launch| span(launch).0) {
            launched.sort_by_key(|launch| (span(launch), launch.operation));
        }
        let (mut next, mut stack) = (0, Stack::default());
        for launch in launched {
            let (start, end) = span(&launch);
            while let Some(event) = thread.get(next).filter(|event| event.start <= start) {
                stack.push(first + next, event.end);
                next += 1;
            }
            let owner = &mut owner_of[launch.operation as usize];
            if let Some(within) = stack.innermost(end).and_then(|event| of_event[event])
                && *owner == NO_OWNER
            {
                *owner = within;
            }
        }
        first += thread.len();
    }
    Ok(())
}

impl Joined {
    /// Those of owners in their order, behind them those of none by their beginnings; and the names of all.
    pub(super) fn kernels(mut self) -> Result<(Vec<Kernel>, Vec<String>), ExportError> {
        let Some(table) = self.table else { return Ok(Default::default()) };
        let rows = &table.rows;
        let (starts, ends) = (rows.ints("start")?, rows.ints("end")?);
        let (devices, streams) = (rows.ints("deviceId")?, rows.ints("streamId")?);
        let (pids, ids) = (rows.maybe_ints("globalPid")?, rows.ints("shortName")?);
        let (begun, done) = match &table.calls {
            Some(calls) => (calls.rows().ints("start")?, calls.rows().ints("end")?),
            None => Default::default(),
        };
        let kernel = |row: &u32| {
            let at = *row as usize;
            let launch = table.launch_of[at] as usize;
            Kernel {
                start: starts[at],
                end: ends[at],
                device: devices[at],
                stream: streams[at],
                launch_start: begun.get(launch).copied(),
                launch_end: done.get(launch).copied(),
                process: pids.get(at).unwrap_or_default(),
                name: table.named.get(&ids[at]).map_or(0, |(number, _)| *number),
            }
        };
        self.of_none.sort_by_key(|row| {
            let at = *row as usize;
            (starts[at], devices[at], ends[at], *row)
        });
        let owned = self.owned.par_iter().map(|(_, row)| kernel(row));
        let kernels = owned.chain(self.of_none.par_iter().map(kernel)).collect();
        Ok((kernels, table.names))
    }
}
