//! Which rank or node of a job keeps the others waiting, from the reports of all its ranks. How it is found is told in
//! `crate::stragglers`.

pub(crate) mod taken;
#[cfg(test)]
mod tests;

use self::taken::{Report, Taken};
use super::{FileRole, InputFile, JobInput, Output, RecipeSpec};
use crate::stragglers::{Culprit, Evidence, Judgement, Limits, Rounds, Verdict, Who, judge};
use metric::finding::Finding;
use metric::unit::{Better, Unit};
use metric::{Blames, Dim, MetricSpec};
use nsys::loss::loss;
use nsys::tables::{DIAGNOSTIC_EVENT, KERNEL, NVTX_EVENTS, RUNTIME, SESSION_START, STRING_IDS, SYSTEM_ENV};
use nsys::trace::Trace;

const LATE: MetricSpec = MetricSpec {
    name: "straggler.late",
    about: "how much longer than the others a rank takes in each round for what is not waiting; the median, and of \
            several GPUs in a report the latest",
    unit: Unit::Microseconds,
    better: Better::Lower,
    dims: &[Dim::Rank, Dim::Node],
    blames: Blames::Part,
};
const LATE_SHARE: MetricSpec = MetricSpec {
    name: "straggler.late_share",
    about: "the same in parts of a round: where all ranks wait for each other, so much of the throughput is lost by it",
    unit: Unit::Ratio,
    better: Better::Lower,
    dims: &[Dim::Rank, Dim::Node],
    blames: Blames::Part,
};
const WAIT: MetricSpec = MetricSpec {
    name: "straggler.wait",
    about: "how long a rank waits in a collective until the last one comes; the median, and of several GPUs in a report \
            the longest",
    unit: Unit::Microseconds,
    better: Better::Neither,
    dims: &[Dim::Rank, Dim::Node],
    blames: Blames::Nobody,
};
const OFFSET: MetricSpec = MetricSpec {
    name: "clock.offset",
    about: "how far a node's clock is ahead of that of the first node, as the ends of collectives tell",
    unit: Unit::Microseconds,
    better: Better::Neither,
    dims: &[Dim::Node],
    blames: Blames::Node,
};
const RESIDUAL: MetricSpec = MetricSpec {
    name: "clock.residual",
    about: "by how much ends of a collective on a node differ from those on the others, once clocks are aligned; the \
            robust deviation",
    unit: Unit::Microseconds,
    better: Better::Lower,
    dims: &[Dim::Node],
    blames: Blames::Node,
};

pub const SPEC: RecipeSpec = RecipeSpec {
    name: "stragglers",
    about: "ranks and nodes that keep the others waiting, from the reports of nsys",
    metrics: &[LATE, LATE_SHARE, WAIT, OFFSET, RESIDUAL],
    // Hosts are for who asks these reports by hand: which node a report is of is known to the run.
    tables: &[&KERNEL, &STRING_IDS, &RUNTIME, &NVTX_EVENTS, &SESSION_START, &SYSTEM_ENV, &DIAGNOSTIC_EVENT],
    causes: &[
        "events-dropped",
        "target-error",
        "report-unreadable",
        "report-missing",
        "no-communication",
        "stragglers-untold",
    ],
    run: &run,
};

/// What was taken of one report.
struct Read<'a> {
    file: &'a InputFile,
    rank: u32,
    node: &'a str,
    zero: Option<i64>,
    taken: Taken,
}

fn run(job: &JobInput) -> Output {
    let mut output = Output::default();
    let files: Vec<&InputFile> = job.files_of(FileRole::NsysExport).collect();
    let mut reads = Vec::new();
    let mut whole = !files.is_empty();
    for file in &files {
        match read(job, file) {
            Ok(read) => reads.push(read),
            Err(finding) => {
                output.findings.push(*finding);
                whole = false;
            }
        }
    }
    // The one whose report is missing may be the one that all others wait for.
    let missing =
        job.expected_exports.iter().filter(|(rank, _)| !files.iter().any(|file| file.rank == Some(*rank)));
    for (rank, node) in missing {
        let why = format!(
            "rank {rank}: left no report, so that nobody can be said to be late; see why it is missing"
        );
        output.findings.push(Finding::new("report-missing", why).node(node.as_str()));
        whole = false;
    }
    if !whole {
        return output;
    }
    reads.sort_by_key(|read| read.rank);
    let parts: Vec<Report> = reads
        .iter()
        .map(|read| {
            let (clock, zero) = taken::clock(Some(read.node), read.zero, &read.file.shown);
            Report { rank: i64::from(read.rank), node: read.node, clock, zero, taken: &read.taken }
        })
        .collect();
    let evidence = taken::evidence(&parts);
    let judgement = judge(&evidence, &Limits::default());
    tell(&evidence, &judgement, &mut output);
    numbers(job, &evidence, &judgement, &mut output);
    output
}

/// Of one report; else the finding that says why nothing.
fn read<'a>(job: &JobInput, file: &'a InputFile) -> Result<Read<'a>, Box<Finding>> {
    let (Some(rank), Some(node)) = (file.rank, file.node.as_deref()) else {
        return Err(Box::new(
            file.tells("report-unreadable", "it is not known whose report it is".to_owned()),
        ));
    };
    let (zero, taken) = job.of_report(SPEC.name, file, || of_rank(file))?;
    Ok(Read { file, rank, node, zero, taken })
}

