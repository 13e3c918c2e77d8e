//! The rules. Each reads tables by name; a column that a table lacks has no number, and a rule without numbers finds
//! nothing.

use super::rows::{Row, Tables, largest, percent, sum};
use super::{Diagnosis, LimitFound};
use crate::duration::time;
use crate::kernel_class::{checks_buffers, class_of_both, communicates};

/// One thing that can limit the work.
pub(super) struct Rule {
    pub code: &'static str,
    /// What to change.
    pub change: &'static str,
    /// Recipes with their arguments, as on the command line.
    pub reads: &'static [&'static str],
    /// Where a person sees it.
    pub recipe: &'static str,
    pub table: &'static str,
    pub find: fn(&Tables<'_>) -> Option<Found>,
}

/// What a rule found.
pub(super) struct Found {
    pub share: f64,
    pub what: String,
    pub evidence: Vec<String>,
}

/// Less of the time of all GPUs is not worth a change.
const LEAST: f64 = 0.02;
/// A kernel that takes more of all kernel time is the one to look at.
const HOT: f64 = 0.5;
/// Less idle time is between any two launches.
const IDLE: f64 = 0.05;
/// Evidence is a few lines; recipes have all of it.
const MOST_LINES: usize = 4;
/// Of a kernel's name.
const MOST_LETTERS: usize = 80;
/// A kernel that begins so soon after its launch did not wait for others.
const NO_QUEUE_NS: f64 = 10_000.0;

/// The recipe of the clocks of GPUs, by the name that their samples have in reports.
const CLOCKS: &str = "gpu_metric_util_map:metric=GPC Clock Frequency";
/// A GPU on which less is active has nothing to do: its clock says nothing.
const BUSY: f64 = 10.0;
/// Calls of less than that take as long as the way, whatever the bandwidth.
const SMALL: f64 = 1_048_576.0;

/// The one finding that a benchmark of communication can have, too.
const STRAGGLER: &str = "straggler";

/// A new rule is a row here.
pub(super) const RULES: &[Rule] = &[
    Rule {
        code: "exposed-communication",
        change: "start collectives earlier and wait for them later, so that compute runs beside them: prefetch, larger \
                 buckets, `async_op=True`",
        reads: &["breakdown", "diagnostics"],
        recipe: "breakdown",
        table: "gpus",
        find: exposed_communication,
    },
    Rule {
        code: "small-messages",
        change: "send fewer and larger messages: larger buckets (`bucket_cap_mb`), larger FSDP units, fewer micro-batches",
        reads: &["breakdown", "nccl_msg"],
        recipe: "nccl_msg",
        table: "sizes",
        find: small_messages,
    },
    Rule {
        code: "communication-on-compute-stream",
        change: "give communication a stream of its own: on one stream nothing runs beside it",
        reads: &["breakdown"],
        recipe: "breakdown",
        table: "streams",
        find: one_stream,
    },
    Rule {
        code: "idle-gpus",
        change: "look at what the host does in the longest gaps: data loader, synchronisation, Python between launches",
        reads: &["breakdown", "gpu_gaps:gap=1"],
        recipe: "gpu_gaps:gap=1",
        table: "rows",
        find: idle,
    },
    Rule {
        code: "launch-bound",
        change: "launch less often: CUDA graphs, `torch.compile`, fused kernels, larger batches",
        reads: &["breakdown", "cuda_kern_exec_sum"],
        recipe: "cuda_kern_exec_sum",
        table: "all_stats",
        find: launch_bound,
    },
    Rule {
        code: "host-waits",
        change: "remove calls that wait in every step: `.item()`, `.cpu()`, printing of losses, `torch.cuda.synchronize()`",
        reads: &["breakdown", "cuda_api_sync"],
        recipe: "cuda_api_sync",
        table: "rows",
        find: host_waits,
    },
    Rule {
        code: "synchronous-copies",
        change: "use pinned memory and asynchronous copies on a stream of their own, or keep the data on the GPU",
        reads: &["breakdown", "cuda_memcpy_sync"],
        recipe: "cuda_memcpy_sync",
        table: "rows",
        find: |tables| copies(tables, "cuda_memcpy_sync", "copies that block the host"),
    },
    Rule {
        code: "pageable-copies",
        change: "pin the host memory (`pin_memory=True`): an asynchronous copy of pageable memory blocks",
        reads: &["breakdown", "cuda_memcpy_async"],
        recipe: "cuda_memcpy_async",
        table: "rows",
        find: |tables| copies(tables, "cuda_memcpy_async", "asynchronous copies of pageable memory"),
    },
    Rule {
        code: "copies-alone",
        change: "copy beside compute: another stream, prefetch of the next batch, pinned memory",
        reads: &["breakdown"],
        recipe: "breakdown",
        table: "gpus",
        find: copies_alone,
    },
    Rule {
        code: "hot-kernel",
        change: "look at this kernel first, with a profiler of kernels",
        reads: &["breakdown", "cuda_gpu_kern_sum"],
        recipe: "cuda_gpu_kern_sum",
        table: "all_stats",
        find: hot_kernel,
    },
    Rule {
        code: STRAGGLER,
        change: "look at it first: host, data loader, clocks of its GPU; `harness isolate` finds the part",
        reads: &["breakdown", "stragglers"],
        recipe: "stragglers",
        table: "verdict",
        find: straggler,
    },
    Rule {
        code: "low-clock",
        change: "look at its power, temperature and throttle reasons: `nvidia-smi -q -d PERFORMANCE`",
        reads: &["breakdown", CLOCKS],
        recipe: "gpu_metric_util_map:metric='GPC Clock Frequency'",
        table: "totals",
        find: low_clock,
    },
    Rule {
        code: "uneven-gpus",
        change: "share the work out evenly: stages of a pipeline, experts, sequence lengths",
        reads: &["breakdown"],
        recipe: "breakdown",
        table: "gpus",
        find: uneven,
    },
];

