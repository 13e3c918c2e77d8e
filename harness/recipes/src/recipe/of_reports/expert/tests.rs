//! Each fault on a small export that has it, beside healthy rows, and the notes where tables are absent.

use crate::recipe::of_reports::Outcome;
use crate::recipe::of_reports::tests::{decimals, inputs, integers, surveyed, table, texts};
use crate::testing::{Made, OTHER_PROCESS, PROCESS};
use nsys::tables::{DX12_API, DX12_MEMORY_OPERATION, MEMCPY, MEMSET, PROFILER_OVERHEAD, TableSpec};

fn put(made: &Made, spec: &TableSpec, row: &[(&str, i64)]) {
    let row: Vec<_> = row.iter().map(|(name, value)| (*name, (*value).into())).collect();
    made.put(spec, &row);
}

fn run(made: &Made, words: &str) -> Outcome {
    let mut words: Vec<&str> = words.split(':').collect();
    surveyed(words.remove(0), &words, &inputs(vec![made.path()]))
}

/// Calls by name, each of 10 ns at ten times its correlation.
fn calls(names: &[&str]) -> Made {
    let made = Made::begin();
    for (name, id) in names.iter().zip(1..) {
        made.string(id, name).call((id * 10, id * 10 + 10), 7, id, id);
    }
    made
}

#[test]
fn calls_that_wait_for_a_gpu_are_listed_and_those_that_wait_for_an_event_are_not() {
    let made = calls(&[
        "cudaStreamSynchronize_v3020",
        "cudaEventSynchronize_v3020",
        "cuCtxSynchronize",
        "cudaLaunchKernel_v7000",
        "my_cudaDeviceSynchronize",
    ]);
    made.string(9, "cudaDeviceSynchronize_v3020").call((500, 900), 8, 9, 9).call((9, 3), 8, 10, 9);
    let outcome = run(&made, "cuda_api_sync");
    let rows = table(&outcome, "rows");
    assert_eq!(texts(rows, "API"), ["cudaDeviceSynchronize", "cudaStreamSynchronize", "cuCtxSynchronize"]);
    assert_eq!(integers(rows, "Duration"), [Some(400), Some(10), Some(10)]);
    assert_eq!((integers(rows, "TID")[0], integers(rows, "PID")[0]), (Some(8), Some(40)));
    assert_eq!(table(&run(&made, "cuda_api_sync:least=11"), "rows").height(), 1);
    let none = run(&calls(&["cudaMalloc"]), "cuda_api_sync");
    assert_eq!(table(&none, "rows").height(), 0);
    assert!(
        none.notes.iter().any(|note| note.ends_with("looked at 1 calls, found none")),
        "{:?}",
        none.notes
    );
    assert!(run(Made::begin().string(1, "a"), "cuda_api_sync").tables.is_empty());
}

fn copy(made: &Made, correlation: i64, kind: i64, memory: &[(&str, i64)], ns: i64) {
    let mut row = vec![
        ("start", correlation * 100),
        ("end", correlation * 100 + ns),
        ("bytes", 64),
        ("copyKind", kind),
        ("deviceId", 2),
        ("contextId", 1),
        ("streamId", 7),
        ("correlationId", correlation),
        ("globalPid", PROCESS),
    ];
    row.extend(memory);
    put(made, &MEMCPY, &row);
}

const PAGEABLE: (&str, i64) = ("srcKind", 0);
const PINNED: (&str, i64) = ("srcKind", 1);
const DEVICE: (&str, i64) = ("dstKind", 2);

