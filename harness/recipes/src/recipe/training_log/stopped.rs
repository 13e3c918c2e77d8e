//! Why a training stopped, from the messages of PyTorch and Megatron: NCCL calls that timed out, and a rank with NaN.
//! In a hang the waiting ranks complain; the culprit is the rank that stays silent.

use super::hang::{self, Hang, TIMEOUT, UNDECIDED};
use super::torch_failure::{GPU_ERROR, Raised, first_failure};
use super::{
    Failure, FileRole, InputFile, JobInput, NAN_RANK, Output, failure, named_node, node_of, part_of,
};
use crate::recipe::ras_hang::{self, Behind, DESYNC, Late};
use logs::nccl_debug::{TimedOut, complaining_rank, reached, timed_out};
use logs::stream::Pieces;
use logs::torch_failure::{Reader, Said};
use metric::finding::Finding;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::BufReader;

/// Whether a rank reports NaN. `behind`: what it proves that a rank launched less than the others.
pub(in crate::recipe) fn find_causes(
    job: &JobInput,
    ranks: Option<u32>,
    behind: Behind,
    output: &mut Output,
) -> bool {
    let mut complaints = Complaints::default();
    let mut nans = NanReports::default();
    let mut raised: Vec<Raised<'_>> = Vec::new();
    for file in job.files_of(FileRole::Stderr).chain(job.files_of(FileRole::Stdout)) {
        // Files that cannot be read are reported where their steps are read.
        let Ok(open) = File::open(&file.path) else { continue };
        let mut pieces = Pieces::new(BufReader::new(open));
        let mut reader = Reader::default();
        let (heard, mut is_cut) = (complaints.heard.len(), false);
        while let Ok(Some(piece)) = pieces.next_piece() {
            let line = piece.line;
            is_cut = !piece.ended;
            reader.line(&piece.text, line);
            let text = piece.plain();
            complaints.line(&text, &file.shown, line);
            if let Some(report) = nan_rank(&text) {
                nans.add(job, file, line, report);
            }
        }
        complaints.is_cut |= is_cut && complaints.heard.len() > heard;
        let account = reader.finish();
        let exceptions = account.exceptions.iter().filter(|(_, said)| says_why(said));
        complaints.left.extend(exceptions.filter_map(|(rank, _)| *rank));
        raised.extend(Raised::new(job, ranks, &account, file));
    }
    nans.put((job, ranks), output);
    // Whoever ended for a reason of its own is waited for, and did not hang.
    let ended = |late: &BTreeSet<u64>| !late.is_disjoint(&complaints.left);
    let dumped = hang::read(job, ranks, output).filter(|hang| !ended(&hang.late));
    let reported = ras_hang::read(job, ranks, behind, output).filter(|late| !ended(&late.ranks));
    let (decided, undecided) = together(dumped, reported);
    if let Some(failure) = decided {
        output.failure.get_or_insert(failure);
    }
    // An exception that a successful program caught is no failure.
    let raised = first_failure(raised).filter(|_| job.exit_code != Some(0));
    // The hardware is why the others waited.
    let hardware = raised.clone().filter(|failure| failure.cause == GPU_ERROR && failure.node.is_some());
    for failure in [hardware, complaints.hang(job, ranks), raised].into_iter().flatten() {
        output.failure.get_or_insert(failure);
    }
    if let Some(failure) = undecided {
        output.failure.get_or_insert(failure);
    }
    nans.first.is_some()
}

/// Whether an exception says why its rank ended: not that others were gone, nor that a signal ended it.
fn says_why(said: &Said) -> bool {
    const OF_OTHERS: [&str; 8] = [
        // Of a rank's workers, as torchrun ends the rank: `_utils/signal_handling.py` of torch.utils.data.
        "killed by signal: Terminated",
        "KeyboardInterrupt",
        "SignalException",
        "SystemExit",
        "DistNetworkError",
        "DistStoreError",
        "DistBackendError",
        "BrokenPipeError",
    ];
    !said.is_of_lost_peer() && !OF_OTHERS.iter().any(|name| said.text.contains(name))
}

