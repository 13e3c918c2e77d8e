//! Every NCCL call with its properties and its kernels, and the times of calls of one size: in place of a join by hand
//! of calls, kernels and printed times. `messages` turns calls into messages.

use super::means::Means;
use super::printed::Printed;
use super::{buckets, messages, printed, rows, sizes, spread};
use crate::recipe::of_reports::columns::TableDoc;
use crate::recipe::of_reports::{Across, Made, RecipeKind, ReportExtract, ReportRecipe};
use crate::report::argument;
use crate::report::{ArgumentSpec, Arguments, Takes};
use nsys::export::ExportError;
use nsys::nccl::{NcclCalls, TABLES};
use nsys::trace::Trace;
use serde::{Deserialize, Serialize};

pub(crate) const NCCL_MSG: ReportRecipe = ReportRecipe {
    name: "nccl_msg",
    title: "NCCL Messages",
    about: "every NCCL call with its operation, bytes, communicator and kernels, and the times of calls of one \
            operation, communicator and size, over all ranks",
    definition: "a call is a range of the domain `NCCL`; its size is that of its payload, which for gathers, scatters \
                 and all-to-alls is one rank's part; the total covers all ranks. Kernels belong to the call in whose \
                 range they were launched, or to the group in whose outermost end they were launched: calls that share \
                 kernels with others are counted and have no time. Times are from the first kernel's begin to the last \
                 one's end. The n-th call of one operation, communicator and size is one instance on all ranks; its \
                 fastest rank did not wait, so that bus bandwidth is taken from that rank's time, and the wait is the \
                 excess of the others. Modes are peaks of a density of the logarithms of times that hold a tenth of \
                 them, with valleys under 0.4 of the lower peak; of fewer than 40 times none are given. A found \
                 warm-up is as many first instances as lie above the third quartile of the second half of them by 1.5 \
                 times its range between quartiles, and by 5 %. With `iterations`, or where the report lies beside the \
                 output of nccl-tests, the calls are compared with the order in which nccl-tests makes them, and only \
                 timed ones count. `spread` and the charts have the times that count of one operation and some \
                 sizes, all communicators of as many ranks together, in bins evenly apart; a size there is the whole \
                 message, as nccl-tests prints it",
    arguments: &[
        WARMUP,
        ITERATIONS,
        CHECKS,
        AGGREGATED,
        OUT_OF_PLACE,
        RANKS,
        BUCKETS,
        OP,
        SIZES,
        BINS,
        MEAN,
        PRINTED,
    ],
    tables: TABLES,
    kind: RecipeKind::Together(&Across {
        tables: &[
            TableDoc {
                name: "calls",
                about: "one row per call of each rank",
                columns: &[&[
                    "Rank",
                    "Operation",
                    "Bytes: bytes of one rank's part",
                    "Total Bytes: bytes of the whole operation",
                    "Communicator",
                    "Ranks: ranks of the communicator",
                    "Comm Rank: the rank within the communicator",
                    "Root: the root of the operation",
                    "Peer: the rank at the other end",
                    "Reduction: how values are combined, such as sum",
                    "Group: the group of calls that it belongs to",
                    "Instance: the number of the call among those of its kind, from 0",
                    "Part: warm-up, timed or check",
                    "Placement",
                    "Start",
                    "End",
                    "PID",
                    "TID",
                    "Kernels: kernels that the call launched",
                    "Kernel Start: when the first of them began",
                    "Kernel End: when the last of them ended",
                    "Kernel Duration: time from the one to the other",
                    "Shares Kernels: yes where other calls of its group run in the same kernels",
                    "Device",
                    "Stream",
                    "Launch Start: when the first kernel was launched",
                    "Kernel: the first kernel, by name",
                ]],
            },
            TableDoc {
                name: "sizes",
                about: "one row per operation and size",
                columns: &[&[
                    "Operation",
                    "Communicator",
                    "Ranks: ranks of the communicator",
                    "Bytes: bytes of one rank's part",
                    "Total Bytes: bytes of the whole operation",
                    "Wire Bytes: bytes that a rank sends by the ring algorithm",
                    "Placement",
                    "Ranks Seen: ranks with such a call",
                    "Calls: calls of all ranks",
                    "Sharing Kernels: calls left out because they share their kernels",
                    "Count: calls whose kernels count",
                    "Instances",
                    "Found Warm-up: first calls found to be warm-up",
                    "Avg: the mean time of a call's kernels",
                    "Min",
                    "P1: the 1st percentile",
                    "P5: the 5th percentile",
                    "P50: the median",
                    "P95: the 95th percentile",
                    "P99: the 99th percentile",
                    "Max",
                    "CV",
                    "Modes: how many modes the times have",
                    "Modes at (ns): where they are",
                    "Printed: the mean that the benchmark printed",
                    "P50 of Printed: the median as a share of it",
                    "Fastest Rank P50: the median of the fastest rank of each call",
                    "Wait Avg: the mean by which a rank's kernels outlast those of the fastest",
                    "BusBW P50 (GB/s): bus bandwidth by the median of the fastest rank",
                    "BusBW Max (GB/s): bus bandwidth by its least time",
                ]],
            },
            TableDoc {
                name: "buckets",
                about: "one row per operation and class of sizes",
                columns: &[&[
                    "Op: the operation",
                    "Bucket: the class of sizes",
                    "Inst: calls",
                    "Sum: the sum of the ranges' times",
                    "Avg",
                    "Min",
                    "Max",
                    "Kernel Avg: the mean time of their kernels",
                ]],
            },
            TableDoc {
                name: "spread",
                about: "one row per bin of a histogram of times",
                columns: &[&[
                    "Operation",
                    "Ranks: ranks of the communicator",
                    "Size: bytes of the operation",
                    "Placement",
                    "Lower",
                    "Upper",
                    "Count: calls whose time lies in the bin",
                    "Probability",
                ]],
            },
        ],
        charts: &[(
            "spread-N",
            "histogram of the times of one operation and size, by placement, beside the mean that nccl-tests printed",
        )],
        take,
        make,
    }),
};

