//! Unbalanced NVTX ranges of each rank of a job: pushed and never popped, or popped and never pushed. `trace::balance`
//! finds them.

use super::{FileRole, InputFile, JobInput, Output, RecipeSpec};
use crate::recipe::shared_findings::ReportFinding;
use metric::finding_kinds;
use metric::unit::{Better, Unit};
use metric::{Dim, Files, MetricSpec};
use nsys::export::ExportError;
use nsys::loss::loss;
use nsys::tables::{DIAGNOSTIC_EVENT, NVTX_EVENTS, STRING_IDS};
use nsys::trace::Trace;
use nsys::trace::balance::{Balance, Lack, Odd};
use std::collections::BTreeMap;

const fn count(name: &'static str, about: &'static str, better: Better) -> MetricSpec {
    MetricSpec::new(name, about, Unit::Count, better, Files::Reports).per(&[Dim::Rank, Dim::Node])
}

const RANGES: MetricSpec =
    count("nvtx.ranges", "NVTX ranges of a rank that have both begin and end", Better::Neither);
const UNPOPPED: MetricSpec = count(
    "nvtx.push_without_pop",
    "ranges pushed and not popped before the capture ended; a capture that ends within a range leaves it open",
    Better::Lower,
);
const REPEATED: MetricSpec = count(
    "nvtx.push_without_pop_repeated",
    "those of them whose name was already open on the same thread: the program lacks a pop",
    Better::Lower,
);
const UNPUSHED: MetricSpec = count(
    "nvtx.pop_without_push",
    "pops without a push, or whose push came before the capture began",
    Better::Lower,
);
const UNENDED: MetricSpec =
    count("nvtx.never_ended", "start/end ranges that lack their start or their end", Better::Lower);

/// For profiled cases, by rank; `harness recipe nvtx_unbalanced` reads stored reports.
pub(crate) const SPEC: RecipeSpec = RecipeSpec {
    name: "nvtx_unbalanced",
    about: "unbalanced NVTX ranges (pushed and never popped, or popped and never pushed), from nsys reports",
    metrics: &[RANGES, UNPOPPED, REPEATED, UNPUSHED, UNENDED],
    tables: &[&NVTX_EVENTS, &STRING_IDS, &DIAGNOSTIC_EVENT],
    findings: &[ReportFinding::ALL, NvtxFinding::ALL],
    reads_nccl_log: false,
    compares_clocks: false,
    reads_inspector: false,
    run: &run,
};

finding_kinds! {
    /// Of ranges in reports.
    pub(crate) enum NvtxFinding {
        NoNvtxRanges = "no-nvtx-ranges": NoNumber,
        Unbalanced = "nvtx-unbalanced": Note,
        PushWithoutPop = "nvtx-push-without-pop": Note,
        PopWithoutPush = "nvtx-pop-without-push": Note,
        NeverEnded = "nvtx-range-never-ended": Note,
        Backwards = "nvtx-range-backwards": Note,
    }
}

fn run(job: &JobInput) -> Output {
    let mut output = Output::default();
    for file in job.files_of(FileRole::NsysExport) {
        let (Some(rank), Some(node)) = (file.rank, &file.node) else { continue };
        let balance = match job.report_extract(SPEC.name, file, || read_balance(file)) {
            Ok(balance) => balance,
            Err(finding) => {
                output.findings.push(*finding);
                continue;
            }
        };
        let dims = || job.dims().with(Dim::Rank, rank).with(Dim::Node, node.as_str());
        let unended = balance.count(Lack::End) + balance.count(Lack::Start);
        let counts = [
            (RANGES, balance.whole),
            (UNPOPPED, balance.count(Lack::Pop)),
            (REPEATED, balance.repeated()),
            (UNPUSHED, balance.count(Lack::Push)),
            (UNENDED, unended),
        ];
        output.metrics.extend(counts.iter().map(|(spec, count)| spec.of(dims(), *count as f64)));
        report_unbalanced(file, &balance, &mut output);
    }
    output
}