fn exposed_communication(tables: &Tables<'_>) -> Option<Found> {
    let gpus = tables.gpus();
    let exposed = sum(&gpus, "Exposed Communication");
    let share = tables.share_of_window(exposed);
    let (worst, most) = largest(&gpus, |row| row.number("Exposed of Window"))?;
    (share >= LEAST).then(|| Found {
        share,
        what: format!("communication runs beside no compute for {} of the time", percent(share)),
        evidence: vec![format!(
            "most on {}: {} of its {} ({most:.1} %); {} of {} of its communication is exposed",
            tables.gpu(&worst),
            time_of(&worst, "Exposed Communication"),
            time_of(&worst, "Window"),
            time_of(&worst, "Exposed Communication"),
            time_of(&worst, "Communication"),
        )],
    })
}

/// Of what the fastest rank of each call needs, since the others wait for it as well.
fn small_messages(tables: &Tables<'_>) -> Option<Found> {
    let is_small = |row: &Row<'_>| {
        let bytes = row.number("Total Bytes").or_else(|| row.number("Bytes"));
        bytes.is_some_and(|bytes| bytes < SMALL) && took(row).is_some()
    };
    let small: Vec<Row> = tables.rows("nccl_msg", "sizes").into_iter().filter(is_small).collect();
    let of_calls = tables.share_of_window(small.iter().filter_map(took).sum());
    // What hides behind computation costs nothing.
    let share = of_calls.min(tables.share_of_window(sum(&tables.gpus(), "Exposed Communication")));
    (share >= LEAST).then(|| {
        let mut rows = small;
        rows.sort_by(|a, b| took(b).unwrap_or_default().total_cmp(&took(a).unwrap_or_default()));
        let line = |row: &Row<'_>| {
            format!(
                "{} of {} bytes on {} ranks: {} calls of {} without waiting",
                row.word("Operation"),
                row.word("Total Bytes"),
                row.word("Ranks"),
                row.word("Count"),
                time_of(row, "Fastest Rank P50")
            )
        };
        Found {
            share,
            what: format!("NCCL's calls of less than 1 MiB take {} of the time", percent(of_calls)),
            evidence: rows.iter().take(MOST_LINES).map(line).collect(),
        }
    })
}

/// The time of all calls of a row, without that of waiting.
fn took(row: &Row<'_>) -> Option<f64> {
    Some(row.number("Count")? * row.number("Fastest Rank P50")?)
}

fn one_stream(tables: &Tables<'_>) -> Option<Found> {
    let is_shared = |row: &Row<'_>| {
        let is_some = |column| row.number(column).is_some_and(|ns| ns > 0.0);
        is_some("Compute") && is_some("Communication")
    };
    let streams: Vec<Row> = tables.rows("breakdown", "streams").into_iter().filter(is_shared).collect();
    let share = tables.share_of_window(sum(&streams, "Communication"));
    (share >= LEAST).then(|| Found {
        share,
        what: format!("{} of the time is communication on streams that also compute", percent(share)),
        evidence: lines(&streams, "Communication", |row| {
            format!(
                "{} stream {}: {} of communication, {} of compute",
                tables.gpu(row),
                row.word("Stream"),
                time_of(row, "Communication"),
                time_of(row, "Compute")
            )
        }),
    })
}

