//! Recipes over records of NCCL's Inspector: the calls of each process in the place of those of its report. Of calls the
//! order and the length are known, and not when they were.

use super::msg::{self, NCCL_MSG};
use super::sum::{self, NCCL_SUM};
use crate::recipe::of_reports::stragglers::{self, STRAGGLERS};
use crate::recipe::of_reports::{Input, Made, Outcome, ReportCounts, ReportExtract, ReportRecipe};
use crate::report::Arguments;
use logs::inspector::gathered::{self, Gathered};
use logs::inspector::{InspectorLog, RankCall};
use nsys::nccl::{Call, Function, Kernel, NcclCalls};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

/// What a recipe makes of the records of one job.
pub struct Inspected {
    /// Its tables, and what they lack.
    pub outcome: Outcome,
    /// One for each process that left records.
    pub inputs: Vec<Input>,
}

/// The first line of the records of a job, as its script puts them together.
const HEAD: &[u8] = b"harness-inspector 1\n";
/// What the second line begins with where the cluster is simulated.
const SIMULATED: &[u8] = b"# SIMULATED:";

/// Whether a file holds the records of a job.
pub fn is_inspected(path: &Path) -> bool {
    path.is_file() && begins_with(path, HEAD)
}

fn begins_with(path: &Path, expected: &[u8]) -> bool {
    let mut head = vec![0; expected.len()];
    File::open(path).and_then(|mut file| file.read_exact(&mut head)).is_ok_and(|()| head == expected)
}

/// The recipe over the records of a job; `shown` is the file's name in messages.
pub fn survey_records(
    path: &Path,
    shown: &str,
    recipe: &ReportRecipe<'_>,
    arguments: &Arguments,
) -> Result<Inspected, String> {
    let known = READERS.iter().find(|(name, _)| *name == recipe.name);
    let Some((_, make)) = known else {
        let names: Vec<String> = READERS.iter().map(|(name, _)| format!("`{name}`")).collect();
        let names = names.join(", ");
        return Err(format!(
            "`{}` needs reports of nsys: records of NCCL's Inspector have no times of host threads and other kernels; \
             they are read by {names}",
            recipe.name
        ));
    };
    let read =
        File::open(path).and_then(|file| gathered::read_calls(BufReader::with_capacity(256 << 10, file)));
    let read = read.map_err(|error| format!("cannot be read: {error}"))?;
    let Some(Gathered { log, is_complete, .. }) = read else {
        return Err("no records of NCCL's Inspector".to_owned());
    };
    let mut notes: Vec<String> = log
        .findings
        .iter()
        .map(|finding| format!("{shown}: {}: {}", finding.code, finding.message))
        .collect();
    if !is_complete {
        return Err("breaks off before its last line".to_owned());
    }
    let (calls, left_out) = comparable(&log);
    if left_out > 0 {
        notes.push(format!(
            "{shown}: calls left out, of which a rank of their communicator has no record: {left_out}"
        ));
    }
    let processes = processes(&log, calls, shown);
    let inputs = processes.iter().map(|of| Input { path: path.to_owned(), shown: of.file.clone(), side: 0 });
    let inputs: Vec<Input> = inputs.collect();
    let rows: u64 = processes.iter().map(|of| of.nccl.calls.len() as u64).sum();
    let seen = ReportCounts { with_data: inputs.len(), rows, ..ReportCounts::default() };
    let made = if rows > 0 { make(&log, processes, arguments) } else { Default::default() };
    notes.extend(made.notes);
    let outcome = Outcome {
        recipe: recipe.name.to_owned(),
        tables: made.tables,
        charts: made.charts,
        notes,
        unreadable: made.unreadable,
        simulated: begins_with(path, &[HEAD, SIMULATED].concat()),
        seen,
    };
    Ok(Inspected { outcome, inputs })
}

/// Makes the tables of a recipe. Calls of processes are those that all ranks of their communicator recorded.
type MakeTables = fn(&InspectorLog, Vec<Process>, &Arguments) -> Made;

