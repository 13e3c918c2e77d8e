//! Kernels, ranges and projections of small reports over their instances.

use super::KERNELS;
use super::extract::{Extract, NameRequest, take};
use crate::chart::{Chart, Figure, Lines};
use crate::recipe::of_reports::part_tests::both_ways;
use crate::recipe::of_reports::tests::{decimals, inputs, integers, surveyed, table};
use crate::recipe::of_reports::{Outcome, Survey, find};
use crate::report::Arguments;
use crate::testing::{Made, OTHER_PROCESS, PROCESS};
use nsys::tables::SESSION_START;
use nsys::trace::Filter;

/// Kernels of two names, whole and short.
fn named() -> Made {
    let made = Made::begin();
    made.string(1, "void gemm<int, 2>(a::b)").string(2, "gemm").string(3, "ncclDevKernel(x)");
    made.string(4, "ncclDevKernel");
    made
}

/// Instances of the first kernel.
fn rank(spans: &[(i64, i64)]) -> Made {
    let made = named();
    spans.iter().for_each(|span| {
        made.kernel(*span, 1, 1);
    });
    made
}

fn run(name: &str, words: &[&str], reports: &[Made]) -> Outcome {
    surveyed(name, words, &inputs(reports.iter().map(Made::path).collect()))
}

fn lines<'a>(outcome: &'a Outcome, name: &str) -> &'a Lines {
    let chart = outcome.charts.iter().find(|chart| chart.name == name).expect(name);
    match chart {
        Chart { figure: Figure::Lines(lines), .. } => lines,
        other => panic!("{other:?}"),
    }
}

#[test]
fn instances_stand_in_the_order_of_their_beginnings_with_their_distances_and_sums() {
    // The second begins before the first has ended, and is put there last.
    let outcome = run("cuda_gpu_kern_pace", &[], &[rank(&[(100, 200), (400, 450), (150, 300)])]);
    let pace = table(&outcome, "pace");
    assert_eq!(integers(pace, "Instance"), [Some(0), Some(1), Some(2)]);
    assert_eq!(integers(pace, "Start"), [Some(100), Some(150), Some(400)]);
    assert_eq!(integers(pace, "Duration"), [Some(100), Some(150), Some(50)]);
    assert_eq!(integers(pace, "Distance"), [None, Some(-50), Some(100)]);
    assert_eq!(integers(pace, "Accumulated"), [Some(100), Some(250), Some(300)]);
    let stats = table(&outcome, "stats");
    assert_eq!((integers(stats, "Count"), integers(stats, "Total")), (vec![Some(3)], vec![Some(300)]));
    assert_eq!((decimals(stats, "Avg"), decimals(stats, "Med")), (vec![Some(100.0)], vec![Some(100.0)]));
    assert_eq!(decimals(stats, "CV"), [Some(50.0)]);
    for (column, value) in
        [("Distance Avg", 25.0), ("Distance Med", 25.0), ("Distance Min", -50.0), ("Distance Max", 100.0)]
    {
        assert_eq!(decimals(stats, column), [Some(value)], "{column}");
    }
    assert!((decimals(stats, "Distance StdDev")[0].expect("of two") - 106.066_017).abs() < 1e-6);
    assert_eq!(
        lines(&outcome, "duration").lines[0].points,
        [(0.0, Some(100.0)), (1.0, Some(150.0)), (2.0, Some(50.0))]
    );
    assert_eq!(lines(&outcome, "distance").lines[0].points, [(1.0, Some(-50.0)), (2.0, Some(100.0))]);
    assert_eq!(lines(&outcome, "progress").lines[0].points[2], (2.0, Some(400.0)));
    assert!(
        outcome.tables.iter().all(|(name, _)| *name != "across"),
        "one track has nothing to compare with"
    );
}

#[test]
fn a_single_instance_has_no_distance_and_no_deviation() {
    let outcome = run("cuda_gpu_kern_pace", &[], &[rank(&[(5, 9)])]);
    let stats = table(&outcome, "stats");
    assert_eq!((decimals(stats, "StdDev"), decimals(stats, "CV")), (vec![Some(0.0)], vec![Some(0.0)]));
    for column in ["Distance Avg", "Distance Min", "Distance StdDev"] {
        assert_eq!(decimals(stats, column), [None], "{column}");
    }
    assert!(lines(&outcome, "distance").lines[0].points.is_empty());
    let outcome = run("cuda_gpu_kern_pace", &[], &[rank(&[(5, 5)])]);
    assert_eq!(decimals(table(&outcome, "stats"), "CV"), [None], "of no time at all there is no share");
}

