//! Whether all ranks of a training hold the same weights after its last step, as the harness's own script reports it.

use super::{
    FileRole, InputFile, JobInput, Output, TrainingFacts, TrainingFinding, job_metric, named_node, part_of,
};
use logs::stream::Pieces;
use logs::training_log::WEIGHTS;
use metric::finding::Finding;
use metric::unit::{Better, Unit};
use metric::{Blames, DataCheck, MetricSpec, Names};
use std::fs::File;
use std::io::BufReader;

/// Code of the finding that names the rank whose weights differ from those of all others.
const DIFFERENT_RANK: &str = TrainingFinding::WeightsOfRank.code();
/// Code of the finding of weights that differ, and no rank alone from all others.
const DIFFERENT: &str = TrainingFinding::WeightsDiffer.code();

pub(super) const EQUAL: MetricSpec = job_metric(
    "train.weights_equal",
    "1 where the weights of all ranks are equal after the last step, bit by bit, 0 where they are not; of `torch-ddp`",
    Unit::Count,
    Better::Higher,
)
.blaming(Blames::Part)
.naming(Names::FirstFinding(DIFFERENT_RANK))
.explained_by(&[DIFFERENT_RANK, DIFFERENT])
.checking(DataCheck {
    sound: 1.0,
    cause: "weights-differ",
    wrong: "the weights of ranks differ after the last step",
    next: "assert `train.weights_equal` in the case",
})
.next("run a case of kind `torch-burn` on {nodes}: weights differ where a GPU computes wrong");

/// Of two ranks that differ, either may be the wrong one.
const FEWEST_RANKS: u64 = 3;

/// What the line of the weights reports.
#[derive(Debug, PartialEq)]
struct Weights {
    /// The number of steps before they were compared.
    steps: u64,
    ranks: u64,
    /// 1 where all are equal.
    versions: u64,
    alone: Option<Alone>,
}

/// The rank that differs from all others, which are equal.
#[derive(Debug, PartialEq)]
struct Alone {
    rank: u64,
    device: u64,
    host: String,
}

/// A line of the weights: none where it is another one, an error where something of it cannot be read.
fn parse(text: &str) -> Option<Result<Weights, ()>> {
    let (_, rest) = text.split_once(WEIGHTS)?;
    Some(read_line(rest.trim_end()).ok_or(()))
}

/// `50: equal on 16 ranks, sha256 ...`, `50: 5 versions on 16 ranks`, and `50: 2 versions on 16 ranks, rank 13 alone differs,
/// Device: 5, node: p5-002, sha256 ...`.
fn read_line(text: &str) -> Option<Weights> {
    let (steps, rest) = text.split_once(": ")?;
    let steps: u64 = steps.parse().ok()?;
    let mut fields = rest.split(", ");
    let head = fields.next()?;
    let (versions, ranks) = head.strip_suffix(" ranks")?.split_once(" on ")?;
    let ranks: u64 = ranks.parse().ok()?;
    let versions: u64 = match versions {
        "equal" => 1,
        counted => counted
            .strip_suffix(" versions")?
            .parse::<u64>()
            .ok()
            .filter(|count| (2..=ranks).contains(count))?,
    };
    let mut value = |name: &str| fields.next()?.strip_prefix(name).map(str::to_owned);
    let alone = match versions {
        1 => {
            value("sha256 ")?;
            None
        }
        _ => match value("rank ") {
            None => None,
            Some(rank) => {
                let rank =
                    rank.strip_suffix(" alone differs")?.parse::<u64>().ok().filter(|rank| *rank < ranks)?;
                let device: u64 = value("Device: ")?.parse().ok()?;
                let host = value("node: ")?;
                // What stands behind the name shows that it was not cut.
                value("sha256 ")?;
                Some(Alone { rank, device, host })
            }
        },
    };
    let alone = alone.filter(|_| versions == 2 && ranks >= FEWEST_RANKS);
    (ranks > 0).then_some(Weights { steps, ranks, versions, alone })
}

/// Why a line of the weights does not show that those of all ranks are equal after the last step.
fn unlike(weights: &Weights, (facts, ranks): (&TrainingFacts, Option<u32>)) -> Option<String> {
    if let Some(ranks) = ranks.filter(|ranks| u64::from(*ranks) != weights.ranks) {
        return Some(format!("weights of {} ranks were compared, the job has {ranks}", weights.ranks));
    }
    let steps = facts.steps.filter(|steps| u64::from(*steps) != weights.steps)?;
    Some(format!("weights were compared after step {}, the last is {steps}", weights.steps))
}

