//! Calls, groups and kernels on small exports.

use super::*;
use crate::testing::nccl::{call, communicator, domain, json, range};
use crate::testing::{Made, PROCESS};
use crate::trace::{Filter, Trace};

fn made() -> Made {
    let made = Made::begin();
    made.string(1, "cudaLaunchKernelExC_v11060")
        .string(2, "ncclDevKernel_AllReduce")
        .string(3, "ncclDevKernel");
    domain(&made);
    made
}

fn read(trace: &Trace) -> NcclCalls {
    NcclCalls::read(trace).expect("sound").expect("calls")
}

fn starts(nccl: &NcclCalls, call: &Call) -> Vec<i64> {
    nccl.kernels_of(call).iter().map(|kernel| kernel.start).collect()
}

#[test]
fn a_call_has_its_size_its_communicator_and_its_kernel() {
    let made = made();
    communicator(&made, 0, 77, 16, 5);
    call(&made, 10, "ncclAllGather", (77, 1024), (30, 50), 1);
    let nccl = read(&made.trace());
    let [one] = nccl.calls.as_slice() else { panic!("{:?}", nccl.calls) };
    assert_eq!((one.function, one.bytes, one.total_bytes()), (Function::AllGather, Some(1024), Some(16384)));
    assert_eq!((one.communicator, one.ranks, one.rank, one.group), (Some(77), Some(16), Some(5), None));
    assert_eq!(starts(&nccl, one), [30]);
    let kernel = &nccl.kernels[0];
    assert_eq!((kernel.launch_start, kernel.launch_end, kernel.end - kernel.start), (Some(12), Some(16), 20));
    assert_eq!((nccl.name(kernel), kernel.process), ("ncclDevKernel", PROCESS));
    assert_eq!(nccl.communicators.len(), 1);
    assert!(nccl.kernels_of_none().is_empty() && made.trace().notes().is_empty());
}

#[test]
fn calls_of_a_group_launch_in_its_outermost_end_and_share_what_they_launch() {
    let made = made();
    range(&made, (0, 2), 3, "ncclGroupStart", None);
    range(&made, (3, 5), 3, "ncclSend", Some(&json(7, 100)));
    range(&made, (6, 7), 3, "ncclGroupStart", None);
    range(&made, (8, 9), 3, "ncclRecv", Some(&json(7, 200)));
    range(&made, (10, 12), 3, "ncclGroupEnd", None);
    range(&made, (13, 30), 3, "ncclGroupEnd", None);
    made.call((14, 16), 3, 1, 1).kernel((40, 50), 1, 2).call((18, 20), 3, 2, 1).kernel((60, 70), 2, 2);
    // Another thread at the same time is no part of it.
    range(&made, (4, 29), 9, "ncclAllReduce", Some(&json(8, 300)));
    made.call((15, 17), 9, 3, 1).kernel((45, 46), 3, 2);
    let nccl = read(&made.trace());
    let [send, other, recv] = nccl.calls.as_slice() else { panic!("{:?}", nccl.calls) };
    assert_eq!((starts(&nccl, send), starts(&nccl, recv)), (vec![40, 60], vec![40, 60]));
    assert_eq!((send.group, recv.group, other.group), (Some(0), Some(0), None));
    assert_eq!((starts(&nccl, other), nccl.is_alone(other), nccl.is_alone(send)), (vec![45], true, false));
    let [group] = nccl.groups.as_slice() else { panic!("{:?}", nccl.groups) };
    assert_eq!((group.start, group.end, group.calls), (0, 30, 2));
}

#[test]
fn a_group_within_a_send_of_older_releases_is_the_send_s_own() {
    let made = made();
    for (at, correlation) in [(0, 1), (100, 2)] {
        range(&made, (at, at + 50), 3, "ncclSend", None);
        range(&made, (at + 1, at + 2), 3, "ncclGroupStart", None);
        range(&made, (at + 10, at + 40), 3, "ncclGroupEnd", None);
        made.call((at + 12, at + 14), 3, correlation, 1).kernel((at + 60, at + 70), correlation, 2);
    }
    // Within another group the one within is not the outermost.
    range(&made, (200, 201), 3, "ncclGroupStart", None);
    range(&made, (210, 240), 3, "ncclRecv", None);
    range(&made, (211, 212), 3, "ncclGroupStart", None);
    range(&made, (220, 230), 3, "ncclGroupEnd", None);
    range(&made, (250, 290), 3, "ncclGroupEnd", None);
    made.call((252, 254), 3, 3, 1).kernel((300, 310), 3, 2);
    let nccl = read(&made.trace());
    let seen: Vec<_> = nccl.calls.iter().map(|call| (call.group, starts(&nccl, call), call.bytes)).collect();
    assert_eq!(seen, [(None, vec![60], None), (None, vec![160], None), (Some(0), vec![300], None)]);
    assert_eq!(nccl.groups.len(), 1);
}

