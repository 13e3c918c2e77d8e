//! Outputs of trainings that failed, as PyTorch, torchrun and launchers print them.

use super::*;

fn read(text: &str) -> Account {
    let mut reader = Reader::default();
    text.lines().zip(1..).for_each(|(text, line)| reader.line(text, line));
    reader.finish()
}

const SUMMARY: &str = "\
[rank2]: Traceback (most recent call last):
[rank2]:   File \"/w/train.py\", line 120, in <module>
[rank2]:     loss.backward()
[rank2]: RuntimeError: CUDA error: an illegal memory access was encountered
[rank3]: torch.distributed.DistBackendError: NCCL communicator was aborted on rank 3.
Traceback (most recent call last):
  File \"/usr/local/bin/torchrun\", line 8, in <module>
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
============================================================
train.py FAILED
------------------------------------------------------------
Failures:
[1]:
  host      : n1
  rank      : 3 (local_rank: 1)
  exitcode  : 1 (pid: 4712)
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-11-22_10:11:12
  host      : n2
  rank      : 2 (local_rank: 0)
  exitcode  : -9 (pid: 4711)
  error_file: <N/A>
============================================================
  rank      : 7 (after the block)
";

#[test]
fn the_root_cause_and_the_last_exception_of_each_rank_are_read() {
    let account = read(SUMMARY);
    let cause = account.root_cause.clone().expect("a root cause");
    assert_eq!((cause.rank, cause.host.as_deref(), cause.exit_code), (Some(2), Some("n2"), Some(-9)));
    let (rank, said) = account.first_exception().expect("an exception");
    assert_eq!((rank, said.line), (Some(2), 4));
    assert_eq!(said.text, "RuntimeError: CUDA error: an illegal memory access was encountered");
    assert_eq!(account.exceptions.len(), 2);
}

#[test]
fn a_failure_summary_with_empty_lines_between_or_without_its_end_is_read() {
    let cut = SUMMARY.split_once("\n====").expect("a block").0.to_owned();
    let without_end = SUMMARY.rsplit_once("====").expect("an end").0.trim_end_matches('=').to_owned();
    let others = format!("{without_end}\n  rank      : 7 (of another)\n  host      : n9\n");
    for text in [SUMMARY.replace('\n', "\n\n"), SUMMARY.replace('\n', "\r\n\r\n"), others] {
        let cause = read(&text).root_cause.expect(&text);
        assert_eq!((cause.rank, cause.host.as_deref(), cause.exit_code), (Some(2), Some("n2"), Some(-9)));
    }
    assert_eq!(read(&cut).root_cause, None);
}

#[test]
fn an_exception_without_a_rank_stands_behind_its_traceback() {
    let text = "ValueError: prose\nTraceback (most recent call last):\n  File \"x\"\n    y\nKeyError: 'input_ids'\nIOError: prose\n";
    let account = read(text);
    assert_eq!(
        account.first_exception().map(|(rank, said)| (rank, said.text.as_str())),
        Some((None, "KeyError: 'input_ids'"))
    );
    assert_eq!(read("Batch 1 Loss: 3.1 Error: none\n"), Account::default());
}

#[test]
fn ranks_that_could_not_meet_say_where_they_wanted_to() {
    for (text, to) in [
        (
            "[E] The client socket has timed out after 60000ms while trying to connect to (n1, 29500).",
            Some(("n1", 29500)),
        ),
        (
            "[W socket.cpp:752] [c10d] The client socket has failed to connect to [ip-10-1-2-3]:29400 (errno: 111 - Connection refused).",
            Some(("ip-10-1-2-3", 29400)),
        ),
        (
            "[W socket.cpp:601] [c10d] The IPv4 network addresses of (n1, 29500) cannot be retrieved (gai error: -2)",
            Some(("n1", 29500)),
        ),
        ("socket.gaierror: [Errno -2] Name or service not known", None),
        ("torch.distributed.elastic.rendezvous.api.RendezvousTimeoutError", None),
    ] {
        let found = read(text).rendezvous.expect(text);
        assert_eq!(found.to, to.map(|(host, port)| (host.to_owned(), port)), "{text}");
    }
    assert_eq!(read("connected to n1:29500").rendezvous, None);
}

#[test]
fn a_warning_of_the_first_second_hides_no_later_cause() {
    let warning = "[W socket.cpp:663] [c10d] The client socket has failed to connect to [n1]:29500 (errno: 111 - Connection refused).\n";
    let error = "[E socket.cpp:957] [c10d] The client socket has timed out after 60s while trying to connect to (n2, 29500).\n";
    let failed = |text: &str| {
        let account = read(text);
        account.failed_rendezvous().map(|met| (met.to.clone().map(|(host, _)| host), met.is_warning))
    };
    let on = |host: &str, is_warning: bool| Some((Some(host.to_owned()), is_warning));
    assert_eq!(failed(warning), on("n1", true), "nothing else is known");
    assert_eq!(failed(&format!("{warning}{error}")), on("n2", false));
    let raised = |what: &str| format!("{warning}{error}[rank9]: {what}\n");
    assert_eq!(
        failed(&raised("torch.distributed.DistNetworkError: The client socket has timed out")),
        on("n2", false)
    );
    assert_eq!(
        failed(&raised("torch.AcceleratorError: CUDA error: uncorrectable ECC error encountered")),
        None
    );
    let killed =
        "Root Cause (first observed failure):\n  rank      : 9 (local_rank: 1)\n  exitcode  : -9 (pid: 7)\n";
    assert_eq!(failed(&format!("{warning}{killed}")), None);
    assert_eq!(failed(&format!("{error}{killed}")), on("n2", false));
}