/// The recipes that read records, by their names.
const READERS: &[(&str, MakeTables)] =
    &[(NCCL_MSG.name, messages), (NCCL_SUM.name, sums), (STRAGGLERS.name, late_ranks)];

fn messages(_: &InspectorLog, processes: Vec<Process>, arguments: &Arguments) -> Made {
    let extract = |nccl| msg::Extract { nccl, printed: None, has_lengths_only: true };
    let extracts: Vec<_> = processes.into_iter().map(|process| process.report(extract)).collect();
    let mut made = msg::make(&borrowed(&extracts), arguments);
    made.notes.push(
        "records of NCCL's Inspector: no moments, threads, kernels and peers; all calls count, `warmup=N` leaves out the \
         first"
            .to_owned(),
    );
    made
}

fn sums(_: &InspectorLog, processes: Vec<Process>, arguments: &Arguments) -> Made {
    let calls = || processes.iter().flat_map(|process| &process.nccl.calls);
    let without = calls().filter(|call| call.kernels.is_empty()).count();
    let extract = |nccl: NcclCalls| sum::from_kernels(&nccl);
    let extracts: Vec<_> = processes.into_iter().map(|process| process.report(extract)).collect();
    let mut made = sum::make(&borrowed(&extracts), arguments);
    let note = "records of NCCL's Inspector: times of kernels, waiting included, and not of host threads";
    made.notes.push(match without {
        0 => note.to_owned(),
        some => format!("{note}; calls without a time of the GPU, which do not count: {some}"),
    });
    made
}

fn late_ranks(log: &InspectorLog, _: Vec<Process>, arguments: &Arguments) -> Made {
    stragglers::from_records(log, arguments)
}

/// A process of the job with its calls.
struct Process {
    /// Its rank in the largest communicator.
    rank: i64,
    /// For messages.
    file: String,
    host: Option<String>,
    nccl: NcclCalls,
}

impl Process {
    fn report<T>(self, extract: impl FnOnce(NcclCalls) -> T) -> ReportExtract<T> {
        let Process { rank, file, host, nccl } = self;
        ReportExtract { rank, file, host, utc_epoch_ns: None, extract: extract(nccl) }
    }
}

fn borrowed<T>(extracts: &[ReportExtract<T>]) -> Vec<ReportExtract<&T>> {
    let reports = extracts.iter().map(|of| ReportExtract {
        rank: of.rank,
        file: of.file.clone(),
        host: of.host.clone(),
        utc_epoch_ns: None,
        extract: &of.extract,
    });
    reports.collect()
}

/// The calls that all ranks of their communicator recorded, so that the n-th call is the same one on each; and how many are
/// not among them. Sends and receives of ranks are not the same calls.
fn comparable(log: &InspectorLog) -> (Vec<RankCall>, u64) {
    let communicator =
        |call: &RankCall| log.members.get(call.member).map(|member| member.communicator.as_str());
    let is_pair = |call: &RankCall| matches!(function(log, call), Some(Function::Send | Function::Recv));
    let mut ranks: BTreeMap<&str, BTreeSet<usize>> = BTreeMap::new();
    let mut having: BTreeMap<(&str, usize, u64), BTreeSet<usize>> = BTreeMap::new();
    for call in &log.calls {
        let Some(of) = communicator(call) else { continue };
        ranks.entry(of).or_default().insert(call.member);
        if !is_pair(call) {
            having.entry((of, call.operation, call.number)).or_default().insert(call.member);
        }
    }
    let is_of_all = |call: &RankCall| {
        let Some(of) = communicator(call) else { return false };
        let all = ranks.get(of).map_or(0, BTreeSet::len);
        is_pair(call) || having.get(&(of, call.operation, call.number)).map_or(0, BTreeSet::len) == all
    };
    let kept: Vec<RankCall> = log.calls.iter().filter(|call| is_of_all(call)).copied().collect();
    let left_out = (log.calls.len() - kept.len()) as u64;
    (kept, left_out)
}

fn function(log: &InspectorLog, call: &RankCall) -> Option<Function> {
    Function::from_name(&format!("nccl{}", log.operations.get(call.operation)?))
}