/// Nothing where the program does not compare weights, or did not come so far. Of several lines the worst counts.
pub(super) fn put(job: &JobInput, declared: (&TrainingFacts, Option<u32>), output: &mut Output) {
    let mut equal = false;
    let mut unknown: Option<Finding> = None;
    let mut different: Option<(Weights, &InputFile, u64)> = None;
    for file in job.files_of(FileRole::Stdout) {
        // Files that cannot be read are reported where their steps are read.
        let Ok(open) = File::open(&file.path) else { continue };
        let mut pieces = Pieces::new(BufReader::new(open));
        while let Ok(Some(piece)) = pieces.next_piece() {
            let Some(read) = parse(&piece.plain()) else { continue };
            let why = match &read {
                Ok(weights) => unlike(weights, declared),
                Err(()) => Some("the line of the weights could not be read".to_owned()),
            };
            if let (Some(why), None) = (why, &unknown) {
                let finding = Finding::new(TrainingFinding::WeightsUnknown.code(), why);
                unknown = Some(finding.file(&file.shown).line(piece.line));
            }
            let Ok(weights) = read else { continue };
            equal |= weights.versions == 1;
            match &mut different {
                _ if weights.versions == 1 => {}
                Some((first, ..)) if *first != weights => first.alone = None,
                Some(_) => {}
                None => different = Some((weights, file, piece.line)),
            }
        }
    }
    if let Some((mut weights, file, line)) = different {
        // A rank is named by one account that nothing contradicts.
        weights.alone = weights.alone.filter(|_| !equal && unknown.is_none());
        output.data_wrong = true;
        output.findings.push(differ((job, declared.1), file, line, &weights));
        output.metrics.push(EQUAL.of(job.dims(), 0.0));
    } else if equal && unknown.is_none() {
        output.metrics.push(EQUAL.of(job.dims(), 1.0));
    }
    output.findings.extend(unknown);
}