fn read_balance(file: &InputFile) -> Result<Balance, (&'static str, String)> {
    let unreadable = |error: ExportError| (ReportFinding::Unreadable.code(), error.to_string());
    let trace = Trace::open(&file.path).map_err(unreadable)?;
    // The half that a range lacks may be among the events that are lost.
    if let Some((code, text)) = loss(trace.export()).map_err(unreadable)? {
        return Err((code, format!("the profiler reported: {text}")));
    }
    let why = "no NVTX range in the report; trace `nvtx`, and have the program emit ranges";
    Balance::read(&trace).map_err(unreadable)?.ok_or((NvtxFinding::NoNvtxRanges.code(), why.to_owned()))
}

/// At most this many kinds per report get a finding of their own.
const MOST_FINDINGS: usize = 5;

fn report_unbalanced(file: &InputFile, balance: &Balance, output: &mut Output) {
    let mut kinds: BTreeMap<(Lack, i64, i64, &str), Vec<&Odd>> = BTreeMap::new();
    for odd in &balance.odd {
        kinds.entry((odd.lack, odd.pid, odd.tid, &odd.label)).or_default().push(odd);
    }
    for ((lack, pid, tid, label), odd) in kinds.iter().take(MOST_FINDINGS) {
        let (code, what, hint) = advice(*lack);
        let many = if odd.len() > 1 { format!(", the first of {}", odd.len()) } else { String::new() };
        let at = odd.first().map_or(0.0, |odd| odd.at as f64 / 1e9);
        let why = format!(
            "`{label}` on thread {tid} of process {pid} {what} at {at:.6} s of the report{many}; {hint}"
        );
        output.findings.push(file.finding(code, why));
    }
    let more = kinds.len().saturating_sub(MOST_FINDINGS);
    if more > 0 {
        let why =
            format!("{more} more range names are unbalanced; list all: `harness recipe nvtx_unbalanced`");
        output.findings.push(file.finding(NvtxFinding::Unbalanced.code(), why));
    }
}