fn copies() -> Made {
    let made = calls(&[
        "cudaMemcpyAsync_v3020",
        "cudaMemcpyAsync_v3020",
        "cudaMemcpy_v3020",
        "cudaMemcpy_v3020",
        "cudaGraphLaunch_v10000",
        "cuMemcpyHtoDAsync_v2",
        "cudaMemcpyAsync_v3020",
        "cudaMemcpyPeer_v4000",
    ]);
    copy(&made, 1, 1, &[PAGEABLE, DEVICE], 20);
    copy(&made, 2, 1, &[PINNED, DEVICE], 20);
    copy(&made, 3, 1, &[PAGEABLE, DEVICE], 5);
    copy(&made, 4, 8, &[("srcKind", 2), DEVICE], 6);
    copy(&made, 5, 1, &[PAGEABLE, DEVICE], 7);
    copy(&made, 6, 1, &[PAGEABLE, DEVICE], 30);
    copy(&made, 7, 1, &[DEVICE], 8);
    copy(&made, 8, 10, &[("srcKind", 2), DEVICE], 9);
    copy(&made, 77, 1, &[PAGEABLE, DEVICE], 9);
    made
}

#[test]
fn asynchronous_copies_of_pageable_memory_are_listed() {
    let outcome = run(&copies(), "cuda_memcpy_async");
    let rows = table(&outcome, "rows");
    assert_eq!(texts(rows, "API"), ["cuMemcpyHtoDAsync_v2", "cudaMemcpyAsync"]);
    assert_eq!(integers(rows, "Duration"), [Some(30), Some(20)]);
    assert_eq!(texts(rows, "Source Kind"), ["Pageable"; 2]);
    assert_eq!((integers(rows, "Bytes")[0], integers(rows, "Device")[0]), (Some(64), Some(2)));
    for note in
        ["whose kind of memory is not recorded, left out: 1", "whose call is not in the report, left out: 1"]
    {
        assert!(outcome.notes.iter().any(|text| text.contains(note)), "{note}: {:?}", outcome.notes);
    }
}

#[test]
fn blocking_copies_are_listed_but_not_between_gpus_nor_of_graphs() {
    let outcome = run(&copies(), "cuda_memcpy_sync");
    let rows = table(&outcome, "rows");
    assert_eq!(
        (texts(rows, "API"), integers(rows, "Duration")),
        (vec!["cudaMemcpy".to_owned()], vec![Some(5)])
    );
}

#[test]
fn blocking_fills_are_listed() {
    let made = calls(&[
        "cudaMemset_v3020",
        "cudaMemset_v3020",
        "cudaMemsetAsync_v3020",
        "cuMemsetD8_v2",
        "cudaMemset_v3020",
    ]);
    for (correlation, kind) in [(1, Some(1)), (2, Some(2)), (3, Some(1)), (4, Some(6)), (5, None)] {
        let mut row = vec![
            ("start", correlation * 100),
            ("end", correlation * 101),
            ("bytes", 8),
            ("deviceId", 0),
            ("correlationId", correlation),
            ("globalPid", PROCESS),
        ];
        row.extend(kind.map(|kind| ("memKind", kind)));
        put(&made, &MEMSET, &row);
    }
    let outcome = run(&made, "cuda_memset_sync");
    let rows = table(&outcome, "rows");
    assert_eq!(texts(rows, "API"), ["cuMemsetD8_v2", "cudaMemset"]);
    assert_eq!(texts(rows, "Memory Kind"), ["Managed Static", "Pinned"]);
    assert!(
        outcome.notes.iter().any(|note| note.contains("not recorded, left out: 1")),
        "{:?}",
        outcome.notes
    );
}

#[test]
fn where_cuda_was_traced_a_table_that_is_absent_means_that_there_was_none() {
    for name in ["cuda_memcpy_async", "cuda_memcpy_sync", "cuda_memset_sync"] {
        let outcome = run(&calls(&["cudaMalloc"]), name);
        let rows = table(&outcome, "rows");
        assert_eq!((rows.height(), texts(rows, "API").len()), (0, 0), "{name} has its headings");
        assert!(outcome.notes.iter().any(|note| note.contains("looked at 0 ")), "{:?}", outcome.notes);
        assert!(run(Made::begin().string(1, "a"), name).tables.is_empty(), "{name}");
        // Without calls the launches are unknown.
        let made = Made::begin();
        copy(&made, 1, 1, &[PAGEABLE, DEVICE], 5);
        made.fill((0, 5), 1);
        let outcome = run(&made, name);
        assert_eq!(table(&outcome, "rows").height(), 0, "{name}");
        assert!(
            outcome
                .notes
                .iter()
                .any(|note| note.contains("no calls recorded, so their launches are unknown")),
            "{name}"
        );
    }
}