/// What dumps and RAS show together: a failure that names ranks, and one that does not. Dumps show who waits, so that reports
/// name no rank beside them; reports of other ranks contradict them.
fn together(dumped: Option<Hang>, reported: Option<Late>) -> (Option<Failure>, Option<Failure>) {
    match (dumped, reported) {
        (None, reported) => (reported.map(from_ras), None),
        (Some(Hang { failure: dumped, late }), _) if late.is_empty() => (None, Some(dumped)),
        (Some(Hang { failure: dumped, late }), Some(reported)) if reported.ranks != late => {
            let evidence = format!("{}; but {}", dumped.evidence, reported.evidence);
            (Some(failure(UNDECIDED, None, evidence)), None)
        }
        (Some(Hang { failure: dumped, .. }), _) => (Some(dumped), None),
    }
}

fn from_ras(late: Late) -> Failure {
    let cause = if late.node.is_some() { DESYNC } else { UNDECIDED };
    failure(cause, late.node.as_ref(), late.evidence)
}

const MOST_RANKS: usize = 1 << 18;

/// What the watchdogs of the ranks report of collectives that did not end.
#[derive(Default)]
struct Complaints {
    /// The first time-out, and its place.
    first: Option<(String, TimedOut)>,
    waiting: BTreeSet<u64>,
    /// Time-outs of which only the number in a smaller group is known.
    unnamed: u64,
    /// Ranks that report anything, such as that others asked them for a dump.
    heard: BTreeSet<u64>,
    /// Ranks that report why they ended: they are not silent.
    left: BTreeSet<u64>,
    /// An output with such reports breaks off: others may have stood behind.
    is_cut: bool,
    /// By process group and rank, the last collective that it called.
    called: BTreeMap<(Option<String>, u64), u64>,
}

impl Complaints {
    fn line(&mut self, text: &str, file: &str, line: u64) {
        // More ranks than any job has.
        if self.heard.len() >= MOST_RANKS || self.called.len() >= MOST_RANKS {
            return;
        }
        self.heard.extend(complaining_rank(text));
        if let Some(reached) = reached(text, line)
            && let Some(rank) = reached.rank
        {
            self.heard.insert(rank);
            self.called.insert((reached.group, rank), reached.enqueued);
        }
        if let Some(timed_out) = timed_out(text, line) {
            self.heard.extend(timed_out.rank);
            self.waiting.extend(timed_out.rank);
            self.unnamed += u64::from(timed_out.rank.is_none());
            self.first.get_or_insert_with(|| (format!("{file}:{line}"), timed_out));
        }
    }

    /// Nothing where a rank that did not come reports itself why.
    fn hang(&self, job: &JobInput, ranks: Option<u32>) -> Option<Failure> {
        let (place, call) = self.first.as_ref()?;
        let waited = self.waiting.len() as u64 + self.unnamed;
        let waited = format!("{place}: ranks that timed out in {}: {waited}", call.operation);
        let silent: Vec<u64> =
            (0..u64::from(ranks.unwrap_or(0))).filter(|rank| !self.heard.contains(rank)).collect();
        if silent.iter().any(|rank| self.left.contains(rank)) {
            return None;
        }
        let shown: Vec<String> = silent.iter().map(u64::to_string).collect();
        let shown = format!("{} {}", if silent.len() == 1 { "rank" } else { "ranks" }, shown.join(", "));
        // Silence is evidence only where most ranks wait.
        if let [rank, more @ ..] = silent.as_slice()
            && silent.len() * 2 <= self.waiting.len()
            && self.unnamed == 0
        {
            let home = |rank: u64| node_of(job, ranks, rank);
            let node = home(*rank).filter(|node| more.iter().all(|other| home(*other) == Some(*node)));
            // A node of which no rank was read may be silent for another reason.
            let is_read = |node: &String| self.heard.iter().any(|rank| home(*rank) == Some(node));
            return Some(match node {
                _ if self.is_cut => {
                    let why = "reported nothing, and the output of others breaks off";
                    failure(TIMEOUT, None, format!("{waited}; {shown} {why}"))
                }
                Some(node) if !is_read(node) => {
                    failure(TIMEOUT, None, format!("{waited}; {shown} on {node} reported nothing"))
                }
                _ => failure(DESYNC, node, format!("{waited}; {shown} never called it")),
            });
        }
        let behind = self.behind(call).unwrap_or_default();
        Some(failure(TIMEOUT, None, format!("{waited}{behind}")))
    }