/// Each process with its number, its host and its calls. The number is its rank in the largest communicator.
fn processes(log: &InspectorLog, mut calls: Vec<RankCall>, shown: &str) -> Vec<Process> {
    type Key<'a> = (Option<&'a str>, Option<u64>, Option<usize>);
    calls.sort_by_key(|call| (call.member, call.operation, call.number));
    let mut processes: BTreeMap<Key<'_>, (u64, i64, Vec<RankCall>)> = BTreeMap::new();
    for call in calls {
        let Some(member) = log.members.get(call.member) else { continue };
        // Without a process each rank of a communicator stands by itself.
        let alone = member.pid.is_none().then_some(call.member);
        let process = (member.host.as_deref(), member.pid, alone);
        let (ranks, number, of_process) = processes.entry(process).or_default();
        if member.ranks > *ranks {
            (*ranks, *number) = (member.ranks, i64::try_from(member.rank).unwrap_or(i64::MAX));
        }
        of_process.push(call);
    }
    let with_calls = processes.into_iter().map(|((host, ..), (_, rank, calls))| Process {
        rank,
        file: format!("{shown} rank {rank}"),
        host: host.map(str::to_owned),
        nccl: nccl_calls(log, &calls),
    });
    let mut all: Vec<Process> = with_calls.collect();
    all.sort_by(|a, b| (a.rank, &a.host).cmp(&(b.rank, &b.host)));
    all
}

fn nccl_calls(log: &InspectorLog, records: &[RankCall]) -> NcclCalls {
    let (mut calls, mut kernels) = (Vec::new(), Vec::new());
    for record in records {
        let Some((function, member)) = function(log, record).zip(log.members.get(record.member)) else {
            continue;
        };
        let first = kernels.len() as u32;
        kernels.extend(record.gpu_us.map(|us| Kernel::from_length((us * 1e3).round() as i64)));
        calls.push(Call {
            function,
            start: 0,
            end: 0,
            global_tid: 0,
            bytes: Some(record.bytes),
            communicator: id(&member.communicator),
            ranks: u32::try_from(member.ranks).ok(),
            rank: u32::try_from(member.rank).ok(),
            root: None,
            peer: None,
            reduction: None,
            group: None,
            kernels: first..kernels.len() as u32,
        });
    }
    NcclCalls::from_records(calls, kernels)
}

/// As logs write it: `0x7f8c496ae9f661`.
fn id(communicator: &str) -> Option<u64> {
    u64::from_str_radix(communicator.strip_prefix("0x").unwrap_or(communicator), 16).ok()
}

#[cfg(test)]
mod tests {
    use super::super::tests::cells;
    use super::*;
    use crate::recipe::of_reports::find;

    /// A call of one rank of two.
    fn call(rank: u32, number: u32, us: u32) -> String {
        format!(
            "{{\"header\":{{\"id\":\"0x4d\",\"rank\":{rank},\"n_ranks\":2,\"nnodes\":2}},\"metadata\":{{\"hostname\":\"n{rank}\",\
             \"pid\":7}},\"coll_perf\":{{\"coll\":\"AllReduce\",\"coll_sn\":{number},\"coll_msg_size_bytes\":1048576,\
             \"coll_exec_time_us\":{us},\"coll_timing_source\":\"kernel_gpu\"}}}}\n"
        )
    }