const MS: i64 = 1_000_000;

/// Work from 0 to 10 ms, 600 to 610 ms and 1300 to 1310 ms; another process in between; a fill.
fn with_gaps() -> Made {
    let made = Made::begin();
    made.string(1, "k").string(2, "k");
    made.kernel((0, 10 * MS), 1, 1).kernel((600 * MS, 610 * MS), 2, 1).kernel((1300 * MS, 1310 * MS), 3, 1);
    made.kernel_of(OTHER_PROCESS, (100 * MS, 1400 * MS), 1, 1);
    made
}

#[test]
fn gaps_above_the_limit_are_listed_per_process_the_longest_first() {
    let made = with_gaps();
    let outcome = run(&made, "gpu_gaps");
    let rows = table(&outcome, "rows");
    assert_eq!(integers(rows, "Duration"), [Some(690 * MS), Some(590 * MS)]);
    assert_eq!(integers(rows, "Start"), [Some(610 * MS), Some(10 * MS)]);
    assert_eq!(integers(rows, "PID"), [Some(40), Some(40)]);
    assert_eq!(table(&run(&made, "gpu_gaps:gap=690"), "rows").height(), 0);
    assert_eq!(table(&run(&made, "gpu_gaps:gap=689"), "rows").height(), 1);
    made.fill((300 * MS, 301 * MS), 5);
    assert_eq!(table(&run(&made, "gpu_gaps"), "rows").height(), 1, "a fill is work");
}

#[test]
fn the_profilers_own_overhead_explains_a_gap_in_its_process_alone() {
    let made = with_gaps();
    put(
        &made,
        &PROFILER_OVERHEAD,
        &[("start", 700 * MS), ("end", 1290 * MS), ("globalTid", OTHER_PROCESS | 9)],
    );
    assert_eq!(table(&run(&made, "gpu_gaps"), "rows").height(), 2);
    put(&made, &PROFILER_OVERHEAD, &[("start", 700 * MS), ("end", 1290 * MS), ("globalTid", PROCESS | 9)]);
    assert_eq!(integers(table(&run(&made, "gpu_gaps"), "rows"), "Start"), [Some(10 * MS)]);
    assert_eq!(
        integers(table(&run(&made, "gpu_gaps:gap=80"), "rows"), "Duration"),
        [Some(590 * MS), Some(90 * MS)]
    );
}

#[test]
fn regions_of_little_use_are_listed_the_least_used_first() {
    let made = with_gaps();
    let outcome = run(&made, "gpu_time_util:chunks=131");
    let rows = table(&outcome, "rows");
    assert_eq!(integers(rows, "Start"), [Some(10 * MS), Some(610 * MS)]);
    assert_eq!(integers(rows, "Duration"), [Some(590 * MS), Some(690 * MS)]);
    assert_eq!(decimals(rows, "In Use"), [Some(0.0), Some(0.0)]);
    let outcome = run(&made, "gpu_time_util:chunks=1:threshold=3");
    let used = decimals(table(&outcome, "rows"), "In Use")[0].expect("a number");
    assert!((used - 3000.0 / 1310.0).abs() < 1e-9, "{used}");
    assert_eq!(table(&run(&made, "gpu_time_util:chunks=1:threshold=2"), "rows").height(), 0);
    put(&made, &PROFILER_OVERHEAD, &[("start", 20 * MS), ("end", 590 * MS), ("globalTid", PROCESS | 9)]);
    assert_eq!(integers(table(&run(&made, "gpu_time_util:chunks=131"), "rows"), "Start").len(), 3);
    // Side by side they add up, and any number of chunks is taken.
    for chunks in ["0", "18446744073709551615"] {
        assert!(!run(&made, &format!("gpu_time_util:chunks={chunks}")).tables.is_empty());
    }
}