    /// The rank that came least far. It is a hint: PyTorch counts a call when it returns.
    fn behind(&self, call: &TimedOut) -> Option<String> {
        let ((group, rank), called) = self.called.iter().min_by_key(|(_, called)| **called)?;
        let is_one_group = self.called.keys().all(|(other, _)| other == group);
        let sequence = call.sequence.filter(|sequence| is_one_group && called < sequence)?;
        Some(format!("; rank {rank} had called {called}, they wait in {sequence}"))
    }
}

/// A rank that reports NaN.
struct NanReport {
    rank: u64,
    device: Option<u64>,
    node: Option<String>,
    what: String,
}

/// `Rank 13: found NaN in local grad norm in backward pass ... Device: 5, node: p5-002`.
fn nan_rank(text: &str) -> Option<NanReport> {
    let (before, rest) = text.split_once(": found NaN in ")?;
    let rank = before.rsplit_once("Rank ")?.1.parse().ok()?;
    let field = |name: &str| {
        let (_, value) = rest.split_once(name)?;
        value.split([',', ' ', '\n', '\r']).find(|word| !word.is_empty())
    };
    let what = rest.split(['.', '\n']).next().unwrap_or_default().to_owned();
    let device = field("Device: ").and_then(|device| device.trim_end_matches('.').parse().ok());
    Some(NanReport { rank, device, node: field("node: ").map(str::to_owned), what })
}

/// All ranks that report NaN. It spreads with what ranks send each other, and a training that diverged has it everywhere:
/// a node is named only where no rank of another node reports it, and one GPU where no other rank does.
#[derive(Default)]
struct NanReports<'a> {
    first: Option<(&'a InputFile, u64, NanReport)>,
    ranks: BTreeSet<u64>,
    /// None for a host that is no node of the job.
    nodes: BTreeSet<Option<&'a String>>,
}

impl<'a> NanReports<'a> {
    fn add(&mut self, job: &'a JobInput, file: &'a InputFile, line: u64, report: NanReport) {
        if self.ranks.len() < MOST_RANKS {
            self.ranks.insert(report.rank);
            self.nodes.insert(report.node.as_deref().and_then(|host| named_node(job, host)));
        }
        self.first.get_or_insert((file, line, report));
    }

