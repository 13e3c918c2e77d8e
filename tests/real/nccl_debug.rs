//! NCCL logs of real programs: each line of a call is read.

use crate::corpus;
use crate::fact::Fact;
use logs::nccl_debug::{EDGES, Operation, read};
use std::io::BufReader;

pub(crate) const FACTS: &[Fact] =
    &[("real_logs_hold_no_call_that_is_not_understood", real_logs_hold_no_call_that_is_not_understood)];

fn real_logs_hold_no_call_that_is_not_understood() {
    for path in ["nccl-debug", "nccl-tests", "training"].into_iter().flat_map(corpus::files) {
        let name = corpus::name(&path);
        let file = std::fs::File::open(&path).expect("a file of the folder");
        let log = read(BufReader::new(file), &name, &EDGES).expect("a file that can be read");
        let unknown: Vec<_> = log.unknown.iter().map(|it| it.text.as_str()).collect();
        assert_eq!((unknown, log.unknown_calls, log.garbled_calls), (Vec::new(), 0, 0), "{name}");
        if name == "a100pcie-2gpu-allreduce-nccl2277.log" {
            let [it] = log.operations.as_slice() else { panic!("one operation: {:?}", log.operations) };
            assert_eq!((it.operation, it.calls, log.hosts.len()), (Operation::AllReduce, 990, 1));
            assert_eq!(log.communicators[0].ranks_complete, 2);
        }
    }
}