#[test]
fn ranks_are_those_of_labels_that_number_them() {
    let failed = |label: &str| format!("{label}Traceback (most recent call last):\n{label}KeyError: 'x'\n");
    let rank = |text: &str| read(text).first_exception().map(|(rank, _)| rank);
    for (label, expected) in [
        ("[rank5]: ", Some(5)),
        ("[default1]:[rank9]: ", Some(9)),
        ("3: ", Some(3)),
        ("[1,3]<stdout>:", Some(3)),
        ("3: [rank9]: ", Some(9)),
        // It counts on each node from 0.
        ("[default1]:", None),
        ("3: [default1]:", None),
        ("worker-3 main ", None),
    ] {
        assert_eq!(rank(&failed(label)), Some(expected), "{label:?}");
    }
    // srun numbers the nodes where each of its tasks is a torchrun.
    let torchrun =
        format!("{}1: torch.distributed.elastic.multiprocessing.errors.ChildFailedError:\n", failed("1: "));
    assert_eq!(rank(&torchrun), Some(None));
}

#[test]
fn what_a_watchdog_gives_as_its_reason_is_the_exception_of_its_rank() {
    let text = "[default0]:[rank12]:[E817 17:40:34.227531918 ProcessGroupNCCL.cpp:1515] [PG 0 (default_pg) Rank 12] Process group \
                watchdog thread terminated with exception: CUDA error: uncorrectable ECC error encountered\n\
                [default0]:terminate called after throwing an instance of 'c10::DistBackendError'\n\
                [default0]:  what():  [PG 0 (default_pg) Rank 12] Process group watchdog thread terminated with exception: CUDA error: x\n";
    let account = read(text);
    let expected = (Some(12), "CUDA error: uncorrectable ECC error encountered");
    assert_eq!(account.first_exception().map(|(rank, said)| (rank, said.text.as_str())), Some(expected));
    let timed_out = "[rank2]:[E1 x.cpp:1] [Rank 2] NCCL watchdog thread terminated with exception: [Rank 2] Watchdog caught \
                     collective operation timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE)\n";
    assert_eq!(read(timed_out), Account::default());
}

#[test]
fn an_exception_that_the_program_recorded_stands_in_torchrun_s_block() {
    let block = "Root Cause (first observed failure):\n[0]:\n  time      : 2026-06-08_19:04:45\n  host      : n2\n  rank      : 9 \
                 (local_rank: 1)\n  exitcode  : 1 (pid: 970611)\n  error_file: /tmp/x/error.json\n  traceback : Traceback (most \
                 recent call last):\n    File \"x/errors/__init__.py\", line 355, in wrapper\n      return f(*args, **kwargs)\n    \
                 rank : 3\n  torch.AcceleratorError: CUDA error: uncorrectable ECC error encountered\n  ValueError: later\n====\n  \
                 KeyError: 'after the block'\n";
    let expected = (Some(9), "torch.AcceleratorError: CUDA error: uncorrectable ECC error encountered");
    for label in ["", "0: ", "[default1]:", "worker-0 main "] {
        let text: String = block.lines().map(|line| format!("{label}{line}\n")).collect();
        let account = read(&text);
        assert_eq!(
            account.first_exception().map(|(rank, said)| (rank, &*said.text)),
            Some(expected),
            "{label:?}"
        );
        assert_eq!((account.exceptions.len(), account.root_cause.and_then(|cause| cause.rank)), (1, Some(9)));
    }
    // What the rank printed itself comes first.
    let own = read(&format!("[rank9]: KeyError: 'x'\n{block}"));
    assert_eq!(own.first_exception().map(|(_, said)| &*said.text), Some("KeyError: 'x'"));
}

#[test]
fn a_rank_that_lost_its_peer_yields_to_one_that_says_more() {
    let lost = "[rank0]: torch.distributed.DistBackendError: NCCL error in: x.cpp:133, remote process exited or there was a network error\n";
    let ecc = "[rank9]: torch.AcceleratorError: CUDA error: uncorrectable ECC error encountered\n";
    let block = "Root Cause (first observed failure):\n  host      : n1\n  rank      : 0 (local_rank: 0)\n  exitcode  : 1 (pid: 7)\n";
    let first = |text: &str| read(text).first_exception().map(|(rank, said)| (rank, said.line));
    assert_eq!(first(&format!("{lost}{ecc}{block}")), Some((Some(9), 2)));
    assert_eq!(first(&format!("{lost}{block}")), Some((Some(0), 1)));
    assert_eq!(first(&format!("[rank0]: KeyError: 'x'\n{ecc}{block}")), Some((Some(0), 1)));
    // Whose it is does not show without a rank.
    assert_eq!(
        first(&format!("{lost}Traceback (most recent call last):\nKeyError: 'x'\n{block}")),
        Some((Some(0), 1))
    );
}

