//! Ranges of NVTX that were pushed and never popped, or the other way round, of each rank of a job. How they are found is told
//! in `trace::balance`.

use super::{FileRole, InputFile, JobInput, Output, RecipeSpec};
use metric::unit::{Better, Unit};
use metric::{Blames, Dim, MetricSpec};
use nsys::export::ExportError;
use nsys::loss::loss;
use nsys::tables::{DIAGNOSTIC_EVENT, NVTX_EVENTS, STRING_IDS};
use nsys::trace::Trace;
use nsys::trace::balance::{Balance, Lack, Odd};
use std::collections::BTreeMap;

const fn count(name: &'static str, about: &'static str, better: Better) -> MetricSpec {
    MetricSpec {
        name,
        about,
        unit: Unit::Count,
        better,
        dims: &[Dim::Rank, Dim::Node],
        blames: Blames::Nobody,
    }
}

const RANGES: MetricSpec = count("nvtx.ranges", "ranges of a rank that have both halves", Better::Neither);
const UNPOPPED: MetricSpec = count(
    "nvtx.push_without_pop",
    "ranges that were pushed and not popped before the capture ended; one that ends within a range leaves it open",
    Better::Lower,
);
const REPEATED: MetricSpec = count(
    "nvtx.push_without_pop_repeated",
    "those of them whose name was open already on their thread: a pop is missing in the program",
    Better::Lower,
);
const UNPUSHED: MetricSpec = count(
    "nvtx.pop_without_push",
    "pops of ranges that nobody pushed, or that were pushed before the capture began",
    Better::Lower,
);
const UNENDED: MetricSpec =
    count("nvtx.never_ended", "ranges of start and end that lack one of both", Better::Lower);

pub const SPEC: RecipeSpec = RecipeSpec {
    name: "nvtx_unbalanced",
    about: "ranges of NVTX that were pushed and never popped, or popped and never pushed, from the reports of nsys",
    metrics: &[RANGES, UNPOPPED, REPEATED, UNPUSHED, UNENDED],
    tables: &[&NVTX_EVENTS, &STRING_IDS, &DIAGNOSTIC_EVENT],
    causes: &["events-dropped", "target-error", "report-unreadable", "no-nvtx-ranges"],
    run: &run,
};

fn run(job: &JobInput) -> Output {
    let mut output = Output::default();
    for file in job.files_of(FileRole::NsysExport) {
        let (Some(rank), Some(node)) = (file.rank, &file.node) else { continue };
        let balance = match job.of_report(SPEC.name, file, || of_rank(file)) {
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
        tell(file, &balance, &mut output);
    }
    output
}

fn of_rank(file: &InputFile) -> Result<Balance, (&'static str, String)> {
    let unreadable = |error: ExportError| ("report-unreadable", error.to_string());
    let trace = Trace::open(&file.path).map_err(unreadable)?;
    // The half that a range lacks may be among the events that are lost.
    if let Some((code, text)) = loss(trace.export()).map_err(unreadable)? {
        return Err((code, format!("the report says itself: {text}")));
    }
    let why = "the report has no range of NVTX; trace `nvtx`, and have the program write some";
    Balance::read(&trace).map_err(unreadable)?.ok_or(("no-nvtx-ranges", why.to_owned()))
}

/// So many kinds of a report are told one by one.
const TOLD: usize = 5;

fn tell(file: &InputFile, balance: &Balance, output: &mut Output) {
    let mut kinds: BTreeMap<(Lack, i64, i64, &str), Vec<&Odd>> = BTreeMap::new();
    for odd in &balance.odd {
        kinds.entry((odd.lack, odd.pid, odd.tid, &odd.label)).or_default().push(odd);
    }
    for ((lack, pid, tid, label), odd) in kinds.iter().take(TOLD) {
        let (code, what, advice) = words(*lack);
        let many = if odd.len() > 1 { format!(", the first of {}", odd.len()) } else { String::new() };
        let at = odd.first().map_or(0.0, |odd| odd.at as f64 / 1e9);
        let why = format!(
            "`{label}` on thread {tid} of process {pid} {what} at {at:.6} s of the report{many}; {advice}"
        );
        output.findings.push(file.tells(code, why));
    }
    let more = kinds.len().saturating_sub(TOLD);
    if more > 0 {
        let why = format!(
            "{more} more names lack halves of their ranges: `harness recipe nvtx_unbalanced` tells all"
        );
        output.findings.push(file.tells("nvtx-unbalanced", why));
    }
}

/// The code of a finding, what happened, and what to do.
fn words(lack: Lack) -> (&'static str, &'static str, &'static str) {
    match lack {
        Lack::Pop => (
            "nvtx-push-without-pop",
            "was pushed and never popped",
            "every push needs its pop on the same thread, also where an exception leaves the range; a capture that ends \
             within a range leaves one open",
        ),
        Lack::Push => (
            "nvtx-pop-without-push",
            "was popped and never pushed",
            "take the pop out that has no push on its thread; a range that began before the capture looks so too",
        ),
        Lack::End => (
            "nvtx-range-never-ended",
            "was started and never ended",
            "end each range by the number that its start gave",
        ),
        Lack::Start => (
            "nvtx-range-never-ended",
            "was ended and never started",
            "end each range once, by the number that its start gave",
        ),
        Lack::Order => (
            "nvtx-range-backwards",
            "ends before it begins",
            "the clocks of the threads disagree, or the report is broken: take it again",
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
    fn ranges_with_both_halves_are_counted_and_nothing_is_odd() {
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
    fn each_way_of_lacking_a_half_has_its_number_and_names_thread_and_time() {
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
                "rank 1: `:forward` on thread 5 of process 40 was pushed and never popped at 0.001000 s of the report, the \
                 first of 3; every push needs"
            ),
            "{}",
            first.message
        );
        assert_eq!(first.node.as_deref(), Some("n1"));
    }

    #[test]
    fn many_names_are_counted_after_the_first() {
        let made = balanced();
        for name in 0..9i64 {
            made.event(59, 3, &[("start", name.into()), ("text", format!("layer {name}").into())]);
        }
        let output = output(&[&made]);
        assert_eq!(output.findings.len(), TOLD + 1);
        assert!(output.findings[TOLD].message.contains("4 more names"), "{:?}", output.findings[TOLD]);
    }

    #[test]
    fn a_report_without_ranges_or_with_lost_events_has_no_number() {
        let nothing = Made::begin();
        nothing.string(1, "a");
        let lost = balanced();
        let row = [("severity", 2.into()), ("text", "4096 events were dropped".to_owned().into())];
        lost.put(&DIAGNOSTIC_EVENT, &row);
        let output = output(&[&nothing, &lost]);
        assert!(output.metrics.is_empty(), "{:?}", output.metrics);
        let codes: Vec<&str> = output.findings.iter().map(|finding| finding.code.as_str()).collect();
        assert_eq!(codes, ["no-nvtx-ranges", "events-dropped"]);
        assert!(codes.iter().all(|code| SPEC.causes.contains(code)));
    }
}
