//! The texts of a verdict: its subject, and what to try next.

use super::*;

#[test]
fn a_subject_names_the_metric_and_the_node() {
    let mut about = assertion("nccl.busbw", at_least(1.0));
    about.dims = Dims::new()
        .with(Dim::Op, "all_reduce")
        .with(Dim::SizeBytes, 1u64 << 30)
        .with(Dim::Place, "out")
        .with(Dim::Case, "c");
    assert_eq!(subject(&about), "nccl.busbw all_reduce 1GiB on n[1-2]");
    about.node = Some("n1".into());
    assert_eq!(
        subject(&about),
        "nccl.busbw all_reduce 1GiB on n[1-2]",
        "a node without a part is shown as the nodes"
    );
    about.part = Some("gpu3".into());
    assert_eq!(subject(&about), "nccl.busbw all_reduce 1GiB on n1 gpu3");
    about.dims = Dims::new().with(Dim::Direction, "tx").with(Dim::Nic, "a");
    about.metric = "nic.rate".into();
    assert_eq!(subject(&about), "nic.rate tx on n1 gpu3");
}

#[test]
fn what_to_try_next_depends_on_what_is_out_of_bounds() {
    for (status, metric, step) in [
        (Status::Inconclusive, "nic.present", "accept a baseline"),
        (Status::Fail, "nic.present", "lspci"),
        (Status::Fail, "nic.share", "look at the link of the NIC"),
        (Status::Fail, "nic.rate", "harness isolate"),
        (Status::Fail, "nccl.wrong", "take n[1-2] out of service"),
        (Status::Fail, "nccl.busbw", "cases nic-pairs and gpu-each"),
        (Status::Fail, "nic.rx_drops", "at the switch port"),
        (Status::Fail, "kernel.share", "look at `kernel.time`"),
        (Status::Fail, "straggler.late", "data loader"),
        (Status::Fail, "straggler.late_share", "data loader"),
        (Status::Fail, "gpu.exposed_comm_share", "recipe nccl_gpu_overlap_trace"),
        (Status::Fail, "step.time_cv", "recipe steps"),
        (Status::Fail, "command.exit_code", "stderr of the job"),
        (Status::Fail, "train.mfu", "harness logs steps"),
        (Status::Fail, "node.efa_tx", "nic-pairs"),
    ] {
        let next = next_step(&assertion(metric, at_least(1.0)), status);
        assert!(next.contains(step), "{status} {metric}: {next}");
    }
}

#[test]
fn a_missing_number_without_a_name_is_counted() {
    let verdict = World::new(at_least(1.0)).one();
    assert!(verdict.message.contains("not measured (0 of 1 numbers)"), "{}", verdict.message);
}