fn idle_share(tables: &Tables<'_>) -> f64 {
    tables.share_of_window(sum(&tables.gpus(), "Idle"))
}

fn idle(tables: &Tables<'_>) -> Option<Found> {
    let share = idle_share(tables);
    let gaps = tables.rows("gpu_gaps", "rows");
    let (worst, most) = largest(&tables.gpus(), |row| row.number("Idle of Window"))?;
    (share >= IDLE).then(|| {
        let mut evidence = vec![format!(
            "most on {}: {} of its {} ({most:.1} %)",
            tables.gpu(&worst),
            time_of(&worst, "Idle"),
            time_of(&worst, "Window")
        )];
        if let Some((gap, ns)) = largest(&gaps, |row| row.number("Duration")) {
            let all = sum(&gaps, "Duration");
            evidence.push(format!(
                "{} gaps above 1 ms, {} together; the longest has {}, on {} at {} of the report",
                gaps.len(),
                time(all),
                time(ns),
                tables.gpu(&gap),
                time_of(&gap, "Start")
            ));
        }
        Found { share, what: format!("GPUs run nothing for {} of the time", percent(share)), evidence }
    })
}

fn launch_bound(tables: &Tables<'_>) -> Option<Found> {
    let share = idle_share(tables);
    let kernels = tables.rows("cuda_kern_exec_sum", "all_stats");
    let count = |rows: &[Row<'_>]| sum(rows, "Count");
    let is_short = |row: &&Row<'_>| {
        let (call, kernel, queue) = (row.number("AMed"), row.number("KMed"), row.number("QMed"));
        matches!((call, kernel), (Some(call), Some(kernel)) if kernel < call)
            && queue.is_none_or(|queue| queue < NO_QUEUE_NS)
    };
    let short: Vec<Row> = kernels.iter().filter(is_short).copied().collect();
    let (of_short, all) = (count(&short), count(&kernels));
    (share >= IDLE && all > 0.0 && of_short / all >= HOT).then(|| Found {
        share,
        what: format!(
            "GPUs wait for launches: {} of kernels run for less time than the call that launches them",
            percent(of_short / all)
        ),
        evidence: vec![format!(
            "{of_short:.0} of {all:.0} launches, none of them queued; GPUs run nothing for {} of the time",
            percent(share)
        )],
    })
}

fn host_waits(tables: &Tables<'_>) -> Option<Found> {
    let calls = tables.rows("cuda_api_sync", "rows");
    let waits = sum(&calls, "Duration");
    let idle = idle_share(tables);
    let waiting = tables.share_of_window(waits);
    // A host that waits while the GPU is busy costs nothing.
    let share = idle.min(waiting);
    let (longest, ns) = largest(&calls, |row| row.number("Duration"))?;
    (share >= IDLE).then(|| Found {
        share,
        what: format!(
            "the host waits for GPUs for {} of the time, and GPUs then wait for the host",
            percent(waiting)
        ),
        evidence: vec![
            format!(
                "{} calls, {} together; GPUs run nothing for {}",
                calls.len(),
                time(waits),
                percent(idle)
            ),
            format!("the longest: {} of {}", longest.word("API"), time(ns)),
        ],
    })
}

fn copies(tables: &Tables<'_>, recipe: &str, called: &str) -> Option<Found> {
    let copies = tables.rows(recipe, "rows");
    let share = tables.share_of_window(sum(&copies, "Duration"));
    (share >= LEAST).then(|| Found {
        share,
        what: format!("{called} take {} of the time", percent(share)),
        evidence: std::iter::once(format!(
            "{} copies, {} together",
            copies.len(),
            time(sum(&copies, "Duration"))
        ))
        .chain(lines(&copies, "Duration", |row| {
            format!(
                "{}: {} of {:.1} MB, {} to {}",
                tables.gpu(row),
                time_of(row, "Duration"),
                row.number("Bytes").unwrap_or_default() / 1e6,
                row.word("Source Kind"),
                row.word("Destination Kind")
            )
        }))
        .take(MOST_LINES)
        .collect(),
    })
}

