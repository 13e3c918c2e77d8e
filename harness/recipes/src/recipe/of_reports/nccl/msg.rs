//! Every call of NCCL with what it says of itself and with its kernels, and what calls of one size took: in place of a
//! join by hand of calls, kernels and printed times. How calls become messages is told in `messages`.

use super::means::Means;
use super::printed::Printed;
use super::{buckets, messages, printed, rows, sizes, spread};
use crate::recipe::of_reports::{Across, Kind, Made, Of, ReportRecipe};
use crate::report::{ArgumentSpec, Arguments, Takes};
use nsys::export::ExportError;
use nsys::nccl::{NcclCalls, TABLES};
use nsys::trace::Trace;
use serde::{Deserialize, Serialize};

pub(crate) const NCCL_MSG: ReportRecipe = ReportRecipe {
    name: "nccl_msg",
    title: "NCCL Messages",
    about: "every NCCL call with its operation, bytes, communicator and kernels, and what calls of one operation, \
            communicator and size took, over all ranks",
    definition: "a call is a range of the domain `NCCL`; its size is that of its payload, which for gathers, scatters \
                 and all-to-alls is one rank's part, the total is all of it. Kernels belong to the call in whose range they \
                 were launched, or to the group in whose outermost end they were: calls that share kernels with others are \
                 counted and have no time. Times are from the first kernel's begin to the last one's end. The n-th call of \
                 one operation, communicator and size is one instance on all ranks; its fastest rank waited for nobody, \
                 so that bus bandwidth is taken from that rank's time, and the wait is what the others took longer. Modes are \
                 peaks of a density of the logarithms of times that hold a tenth of them, with valleys under 0.4 of the \
                 lower peak; of fewer than 40 times none are told. A found warm-up is as many first instances as lie above \
                 the third quartile of the second half of them by 1.5 times its range between quartiles, and by 5 %. With \
                 `iterations`, or where the report lies beside what nccl-tests printed, the calls are held against the \
                 order in which nccl-tests makes them, and only timed ones count. `spread` and the pictures have the times \
                 that count of one operation and some sizes, all communicators of as many ranks together, in bins evenly \
                 apart; a size there is the whole message, as nccl-tests prints it",
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
    kind: Kind::Together(&Across {
        tables: &["calls", "sizes", "buckets", "spread"],
        pictures: &[(
            "spread-N",
            "how times of one operation and size are spread, of each placement, beside the mean that nccl-tests printed",
        )],
        take,
        make,
    }),
};

pub(super) const WARMUP: ArgumentSpec = ArgumentSpec {
    name: "warmup",
    about: "first calls of each operation, communicator and size that do not count; with `iterations`, warm-up calls of \
            each doubled size",
    takes: Takes::Number(0),
    choice: None,
};

pub(super) const ITERATIONS: ArgumentSpec = ArgumentSpec {
    name: "iterations",
    about: "the calls are of nccl-tests with so many iterations: tells timed calls and placements",
    takes: Takes::Number(0),
    choice: None,
};

pub(super) const CHECKS: ArgumentSpec = ArgumentSpec {
    name: "checks",
    about: "with `iterations`: checks of results for each size and placement",
    takes: Takes::Number(1),
    choice: None,
};

pub(super) const AGGREGATED: ArgumentSpec = ArgumentSpec {
    name: "aggregated",
    about: "with `iterations`: calls of each iteration",
    takes: Takes::Number(1),
    choice: None,
};

pub(super) const OUT_OF_PLACE: ArgumentSpec = ArgumentSpec {
    name: "out-of-place",
    about: "with `iterations`: sizes were not gone through in place",
    takes: Takes::Nothing,
    choice: None,
};

pub(super) const RANKS: ArgumentSpec = ArgumentSpec {
    name: "ranks",
    about: "how many ranks communicators have that the reports do not tell of",
    takes: Takes::Number(0),
    choice: None,
};