/// The UTC of its zero, and what was taken of it.
fn of_rank(file: &InputFile) -> Result<(Option<i64>, Taken), (&'static str, String)> {
    let read = Trace::open(&file.path).and_then(|trace| {
        let lost = loss(trace.export())?;
        Ok((lost, taken::take(&trace)?, trace.utc_epoch_ns()?))
    });
    match read {
        Err(error) => Err(("report-unreadable", error.to_string())),
        Ok((Some((code, text)), ..)) => Err((code, format!("the report says itself: {text}"))),
        Ok((None, None, _)) => {
            let why =
                "no kernel of communication was traced; trace `cuda` and `nvtx`, and let the window reach it";
            Err(("no-communication", why.to_owned()))
        }
        Ok((None, Some((taken, _)), zero)) => Ok((zero, taken)),
    }
}

fn tell(evidence: &Evidence, judgement: &Judgement, output: &mut Output) {
    let flaws = judgement.flaws.iter().map(|flaw| taken::told_of(flaw, evidence));
    output.findings.extend(flaws.map(|why| Finding::new("collectives-unequal", why)));
    if !judgement.apart.is_empty() {
        let groups: Vec<String> = judgement.apart.iter().map(|group| group.join(", ")).collect();
        let why = format!("no collective connects these clocks: {}", groups.join(" | "));
        output.findings.push(Finding::new("clocks-apart", why));
    }
    match &judgement.verdict {
        Verdict::Named(culprits) => output.findings.extend(culprits.iter().map(named)),
        Verdict::Nobody(_) => {}
        Verdict::Untold(why) => {
            let why =
                format!("who is late cannot be told: {why}; let the window hold more steps of all ranks");
            output.findings.push(Finding::new("stragglers-untold", why));
        }
    }
}

fn named(culprit: &Culprit) -> Finding {
    let late = format!(
        "late by {:.1} us in each round of {:.1} us, {} standard errors; cause: {}; {}",
        culprit.late_ns as f64 / 1e3,
        culprit.round_ns as f64 / 1e3,
        // Beyond this the number says nothing but that there was hardly any noise.
        if culprit.sure < 1000.0 { format!("{:.0}", culprit.sure) } else { "more than 1000".to_owned() },
        culprit.cause.name(),
        culprit.evidence
    );
    match &culprit.who {
        Who::Node { node, .. } => {
            Finding::new("straggler", format!("the node keeps the others waiting: {late}"))
                .node(node.as_str())
        }
        Who::Rank { rank, node, gpu } => {
            let finding = Finding::new("straggler", format!("rank {rank} keeps the others waiting: {late}"));
            let finding = finding.node(node.as_str());
            match gpu {
                Some(gpu) => finding.part(format!("gpu{gpu}")),
                None => finding,
            }
        }
    }
}

fn numbers(job: &JobInput, evidence: &Evidence, judgement: &Judgement, output: &mut Output) {
    if matches!(judgement.verdict, Verdict::Untold(_)) {
        return;
    }
    let all: Vec<_> = evidence.ranks.iter().zip(&judgement.ranks).collect();
    // The GPUs of one report stand together.
    for gpus in all.chunk_by(|(a, _), (b, _)| a.rank == b.rank) {
        let (rank, node) = (gpus[0].0.rank, gpus[0].0.node);
        let rounds = || gpus.iter().filter_map(|(_, result)| result.rounds);
        let late = rounds().map(|rounds| rounds.late_ns).max();
        let share =
            |rounds: Rounds| (rounds.length_ns > 0).then(|| rounds.late_ns as f64 / rounds.length_ns as f64);
        let share = rounds().filter_map(share).max_by(f64::total_cmp);
        let wait = gpus.iter().filter_map(|(_, result)| Some(result.arrived?.wait_ns)).max();
        let Ok(number) = u64::try_from(rank) else { continue };
        let dims = job.dims().with(Dim::Rank, number).with(Dim::Node, node);
        match late {
            Some(late) => output.metrics.push(LATE.of(dims.clone(), late as f64 / 1e3)),
            None => {
                let why = format!("rank {rank}: no other rank could be compared with it");
                output.findings.push(Finding::new("stragglers-untold", why).node(node));
            }
        }
        output.metrics.extend(share.map(|share| LATE_SHARE.of(dims.clone(), share)));
        output.metrics.extend(wait.map(|wait| WAIT.of(dims, wait as f64 / 1e3)));
    }
    for clock in &judgement.clocks {
        if !evidence.ranks.iter().any(|rank| rank.node == clock.name) {
            continue;
        }
        let dims = job.dims().with(Dim::Node, clock.name.as_str());
        output.metrics.extend(clock.ahead_ns.map(|ns| OFFSET.of(dims.clone(), ns as f64 / 1e3)));
        output.metrics.extend(clock.residual_ns.map(|ns| RESIDUAL.of(dims, ns as f64 / 1e3)));
    }
}
