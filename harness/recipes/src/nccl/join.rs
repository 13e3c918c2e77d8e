//! Which kernels were launched within ranges of NCCL: kernel and launching call meet by their correlation, call and range
//! by thread and time.

use super::Kernel;
use super::events::Event;
use crate::source::nsys_export::ExportError;
use crate::tables::KERNEL;
use crate::trace::Trace;
use crate::trace::launches::Calls;
use crate::trace::nesting::Stack;
use std::collections::HashMap;

/// Kernels of owners, and those of NCCL that have none.
#[derive(Debug, Default)]
pub(super) struct Joined {
    /// Owner, row and kernel, by owner and start.
    pub owned: Vec<(u32, u32, Kernel)>,
    /// Row and kernel.
    pub of_none: Vec<(u32, Kernel)>,
    pub names: Vec<String>,
}

/// A launch by a thread that has events.
struct Launched {
    start: i64,
    end: i64,
    kernel: u32,
}

pub(super) fn join(trace: &Trace, events: &[Event], of_event: &[Option<u32>]) -> Result<Joined, ExportError> {
    let columns = ["start", "end", "deviceId", "streamId", "correlationId", "globalPid", "shortName"];
    let Some(rows) = trace.export().columns(&KERNEL, &columns)? else { return Ok(Joined::default()) };
    let (starts, ends) = (rows.ints("start")?, rows.ints("end")?);
    let mut owner_of = vec![NO_OWNER; rows.len()];
    let mut launch_of: Vec<(i64, i64)> = vec![NO_LAUNCH; rows.len()];
    if let Some(calls) = Calls::read(trace, &[])? {
        let (begun, done) = (calls.rows().ints("start")?, calls.rows().ints("end")?);
        let tids = calls.rows().maybe_ints("globalTid")?;
        let threads: Vec<&[Event]> = events.chunk_by(|a, b| a.global_tid == b.global_tid).collect();
        let numbers: HashMap<i64, usize> =
            threads.iter().enumerate().map(|(number, thread)| (thread[0].global_tid, number)).collect();
        let mut of_thread: Vec<Vec<Launched>> = threads.iter().map(|_| Vec::new()).collect();
        let mut last: Option<(i64, Option<usize>)> = None;
        for launch in calls.launches(trace, "kernels", &rows)? {
            let (call, kernel) = (launch.call as usize, launch.operation as usize);
            // Of several calls with one correlation the first one launched.
            if launch_of[kernel] == NO_LAUNCH {
                launch_of[kernel] = (begun[call], done[call]);
            }
            let Some(tid) = tids.get(call) else { continue };
            let number = match last {
                Some((known, number)) if known == tid => number,
                _ => numbers.get(&tid).copied(),
            };
            last = Some((tid, number));
            if let Some(number) = number {
                let (start, end) = (begun[call], done[call]);
                of_thread[number].push(Launched { start, end, kernel: launch.operation });
            }
        }
        let mut first = 0;
        for (thread, mut launched) in threads.into_iter().zip(of_thread) {
            if !launched.is_sorted_by_key(|one| one.start) {
                launched.sort_by_key(|one| (one.start, one.end, one.kernel));
            }
            let (mut next, mut stack) = (0, Stack::default());
            for one in launched {
                while let Some(event) = thread.get(next).filter(|event| event.start <= one.start) {
                    stack.push(first + next, event.end);
                    next += 1;
                }
                let owner = &mut owner_of[one.kernel as usize];
                if let Some(within) = stack.innermost(one.end).and_then(|event| of_event[event])
                    && *owner == NO_OWNER
                {
                    *owner = within;
                }
            }
            first += thread.len();
        }
    }
    let (devices, streams) = (rows.ints("deviceId")?, rows.ints("streamId")?);
    let (pids, ids, strings) = (rows.maybe_ints("globalPid")?, rows.ints("shortName")?, trace.strings()?);
    let mut joined = Joined::default();
    // By id the number of the name, and whether it is a kernel of NCCL.
    let mut named: HashMap<i64, (u32, bool)> = HashMap::new();
    for row in 0..rows.len() {
        if ends[row] < starts[row] {
            continue;
        }
        let owner = owner_of[row];
        let (name, of_nccl) = *named.entry(ids[row]).or_insert_with(|| {
            let name = strings.shown(ids[row]).into_owned();
            let of_nccl = name.starts_with("nccl");
            joined.names.push(name);
            (joined.names.len() as u32 - 1, of_nccl)
        });
        if owner == NO_OWNER && !of_nccl {
            continue;
        }
        let launch = Some(launch_of[row]).filter(|launch| *launch != NO_LAUNCH);
        let kernel = Kernel {
            start: starts[row],
            end: ends[row],
            device: devices[row],
            stream: streams[row],
            launch_start: launch.map(|(start, _)| start),
            launch_end: launch.map(|(_, end)| end),
            process: pids.get(row).unwrap_or_default(),
            name,
        };
        match owner {
            NO_OWNER => joined.of_none.push((row as u32, kernel)),
            owner => joined.owned.push((owner, row as u32, kernel)),
        }
    }
    let key = |(owner, row, kernel): &(u32, u32, Kernel)| (*owner, kernel.start, kernel.device, *row);
    if !joined.owned.is_sorted_by_key(key) {
        joined.owned.sort_unstable_by_key(key);
    }
    Ok(joined)
}

const NO_OWNER: u32 = u32::MAX;
const NO_LAUNCH: (i64, i64) = (i64::MAX, i64::MIN);