    fn made(text: &str, recipe: &str) -> Result<Inspected, String> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("inspector.txt");
        std::fs::write(&path, text).expect("written");
        assert!(is_inspected(&path));
        survey_records(&path, "inspector.txt", &find(recipe).expect("there"), &Arguments::default())
    }

    fn text(files: &[String]) -> String {
        let files: Vec<String> = files
            .iter()
            .enumerate()
            .map(|(at, file)| format!("== file n{at}-pid7.log 0 0\n{file}\n"))
            .collect();
        format!("harness-inspector 1\n{}== end\n", files.concat())
    }

    #[test]
    fn calls_and_sizes_are_those_of_reports_and_what_is_not_recorded_is_blank() {
        // The first rank lost its first call, the second one its last.
        let first = [(1, 100), (2, 110)].map(|(number, us)| call(0, number, us)).concat();
        let second = [(0, 90), (1, 60)].map(|(number, us)| call(1, number, us)).concat();
        let Inspected { outcome, inputs } = made(&text(&[first, second]), "nccl_msg").expect("tables");
        assert_eq!(inputs.len(), 2);
        assert!(outcome.notes.iter().any(|note| note.ends_with("has no record: 2")), "{:?}", outcome.notes);
        let column = |name| cells(&outcome, "calls", name);
        assert_eq!(column("Rank"), ["0", "1"]);
        assert_eq!(column("Communicator"), ["0x4d", "0x4d"]);
        assert_eq!(column("Kernel Duration"), ["100000", "60000"]);
        for blank in ["Start", "Kernel Start", "Kernels", "Device", "PID", "Kernel"] {
            assert_eq!(column(blank), ["-", "-"], "{blank}");
        }
        assert_eq!(cells(&outcome, "sizes", "Ranks Seen"), ["2"]);
        assert_eq!(cells(&outcome, "sizes", "Fastest Rank P50"), ["60000.00"]);
    }

    #[test]
    fn functions_are_summed_by_the_times_of_kernels() {
        let first = call(0, 0, 100) + &call(0, 1, 300);
        let host = call(1, 1, 60).replace("kernel_gpu", "kernel_cpu");
        let outcome = made(&text(&[first, call(1, 0, 40) + &host]), "nccl_sum").expect("tables").outcome;
        assert_eq!(cells(&outcome, "all_stats", "Name"), ["ncclAllReduce"]);
        assert_eq!(cells(&outcome, "all_stats", "Total"), ["440000"]);
        assert_eq!(cells(&outcome, "rank_stats", "Count"), ["2", "1"]);
        assert_eq!(cells(&outcome, "size_stats", "Communicator"), ["0x4d"]);
        assert_eq!(cells(&outcome, "size_stats", "Size Class"), ["1 MiB to 2 MiB"]);
        let note = outcome.notes.last().expect("a note");
        assert!(note.contains("not of host threads") && note.ends_with("do not count: 1"), "{note}");
    }

    #[test]
    fn late_ranks_are_named_within_one_communicator_and_none_across_several() {
        let rank = |rank: u32, us: u32| (0..20).map(|number| call(rank, number, us)).collect::<String>();
        let outcome = made(&text(&[rank(0, 5000), rank(1, 4000)]), "stragglers").expect("tables").outcome;
        assert_eq!(cells(&outcome, "verdict", "Verdict"), ["straggler"]);
        assert_eq!(cells(&outcome, "verdict", "Rank"), ["1"]);
        assert_eq!(cells(&outcome, "verdict", "Node"), ["n1"]);
        assert!(cells(&outcome, "clocks", "Clock").is_empty());
        let second = rank(0, 9) + &rank(1, 9);
        let two = text(&[rank(0, 5000), rank(1, 4000), second.replace("0x4d", "0x4e")]);
        let outcome = made(&two, "stragglers").expect("tables").outcome;
        assert_eq!(cells(&outcome, "verdict", "Verdict"), ["inconclusive"]);
        let why = cells(&outcome, "verdict", "Evidence");
        assert!(why[0].starts_with("2 communicators: a rank may have waited in another one"), "{why:?}");
        assert_eq!(cells(&outcome, "verdict", "Rank"), ["-"]);
    }

    #[test]
    fn what_needs_reports_and_what_breaks_off_is_refused_with_the_reason() {
        let whole = text(&[call(0, 0, 10), call(1, 0, 10)]);
        let why = made(&whole, "cuda_gpu_kern_sum").err().expect("refused");
        assert!(why.starts_with("`cuda_gpu_kern_sum` needs reports of nsys"), "{why}");
        let why = made(whole.trim_end_matches("== end\n"), "nccl_msg").err().expect("refused");
        assert_eq!(why, "breaks off before its last line");
    }
}