/// The code of a finding, what happened, and what to do.
fn advice(lack: Lack) -> (&'static str, &'static str, &'static str) {
    match lack {
        Lack::Pop => (
            NvtxFinding::PushWithoutPop.code(),
            "was pushed and never popped",
            "pop it on the same thread, also on exceptions; a capture that ends within the range looks the same",
        ),
        Lack::Push => (
            NvtxFinding::PopWithoutPush.code(),
            "was popped and never pushed",
            "remove the pop without a push on its thread; a range that began before the capture looks the same",
        ),
        Lack::End => (
            NvtxFinding::NeverEnded.code(),
            "was started and never ended",
            "end each range with the id that its start returned",
        ),
        Lack::Start => (
            NvtxFinding::NeverEnded.code(),
            "was ended and never started",
            "end each range once, with the id that its start returned",
        ),
        Lack::Order => (
            NvtxFinding::Backwards.code(),
            "ends before it begins",
            "thread clocks disagree or the report is broken; profile again",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recipe::Workload;
    use crate::testing::Made;
    use std::path::PathBuf;

    fn output(reports: &[&Made]) -> Output {
        let paths: Vec<PathBuf> = reports.iter().map(|made| made.path()).collect();
        let count = paths.len() as u32;
        run(&crate::recipe::testing::job(Workload::Command, &paths, |rank| format!("n{rank}"), count))
    }

    fn values(output: &Output, rank: u64) -> Vec<(&str, f64)> {
        let of_rank = output.metrics.iter().filter(|row| row.dims.number(Dim::Rank) == Some(rank));
        of_rank.map(|row| (&*row.name, row.value)).collect()
    }

    fn balanced() -> Made {
        let made = Made::begin();
        for step in 0..4 {
            made.range((step * 10, step * 10 + 9), 3, "step");
        }
        made
    }

    #[test]
    fn balanced_ranges_are_counted_without_findings() {
        let output = output(&[&balanced()]);
        let zero = |name| (name, 0.0);
        let expected = [
            ("nvtx.ranges", 4.0),
            zero("nvtx.push_without_pop"),
            zero("nvtx.push_without_pop_repeated"),
            zero("nvtx.pop_without_push"),
            zero("nvtx.never_ended"),
        ];
        assert_eq!((values(&output, 0), output.findings.len()), (expected.to_vec(), 0));
    }

    #[test]
    fn each_kind_of_imbalance_is_counted_and_names_thread_and_time() {
        let (good, bad) = (balanced(), balanced());
        let half = |kind: i64, at: i64, text: &str| {
            bad.event(kind, 5, &[("start", at.into()), ("text", text.to_owned().into())]);
        };
        (0..3).for_each(|at| half(59, 1_000_000 * (at + 1), "forward"));
        half(36, 2_000_000_000, "");
        half(60, 3, "load");
        bad.range((9, 2), 5, "odd");
        let output = output(&[&good, &bad]);
        let counts: Vec<f64> = values(&output, 1).into_iter().map(|(_, value)| value).collect();
        assert_eq!(counts, [4.0, 3.0, 2.0, 1.0, 1.0]);
        let codes: Vec<&str> = output.findings.iter().map(|finding| finding.code.as_str()).collect();
        let expected = [
            "nvtx-push-without-pop",
            "nvtx-pop-without-push",
            "nvtx-range-never-ended",
            "nvtx-range-backwards",
        ];
        assert_eq!(codes, expected);
        let first = &output.findings[0];
        assert!(
            first.message.starts_with(
                "rank 1: `:forward` on thread 5 of process 40 was pushed and never popped at 0.001000 s of the report, \
                 the first of 3; pop it on the same thread"
            ),
            "{}",
            first.message
        );
        assert_eq!(first.node.as_deref(), Some("n1"));
    }

    #[test]
    fn names_beyond_the_limit_are_only_counted() {
        let made = balanced();
        for name in 0..9i64 {
            made.event(59, 3, &[("start", name.into()), ("text", format!("layer {name}").into())]);
        }
        let output = output(&[&made]);
        assert_eq!(output.findings.len(), MOST_FINDINGS + 1);
        assert!(
            output.findings[MOST_FINDINGS].message.contains("4 more range names"),
            "{:?}",
            output.findings[MOST_FINDINGS]
        );
    }

    #[test]
    fn reports_without_ranges_or_with_lost_events_give_no_metric() {
        let nothing = Made::begin();
        nothing.string(1, "a");
        let lost = balanced();
        let row = [("severity", 2.into()), ("text", "4096 events were dropped".to_owned().into())];
        lost.put(&DIAGNOSTIC_EVENT, &row);
        let output = output(&[&nothing, &lost]);
        assert!(output.metrics.is_empty(), "{:?}", output.metrics);
        let codes: Vec<&str> = output.findings.iter().map(|finding| finding.code.as_str()).collect();
        assert_eq!(codes, ["no-nvtx-ranges", "events-dropped"]);
        assert!(codes.iter().all(|code| SPEC.is_cause(code)));
    }

    #[test]
    fn messages() {
        let (odd, many, nothing) = (balanced(), balanced(), Made::begin());
        odd.event(36, 5, &[("start", 2_000_000_000.into()), ("text", String::new().into())]);
        odd.event(60, 5, &[("start", 3.into()), ("text", "load".to_owned().into())]);
        odd.range((9, 2), 5, "odd");
        for name in 0..7i64 {
            many.event(59, 3, &[("start", name.into()), ("text", format!("layer {name}").into())]);
        }
        nothing.string(1, "a");
        insta::assert_snapshot!(crate::recipe::testing::messages(&[output(&[&odd, &many, &nothing])]));
    }
}