#[test]
fn what_no_call_launched_is_kept_apart_and_counted() {
    let made = made();
    call(&made, 10, "ncclAllReduce", (7, 8), (30, 50), 1);
    range(&made, (60, 70), 3, "ncclAllReduce", Some(&json(7, 8)));
    made.string(8, "gemm").string(9, "gemm");
    // Of a graph, of a program's own, and one that a range which is not NCCL's launched.
    made.call((80, 90), 3, 2, 1).kernel((100, 110), 2, 2).kernel((120, 130), 2, 8);
    let trace = made.trace();
    let nccl = read(&trace);
    assert_eq!(nccl.kernels.len(), 2);
    assert_eq!(nccl.kernels_of_none().iter().map(|kernel| kernel.start).collect::<Vec<_>>(), [100]);
    assert_eq!(
        trace.notes(),
        [
            "NCCL: calls without a kernel, such as those captured into a CUDA graph: 1",
            "NCCL: kernels without an NCCL call in the report: 1",
        ]
    );
}

#[test]
fn a_filter_keeps_calls_with_what_began_before_them() {
    let made = made();
    communicator(&made, 0, 7, 4, 1);
    range(&made, (100, 101), 3, "ncclGroupStart", None);
    range(&made, (110, 112), 3, "ncclSend", Some(&json(7, 1)));
    range(&made, (120, 122), 3, "ncclRecv", Some(&json(7, 2)));
    range(&made, (130, 150), 3, "ncclGroupEnd", None);
    made.call((132, 134), 3, 1, 1).kernel((500, 600), 1, 2);
    call(&made, 200, "ncclAllReduce", (7, 8), (700, 750), 2);
    let filter = Filter::Time("115/125".parse().expect("a span"));
    let nccl = read(&made.trace().filtered(&filter).expect("filtered"));
    let [recv] = nccl.calls.as_slice() else { panic!("{:?}", nccl.calls) };
    assert_eq!((recv.ranks, recv.group, starts(&nccl, recv)), (Some(4), Some(0), vec![500]));
    assert!(!nccl.is_alone(recv), "the other call of its group is left out, and was there");
    assert_eq!(nccl.kernels.len(), 1);
}

#[test]
fn payloads_that_cannot_be_read_are_counted_and_their_calls_stay() {
    let made = made();
    range(&made, (0, 1), 3, "ncclAllReduce", Some("{\"Message size [bytes]\":-1}"));
    range(&made, (2, 3), 3, "ncclAllReduce", Some("no json"));
    range(&made, (4, 5), 3, "ncclAllReduce", Some("no json"));
    let trace = made.trace();
    let nccl = read(&trace);
    assert!(nccl.calls.iter().all(|call| call.bytes.is_none() && call.communicator.is_none()));
    assert_eq!(nccl.calls.len(), 3);
    let notes = trace.notes();
    assert!(notes[0].contains("(not a JSON object, first in row 3 of `NVTX_EVENTS`): 2"), "{notes:?}");
    assert!(notes[1].contains("(value out of range for its field, first in row 2 of"), "{notes:?}");
}

#[test]
fn ranks_that_two_accounts_differ_on_are_not_known_and_several_ranks_of_a_process_go_by_device() {
    let made = made();
    communicator(&made, 0, 7, 4, 1);
    communicator(&made, 2, 7, 8, 1);
    call(&made, 10, "ncclAllReduce", (7, 8), (30, 50), 1);
    for device in 0..2 {
        let json = format!(
            r#"{{"NCCL communicator ID":9,"No. of ranks":2,"Rank":{},"CUDA device":{device}}}"#,
            1 - device
        );
        range(&made, (4 + device, 5 + device), 3, "ncclCommInitRank", Some(&json));
    }
    call(&made, 60, "ncclAllReduce", (9, 8), (80, 90), 2);
    range(&made, (100, 110), 3, "ncclAllReduce", Some(&json(9, 8)));
    let nccl = read(&made.trace());
    let seen: Vec<_> = nccl.calls.iter().map(|call| (call.ranks, call.rank)).collect();
    assert_eq!(seen, [(None, Some(1)), (Some(2), Some(1)), (Some(2), None)]);
}