#[test]
fn ranks_of_different_lengths_are_compared_up_to_the_shortest_with_a_note() {
    let reports = [rank(&[(0, 10), (20, 50), (60, 61)]), rank(&[(0, 20), (20, 40)]), rank(&[(1, 2), (3, 4)])];
    let outcome = run("cuda_gpu_kern_pace", &["name=gemm"], &reports);
    let across = table(&outcome, "across");
    assert_eq!(integers(across, "Instance"), [Some(0), Some(1)]);
    assert_eq!(integers(across, "Min"), [Some(1), Some(1)]);
    assert_eq!(decimals(across, "Med"), [Some(10.0), Some(20.0)]);
    assert_eq!(integers(across, "Max"), [Some(20), Some(30)]);
    assert_eq!(integers(across, "Slowest Rank"), [Some(1), Some(0)]);
    assert_eq!(integers(across, "First to Last Start"), [None, None], "their zeros are not known");
    let expected =
        "ranks have different numbers of instances: 2 on ranks 1, 2; 3 on ranks 0; comparing the first 2";
    assert!(outcome.notes.iter().any(|note| note.ends_with(expected)), "{:?}", outcome.notes);
    assert!(outcome.notes.iter().any(|note| note.contains("lack the time of their zero")));
    let labels: Vec<&str> =
        lines(&outcome, "duration").lines.iter().map(|line| line.label.as_str()).collect();
    assert_eq!(labels, ["rank 0", "rank 1", "rank 2"]);
}

#[test]
fn clocks_are_shifted_where_every_report_has_its_zero() {
    let zero = |made: Made, ns: i64| {
        made.put(&SESSION_START, &[("utcEpochNs", ns.into())]);
        made
    };
    let reports = [zero(rank(&[(100, 110)]), 5_000), zero(rank(&[(50, 60)]), 5_080)];
    let outcome = run("cuda_gpu_kern_pace", &[], &reports);
    assert_eq!(integers(table(&outcome, "pace"), "Common Start"), [Some(100), Some(130)]);
    assert_eq!(integers(table(&outcome, "across"), "First to Last Start"), [Some(30)]);
    assert_eq!(lines(&outcome, "progress").lines[1].points, [(0.0, Some(130.0))]);
    assert!(outcome.notes.iter().all(|note| !note.contains("zero")), "{:?}", outcome.notes);
}

#[test]
fn without_a_name_the_largest_over_all_reports_is_shown_with_a_note() {
    // In neither report alone is it the largest of all: 60 of 130, against 70 and 65.
    let (one, two) = (named(), named());
    one.kernel((0, 70), 1, 1).kernel((100, 160), 2, 3);
    two.kernel((0, 60), 1, 3).string(5, "other()").string(6, "other").kernel((100, 165), 2, 5);
    let outcome = run("cuda_gpu_kern_pace", &[], &[one, two]);
    assert_eq!(integers(table(&outcome, "pace"), "Duration"), [Some(60), Some(60)]);
    let expected = "no `name` given, using the kernel with the largest total time: ncclDevKernel(x)";
    assert!(outcome.notes.iter().any(|note| note.contains(expected)), "{:?}", outcome.notes);
    assert!(outcome.charts[0].title.ends_with("ncclDevKernel(x)"));
}

