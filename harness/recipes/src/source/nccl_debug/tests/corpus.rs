//! Real logs, where they lie beside the project: each line of a call is read, and the share of lines understood is printed.

use super::super::{EDGES, Operation, read};
use std::io::BufReader;

#[test]
fn real_logs_hold_no_call_that_is_not_understood() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/corpus");
    let mut paths: Vec<_> = ["nccl-debug", "nccl-tests", "training"]
        .iter()
        .filter_map(|folder| std::fs::read_dir(format!("{root}/{folder}")).ok())
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.is_file())
        .collect();
    if paths.is_empty() {
        println!("skipped: no collected logs beside the project");
        return;
    }
    paths.sort();
    println!("{:44} {:>6} {:>7} {:>7} {:>6} findings", "file", "lines", "NCCL", "read", "calls");
    for path in paths {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let file = std::fs::File::open(&path).expect("a file of the folder");
        let log = read(BufReader::new(file), &name, &EDGES).expect("a file that can be read");
        let codes: Vec<_> = log.findings.iter().map(|finding| finding.code.as_str()).collect();
        let calls: u64 = log.operations.iter().map(|it| it.calls).sum();
        let (lines, of_nccl, understood) = (log.lines, log.of_nccl, log.understood);
        println!("{name:44} {lines:6} {of_nccl:7} {understood:7} {calls:6} {}", codes.join(" "));
        let unknown: Vec<_> = log.unknown.iter().map(|it| it.text.as_str()).collect();
        assert_eq!((unknown, log.unknown_calls, log.garbled_calls), (Vec::new(), 0, 0), "{name}");
        if name == "a100pcie-2gpu-allreduce-nccl2277.log" {
            let [it] = log.operations.as_slice() else { panic!("one operation: {:?}", log.operations) };
            assert_eq!((it.operation, it.calls, log.hosts.len()), (Operation::AllReduce, 990, 1));
            assert_eq!(log.communicators[0].ranks_complete, 2);
        }
    }
}