fn copies_alone(tables: &Tables<'_>) -> Option<Found> {
    let gpus = tables.gpus();
    let share = tables.share_of_window(sum(&gpus, "Memory Alone"));
    let (worst, most) = largest(&gpus, |row| row.number("Memory Alone"))?;
    (share >= IDLE).then(|| Found {
        share,
        what: format!("GPUs only copy or fill memory for {} of the time", percent(share)),
        evidence: vec![format!(
            "most on {}: {} of its {}",
            tables.gpu(&worst),
            time(most),
            time_of(&worst, "Window")
        )],
    })
}

fn hot_kernel(tables: &Tables<'_>) -> Option<Found> {
    let kernels = tables.rows("cuda_gpu_kern_sum", "all_stats");
    let (kernel, part) = largest(&kernels, |row| row.number("Time"))?;
    let total = kernel.number("Total")?;
    let share = tables.share_of_window(total);
    (part / 100.0 >= HOT && share >= LEAST).then(|| Found {
        share,
        what: format!("one kernel takes {part:.1} % of the time of all kernels"),
        evidence: vec![format!(
            "{}: {} runs, {} together, {} on average",
            cut(&kernel.word("Name")),
            kernel.word("Count"),
            time(total),
            time_of(&kernel, "Avg")
        )],
    })
}

fn straggler(tables: &Tables<'_>) -> Option<Found> {
    let named = tables.rows("stragglers", "verdict");
    let named: Vec<Row> = named.into_iter().filter(|row| row.text("Verdict") == Some("straggler")).collect();
    let (worst, late) = largest(&named, |row| row.number("Late"))?;
    let share = late / worst.number("Round").filter(|round| *round > 0.0)?;
    (share >= LEAST).then(|| Found {
        share,
        what: format!(
            "{} keeps the others waiting for {} of every iteration",
            who(tables, &worst),
            percent(share)
        ),
        evidence: vec![worst.word("Evidence")],
    })
}

/// Who is late: a node, or one GPU of it.
fn who(tables: &Tables<'_>, row: &Row<'_>) -> String {
    let node = row.text("Node").filter(|node| !node.is_empty());
    match (node, row.number("GPU")) {
        (Some(node), None) if row.number("Rank").is_none() => node.to_owned(),
        (_, Some(gpu)) => tables.place(row, node, &format!("gpu{gpu}")),
        (_, None) => tables.place(row, node, "a GPU"),
    }
}

/// Only GPUs that work are compared: an idle one may lower its clock.
fn low_clock(tables: &Tables<'_>) -> Option<Found> {
    let rows = tables.rows("gpu_metric_util_map", "totals");
    let is_of = |row: &Row<'_>, name: &str| row.text("Metric").is_some_and(|metric| metric.starts_with(name));
    let same =
        |a: &Row<'_>, b: &Row<'_>| (a.number("Rank"), a.number("GPU")) == (b.number("Rank"), b.number("GPU"));
    let busy: Vec<Row> = rows
        .iter()
        .filter(|row| is_of(row, "SM") && row.text("Metric").is_some_and(|name| name.contains("Active")))
        .filter(|row| row.number("Mean").is_some_and(|mean| mean >= BUSY))
        .copied()
        .collect();
    let clocks: Vec<Row> = rows
        .iter()
        .filter(|row| is_of(row, "GPC Clock") && busy.iter().any(|other| same(row, other)))
        .copied()
        .collect();
    let mut means: Vec<f64> = clocks.iter().filter_map(|row| row.number("Mean")).collect();
    means.sort_by(f64::total_cmp);
    let median = means.get(means.len() / 2).copied().filter(|median| means.len() >= 2 && *median > 0.0)?;
    let (slowest, below) = largest(&clocks, |row| Some(1.0 - row.number("Mean")? / median))?;
    // Some releases write Hz under the name of MHz.
    let mhz = |value: f64| if value >= 1e6 { value / 1e6 } else { value };
    (below >= IDLE).then(|| Found {
        share: below,
        what: format!("the clock of one GPU is {} below that of the median GPU", percent(below)),
        evidence: vec![format!(
            "{}: {:.0} MHz on average, {:.0} at most; median of {} busy GPUs: {:.0}",
            tables.place(&slowest, tables.host(&slowest), &format!("GPU {}", slowest.word("GPU"))),
            mhz(slowest.number("Mean").unwrap_or_default()),
            mhz(slowest.number("Max").unwrap_or_default()),
            means.len(),
            mhz(median)
        )],
    })
}