pub(super) const WARMUP: ArgumentSpec = argument!(
    "warmup",
    "first calls of each operation, communicator and size that do not count; with `iterations`, warm-up calls of \
            each doubled size",
    Takes::Number(0)
);

pub(super) const ITERATIONS: ArgumentSpec = argument!(
    "iterations",
    "iterations of nccl-tests, if the calls are its own: finds timed calls and placements",
    Takes::Number(0)
);

pub(super) const CHECKS: ArgumentSpec =
    argument!("checks", "with `iterations`: checks of results for each size and placement", Takes::Number(1));

pub(super) const AGGREGATED: ArgumentSpec =
    argument!("aggregated", "with `iterations`: calls of each iteration", Takes::Number(1));

pub(super) const OUT_OF_PLACE: ArgumentSpec =
    argument!("out-of-place", "with `iterations`: there were no in-place calls", Takes::Nothing);

pub(super) const RANKS: ArgumentSpec =
    argument!("ranks", "number of ranks of communicators whose size the reports lack", Takes::Number(0));

pub(super) const BUCKETS: ArgumentSpec = argument!(
    "buckets",
    "borders of classes of sizes, ascending, such as `64K+1M+16M`; a class has its lower border and not its upper \
            one",
    Takes::Text("64K+1M+16M")
);

pub(super) const OP: ArgumentSpec = argument!(
    "op",
    "operation of the histogram, such as `all_reduce` or `ncclAllReduce`; by default the one with the most time",
    Takes::Text("")
);

pub(super) const SIZES: ArgumentSpec = argument!(
    "sizes",
    "sizes of the histogram, such as `1G+2G`; by default the two largest",
    Takes::Text("")
);

pub(super) const BINS: ArgumentSpec =
    argument!("bins", "bins of the histogram, from 1 to 1000", Takes::Number(100));

const MEAN: ArgumentSpec = argument!(
    "mean",
    "means to compare with, sizes with microseconds, such as `1G@53361+2G@92866`, or of each placement \
            `1G@53361/52998`; by default those that nccl-tests printed",
    Takes::Text("")
);

const PRINTED: ArgumentSpec = argument!(
    "printed",
    "the output of nccl-tests, text or JSON; by default `stdout` in the folder of the report, as in the folders \
            of runs",
    Takes::Text("")
);

/// Of one report.
#[derive(Serialize, Deserialize)]
pub(super) struct Extract {
    pub nccl: NcclCalls,
    pub printed: Option<Printed>,
    /// Only how long calls took is known, and neither when nor where: records of NCCL's Inspector.
    #[serde(default)]
    pub has_lengths_only: bool,
}

fn take(trace: &Trace, arguments: &Arguments) -> Result<Option<(Extract, u64)>, ExportError> {
    let nccl = NcclCalls::read(trace)?.filter(|nccl| !nccl.calls.is_empty());
    Ok(nccl.map(|nccl| {
        let calls = nccl.calls.len() as u64;
        let printed = printed::read(trace, arguments.text(&PRINTED));
        (Extract { nccl, printed, has_lengths_only: false }, calls)
    }))
}

pub(super) fn make(reports: &[ReportExtract<&Extract>], arguments: &Arguments) -> Made {
    let mut made = Made::default();
    let messages = messages::all(reports, arguments, &mut made.notes);
    let outputs = reports.iter().filter_map(|report| report.extract.printed.as_ref());
    let means = Means::read(arguments.text(&MEAN), outputs).unwrap_or_else(|why| {
        made.notes.push(format!("nccl_msg: {why}"));
        Means::default()
    });
    // Long tables beside short ones that take as long to sum up.
    let (calls, ((sizes, buckets), spread)) = rayon::join(
        || rows::result_table(&NCCL_MSG, reports, &messages),
        || {
            let buckets = buckets::Buckets::read(arguments.text(&BUCKETS));
            let of_buckets = || buckets.map(|buckets| buckets.result_table(&NCCL_MSG, &messages));
            rayon::join(
                || rayon::join(|| sizes::result_table(&NCCL_MSG, &messages, &means), of_buckets),
                || spread::compute(&messages, &means, arguments),
            )
        },
    );
    made.tables.extend([("calls", calls), ("sizes", sizes)]);
    match buckets {
        Ok(buckets) => made.tables.push(("buckets", buckets)),
        Err(why) => made.notes.push(format!("nccl_msg: no table of classes: `buckets` {why}")),
    }
    match spread {
        Ok(Some(spread)) => {
            made.tables.push(("spread", spread.result_table));
            made.charts = spread.charts;
            if spread.without_chart > 0 {
                let (drawn, more) = (made.charts.len(), spread.without_chart);
                made.notes.push(format!(
                    "nccl_msg: only {drawn} charts, `spread` has all; sizes and placements without one: {more}"
                ));
            }
        }
        Ok(None) => {}
        Err(why) => made.notes.push(format!("nccl_msg: no spread: {why}")),
    }
    made
}