#[test]
fn a_report_that_kept_other_instances_is_re_read_with_its_filter() {
    // More instances than are kept beside those of the largest name.
    let (many, few) = (named(), named());
    for at in 0..20_010 {
        many.kernel((10 * at, 10 * at + 1), at, 1);
    }
    many.kernel((0, 100_000), 30_000, 3);
    few.kernel((0, 200_000), 1, 1).kernel((300_000, 300_001), 2, 1);
    let extract = |made: &Made| -> Extract {
        take(&KERNELS, &made.trace(), &NameRequest { name: "", like: "" }).expect("read").expect("some").0
    };
    assert!(extract(&many).keeps("ncclDevKernel") && !extract(&many).keeps("gemm"));
    let paths = inputs(vec![many.path(), few.path()]);
    let outcome = surveyed("cuda_gpu_kern_pace", &[], &paths);
    assert_eq!(integers(table(&outcome, "stats"), "Count"), [Some(20_010), Some(2)]);
    let filter = Filter::Time("/200055".parse().expect("a span"));
    let recipe = find("cuda_gpu_kern_pace").expect("there");
    let asked = [(recipe, Arguments::default())];
    let of = Survey { asked: &asked, inputs: &paths, filter: Some(&filter), jobs: 1, progress: &|_| {} };
    let outcome = both_ways(&of).remove(0);
    assert_eq!(integers(table(&outcome, "stats"), "Count"), [Some(20_006), Some(1)]);
}

#[test]
fn names_are_whole_or_short_and_for_unknown_ones_others_are_suggested() {
    let made = || {
        let made = named();
        made.string(5, "void gemm<int, 4>(a::b)").string(6, "gemm").string(7, "copy()").string(8, "copy");
        made.kernel((0, 10), 1, 1).kernel((20, 50), 2, 5).kernel((60, 61), 3, 7).kernel((70, 99), 4, 3);
        [made]
    };
    let whole = run("cuda_gpu_kern_pace", &["name=void gemm<int, 4>(a::b)"], &made());
    assert_eq!(integers(table(&whole, "pace"), "Duration"), [Some(30)]);
    let short = run("cuda_gpu_kern_pace", &["name=gemm"], &made());
    assert_eq!(integers(table(&short, "pace"), "Duration"), [Some(10), Some(30)]);
    assert!(short.notes[0].ends_with("2 kernels named `gemm` are counted together"), "{:?}", short.notes);
    let absent = run("cuda_gpu_kern_pace", &["name=Copy_2"], &made());
    assert!(absent.tables.is_empty() && absent.charts.is_empty());
    let expected =
        "no kernel named `Copy_2`; existing kernels: `copy()`, `void gemm<int, 4>(a::b)`, `ncclDevKernel(x)`";
    assert!(absent.notes.iter().any(|note| note.ends_with(expected)), "{:?}", absent.notes);
}

#[test]
fn processes_and_devices_of_one_report_are_separate_tracks() {
    let made = named();
    made.kernel_of(PROCESS, (0, 10), 1, 1).kernel_of(OTHER_PROCESS, (5, 9), 1, 1);
    let outcome = run("cuda_gpu_kern_pace", &[], &[made]);
    assert_eq!(integers(table(&outcome, "stats"), "PID"), [Some(40), Some(41)]);
    assert_eq!(integers(table(&outcome, "pace"), "Distance"), [None, None]);
    let labels: Vec<&str> =
        lines(&outcome, "duration").lines.iter().map(|line| line.label.as_str()).collect();
    assert_eq!(labels, ["rank 0, process 40", "rank 0, process 41"]);
}

#[test]
fn a_rank_without_an_instance_is_noted_and_rows_that_end_before_they_begin_do_not_count() {
    let other = named();
    other.kernel((0, 10), 1, 3).kernel((40, 20), 2, 1);
    let outcome = run("cuda_gpu_kern_pace", &["name=gemm"], &[rank(&[(0, 500)]), other]);
    assert_eq!(integers(table(&outcome, "stats"), "Rank"), [Some(0)]);
    assert!(
        outcome.notes.iter().any(|note| note.ends_with("ranks without an instance: 1")),
        "{:?}",
        outcome.notes
    );
    assert!(outcome.notes.iter().any(|note| note.contains("end before they begin, left out: 1")));
}

fn ranged() -> Made {
    let made = Made::begin();
    made.string(1, "gemm()").string(2, "gemm");
    for at in 0..3 {
        let start = 1000 * at;
        made.range((start, start + 100 + at), 3, "step").range((start + 10, start + 40), 3, "part");
        made.call((start + 20, start + 30), 3, at, 1).kernel((start + 500, start + 700 + at), at, 1);
    }
    made
}

