//! Memory operations of DirectX 12 that its own documentation warns of as costly.

use super::note_none;
use crate::recipe::of_reports::{RecipeKind, ReportRecipe};
use crate::result_table::{Column, Quantity, ResultTable};
use nsys::export::ExportError;
use nsys::tables::{DX12_API, DX12_MEMORY_OPERATION, STRING_IDS};
use nsys::trace::{Trace, pid_of, tid_of};
use std::collections::HashMap;

pub(in super::super) const DX12_MEM_OPS: ReportRecipe = ReportRecipe {
    name: "dx12_mem_ops",
    title: "Costly Memory Operations of DirectX 12",
    about: "memory operations of DirectX 12 that its documentation warns of as costly",
    definition: "reading what is written for a GPU: a Map whose range is not empty, or a ReadFromSubresource, of an upload heap \
                 or of a custom one with write-combined pages; writing what is read back from a GPU: an Unmap whose range is \
                 not empty, or a WriteToSubresource, of a readback heap; memory that is zeroed when it is made: a CreateHeap \
                 or CreateCommittedResource without the flag CREATE_NOT_ZEROED. An operation whose call or whose heap is not \
                 recorded is counted in a note. In the order of the calls' beginnings",
    arguments: &[],
    tables: &[&DX12_MEMORY_OPERATION, &DX12_API, &STRING_IDS],
    kind: RecipeKind::Rows {
        columns: &[&[
            "Cost: why it is costly",
            "Start",
            "Duration",
            "PID",
            "TID",
            "GPU",
            "Heap: the kind of heap",
            "Range: bytes of the range",
            "API: the call, by name",
        ]],
        of: |trace, _| found(trace),
    },
};

const UPLOAD: i64 = 2;
const READBACK: i64 = 3;
const CUSTOM: i64 = 4;
const WRITE_COMBINE: i64 = 2;
const CREATE_NOT_ZEROED: i64 = 0x1000;

/// The recorded properties of one operation.
struct Operation {
    heap: Option<i64>,
    flags: Option<i64>,
    pages: Option<i64>,
    bytes: Option<i64>,
}

impl Operation {
    /// `None` where the properties that decide are not recorded.
    fn cost(&self, call: &str) -> Option<Option<&'static str>> {
        let has_range = || self.bytes.map(|bytes| bytes > 0);
        let is_combined = || match self.heap? {
            UPLOAD => Some(true),
            CUSTOM => Some(self.pages? == WRITE_COMBINE),
            _ => Some(false),
        };
        let reads = "reads what is written for a GPU";
        let writes = "writes what is read back from a GPU";
        let cost = |is: Option<bool>, why| Some(is?.then_some(why));
        let and = |one: Option<bool>, two: Option<bool>| match (one, two) {
            (Some(false), _) | (_, Some(false)) => Some(false),
            (one, two) => Some(one? && two?),
        };
        match () {
            () if call.contains("ReadFromSubresource") => cost(is_combined(), reads),
            () if call.contains("WriteToSubresource") => cost(self.heap.map(|heap| heap == READBACK), writes),
            () if call.contains("Unmap") => {
                cost(and(has_range(), self.heap.map(|heap| heap == READBACK)), writes)
            }
            () if call.contains("Map") => cost(and(has_range(), is_combined()), reads),
            () if call.contains("CreateHeap") || call.contains("CreateCommittedResource") => {
                cost(self.flags.map(|flags| flags & CREATE_NOT_ZEROED == 0), "is zeroed when it is made")
            }
            () => Some(None),
        }
    }
}

fn found(trace: &Trace) -> Result<Option<ResultTable>, ExportError> {
    let names = ["traceEventId", "gpu", "rangeStart", "rangeEnd", "heapType", "heapFlags", "cpuPageProperty"];
    let Some(rows) = trace.rows(&DX12_MEMORY_OPERATION, &names)? else { return Ok(None) };
    // Under a filter only operations of the remaining calls are checked.
    let calls = trace.rows(&DX12_API, &["id", "start", "end", "nameId", "globalTid"])?;
    let mut of_id: HashMap<i64, usize> = HashMap::new();
    if let Some(calls) = &calls {
        for (row, id) in calls.ints("id")?.iter().enumerate() {
            of_id.entry(*id).or_insert(row);
        }
    }
    let [gpus, from, to, heaps, flags, pages] = [
        rows.maybe_ints("gpu")?,
        rows.maybe_ints("rangeStart")?,
        rows.maybe_ints("rangeEnd")?,
        rows.maybe_ints("heapType")?,
        rows.maybe_ints("heapFlags")?,
        rows.maybe_ints("cpuPageProperty")?,
    ];
    let (strings, mut lost, mut unknown) = (trace.strings()?, 0usize, 0usize);
    let mut found = Vec::new();
    for (row, id) in rows.ints("traceEventId")?.iter().enumerate() {
        let Some((calls, call)) = calls.as_ref().zip(of_id.get(id).copied()) else {
            lost += 1;
            continue;
        };
        let operation = Operation {
            heap: heaps.get(row),
            flags: flags.get(row),
            pages: pages.get(row),
            bytes: to.get(row).zip(from.get(row)).map(|(to, from)| to.saturating_sub(from)),
        };
        let name = strings.render(calls.ints("nameId")?[call]);
        match operation.cost(&name) {
            Some(Some(why)) => {
                let (start, end) = (calls.ints("start")?[call], calls.ints("end")?[call]);
                let tid = calls.maybe_ints("globalTid")?.get(call);
                found.push((start, row, end.saturating_sub(start), tid, gpus.get(row), operation, name, why));
            }
            Some(None) => {}
            None => unknown += 1,
        }
    }
    for (count, why) in [(lost, "whose call is not in the report"), (unknown, "whose heap is not recorded")] {
        if count > 0 {
            trace.note(format!("memory operations {why}, left out: {count}"));
        }
    }
    found.sort_by_key(|one| (one.0, one.1));
    note_none(trace, DX12_MEM_OPS.name, "memory operations", rows.len(), found.len());
    let (plain, ns) = (Quantity::Plain, Quantity::Nanoseconds);
    let heap = |heap: i64| ["Default", "Upload", "Readback", "Custom"].get(heap as usize - 1).copied();
    let columns = vec![
        Column::texts("Cost", found.iter().map(|one| one.7)),
        Column::integers("Start", ns, found.iter().map(|one| one.0)),
        Column::integers("Duration", ns, found.iter().map(|one| one.2)),
        Column::maybe_integers("PID", plain, found.iter().map(|one| one.3.map(pid_of))),
        Column::maybe_integers("TID", plain, found.iter().map(|one| one.3.map(tid_of))),
        Column::maybe_integers("GPU", plain, found.iter().map(|one| one.4)),
        Column::maybe_texts(
            "Heap",
            found.iter().map(|one| one.5.heap.filter(|kind| (1..=4).contains(kind)).and_then(heap)),
        ),
        Column::maybe_integers("Range", Quantity::Bytes, found.iter().map(|one| one.5.bytes)),
        Column::texts("API", found.iter().map(|one| one.6.as_ref())),
    ];
    Ok(Some(ResultTable::new(DX12_MEM_OPS.name, DX12_MEM_OPS.title, columns)))
}
