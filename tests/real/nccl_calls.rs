//! Calls of NCCL in a foreign real report, where it lies beside the project, compared with questions to its
//! tables: which launch lies in which end of a group is asked row by row, and no code of the recipes is used for it.

use crate::fact::Fact;
use nsys::nccl::{Function, NcclCalls};
use nsys::trace::Trace;
use rusqlite::{Connection, OpenFlags};
use std::path::PathBuf;

pub(crate) const FACTS: &[Fact] = &[
    (
        "sends_and_receives_of_a_real_report_share_what_their_group_launched",
        sends_and_receives_of_a_real_report_share_what_their_group_launched,
    ),
    ("what_a_real_report_did_not_record_is_not_recorded", what_a_real_report_did_not_record_is_not_recorded),
];

fn file() -> PathBuf {
    crate::corpus::export("h100-2gpu-mfu-before")
}

fn asked(path: &PathBuf) -> Connection {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    Connection::open_with_flags(path, flags).expect("opens")
}

fn numbers(db: &Connection, question: &str) -> Vec<Vec<i64>> {
    let mut statement = db.prepare(question).expect("a question");
    let columns = statement.column_count();
    let rows = statement.query_map([], |row| (0..columns).map(|at| row.get(at)).collect());
    rows.expect("asked").collect::<Result<_, _>>().expect("numbers")
}

const NAMED: &str =
    "FROM NVTX_EVENTS e JOIN StringIds s ON s.id = e.textId WHERE e.eventType = 59 AND s.value";

fn sends_and_receives_of_a_real_report_share_what_their_group_launched() {
    let path = file();
    let db = asked(&path);
    let trace = Trace::open(&path).expect("opens");
    let nccl = NcclCalls::read(&trace).expect("sound").expect("calls");
    // Calls, by function, thread and time.
    for (function, name) in [(Function::Send, "ncclSend"), (Function::Recv, "ncclRecv")] {
        let of_function = nccl.calls.iter().filter(|call| call.function == function);
        let mut seen: Vec<Vec<i64>> =
            of_function.map(|call| vec![call.global_tid, call.start, call.end]).collect();
        seen.sort();
        let question = format!("SELECT e.globalTid, e.start, e.end {NAMED} = '{name}' ORDER BY 1, 2");
        assert_eq!(seen, numbers(&db, &question), "{name}");
        assert_eq!(seen.len(), 132);
    }
    assert_eq!(nccl.calls.len(), 264);
    // Groups: each from its start to the next end of its thread, with two sends and two receives.
    let question = format!(
        "SELECT e.globalTid, e.start, (SELECT min(g.end) FROM NVTX_EVENTS g JOIN StringIds t ON t.id = g.textId \
         WHERE t.value = 'ncclGroupEnd' AND g.globalTid = e.globalTid AND g.start > e.start) {NAMED} = \
         'ncclGroupStart' ORDER BY 1, 2"
    );
    let mut seen: Vec<Vec<i64>> =
        nccl.groups.iter().map(|group| vec![group.global_tid, group.start, group.end]).collect();
    seen.sort();
    assert_eq!(seen, numbers(&db, &question));
    assert_eq!(nccl.groups.len(), 66);
    for (at, group) in nccl.groups.iter().enumerate() {
        let of_group = nccl.calls.iter().filter(|call| call.group == Some(at as u32));
        let functions: Vec<Function> = of_group.clone().map(|call| call.function).collect();
        assert_eq!(functions, [Function::Send, Function::Recv, Function::Send, Function::Recv]);
        assert!(of_group.clone().all(|call| call.kernels == group.kernels && !nccl.is_alone(call)));
    }
    // The join through the end of the group.
    let question = "SELECT r.globalTid, g.end, k.start, k.end, k.deviceId, k.streamId, r.start \
         FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN StringIds n ON n.id = k.shortName \
         JOIN CUPTI_ACTIVITY_KIND_RUNTIME r ON r.correlationId = k.correlationId AND r.globalTid / 16777216 = \
         k.globalPid / 16777216 \
         JOIN NVTX_EVENTS g ON g.globalTid = r.globalTid AND g.start <= r.start AND g.end >= r.end \
         JOIN StringIds s ON s.id = g.textId WHERE s.value = 'ncclGroupEnd' AND n.value LIKE 'nccl%' ORDER BY 1, 2, 3";
    let mut seen = Vec::new();
    for group in &nccl.groups {
        let kernels = &nccl.kernels[group.kernels.start as usize..group.kernels.end as usize];
        for kernel in kernels {
            let launch = kernel.launch_start.expect("it was launched");
            let what = [kernel.start, kernel.end, kernel.device, kernel.stream, launch];
            seen.push([vec![group.global_tid, group.end], what.to_vec()].concat());
        }
    }
    seen.sort();
    assert_eq!(seen, numbers(&db, question));
    // All 66 kernels: two of them were launched before the capture, and two launches ran behind it.
    let all = "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN StringIds n ON n.id = k.shortName \
               WHERE n.value = 'ncclDevKernel_SendRecv'";
    assert_eq!(numbers(&db, all), [[66]]);
    assert_eq!((seen.len(), nccl.kernels_of_none().len(), nccl.kernels.len()), (64, 2, 66));
    assert_eq!(nccl.groups.iter().filter(|group| group.kernels.is_empty()).count(), 2);
    assert!(nccl.kernels.iter().all(|kernel| nccl.name(kernel) == "ncclDevKernel_SendRecv"));
}

fn what_a_real_report_did_not_record_is_not_recorded() {
    let path = file();
    let payloads = "SELECT count(jsonText) + count(jsonTextId) + count(binaryData) FROM NVTX_EVENTS";
    assert_eq!(numbers(&asked(&path), payloads), [[0]]);
    let trace = Trace::open(&path).expect("opens");
    let nccl = NcclCalls::read(&trace).expect("sound").expect("calls");
    for call in &nccl.calls {
        assert_eq!((call.bytes, call.communicator, call.total_bytes()), (None, None, None));
        assert_eq!((call.ranks, call.rank, call.peer, call.root), (None, None, None, None));
    }
    assert!(nccl.communicators.is_empty());
    assert!(
        trace
            .notes()
            .iter()
            .any(|note| note.starts_with("NCCL: kernels without an NCCL call in the report: 2")),
        "{:?}",
        trace.notes()
    );
}