#[test]
fn without_anything_on_a_gpu_there_are_neither_gaps_nor_regions() {
    for name in ["gpu_gaps", "gpu_time_util"] {
        assert!(run(&calls(&["cudaMalloc"]), name).tables.is_empty(), "{name}");
    }
}

#[test]
fn memory_operations_of_directx_are_listed_by_their_cost() {
    let made = Made::begin();
    let names = [
        "ID3D12Resource::Map",
        "ID3D12Resource::Unmap",
        "ID3D12Device::CreateCommittedResource",
        "ID3D12Resource::ReadFromSubresource",
        "ID3D12Resource::WriteToSubresource",
    ];
    for (name, id) in names.iter().zip(1..) {
        made.string(id, name);
    }
    let (read, write, zero) = (
        "reads what is written for a GPU",
        "writes what is read back from a GPU",
        "is zeroed when it is made",
    );
    type Row<'a> = &'a [(&'a str, i64)];
    let operations: [(i64, Row, Option<&str>); 13] = [
        (1, &[("heapType", 2), ("rangeStart", 0), ("rangeEnd", 9)], Some(read)),
        (1, &[("heapType", 2), ("rangeStart", 0), ("rangeEnd", 0)], None),
        (1, &[("heapType", 3), ("rangeStart", 0), ("rangeEnd", 9)], None),
        (1, &[("heapType", 4), ("cpuPageProperty", 2), ("rangeStart", 0), ("rangeEnd", 9)], Some(read)),
        (1, &[("heapType", 4), ("cpuPageProperty", 3), ("rangeStart", 0), ("rangeEnd", 9)], None),
        (2, &[("heapType", 3), ("rangeStart", 0), ("rangeEnd", 9)], Some(write)),
        (2, &[("heapType", 2), ("rangeStart", 0), ("rangeEnd", 9)], None),
        (3, &[("heapType", 1), ("heapFlags", 0)], Some(zero)),
        (3, &[("heapType", 1), ("heapFlags", 0x1040)], None),
        (4, &[("heapType", 2)], Some(read)),
        (5, &[("heapType", 3)], Some(write)),
        (3, &[("heapType", 1)], None),
        (1, &[("rangeStart", 0), ("rangeEnd", 9)], None),
    ];
    for ((name, row, _), id) in operations.iter().zip(100..) {
        put(
            &made,
            &DX12_API,
            &[("id", id), ("start", id), ("end", id + 1), ("nameId", *name), ("globalTid", PROCESS | 3)],
        );
        let mut row = row.to_vec();
        row.push(("traceEventId", id));
        put(&made, &DX12_MEMORY_OPERATION, &row);
    }
    put(&made, &DX12_MEMORY_OPERATION, &[("traceEventId", 9999)]);
    let outcome = run(&made, "dx12_mem_ops");
    let rows = table(&outcome, "rows");
    let expected: Vec<(i64, &str)> =
        operations.iter().zip(100..).filter_map(|((.., cost), id)| Some((id, (*cost)?))).collect();
    let costs = texts(rows, "Cost");
    let seen: Vec<(i64, &str)> = integers(rows, "Start")
        .iter()
        .map(|start| start.expect("one"))
        .zip(costs.iter().map(String::as_str))
        .collect();
    assert_eq!(seen, expected);
    assert_eq!((texts(rows, "Heap")[0].as_str(), integers(rows, "TID")[0]), ("Upload", Some(3)));
    for note in ["whose call is not in the report, left out: 1", "whose heap is not recorded, left out: 2"] {
        assert!(outcome.notes.iter().any(|text| text.contains(note)), "{note}: {:?}", outcome.notes);
    }
    assert!(run(&calls(&["cudaMalloc"]), "dx12_mem_ops").tables.is_empty());
}