#[test]
fn a_group_that_began_before_the_report_is_said() {
    let made = made();
    range(&made, (10, 20), 3, "ncclGroupEnd", None);
    made.call((12, 14), 3, 1, 1).kernel((30, 40), 1, 2);
    call(&made, 50, "ncclAllReduce", (9, 8), (80, 90), 2);
    let trace = made.trace();
    let nccl = read(&trace);
    assert_eq!((nccl.calls.len(), nccl.groups.len(), nccl.kernels_of_none().len()), (1, 0, 1));
    assert!(
        trace.notes()[0].starts_with("NCCL: groups that began before the capture"),
        "{:?}",
        trace.notes()
    );
}

#[test]
fn the_text_of_a_fork_says_what_payloads_say() {
    let made = made();
    made.range(
        (0, 5),
        3,
        "ncclAllReduce(): commHash 0x10, stream 0x7f, data_size 4096, type_size 4, red_op 0, pid 1",
    );
    made.call((1, 4), 3, 1, 1).kernel((30, 40), 1, 2);
    let nccl = read(&made.trace());
    assert_eq!((nccl.calls[0].bytes, nccl.calls[0].communicator), (Some(4096), Some(16)));
    assert_eq!(starts(&nccl, &nccl.calls[0]), [30]);
}

#[test]
fn a_domain_without_a_name_is_known_by_the_functions_in_it() {
    let made = Made::begin();
    made.string(1, "cudaLaunchKernel").string(2, "ncclDevKernel").string(3, "ncclDevKernel");
    call(&made, 10, "ncclAllReduce", (7, 8), (30, 50), 1);
    range(&made, (60, 61), 3, "nccl:all_reduce", None);
    assert_eq!(read(&made.trace()).calls.len(), 1);
    domain(&made);
    assert_eq!(read(&made.trace()).calls.len(), 1);
    // Another name is another domain.
    let other = Made::begin();
    other.event(crate::trace::nvtx::DOMAIN, 0, &[("domainId", 3.into()), ("text", "mine".to_owned().into())]);
    range(&other, (0, 5), 3, "ncclAllReduce", None);
    assert_eq!(NcclCalls::read(&other.trace()), Ok(None));
}

#[test]
fn a_report_without_nccl_has_no_calls() {
    let made = Made::begin();
    made.string(1, "gemm").string(2, "gemm").kernel((1, 2), 1, 1).range((0, 5), 3, "ncclAllReduce");
    assert_eq!(NcclCalls::read(&made.trace()), Ok(None), "a range of another domain is none of NCCL's");
}

#[test]
fn messages() {
    use super::sequence::Difference;
    let made = made();
    range(&made, (0, 1), 3, "ncclAllReduce", Some("no json"));
    range(&made, (5, 4), 3, "ncclAllReduce", None);
    made.event(
        crate::trace::nvtx::PUSH_POP,
        3,
        &[("domainId", crate::testing::nccl::NCCL.into()), ("text", "ncclAllReduce".to_owned().into())],
    );
    range(&made, (10, 20), 3, "ncclGroupEnd", None);
    made.call((12, 14), 3, 1, 1).kernel((30, 40), 1, 2);
    let trace = made.trace();
    read(&trace);
    let mut messages = trace.notes();
    messages.extend(
        [
            Refusal::NoJson,
            Refusal::Short,
            Refusal::Long,
            Refusal::Misaligned,
            Refusal::NotOfItsSize,
            Refusal::UnknownLayout,
            Refusal::TwoLayouts,
            Refusal::Unfit,
        ]
        .map(|refusal| refusal.to_string()),
    );
    messages.extend(
        [
            Difference::Count { expected: 51, seen: 50 },
            Difference::Size { call: 1, expected: 16, seen: 8 },
            Difference::Rows { call: 35 },
        ]
        .map(|difference| difference.to_string()),
    );
    insta::assert_snapshot!(messages.join("\n"));
}