pub(super) const BUCKETS: ArgumentSpec = ArgumentSpec {
    name: "buckets",
    about: "borders of classes of sizes, ascending, such as `64K+1M+16M`; a class has its lower border and not its upper \
            one",
    takes: Takes::Text("64K+1M+16M"),
    choice: None,
};

pub(super) const OP: ArgumentSpec = ArgumentSpec {
    name: "op",
    about: "whose spread is shown, such as `all_reduce` or `ncclAllReduce`; where it is not given, of the operation that \
            took most",
    takes: Takes::Text(""),
    choice: None,
};

pub(super) const SIZES: ArgumentSpec = ArgumentSpec {
    name: "sizes",
    about: "which sizes' spread is shown, such as `1G+2G`; where it is not given, of the two largest",
    takes: Takes::Text(""),
    choice: None,
};

pub(super) const BINS: ArgumentSpec = ArgumentSpec {
    name: "bins",
    about: "bins of the spread, at least one and 1000 at most",
    takes: Takes::Number(100),
    choice: None,
};

const MEAN: ArgumentSpec = ArgumentSpec {
    name: "mean",
    about: "means that the spread is held against, sizes with microseconds, such as `1G@53361+2G@92866`, or of each \
            placement `1G@53361/52998`; where it is not given, those that nccl-tests printed",
    takes: Takes::Text(""),
    choice: None,
};

const PRINTED: ArgumentSpec = ArgumentSpec {
    name: "printed",
    about: "the file with what nccl-tests printed, text or JSON; where it is not given, `stdout` in the folder in which the \
            report lies, as in the folders of runs",
    takes: Takes::Text(""),
    choice: None,
};

/// Of one report.
#[derive(Serialize, Deserialize)]
pub(super) struct Taken {
    pub nccl: NcclCalls,
    pub printed: Option<Printed>,
}

fn take(trace: &Trace, arguments: &Arguments) -> Result<Option<(Taken, u64)>, ExportError> {
    let nccl = NcclCalls::read(trace)?.filter(|nccl| !nccl.calls.is_empty());
    Ok(nccl.map(|nccl| {
        let calls = nccl.calls.len() as u64;
        (Taken { nccl, printed: printed::of(trace, arguments.text(&PRINTED)) }, calls)
    }))
}

fn make(reports: &[Of<&Taken>], arguments: &Arguments) -> Made {
    let mut made = Made::default();
    let messages = messages::all(reports, arguments, &mut made.notes);
    let outputs = reports.iter().filter_map(|report| report.taken.printed.as_ref());
    let means = Means::read(arguments.text(&MEAN), outputs).unwrap_or_else(|why| {
        made.notes.push(format!("nccl_msg: {why}"));
        Means::default()
    });
    // Long tables beside short ones that take as long to sum up.
    let (calls, ((sizes, buckets), spread)) = rayon::join(
        || rows::sheet(&NCCL_MSG, reports, &messages),
        || {
            let buckets = buckets::Buckets::read(arguments.text(&BUCKETS));
            let of_buckets = || buckets.map(|buckets| buckets.sheet(&NCCL_MSG, &messages));
            rayon::join(
                || rayon::join(|| sizes::sheet(&NCCL_MSG, &messages, &means), of_buckets),
                || spread::of(&messages, &means, arguments),
            )
        },
    );
    made.tables.extend([("calls", calls), ("sizes", sizes)]);
    match buckets {
        Ok(buckets) => made.tables.push(("buckets", buckets)),
        Err(why) => made.notes.push(format!("nccl_msg: no table of classes, as `buckets` {why}")),
    }
    match spread {
        Ok(Some(spread)) => {
            made.tables.push(("spread", spread.sheet));
            made.pictures = spread.pictures;
            if spread.without_picture > 0 {
                let (drawn, more) = (made.pictures.len(), spread.without_picture);
                made.notes.push(format!(
                    "nccl_msg: {drawn} pictures are made, `spread` has all; sizes and placements without one: {more}"
                ));
            }
        }
        Ok(None) => {}
        Err(why) => made.notes.push(format!("nccl_msg: no spread, as {why}")),
    }
    made
}
