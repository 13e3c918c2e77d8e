//! Kernels with the calls that launched them: how long each call took, how long the kernel waited, how long it ran.

use super::api::api_name;
use super::kernels::{BASE, MANGLED, name_column, names};
use super::measured::{Group, GroupKey, Shows, columns, sort};
use super::summary::fitting;
use super::{Arguments, ReportSpec};
use crate::figures::{Figure, Gathered, Grouped, Keeps};
use crate::result_table::{Column, Quantity, ResultTable};
use nsys::export::{ExportError, Rows};
use nsys::tables::{KERNEL, RUNTIME, STRING_IDS};
use nsys::trace::NO_GROUP;
use nsys::trace::launches::{Calls, Launch};
use nsys::trace::{Keys, Part, Trace, pid_of, tid_of};
use std::collections::HashMap;
use std::sync::Arc;

pub(super) const CUDA_KERN_EXEC_SUM: ReportSpec = ReportSpec {
    name: "cuda_kern_exec_sum",
    title: "CUDA Kernel Launch & Exec Time Summary",
    about: "launches of kernels by thread, device, call and kernel. A is the time of the call, Q the time from its end \
            to the kernel's begin where that lies behind it (QCount of Count), K the time of the kernel, T all from the \
            begin of the call to the end of both",
    data: "CUDA kernel",
    arguments: &[BASE, MANGLED],
    tables: &[&KERNEL, &RUNTIME, &STRING_IDS],
    run: |trace, arguments| {
        let Some(mut groups) = launches_by_name(trace, arguments)? else { return Ok(None) };
        sort(&mut groups);
        let name = "cuda_kern_exec_sum";
        let columns = columns(&groups, LAUNCHED_SHOWS, |value| fitting(name, value).map(Some))?;
        Ok(Some(ResultTable::new(name, "CUDA Kernel Launch & Exec Time Summary", columns)))
    },
};

pub(super) const CUDA_KERN_EXEC_TRACE: ReportSpec = ReportSpec {
    name: "cuda_kern_exec_trace",
    title: "CUDA Kernel Launch & Exec Time Trace",
    about: "each kernel with the call that launched it, in the order of the calls' beginnings; the time in the queue is \
            from the call's end to the kernel's begin, and left empty where the kernel begins earlier",
    data: "CUDA kernel",
    arguments: &[BASE, MANGLED],
    tables: &[&KERNEL, &RUNTIME, &STRING_IDS],
    run: |trace, arguments| {
        let columns = ["deviceId", "gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ"];
        let Some(launches) = Launches::read(trace, arguments, &columns)? else { return Ok(None) };
        each(&launches).map(Some)
    },
};

/// Kernels and calls, with the names of both, and which belongs to which.
struct Launches {
    kernels: Rows,
    kernel_names: Part<String>,
    calls: Calls,
    call_names: Part<String>,
    pairs: Vec<Launch>,
}

impl Launches {
    fn read(trace: &Trace, arguments: &Arguments, more: &[&str]) -> Result<Option<Launches>, ExportError> {
        let mut columns =
            vec!["start", "end", "demangledName", "correlationId", "globalPid", name_column(arguments)];
        columns.extend(more);
        let Some(kernels) = trace.rows(&KERNEL, &columns)? else { return Ok(None) };
        let Some(calls) = Calls::read(trace, &["nameId"])? else { return Ok(None) };
        let pairs = calls.launches(trace, "kernels", &kernels)?;
        let kernel_names = names(trace, &kernels, arguments)?;
        let ids = calls.rows().ints("nameId")?;
        let call_names = Part::named(ids.iter().copied(), trace.strings()?, api_name);
        Ok((!pairs.is_empty()).then_some(Launches { kernels, kernel_names, calls, call_names, pairs }))
    }