fn uneven(tables: &Tables<'_>) -> Option<Found> {
    let gpus = tables.gpus();
    let mut compute: Vec<f64> = gpus.iter().filter_map(|row| row.number("Compute")).collect();
    compute.sort_by(f64::total_cmp);
    let median = compute.get(compute.len().saturating_sub(1) / 2).copied().filter(|_| compute.len() >= 2)?;
    let (most, ns) = largest(&gpus, |row| row.number("Compute"))?;
    let window = most.number("Window").filter(|window| *window > 0.0)?;
    let share = (ns - median) / window;
    (share >= IDLE).then(|| Found {
        share,
        what: format!("one GPU computes for {} of the time longer than the median GPU", percent(share)),
        evidence: vec![format!(
            "{}: {} of compute, median of {} GPUs: {}",
            tables.gpu(&most),
            time(ns),
            gpus.len(),
            time(median)
        )],
    })
}

/// Whether kernels only communicate, or fill and check the buffers of nccl-tests: a benchmark, which has no other work
/// to arrange.
pub(super) fn is_benchmark(tables: &Tables<'_>) -> bool {
    let kernels = tables.rows("cuda_gpu_kern_sum", "all_stats");
    let names: Vec<&str> = kernels.iter().filter_map(|row| row.text("Name")).collect();
    let is_of_communication = |name: &str| communicates(class_of_both(name, name));
    names.iter().any(|name| is_of_communication(name))
        && names.iter().all(|name| is_of_communication(name) || checks_buffers(name))
}

/// Of a benchmark only what holds without other work.
pub(super) fn keep_for_benchmark(diagnosis: &mut Diagnosis) {
    diagnosis.findings.retain(|one| one.code == STRAGGLER);
    for finding in &mut diagnosis.findings {
        finding.change = "look at it first: host, clocks of its GPU; `harness isolate` finds the part";
    }
    let note = match diagnosis.findings.is_empty() {
        true => "a benchmark of communication, and no straggler found: nothing to change in its work",
        false => "a benchmark of communication: only a straggler can be diagnosed",
    };
    diagnosis.notes.push(format!("{note}; its sizes and times: harness recipe nccl_msg"));
}

/// That the profiler lost events: every figure is a lower bound then.
pub(super) fn lost_events(tables: &Tables<'_>) -> Option<String> {
    let rows = tables.rows("diagnostics", "rows");
    let lost: Vec<&Row> = rows.iter().filter(|row| row.text("Loss") == Some("yes")).collect();
    let first = lost.first()?;
    Some(format!(
        "the profiler lost events, so that times are lower bounds: {} (harness recipe diagnostics)",
        first.word("Text")
    ))
}

/// That overlap is unknown where graphs were traced as a whole: no finding about it is no good news then.
pub(super) fn unknown_overlap(tables: &Tables<'_>) -> Option<String> {
    let gpus = tables.gpus();
    let unknown = gpus.iter().filter(|row| row.number("Exposed Communication").is_none()).count();
    (unknown > 0).then(|| {
        format!(
            "exposed communication is unknown on {unknown} of {} GPUs: CUDA graphs were traced as a whole",
            gpus.len()
        )
    })
}

/// What another finding explains better is left out.
pub(super) fn drop_explained(findings: &mut Vec<LimitFound>) {
    let has = |findings: &[LimitFound], code: &str| findings.iter().any(|one| one.code == code);
    if has(findings, "launch-bound") {
        findings.retain(|one| one.code != "idle-gpus");
    }
    if has(findings, "synchronous-copies") || has(findings, "pageable-copies") {
        findings.retain(|one| one.code != "copies-alone");
    }
}

/// Names of templates can be longer than a page.
fn cut(name: &str) -> String {
    match name.char_indices().nth(MOST_LETTERS) {
        Some((at, _)) => format!("{}...", &name[..at]),
        None => name.to_owned(),
    }
}

fn time_of(row: &Row<'_>, column: &str) -> String {
    row.number(column).map_or_else(|| "?".to_owned(), time)
}

/// A line for each of the rows with the largest numbers.
fn lines(rows: &[Row<'_>], column: &str, line: impl Fn(&Row<'_>) -> String) -> Vec<String> {
    let mut rows: Vec<Row> = rows.to_vec();
    rows.sort_by(|a, b| {
        b.number(column).unwrap_or_default().total_cmp(&a.number(column).unwrap_or_default())
    });
    rows.iter().take(MOST_LINES).map(line).collect()
}
