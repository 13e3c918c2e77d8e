//! Outputs of both tools as they are printed, cut and wrong: what is read, and which gap is seen.

use super::*;
use proptest::prelude::*;

const FABTESTS: &str = "---\nfi_rma_bw -e rdm -o writedata -m -p efa -d rdmap79s0-rdm p5-001 :\n- { xfer_size: \
    1048576, iterations: 60000, total: 62914560000, time: 5.242880, MB/sec: 12000.000000, usec/xfer: 87.381332, \
    Mxfers/sec: 0.011444 }\n";
const PERFTEST: &str = "
---------------------------------------------------------------------------------------
                    RDMA_Write BW Test
 Dual-port       : OFF          Device         : rdmap79s0
 Number of qps   : 1            Transport type : IB
---------------------------------------------------------------------------------------
 local address: LID 0000 QPN 0x0002 PSN 0x9c4c2e RKey 0x000182 VAddr 0x007f042ac00000
 GID: 254:128:00:00:00:00:00:00:06:144:129:255:254:54:91:176
---------------------------------------------------------------------------------------
 #bytes     #iterations    BW peak[MiB/sec]    BW average[MiB/sec]   MsgRate[Mpps]
Conflicting CPU frequency values detected: 5008.116000 != 3295.212000. CPU Frequency is not max.
 1048576    5000             15128.13            15121.79\t\t   0.015122
---------------------------------------------------------------------------------------
";

fn gap(text: &str) -> FlowGap {
    read(text.as_bytes(), "rdmap79s0.out").unwrap_err()
}

#[test]
fn fabtests_counts_megabytes_of_a_million_bytes() {
    let flow = read(FABTESTS.as_bytes(), "").unwrap();
    assert_eq!((flow.tool, flow.bytes, flow.iterations), (Tool::FiRmaBw, 1 << 20, 60000));
    assert_eq!((flow.seconds, flow.rate_gb_s), (5.24288, 12.0));
}

#[test]
fn the_table_for_people_is_read_as_well() {
    let text = "bytes   iters   total       time     MB/sec    usec/xfer   Mxfers/sec\n\
                1m      60k     58g         5.24s  12000.00      87.38       0.01\n";
    let flow = read(text.as_bytes(), "").unwrap();
    assert_eq!((flow.bytes, flow.iterations, flow.rate_gb_s), (1 << 20, 60000, 12.0));
}

#[test]
fn perftest_counts_megabytes_of_two_to_the_twentieth() {
    let flow = read(PERFTEST.as_bytes(), "").unwrap();
    assert_eq!((flow.tool, flow.bytes, flow.iterations), (Tool::IbWriteBw, 1 << 20, 5000));
    assert!((flow.rate_gb_s - 15.856).abs() < 0.001, "{flow:?}");
    assert_eq!(read(PERFTEST.replace("MiB/sec", "MB/sec").as_bytes(), ""), Ok(flow));
}

#[test]
fn perftest_in_gigabits_is_an_eighth_in_bytes() {
    let text = " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n \
                1048576    60000            0.00               96.00  \t\t   0.011444\n";
    assert_eq!(read(text.as_bytes(), "").unwrap().rate_gb_s, 12.0);
}

#[test]
fn a_unit_that_does_not_fit_the_message_rate_is_not_believed() {
    let wrong = gap(&PERFTEST.replace("MiB/sec", "Gb/sec"));
    assert_eq!(wrong.kind, GapKind::NotUnderstood);
    assert!(wrong.reason.starts_with("columns disagree on the rate: "), "{wrong}");
    assert_eq!(gap(&FABTESTS.replace("time: 5.2", "time: 4.2")).kind, GapKind::NotUnderstood);
}