    fn times(&self) -> Result<Times<'_>, ExportError> {
        let (calls, kernels) = (self.calls.rows(), &self.kernels);
        Ok(Times {
            call: (calls.ints("start")?, calls.ints("end")?),
            kernel: (kernels.ints("start")?, kernels.ints("end")?),
        })
    }
}

/// Begins and ends, by row. Both end no earlier than they begin, and the distance of any two such numbers fits.
struct Times<'a> {
    call: (&'a [i64], &'a [i64]),
    kernel: (&'a [i64], &'a [i64]),
}

impl Times<'_> {
    fn call_ns(&self, pair: &Launch) -> u64 {
        let call = pair.call as usize;
        self.call.1[call].wrapping_sub(self.call.0[call]) as u64
    }

    fn kernel_ns(&self, pair: &Launch) -> u64 {
        let kernel = pair.operation as usize;
        self.kernel.1[kernel].wrapping_sub(self.kernel.0[kernel]) as u64
    }

    /// From the end of the call to the kernel's begin, where that comes later.
    fn in_queue(&self, pair: &Launch) -> Option<u64> {
        let (begin, end) = (self.kernel.0[pair.operation as usize], self.call.1[pair.call as usize]);
        (begin > end).then(|| begin.wrapping_sub(end) as u64)
    }

    fn total(&self, pair: &Launch) -> u64 {
        let (call, kernel) = (pair.call as usize, pair.operation as usize);
        self.call.1[call].max(self.kernel.1[kernel]).wrapping_sub(self.call.0[call]) as u64
    }
}

/// Launches by thread, device, call and kernel. Measures: T, A, Q and K.
pub(crate) fn launches_by_name<K: Keeps>(
    trace: &Trace,
    arguments: &Arguments,
) -> Result<Option<Vec<Group<K>>>, ExportError> {
    let Some(launches) = Launches::read(trace, arguments, &["deviceId"])? else { return Ok(None) };
    let pairs = &launches.pairs;
    let calls = launches.calls.rows();
    let tids = calls.maybe_ints("globalTid")?;
    let threads = Part::numbers((0..calls.len()).map(|call| tids.get(call).unwrap_or_default()));
    let devices = Part::numbers(launches.kernels.ints("deviceId")?.iter().copied());
    let call_ns = |part: &[u32]| pairs.iter().map(|pair| part[pair.call as usize]).collect::<Vec<u32>>();
    let kernel_ns =
        |part: &[u32]| pairs.iter().map(|pair| part[pair.operation as usize]).collect::<Vec<u32>>();
    let keys = Keys::by(&[
        &call_ns(&threads.of_row),
        &kernel_ns(&devices.of_row),
        &call_ns(&launches.call_names.of_row),
        &kernel_ns(&launches.kernel_names.of_row),
    ]);
    let times = launches.times()?;
    let (mut of_row, groups) = (keys.of_row, keys.groups);
    let kept = |of_row: &[u32], value: &dyn Fn(&Launch) -> u64| {
        let values: Vec<u64> = pairs.iter().map(value).collect();
        Grouped::new(of_row, &values, groups.len()).gather::<K>()
    };
    let total = kept(&of_row, &|pair| times.total(pair));
    let call = kept(&of_row, &|pair| times.call_ns(pair));
    let kernel = kept(&of_row, &|pair| times.kernel_ns(pair));
    for (group, pair) in of_row.iter_mut().zip(pairs) {
        if times.in_queue(pair).is_none() {
            *group = NO_GROUP;
        }
    }
    let queue = kept(&of_row, &|pair| times.in_queue(pair).unwrap_or_default());
    let text = |part: &Part<String>, number: u32| GroupKey::Text(part.labels[number as usize].clone());
    let measures = total.into_iter().zip(call).zip(queue).zip(kernel);
    let measured = groups.iter().zip(measures).map(|(group, (((total, call), queue), kernel))| {
        let tid = threads.labels[group[0] as usize];
        let words = vec![
            GroupKey::Number(pid_of(tid)),
            GroupKey::Number(tid_of(tid)),
            GroupKey::Number(devices.labels[group[1] as usize]),
            text(&launches.call_names, group[2]),
            text(&launches.kernel_names, group[3]),
        ];
        let measures = [total, call, queue, kernel].map(|kept| kept.map(Gathered::All));
        Group { words, measures: measures.into() }
    });
    Ok(Some(measured.collect()))
}

