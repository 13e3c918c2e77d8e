//! What is read from each form of output, compared with fixtures made for it.

mod broken;
mod failing;
mod forms;
mod large;
mod roundtrip;

use super::{NcclRun, NcclTests, read};

fn text(text: &str) -> NcclTests {
    read(text.as_bytes(), "log").unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn only(read: &NcclTests) -> &NcclRun {
    match read.runs.as_slice() {
        [run] => run,
        runs => panic!("{} runs: {runs:#?}", runs.len()),
    }
}

fn codes(read: &NcclTests) -> Vec<&str> {
    read.findings.iter().map(|finding| finding.code.as_str()).collect()
}

/// A log of 2.17.6 on two ranks of one host, that ended well.
const WHOLE: &str = "\
# nccl-tests version 2.17.6 nccl-headers=22602 nccl-library=22602
# Collective test starting: all_reduce_perf
# nThread 1 nGpus 2 minBytes 8388608 maxBytes 33554432 step: 2(factor) warmup iters: 1 iters: 20 agg iters: 1 validation: 1 graph: 0
#
# Using devices
#  Rank  0 Group  0 Pid   1001 on    alpha-1 device  0 [0000:17:00] NVIDIA Test GPU
#  Rank  1 Group  0 Pid   1001 on    alpha-1 device  1 [0000:65:00] NVIDIA Test GPU
#
#                                                              out-of-place                       in-place          
#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong 
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)         
     8388608       2097152     float     sum      -1    83.33  100.67  100.67       0    80.98  103.59  103.59       0
    16777216       4194304     float     sum      -1   128.30  130.77  130.77       0   127.00  132.10  132.10       0
    33554432       8388608     float     sum      -1   223.10  150.40  150.40       0   220.40  152.24  152.24       0
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 128.462 
#
# Collective test concluded: all_reduce_perf
#

";