fn differ(
    (job, declared): (&JobInput, Option<u32>),
    file: &InputFile,
    line: u64,
    weights: &Weights,
) -> Finding {
    let Weights { steps, ranks, versions, alone } = weights;
    let Some(Alone { rank, device, host }) = alone else {
        let why = format!("{versions} versions of the weights on {ranks} ranks after step {steps}");
        return Finding::new(DIFFERENT, why).file(&file.shown).line(line);
    };
    let others = ranks - 1;
    let why =
        format!("rank {rank}: wrong weights after step {steps}: those of the {others} other ranks are equal");
    let finding = Finding::new(DIFFERENT_RANK, why).file(&file.shown).line(line);
    let Some(node) = named_node(job, host) else { return finding };
    let finding = finding.node(node.as_str());
    match part_of(job, declared, *rank, *device) {
        Some(part) => finding.part(part),
        None => finding,
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{FACTS, falls, fsdp, message, ran, value};
    use super::*;

    fn line(rest: &str) -> String {
        fsdp(40, falls) + WEIGHTS + rest + "\n"
    }

    #[test]
    fn lines_are_read_whole_or_not_at_all() {
        let alone = || Alone { rank: 13, device: 5, host: "n2".to_owned() };
        let weights = |ranks, versions, alone| Some(Ok(Weights { steps: 50, ranks, versions, alone }));
        let table = [
            ("50: equal on 16 ranks, sha256 ab", weights(16, 1, None)),
            ("50: 5 versions on 16 ranks", weights(16, 5, None)),
            (
                "50: 2 versions on 16 ranks, rank 13 alone differs, Device: 5, node: n2, sha256 ab",
                weights(16, 2, Some(alone())),
            ),
            // Of two ranks either may be the wrong one; of three versions, two are.
            (
                "50: 2 versions on 2 ranks, rank 1 alone differs, Device: 1, node: n1, sha256 ab",
                weights(2, 2, None),
            ),
            (
                "50: 3 versions on 16 ranks, rank 1 alone differs, Device: 1, node: n1, sha256 ab",
                weights(16, 3, None),
            ),
            ("50: equal on 16 ranks", Some(Err(()))),
            ("50: equal on 0 ranks, sha256 ab", Some(Err(()))),
            ("50: 1 versions on 16 ranks", Some(Err(()))),
            ("50: 17 versions on 16 ranks", Some(Err(()))),
            ("50: 2 versions on 16 ranks, rank 16 alone differs, Device: 5, node: n2", Some(Err(()))),
            ("50: 2 versions on 16 ranks, rank 13 alone dif", Some(Err(()))),
            ("50: 2 versions on 16 ranks, rank 13 alone differs, Device: 5, node: n", Some(Err(()))),
            ("50: equal on 16", Some(Err(()))),
            ("", Some(Err(()))),
        ];
        for (text, expected) in table {
            assert_eq!(parse(&format!("{WEIGHTS}{text}\n")), expected, "{text}");
        }
        assert_eq!(parse("weights after step 50: equal on 16 ranks"), None);
    }

    #[test]
    fn a_rank_that_alone_has_other_weights_is_named_with_its_gpu() {
        let alone =
            "40: 2 versions on 16 ranks, rank 13 alone differs, Device: 5, node: n2.cluster.local, sha256 ab";
        let output = ran(FACTS, &line(alone), "");
        let finding =
            output.findings.iter().find(|finding| finding.code == DIFFERENT_RANK).expect("reported");
        assert_eq!((finding.node.as_deref(), finding.part.as_deref()), (Some("n2"), Some("gpu5")));
        assert_eq!(
            finding.message,
            "rank 13: wrong weights after step 40: those of the 15 other ranks are equal"
        );
        assert_eq!(value(&output, "train.weights_equal"), Some(0.0));
        assert!(output.data_wrong);
        // A host that is no node of the job: the rank is reported, and no node is blamed.
        let output = ran(FACTS, &line(&alone.replace("n2.cluster.local", "pod-7")), "");
        let finding =
            output.findings.iter().find(|finding| finding.code == DIFFERENT_RANK).expect("reported");
        assert_eq!((finding.node.as_deref(), finding.part.as_deref()), (None, None));
        // Where each rank sees one GPU alone, all of them report device 0: the node is known, and no GPU.
        let output = ran(FACTS, &line(&alone.replace("Device: 5", "Device: 0")), "");
        let finding =
            output.findings.iter().find(|finding| finding.code == DIFFERENT_RANK).expect("reported");
        assert_eq!((finding.node.as_deref(), finding.part.as_deref()), (Some("n2"), None));
        // What another line contradicts, or what is of other ranks or steps, names none.
        let other = alone.replace("rank 13", "rank 12").replace(": 5", ": 4");
        for lines in [
            line(alone) + WEIGHTS + &other + "\n",
            line(alone) + WEIGHTS + "40: equal on 16 ranks, sha256 ab\n",
            line(&alone.replace("on 16", "on 24")),
            line(&alone.replace("40: 2", "39: 2")),
        ] {
            let output = ran(FACTS, &lines, "");
            assert_eq!(value(&output, "train.weights_equal"), Some(0.0));
            let is_named = output.findings.iter().any(|finding| finding.code == DIFFERENT_RANK);
            assert!(!is_named, "{:?}", output.findings);
        }
    }

    #[test]
    fn weights_of_other_ranks_or_steps_are_not_called_equal() {
        let equal = "40: equal on 16 ranks, sha256 ab";
        let output = ran(FACTS, &line(equal), "");
        assert_eq!((value(&output, "train.weights_equal"), output.data_wrong), (Some(1.0), false));
        let several = ran(FACTS, &line("40: 5 versions on 16 ranks"), "");
        assert_eq!(value(&several, "train.weights_equal"), Some(0.0));
        let why = message(&several, DIFFERENT).expect("reported");
        assert_eq!(why, "5 versions of the weights on 16 ranks after step 40");
        for (text, expected) in [
            ("40: equal on 8 ranks, sha256 ab", "weights of 8 ranks were compared, the job has 16"),
            ("30: equal on 16 ranks, sha256 ab", "weights were compared after step 30, the last is 40"),
            ("40: equal on", "the line of the weights could not be read"),
        ] {
            let output = ran(FACTS, &line(text), "");
            assert_eq!(value(&output, "train.weights_equal"), None, "{text}");
            let why = message(&output, TrainingFinding::WeightsUnknown.code());
            assert_eq!(why.as_deref(), Some(expected), "{text}");
        }
        let differs = line("40: 2 versions on 16 ranks") + WEIGHTS + equal + "\n";
        assert_eq!(
            value(&ran(FACTS, &differs, ""), "train.weights_equal"),
            Some(0.0),
            "the worst line counts"
        );
        assert_eq!(value(&ran(FACTS, &fsdp(40, falls), ""), "train.weights_equal"), None);
    }
}