    fn put(&self, (job, ranks): (&JobInput, Option<u32>), output: &mut Output) {
        let Some((file, line, named)) = &self.first else { return };
        let is_alone = self.ranks.len() == 1;
        let is_everywhere = !is_alone && ranks.is_some_and(|all| self.ranks.len() as u64 >= u64::from(all));
        let node = match (self.nodes.len(), self.nodes.first()) {
            (1, Some(node)) if !is_everywhere => *node,
            _ => None,
        };
        let more = match self.ranks.len() {
            0 | 1 => String::new(),
            all => format!("; ranks with NaN: {all}"),
        };
        let why = format!("rank {}: found NaN in {}{more}", named.rank, named.what);
        let mut finding = Finding::new(NAN_RANK, why.clone()).file(&file.shown).line(*line);
        if let Some(node) = node {
            finding = finding.node(node.as_str());
        }
        let part = named.device.and_then(|device| part_of(job, ranks, named.rank, device));
        if let Some(part) = part.filter(|_| is_alone) {
            finding = finding.part(part);
        }
        output.findings.push(finding);
        output.failure = Some(failure("nan", node, format!("{}:{line}: {why}", file.shown)));
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{FACTS, falls, fsdp, ran, value, waits};
    use super::super::{SPEC, Workload};
    use super::*;

    #[test]
    fn a_rank_that_says_why_it_ended_or_whose_lines_may_be_lost_is_not_silent() {
        let failed = |stderr: &str| {
            let failure = ran(FACTS, &fsdp(20, falls), stderr).failure.expect("a failure");
            (failure.cause, failure.node)
        };
        let others = waits((0..16).filter(|rank| *rank != 13));
        assert_eq!(failed(&others), ("desync".to_owned(), Some("n2".to_owned())));
        // Its line may have stood behind the last one.
        assert_eq!(failed(others.trim_end()), ("collective-timeout".to_owned(), None));
        let cut = others.rsplit_once("[rank15]").expect("its line").0.to_owned() + "[rank1";
        assert_eq!(failed(&cut), ("collective-timeout".to_owned(), None));
    }

    #[test]
    fn others_that_wait_for_a_rank_with_an_exception_do_not_make_its_node_the_culprit() {
        let others = waits((0..16).filter(|rank| *rank != 13));
        let failed = |stderr: String| {
            let folder = tempfile::tempdir().expect("a folder");
            let path = folder.path().join("stderr");
            std::fs::write(&path, stderr).expect("written");
            let shown = "raw/j/stderr".to_owned();
            let files =
                vec![InputFile { role: FileRole::Stderr, path, shown, node: None, part: None, rank: None }];
            let workload = Workload::Training { facts: FACTS, ranks: 16 };
            let blank = crate::recipe::testing::job(workload, &[], |_| "n1".into(), 0);
            let nodes = vec!["n1".into(), "n2".into()];
            let output = (SPEC.run)(&JobInput { files, nodes, exit_code: Some(1), ..blank });
            let failure = output.failure.expect("a failure");
            (failure.cause, failure.node)
        };
        let raised = |why: &str| format!("[rank13]: {why}\n");
        let key = raised("KeyError: 'input_ids'");
        assert_eq!(failed(key.clone() + &others), ("exception".to_owned(), None));
        assert_eq!(failed(others.clone() + &key), ("exception".to_owned(), None));
        // Others ended what hung.
        let late = ("desync".to_owned(), Some("n2".to_owned()));
        for ended in [
            "KeyboardInterrupt: ",
            "RuntimeError: DataLoader worker (pid 77) is killed by signal: Terminated. ",
        ] {
            assert_eq!(failed(others.clone() + &raised(ended)), late, "{ended}");
        }
    }

    #[test]
    fn nan_on_ranks_of_several_nodes_names_none_of_them() {
        let line = |rank: u64| {
            let (device, node) = (rank % 8, rank / 8 + 1);
            format!(
                "AssertionError: Rank {rank}: found NaN in local grad norm. Device: {device}, node: n{node}\n"
            )
        };
        let named = |ranks: &[u64]| {
            let output =
                ran(FACTS, &fsdp(20, falls), &ranks.iter().map(|rank| line(*rank)).collect::<String>());
            assert_eq!(value(&output, "train.loss_finite"), Some(0.0));
            let finding = output.findings.iter().find(|finding| finding.code == NAN_RANK).expect("reported");
            let failure = output.failure.as_ref().expect("reported");
            assert_eq!((failure.cause.as_str(), &failure.node), ("nan", &finding.node));
            (finding.node.clone(), finding.part.clone())
        };
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(named(&[13, 13]), (text("n2"), text("gpu5")));
        // A GPU passed it on to others of its node.
        assert_eq!(named(&[13, 12]), (text("n2"), None));
        // It was passed on between nodes, or the training diverged: the first line may be of either.
        assert_eq!(named(&[3, 13]), (None, None));
        assert_eq!(named(&(0..16).collect::<Vec<u64>>()), (None, None));
    }
}