#[test]
fn the_first_of_chained_exceptions_counts() {
    let first = "torch.AcceleratorError: CUDA error: uncorrectable ECC error encountered";
    let nccl = "torch.distributed.DistBackendError: NCCL error in: x.cpp:133, unhandled cuda error (run with NCCL_DEBUG=INFO for details)";
    let clean_up = format!(
        "During handling of the above exception, another exception occurred:\nTraceback (most recent call last):\n    \
         dist.destroy_process_group()\n{nccl}\nncclUnhandledCudaError: Call to CUDA function failed.\nLast error:\n\
         Cuda failure 'uncorrectable ECC error encountered'"
    );
    let raised = |text: &str| {
        let text: String = text.lines().map(|line| format!("[rank9]: {line}\n")).collect();
        read(&text).first_exception().map(|(rank, said)| (rank, said.text.clone()))
    };
    let (caught, text) =
        ("Traceback (most recent call last):\nKeyError: 'x'", format!("{first}\n{clean_up}"));
    assert_eq!(raised(&text), Some((Some(9), first.to_owned())));
    assert_eq!(
        raised(&format!("{caught}\n{text}")),
        Some((Some(9), first.to_owned())),
        "one that was caught"
    );
    let alone = raised(clean_up.split_once('\n').expect("lines").1).expect("raised").1;
    assert!(alone.starts_with("torch.distributed.DistBackendError: NCCL error in"), "{alone}");
    assert!(alone.ends_with("; Cuda failure 'uncorrectable ECC error encountered'"), "{alone}");
}

#[test]
fn tracebacks_that_interleave_are_parted_by_their_labels() {
    let text = "0: Traceback (most recent call last):\n1: ValueError: prose\n1: Traceback (most recent call last):\n\
                0: KeyError: 'a'\n1: OSError: b\n0: IOError: prose\n";
    let account = read(text);
    let said: Vec<_> = account.exceptions.values().map(|said| (said.text.as_str(), said.line)).collect();
    assert_eq!(said, [("KeyError: 'a'", 4), ("OSError: b", 5)]);
}

#[test]
fn the_earliest_of_several_nodes_root_causes_counts() {
    let block = |host: &str, rank: u64, time: &str| {
        format!(
            "{host}: Root Cause (first observed failure):\n{host}: [0]:\n{host}:   time      : 2026-11-22_{time}\n\
                 {host}:   host      : {host}\n{host}:   rank      : {rank} (local_rank: 0)\n{host}:   exitcode  : 1 (pid: 7)\n"
        )
    };
    for text in [
        block("n1", 0, "10:11:19") + &block("n2", 8, "10:11:12"),
        block("n2", 8, "10:11:12") + &block("n1", 0, "10:11:19"),
    ] {
        let cause = read(&text).root_cause.expect("a root cause");
        assert_eq!((cause.rank, cause.host.as_deref()), (Some(8), Some("n2")), "{text}");
    }
}

#[test]
fn no_root_cause_is_the_first_of_those_at_the_same_time() {
    let block = |host: &str, rank: u64, code: i64, second: u64| {
        format!(
            "{host}: Root Cause (first observed failure):\n{host}: [0]:\n{host}:   time      : 2026-11-22_10:11:{second}\n\
             {host}:   host      : {host}\n{host}:   rank      : {rank} (local_rank: 0)\n{host}:   exitcode  : {code} (pid: 7)\n"
        )
    };
    let hosts = |text: String| {
        let account = read(&text);
        let all = account.root_cause.iter().chain(&account.rivals).filter_map(|cause| cause.host.clone());
        all.collect::<Vec<_>>().join(" ")
    };
    let (a, b) = (block("n1", 0, -9, 12), block("n2", 8, -9, 14));
    assert_eq!((hosts(a.clone() + &b), hosts(b.clone() + &a)), ("n1 n2".into(), "n1 n2".into()));
    assert_eq!(hosts(block("n1", 0, -9, 12) + &block("n2", 8, -9, 18)), "n1", "seconds later");
    // Who aborted, or lost a peer, gives way, whoever printed first.
    let aborted = block("n1", 0, -6, 12);
    assert_eq!((hosts(aborted.clone() + &b), hosts(b.clone() + &aborted)), ("n2".into(), "n2".into()));
    let lost = "[rank0]: torch.distributed.DistBackendError: NCCL error in: x.cpp:1, remote process exited\n";
    assert_eq!(hosts(lost.to_owned() + &block("n1", 0, 1, 12) + &b), "n2");
    let same = read(&(a.clone() + &block("n1", 3, -9, 12)));
    assert_eq!(same.rivals, [], "of one host");
}

#[test]
fn an_exception_within_the_message_of_another_is_no_label() {
    let account = read("[rank1]: RuntimeError: ValueError: x\n");
    assert_eq!(
        account.first_exception().map(|(_, said)| said.text.as_str()),
        Some("RuntimeError: ValueError: x")
    );
}