/// Of `launches_by_name`.
pub(crate) const LAUNCHED_SHOWS: &[Shows] = &[
    Shows::Number("PID", 0),
    Shows::Number("TID", 1),
    Shows::Number("DevId", 2),
    Shows::plain("Count", 0, Figure::Count),
    Shows::plain("QCount", 2, Figure::Count),
    Shows::ns("TAvg", 0, Figure::Mean),
    Shows::ns("TMed", 0, Figure::Median),
    Shows::ns("TMin", 0, Figure::Min),
    Shows::ns("TMax", 0, Figure::Max),
    Shows::ns("TStdDev", 0, Figure::Deviation),
    Shows::ns("AAvg", 1, Figure::Mean),
    Shows::ns("AMed", 1, Figure::Median),
    Shows::ns("AMin", 1, Figure::Min),
    Shows::ns("AMax", 1, Figure::Max),
    Shows::ns("AStdDev", 1, Figure::Deviation),
    Shows::ns("QAvg", 2, Figure::Mean),
    Shows::ns("QMed", 2, Figure::Median),
    Shows::ns("QMin", 2, Figure::Min),
    Shows::ns("QMax", 2, Figure::Max),
    Shows::ns("QStdDev", 2, Figure::Deviation),
    Shows::ns("KAvg", 3, Figure::Mean),
    Shows::ns("KMed", 3, Figure::Median),
    Shows::ns("KMin", 3, Figure::Min),
    Shows::ns("KMax", 3, Figure::Max),
    Shows::ns("KStdDev", 3, Figure::Deviation),
    Shows::Text("API Name", 3),
    Shows::Text("Kernel Name", 4),
];