#[test]
fn every_gap_has_its_kind_and_place() {
    for (text, kind, line) in [
        ("", GapKind::NoOutput, None),
        (" \n\n", GapKind::NoOutput, None),
        ("tool-missing fi_rma_bw p5-002\n", GapKind::ToolMissing, Some(1)),
        ("not-connected no rate in 60 s, attempts: 3, last status: 124\n", GapKind::NotConnected, Some(1)),
        ("tool-refused ib_write_bw on p5-001: SRD connection only possible\n", GapKind::ToolRefused, Some(1)),
        ("path gpu 3 sysfs\nnot-connected no rate in 60 s\n", GapKind::NotConnected, Some(2)),
        ("path host 1/4 why\n", GapKind::NotUnderstood, Some(1)),
        ("not-started server p5-001 was not ready after 60 s\n", GapKind::NoOutput, Some(1)),
        ("Couldn't connect to p5-001:18600\n", GapKind::NotConnected, Some(1)),
        ("---\nfi_rma_bw -m :\n", GapKind::Cut, Some(2)),
        ("hello\n", GapKind::NotUnderstood, Some(1)),
        (FABTESTS.trim_end(), GapKind::Cut, Some(3)),
        (&FABTESTS.replace("12000.000000", "nan"), GapKind::NotUnderstood, Some(3)),
        (&FABTESTS.replace("12000.000000", "-1"), GapKind::NotUnderstood, Some(3)),
        (&FABTESTS.replace("iterations: 60000", "iterations: 0"), GapKind::NotUnderstood, Some(3)),
        (&PERFTEST.replace("15121.79", "0.00"), GapKind::NotUnderstood, Some(12)),
        (&PERFTEST.replace("15121.79", "inf"), GapKind::NotUnderstood, Some(12)),
        (&format!("{FABTESTS}{FABTESTS}"), GapKind::NotUnderstood, Some(6)),
        (&format!("{FABTESTS}not-connected no rate in 60 s\n"), GapKind::NotUnderstood, Some(4)),
        (&format!("not-connected no rate in 60 s\n{FABTESTS}"), GapKind::NotUnderstood, Some(1)),
        (PERFTEST.split_once("Conflicting").unwrap().0, GapKind::Cut, Some(10)),
    ] {
        let gap = gap(text);
        assert_eq!((gap.kind, gap.line), (kind, line), "{text}: {gap}");
    }
    let missing = gap("tool-missing fi_rma_bw p5-002\n");
    assert_eq!(missing.to_string(), "`fi_rma_bw` is not installed on p5-002 (line 1)");
    assert!(GapKind::ALL.iter().all(|kind| GapKind::from_code(&kind.code()) == Some(*kind)));
}

#[test]
fn the_line_on_the_path_changes_nothing_about_the_rate() {
    let text = format!("path host 4/4 fi_rma_bw on p5-001 cannot use CUDA\n{FABTESTS}");
    assert_eq!(read(text.as_bytes(), ""), read(FABTESTS.as_bytes(), ""));
    let cut = format!("path gpu 3 sysfs\n{}", FABTESTS.split_once("- {").unwrap().0);
    assert_eq!(gap(&cut).kind, GapKind::Cut);
}

#[test]
fn what_the_script_gave_up_after_the_heading_did_not_connect() {
    let head = PERFTEST.split_once("Conflicting").unwrap().0;
    let text = format!("{head}not-connected no rate in 60 s, attempts: 1, last status: 124\n");
    assert_eq!(gap(&text).kind, GapKind::NotConnected);
}

fn flows() -> impl Strategy<Value = Flow> {
    let tool = prop_oneof![Just(Tool::FiRmaBw), Just(Tool::IbWriteBw)];
    (tool, 1u64..1 << 24, 1u64..1 << 24, 1e-3..60.0)
        .prop_filter_map("prints as zero", |(tool, bytes, n, rate)| Flow::printed(tool, bytes, n, rate))
}

proptest! {
    #[test]
    fn what_was_printed_reads_back_as_it_was(flow in flows()) {
        prop_assert_eq!(read(render(&flow).as_bytes(), ""), Ok(flow));
    }

    #[test]
    fn a_beginning_of_an_output_never_gives_another_rate(flow in flows(), share in 0.0..1.0) {
        let text = render(&flow);
        let cut = (text.len() as f64 * share) as usize;
        if let Ok(read) = read(&text.as_bytes()[..cut], "") {
            prop_assert_eq!(read, flow);
        }
    }

    #[test]
    fn no_input_makes_the_reader_panic(text in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = read(&text, "");
    }

    #[test]
    fn no_row_makes_the_reader_panic(cells in "[-0-9.kmgbnaies{}:, \t\nXé]{0,120}") {
        let _ = read(format!("bytes iters time MB/sec\n{cells}\n").as_bytes(), "");
        let _ = read(format!(" #bytes BW average[MB/sec]\n{cells}\n").as_bytes(), "");
        let _ = read(format!("- {{ {cells} }}\n").as_bytes(), "");
    }
}