#[test]
fn ranges_and_their_projections_have_their_paces() {
    let outcome = run("nvtx_pace", &[], &[ranged()]);
    assert_eq!(integers(table(&outcome, "pace"), "Duration"), [Some(100), Some(101), Some(102)]);
    assert_eq!(integers(table(&outcome, "pace"), "Distance"), [None, Some(900), Some(899)]);
    assert!(table(&outcome, "pace").column("Device").is_none());
    let outcome = run("nvtx_gpu_proj_pace", &["name=part"], &[ranged()]);
    assert_eq!(integers(table(&outcome, "pace"), "Start"), [Some(500), Some(1500), Some(2500)]);
    assert_eq!(integers(table(&outcome, "pace"), "Duration"), [Some(200), Some(201), Some(202)]);
    for name in [":step", "step"] {
        let outcome = run("nvtx_pace", &[&format!("name={name}")], &[ranged()]);
        assert_eq!(integers(table(&outcome, "stats"), "Count"), [Some(3)], "{name}");
    }
}

#[test]
fn reports_without_kernels_ranges_or_launches_have_no_pace() {
    let bare = || {
        let made = Made::begin();
        made.range((0, 100), 3, "step");
        made
    };
    for (name, made) in
        [("cuda_gpu_kern_pace", bare()), ("nvtx_gpu_proj_pace", bare()), ("nvtx_pace", rank(&[(0, 1)]))]
    {
        let outcome = run(name, &[], &[made]);
        assert!(outcome.tables.is_empty() && outcome.charts.is_empty(), "{name}");
        assert!(outcome.unreadable.is_empty());
    }
}

#[test]
fn a_report_that_is_gone_when_re_read_is_reported_as_unreadable() {
    let (one, two) = (named(), named());
    for at in 0..20_001 {
        one.kernel((10 * at, 10 * at + 1), at, 1);
    }
    one.kernel((0, 100_000), 30_000, 3);
    two.kernel((0, 200_000), 1, 1);
    let parts = [&one, &two].map(|made| {
        take(&KERNELS, &made.trace(), &NameRequest { name: "", like: "" }).expect("read").expect("some").0
    });
    drop(one);
    let reports: Vec<_> = parts
        .iter()
        .enumerate()
        .map(|(at, extract)| super::ReportExtract {
            rank: at as i64,
            file: format!("r{at}"),
            host: None,
            utc_epoch_ns: None,
            extract,
        })
        .collect();
    let made = super::make(&KERNELS, &super::CUDA_GPU_KERN_PACE, &reports, &Arguments::default());
    assert_eq!(made.unreadable.iter().map(|(file, _)| file.as_str()).collect::<Vec<_>>(), ["r0"]);
    assert_eq!(integers(&made.tables[0].1, "Rank"), [Some(1)]);
}

#[test]
fn a_part_of_a_name_chooses_the_largest_that_has_it() {
    let made = named();
    made.string(5, "ncclDevKernel_AllGather_RING_LL(x)").string(6, "ncclDevKernel_AllGather_RING_LL");
    made.kernel((0, 100), 1, 1).kernel((100, 110), 2, 3).kernel((200, 230), 3, 5).kernel((300, 330), 4, 5);
    let outcome = run("cuda_gpu_kern_pace", &["like=nccl"], std::slice::from_ref(&made));
    assert_eq!(integers(table(&outcome, "pace"), "Start"), [Some(200), Some(300)]);
    let note = "of the kernels with `nccl` in their names, using the one with the largest total time: \
                ncclDevKernel_AllGather_RING_LL(x)";
    assert!(outcome.notes.iter().any(|text| text.ends_with(note)), "{:?}", outcome.notes);
    let outcome = run("cuda_gpu_kern_pace", &["like=Broadcast"], &[made]);
    assert!(outcome.tables.is_empty());
    let note = "no kernel name contains `Broadcast`; existing kernels: `void gemm<int, 2>(a::b)`";
    assert!(outcome.notes.iter().any(|text| text.contains(note)), "{:?}", outcome.notes);
}

#[test]
fn messages() {
    let reports = [rank(&[(0, 10), (20, 50)]), rank(&[(0, 20)])];
    let words: [&[&str]; 5] = [&[], &["name=gemm"], &["name=Copy_2"], &["like=gem"], &["like=Broadcast"]];
    let notes = words.iter().flat_map(|words| run("cuda_gpu_kern_pace", words, &reports).notes);
    insta::assert_snapshot!(notes.collect::<Vec<_>>().join("\n"));
}