fn each(launches: &Launches) -> Result<ResultTable, ExportError> {
    let report = CUDA_KERN_EXEC_TRACE.name;
    let times = launches.times()?;
    let tids = launches.calls.rows().maybe_ints("globalTid")?;
    let mut pairs = launches.pairs.clone();
    pairs.sort_by_key(|pair| {
        let begins = (times.call.0[pair.call as usize], times.kernel.0[pair.operation as usize]);
        (begins, tids.get(pair.call as usize), pair.operation, pair.call)
    });
    let (plain, bare) = (Quantity::Plain, Quantity::BareNanoseconds);
    let span = |name: &str, value: &dyn Fn(&Launch) -> u64| {
        let values: Result<Vec<i64>, _> = pairs.iter().map(|pair| fitting(report, value(pair))).collect();
        Ok::<_, ExportError>(Column::integers(name, bare, values?))
    };
    let waited = pairs.iter().map(|pair| times.in_queue(pair).map(|ns| fitting(report, ns)).transpose());
    let waited: Vec<Option<i64>> = waited.collect::<Result<_, ExportError>>()?;
    let queued =
        pairs.iter().zip(&waited).map(|(pair, waited)| waited.map(|_| times.call.1[pair.call as usize]));
    let queued: Vec<Option<i64>> = queued.collect();
    let devices = launches.kernels.ints("deviceId")?;
    let thread = |value: fn(i64) -> i64| {
        pairs.iter().map(|pair| tids.get(pair.call as usize).map(value)).collect::<Vec<_>>()
    };
    let shape = |name: &str, sides: [&str; 3]| {
        let [x, y, z] = sides.map(|side| launches.kernels.maybe_ints(side));
        let (x, y, z) = (x?, y?, z?);
        let mut known: HashMap<[i64; 3], Arc<str>> = HashMap::new();
        let texts = pairs.iter().map(|pair| {
            let row = pair.operation as usize;
            let sides = [x.get(row)?, y.get(row)?, z.get(row)?];
            let text = || format!("{} {} {}", sides[0], sides[1], sides[2]).into();
            Some(known.entry(sides).or_insert_with(text).clone())
        });
        Ok::<_, ExportError>(Column::maybe_texts(name, texts))
    };
    let shared = |names: &Part<String>| {
        names.labels.iter().map(|name| Arc::from(name.as_str())).collect::<Vec<Arc<str>>>()
    };
    let (call_names, kernel_names) = (shared(&launches.call_names), shared(&launches.kernel_names));
    let call_name =
        |pair: &Launch| call_names[launches.call_names.of_row[pair.call as usize] as usize].clone();
    let kernel_name =
        |pair: &Launch| kernel_names[launches.kernel_names.of_row[pair.operation as usize] as usize].clone();
    let columns = vec![
        Column::integers("API Start", bare, pairs.iter().map(|pair| times.call.0[pair.call as usize])),
        span("API Dur", &|pair| times.call_ns(pair))?,
        Column::maybe_integers("Queue Start", bare, queued),
        Column::maybe_integers("Queue Dur", bare, waited),
        Column::integers(
            "Kernel Start",
            bare,
            pairs.iter().map(|pair| times.kernel.0[pair.operation as usize]),
        ),
        span("Kernel Dur", &|pair| times.kernel_ns(pair))?,
        span("Total Dur", &|pair| times.total(pair))?,
        Column::maybe_integers("PID", plain, thread(pid_of)),
        Column::maybe_integers("TID", plain, thread(tid_of)),
        Column::integers("DevId", plain, pairs.iter().map(|pair| devices[pair.operation as usize])),
        Column::texts("API Function", pairs.iter().map(call_name)),
        shape("GridXYZ", ["gridX", "gridY", "gridZ"])?,
        shape("BlockXYZ", ["blockX", "blockY", "blockZ"])?,
        Column::texts("Kernel Name", pairs.iter().map(kernel_name)),
    ];
    Ok(ResultTable::new(report, CUDA_KERN_EXEC_TRACE.title, columns))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{lines, run};
    use crate::testing::{Made, OTHER_PROCESS};

    fn made() -> Made {
        let made = Made::begin();
        made.string(1, "cudaLaunchKernel_v7000").string(2, "cuLaunchKernel");
        made.string(5, "void a(int)").string(6, "a").string(7, "void b()").string(8, "b");
        made
    }

    #[test]
    fn launches_are_summed_by_thread_device_call_and_kernel() {
        let made = made();
        made.call((10, 20), 3, 1, 1).kernel((30, 60), 1, 5);
        made.call((100, 120), 3, 2, 1).kernel((110, 115), 2, 5);
        // It begins just where its call ends: it did not wait.
        made.call((200, 210), 3, 3, 1).kernel((210, 220), 3, 7);
        let [head, a, b] = &lines(&made.trace(), "cuda_kern_exec_sum:base")[..] else { panic!("two groups") };
        assert!(head.starts_with(
            "PID|TID|DevId|Count|QCount|TAvg (ns)|TMed (ns)|TMin (ns)|TMax (ns)|TStdDev (ns)|A"
        ));
        assert!(head.ends_with("|KStdDev (ns)|API Name|Kernel Name"));
        let waited = "35.0|35.0|20|50|21.2|15.0|15.0|10|20|7.1|10.0|10.0|10|10|0.0|17.5|17.5|5|30|17.7";
        assert_eq!(*a, format!("40|3|0|2|1|{waited}|cudaLaunchKernel|a"));
        let at_once = "20.0|20.0|20|20|0.0|10.0|10.0|10|10|0.0||||||10.0|10.0|10|10|0.0";
        assert_eq!(*b, format!("40|3|0|1|0|{at_once}|cudaLaunchKernel|b"));
    }

    #[test]
    fn each_launch_has_a_row_with_its_wait() {
        let made = made();
        made.call((100, 120), 3, 2, 1).kernel((110, 115), 2, 5);
        made.call((10, 20), 4, 1, 2).kernel((30, 60), 1, 7);
        let [head, first, second] = &lines(&made.trace(), "cuda_kern_exec_trace")[..] else { panic!("two") };
        let names = "API Start|API Dur|Queue Start|Queue Dur|Kernel Start|Kernel Dur|Total Dur|PID|TID|DevId|\
                     API Function|GridXYZ|BlockXYZ|Kernel Name";
        assert_eq!(head, names);
        assert_eq!(first, "10|10|20|10|30|30|50|40|4|0|cuLaunchKernel|2 1 1|128 1 1|void b()");
        assert_eq!(second, "100|20|||110|5|20|40|3|0|cudaLaunchKernel|2 1 1|128 1 1|void a(int)");
    }

    #[test]
    fn kernels_meet_the_calls_of_their_own_process_alone() {
        let made = made();
        made.call((10, 20), 3, 1, 1).call_of(OTHER_PROCESS, (500, 501), 3, 1, 1);
        made.kernel_of(OTHER_PROCESS, (600, 601), 1, 5).kernel((30, 60), 9, 5);
        let trace = made.trace();
        let found = lines(&trace, "cuda_kern_exec_trace");
        assert_eq!(found[1..], ["500|1|501|99|600|1|101|41|3|0|cudaLaunchKernel|2 1 1|128 1 1|void a(int)"]);
        assert_eq!(trace.notes(), ["kernels: rows whose call is not in the report, left out: 1"]);
    }

    #[test]
    fn a_correlation_of_several_kernels_and_calls_gives_every_pair() {
        let made = made();
        made.call((10, 20), 3, 4, 1).call((12, 18), 3, 4, 2);
        made.kernel((30, 40), 4, 5).kernel((50, 60), 4, 5);
        let found = lines(&made.trace(), "cuda_kern_exec_trace");
        let begins: Vec<&str> =
            found[1..].iter().map(|line| line.split("|4|0").next().unwrap_or("")).collect();
        assert_eq!(begins.len(), 4);
        assert!(found[1].starts_with("10|10|20|10|30|10|30") && found[4].starts_with("12|6|18|32|50|10|48"));
    }

    #[test]
    fn rows_that_end_before_they_begin_belong_to_no_launch() {
        let made = made();
        made.call((20, 10), 3, 1, 1).kernel((30, 60), 1, 5);
        made.call((20, 30), 3, 2, 1).kernel((60, 30), 2, 5);
        let trace = made.trace();
        assert!(lines(&trace, "cuda_kern_exec_sum").is_empty());
        let backwards = "rows that end before they begin, left out: 1";
        let lost = "kernels: rows whose call is not in the report, left out: 1".to_owned();
        assert_eq!(
            trace.notes(),
            [format!("CUDA calls: {backwards}"), format!("kernels: {backwards}"), lost]
        );
    }

    #[test]
    fn a_report_without_calls_or_without_kernels_has_no_launches() {
        let made = made();
        made.kernel((30, 60), 1, 5);
        assert!(lines(&made.trace(), "cuda_kern_exec_sum").is_empty());
        let made = super::tests::made();
        made.call((20, 30), 3, 2, 1);
        assert!(lines(&made.trace(), "cuda_kern_exec_trace").is_empty());
    }

    #[test]
    fn a_time_that_does_not_fit_is_an_error_and_no_other_number() {
        let made = made();
        made.call((i64::MIN, i64::MIN + 1), 3, 1, 1).kernel((i64::MAX - 2, i64::MAX - 1), 1, 5);
        for report in ["cuda_kern_exec_sum", "cuda_kern_exec_trace"] {
            let error = run(&made.trace(), report).expect_err("too long").to_string();
            assert!(error.contains("does not fit into 64 bits"), "{error}");
        }
    }
}
