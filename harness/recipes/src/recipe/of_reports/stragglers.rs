//! Which rank, GPU or node keeps the others waiting, over all reports at once. `crate::stragglers` finds it;
//! `recipe::stragglers` extracts what it needs from a report.

use super::{Across, Made, RecipeKind, ReportExtract, ReportRecipe, labels};
use crate::chart::{Along, Axis, Bar, Bars, Chart, Figure, Mark};
use crate::recipe::of_reports::columns::TableDoc;
use crate::recipe::stragglers::extract::{
    KernelExtract, RankReport, clock, communicator_name, describe_flaw, evidence, take,
};
use crate::recipe::stragglers::inspected;
use crate::report::argument;
use crate::report::{ArgumentSpec, Arguments, Takes};
use crate::result_table::{Column, Quantity, ResultTable};
use crate::stragglers::{Evidence, Judgement, Limits, RankResult, Verdict, Who, judge};
use logs::inspector::InspectorLog;
use nsys::tables::{
    KERNEL, NVTX_EVENTS, NVTX_PAYLOAD_ENUM_ENTRIES, NVTX_PAYLOAD_ENUMS, NVTX_PAYLOAD_SCHEMA_ENTRIES,
    NVTX_PAYLOAD_SCHEMAS, RUNTIME, SESSION_START, STRING_IDS, SYSTEM_ENV,
};

const LEAST_US: ArgumentSpec = argument!(
    "least_us",
    "ranks that are less late than this per iteration are not named; microseconds",
    Takes::Number(200)
);
const LEAST_ROUNDS: ArgumentSpec =
    argument!("least_rounds", "fewest iterations to judge by", Takes::Number(16));

pub(super) const STRAGGLERS: ReportRecipe = ReportRecipe {
    name: "stragglers",
    title: "Stragglers",
    about: "which rank, GPU or node keeps the others waiting, and by how much in each iteration",
    definition: "clocks of hosts are aligned by offset and rate, robustly, on the ends of each AllReduce, AllGather, \
                 ReduceScatter and AlltoAll that all ranks of its communicator recorded, chained over communicators; \
                 the residual is the robust deviation of those ends; an instance is the n-th of its operation and \
                 communicator on every rank; an iteration (round) lies between two ends of the rarest collective that \
                 comes evenly; a rank waits in it where communication runs and no compute kernel does; its time \
                 without waiting, compared with the median of its peers in the same iteration, is its lateness, so \
                 that waiting is never lateness; a rank is named that is late by more than `least_us` and by more than \
                 3 residuals, in the median of all iterations and by 6 standard errors, and a node of which three \
                 quarters of the ranks are; without communicators in the reports, the n-th stream of all ranks stands \
                 for one; kernels are compared with those of the same name and place in the order. Records of NCCL's \
                 Inspector have no clocks: in the only communicator of a job a collective is taken to end on all ranks \
                 at once, so that a shorter kernel began later, and a rank is named that is late by more than \
                 `least_us` and by more than 5 % of a call",
    arguments: &[LEAST_US, LEAST_ROUNDS],
    tables: &[
        &KERNEL,
        &STRING_IDS,
        &RUNTIME,
        &NVTX_EVENTS,
        &NVTX_PAYLOAD_SCHEMAS,
        &NVTX_PAYLOAD_SCHEMA_ENTRIES,
        &NVTX_PAYLOAD_ENUMS,
        &NVTX_PAYLOAD_ENUM_ENTRIES,
        &SESSION_START,
        &SYSTEM_ENV,
    ],
    kind: RecipeKind::Together(&Across {
        tables: &[
            TableDoc {
                name: "verdict",
                about: "one row per straggler, or one row without",
                columns: &[&[
                    "Verdict: straggler, none or inconclusive",
                    "Who: whether a node or a rank is named",
                    "Node",
                    "Rank: the rank that is named",
                    "GPU",
                    "Late: time by which it is later than the others per iteration",
                    "Round: the length of an iteration",
                    "Standard Errors",
                    "Residual",
                    "Cause: what made it late",
                    "Evidence: what shows it, or why nothing is named",
                ]],
            },
            TableDoc {
                name: "ranks",
                about: "one row per rank",
                columns: &[&[
                    "Rank",
                    "NCCL Rank: the rank within its largest communicator",
                    "Node",
                    "GPU",
                    "Late: time by which it is later than the others per iteration, the median",
                    "Late Mean: the mean of the same",
                    "Late StdDev: its standard deviation",
                    "Standard Errors",
                    "Rounds: iterations that were compared",
                    "Later in: iterations in which it was later than the others",
                    "Round: the length of an iteration",
                    "Own in Round: time of its own work in an iteration",
                    "Collectives",
                    "Last in: collectives that it entered last",
                    "Arrival after First: time from the first arrival to its own, the median",
                    "Arrival after Others: the same against the median of the others",
                    "Wait: time that it waits in a collective, the median",
                    "Wait Total: the sum of the same",
                    "Launched before: time from the launch of a collective to its start",
                    "Kernel Time of Others': time of its compute kernels as a share of the others'",
                ]],
            },
            TableDoc {
                name: "nodes",
                about: "one row per node",
                columns: &[&[
                    "Node",
                    "Ranks",
                    "Late: time by which its ranks are later than those of others",
                    "Wait: time that its ranks wait in a collective",
                    "Last in: collectives that one of its ranks entered last",
                    "Kernel Time of Others': time of its compute kernels as a share of those of others",
                ]],
            },
            TableDoc {
                name: "clocks",
                about: "one row per clock that was aligned with another",
                columns: &[&[
                    "Clock: whose clock",
                    "Against: the clock that it is compared with",
                    "Ranks",
                    "Ahead: time by which it is ahead of the other",
                    "Rate (ppm): how much faster it runs, in parts per million",
                    "Residual",
                    "Ends: ends of collectives that it was aligned by",
                ]],
            },
            TableDoc {
                name: "instances",
                about: "one row per kind of collective of a communicator",
                columns: &[&[
                    "Communicator",
                    "Operation",
                    "Ranks",
                    "Instances",
                    "First to Last Arrival: the median",
                    "Last Arrival to End: time of the transfer itself, the median",
                ]],
            },
        ],
        charts: &[("late", "how late each rank is per iteration, as bars")],
        take: |trace, _| take(trace),
        make,
    }),
};

fn make(reports: &[ReportExtract<&KernelExtract>], arguments: &Arguments) -> Made {
    let parts: Vec<RankReport> = reports
        .iter()
        .map(|report| {
            let (clock, zero) = clock(report.host.as_deref(), report.utc_epoch_ns, &report.file);
            let node = report.host.as_deref().unwrap_or(&report.file);
            RankReport { rank: report.rank, node, clock, zero, extract: report.extract }
        })
        .collect();
    let evidence = evidence(&parts);
    let limits = limits(arguments);
    let judgement = judge(&evidence, &limits);
    let nccl_ranks: Vec<Option<i64>> = parts
        .iter()
        .flat_map(|report| report.extract.gpus.iter().map(|gpu| gpu.nccl_rank.map(i64::from)))
        .collect();
    let notes = notes(reports, &evidence, &judgement);
    tables(&evidence, &judgement, &nccl_ranks, &limits, notes)
}

/// The same of records of NCCL's Inspector. What they cannot show is inconclusive.
pub(super) fn from_records(log: &InspectorLog, arguments: &Arguments) -> Made {
    let recorded = match inspected::from_log(log) {
        Ok(recorded) => recorded,
        Err(why) => {
            let tables = vec![("verdict", verdict(&Verdict::Inconclusive(why), None))];
            return Made { tables, ..Made::default() };
        }
    };
    let evidence = recorded.evidence();
    let limits = recorded.limits(limits(arguments));
    let judgement = judge(&evidence, &limits);
    let nccl_ranks: Vec<Option<i64>> = evidence.ranks.iter().map(|rank| Some(rank.rank)).collect();
    let least_us = limits.least_ns / 1000;
    let note = format!(
        "a collective is taken to end on all ranks at once, by which no clock is needed; ranks that are less late than \
         {least_us} us are not named"
    );
    tables(&evidence, &judgement, &nccl_ranks, &limits, vec![note])
}

fn limits(arguments: &Arguments) -> Limits {
    Limits {
        least_ns: arguments.number(&LEAST_US).saturating_mul(1000),
        least_rounds: usize::try_from(arguments.number(&LEAST_ROUNDS)).unwrap_or(usize::MAX).max(1),
    }
}

fn tables(
    evidence: &Evidence,
    judgement: &Judgement,
    nccl_ranks: &[Option<i64>],
    limits: &Limits,
    notes: Vec<String>,
) -> Made {
    Made {
        tables: vec![
            ("verdict", verdict(&judgement.verdict, judgement.residual_ns)),
            ("ranks", ranks(evidence, judgement, nccl_ranks)),
            ("nodes", nodes(judgement)),
            ("clocks", clocks(judgement)),
            ("instances", instances(evidence, judgement)),
        ],
        charts: chart(evidence, judgement, limits).into_iter().collect(),
        notes,
        ..Made::default()
    }
}

/// None where no rank could be compared with another.
fn chart(evidence: &Evidence, judgement: &Judgement, limits: &Limits) -> Option<Chart> {
    let places: Vec<labels::LabelKey> =
        evidence.ranks.iter().map(|rank| (rank.rank, None, rank.gpu)).collect();
    let results = evidence.ranks.iter().zip(&judgement.ranks).zip(labels::unique(&places));
    let bars = results.map(|((rank, result), label)| Bar {
        label,
        rank: Some(rank.rank),
        value: result.rounds.map(|rounds| rounds.late_ns as f64),
    });
    let bars: Vec<Bar> = bars.collect();
    bars.iter().any(|bar| bar.value.is_some()).then(|| Chart {
        name: "late".into(),
        title: "Lateness of each Rank".to_owned(),
        about: "median of how much longer than its peers a rank works per iteration; below zero where it works less. \
                Ranks below the mark are not named"
            .to_owned(),
        figure: Figure::Bars(Bars {
            value: Axis::linear("Late in a Round", NS),
            bars,
            marks: vec![Mark {
                label: "named from here on".to_owned(),
                along: Along::Y,
                at: limits.least_ns as f64,
            }],
        }),
    })
}

fn result_table(title: &'static str, columns: Vec<Column>) -> ResultTable {
    ResultTable::new(STRAGGLERS.name, title, columns)
}

const PLAIN: Quantity = Quantity::Plain;
const NS: Quantity = Quantity::Nanoseconds;

/// One row per culprit; else one row that says why there is none.
fn verdict(found: &Verdict, residual_ns: Option<u64>) -> ResultTable {
    let (word, why, culprits) = match found {
        Verdict::Named(culprits) => ("straggler", None, culprits.as_slice()),
        Verdict::NoCulprit(why) => ("none", Some(why.as_str()), &[][..]),
        Verdict::Inconclusive(why) => ("inconclusive", Some(why.as_str()), &[][..]),
    };
    let rows = culprits.len().max(1);
    let of = |at: usize| culprits.get(at);
    let part = |at: usize| of(at).map(|culprit| &culprit.who);
    let residual = residual_ns.and_then(|ns| i64::try_from(ns).ok());
    result_table(
        "Verdict",
        vec![
            Column::texts("Verdict", (0..rows).map(|_| word)),
            Column::maybe_texts(
                "Who",
                (0..rows).map(|at| {
                    Some(match part(at)? {
                        Who::Node { .. } => "node",
                        Who::Rank { .. } => "rank",
                    })
                }),
            ),
            Column::maybe_texts(
                "Node",
                (0..rows).map(|at| match part(at)? {
                    Who::Node { node, .. } | Who::Rank { node, .. } => Some(node.as_str()),
                }),
            ),
            Column::maybe_integers(
                "Rank",
                PLAIN,
                (0..rows).map(|at| match part(at)? {
                    Who::Node { .. } => None,
                    Who::Rank { rank, .. } => Some(*rank),
                }),
            ),
            Column::maybe_integers(
                "GPU",
                PLAIN,
                (0..rows).map(|at| match part(at)? {
                    Who::Node { .. } => None,
                    Who::Rank { gpu, .. } => *gpu,
                }),
            ),
            Column::maybe_integers("Late", NS, (0..rows).map(|at| Some(of(at)?.late_ns))),
            Column::maybe_integers("Round", NS, (0..rows).map(|at| Some(of(at)?.round_ns))),
            Column::maybe_decimals("Standard Errors", PLAIN, (0..rows).map(|at| Some(of(at)?.sure))),
            Column::maybe_integers("Residual", NS, (0..rows).map(|_| residual)),
            Column::maybe_texts("Cause", (0..rows).map(|at| Some(of(at)?.cause.name()))),
            Column::maybe_texts(
                "Evidence",
                (0..rows).map(|at| of(at).map(|culprit| culprit.evidence.as_str()).or(why)),
            ),
        ],
    )
}

fn ranks(evidence: &Evidence, judgement: &Judgement, nccl_ranks: &[Option<i64>]) -> ResultTable {
    let all = || evidence.ranks.iter();
    let of = |value: fn(&RankResult) -> Option<i64>| judgement.ranks.iter().map(value).collect::<Vec<_>>();
    let whole = |value: u64| i64::try_from(value).ok();
    let column = |name: &str, quantity, value| Column::maybe_integers(name, quantity, of(value));
    result_table(
        "Ranks",
        vec![
            Column::integers("Rank", PLAIN, all().map(|rank| rank.rank)),
            Column::maybe_integers("NCCL Rank", PLAIN, nccl_ranks.iter().copied()),
            Column::texts("Node", all().map(|rank| rank.node)),
            Column::maybe_integers("GPU", PLAIN, all().map(|rank| rank.gpu)),
            column("Late", NS, |rank| Some(rank.rounds?.late_ns)),
            column("Late Mean", NS, |rank| Some(rank.rounds?.mean_late_ns)),
            column("Late StdDev", NS, |rank| Some(rank.rounds?.deviation_ns)),
            Column::maybe_decimals(
                "Standard Errors",
                PLAIN,
                judgement.ranks.iter().map(|rank| Some(rank.rounds?.sure)),
            ),
            column("Rounds", PLAIN, |rank| i64::try_from(rank.rounds?.rounds).ok()),
            column("Later in", PLAIN, |rank| i64::try_from(rank.rounds?.later).ok()),
            column("Round", NS, |rank| Some(rank.rounds?.length_ns)),
            column("Own in Round", NS, |rank| Some(rank.rounds?.own_ns)),
            Column::maybe_integers(
                "Collectives",
                PLAIN,
                judgement.ranks.iter().map(|rank| whole(rank.arrived?.instances)),
            ),
            Column::maybe_integers(
                "Last in",
                PLAIN,
                judgement.ranks.iter().map(|rank| whole(rank.arrived?.last_in)),
            ),
            column("Arrival after First", NS, |rank| Some(rank.arrived?.after_first_ns)),
            column("Arrival after Others", NS, |rank| Some(rank.arrived?.late_ns)),
            column("Wait", NS, |rank| Some(rank.arrived?.wait_ns)),
            column("Wait Total", NS, |rank| Some(rank.arrived?.wait_total_ns)),
            Column::maybe_integers("Launched before", NS, all().map(|rank| rank.lead_ns)),
            Column::maybe_decimals(
                "Kernel Time of Others'",
                Quantity::Percent,
                judgement.ranks.iter().map(|rank| Some(100.0 * rank.compute_ratio?)),
            ),
        ],
    )
}

fn nodes(judgement: &Judgement) -> ResultTable {
    let all = || judgement.nodes.iter();
    result_table(
        "Nodes",
        vec![
            Column::texts("Node", all().map(|node| node.name.as_str())),
            Column::integers("Ranks", PLAIN, all().map(|node| node.ranks as i64)),
            Column::maybe_integers("Late", NS, all().map(|node| node.late_ns)),
            Column::maybe_integers("Wait", NS, all().map(|node| node.wait_ns)),
            Column::integers("Last in", PLAIN, all().map(|node| node.last_in as i64)),
            Column::maybe_decimals(
                "Kernel Time of Others'",
                Quantity::Percent,
                all().map(|node| Some(100.0 * node.compute_ratio?)),
            ),
        ],
    )
}

fn clocks(judgement: &Judgement) -> ResultTable {
    let all = || judgement.clocks.iter();
    result_table(
        "Clocks",
        vec![
            Column::texts("Clock", all().map(|clock| clock.name.as_str())),
            Column::texts("Against", all().map(|clock| clock.against.as_str())),
            Column::integers("Ranks", PLAIN, all().map(|clock| clock.ranks as i64)),
            Column::maybe_integers("Ahead", NS, all().map(|clock| clock.ahead_ns)),
            // With three decimals, where a column of decimals shows one.
            Column::maybe_texts(
                "Rate (ppm)",
                all().map(|clock| {
                    clock.rate_ppm.map(|rate| format!("{:.3}", (1e3 * rate).round() / 1e3 + 0.0))
                }),
            ),
            Column::maybe_integers(
                "Residual",
                NS,
                all().map(|clock| clock.residual_ns.and_then(|ns| i64::try_from(ns).ok())),
            ),
            Column::integers("Ends", PLAIN, all().map(|clock| clock.ends as i64)),
        ],
    )
}

fn instances(evidence: &Evidence, judgement: &Judgement) -> ResultTable {
    let all = || judgement.instances.iter();
    result_table(
        "Collectives",
        vec![
            Column::texts(
                "Communicator",
                all().map(|one| communicator_name(one.communicator, evidence.by_order)),
            ),
            Column::texts("Operation", all().map(|one| one.kind.name())),
            Column::integers("Ranks", PLAIN, all().map(|one| one.ranks as i64)),
            Column::integers("Instances", PLAIN, all().map(|one| one.instances as i64)),
            Column::integers("First to Last Arrival", NS, all().map(|one| one.spread_ns)),
            Column::integers("Last Arrival to End", NS, all().map(|one| one.transfer_ns)),
        ],
    )
}

fn notes(
    reports: &[ReportExtract<&KernelExtract>],
    evidence: &Evidence,
    judgement: &Judgement,
) -> Vec<String> {
    let mut notes = Vec::new();
    if evidence.by_order {
        notes.push(
            "communicators are not recorded: the n-th collective of a stream counts as the same on all ranks, if all \
             have equally many"
                .to_owned(),
        );
    }
    notes.extend(judgement.flaws.iter().map(|flaw| describe_flaw(flaw, evidence)));
    if !judgement.apart.is_empty() {
        let groups: Vec<String> = judgement.apart.iter().map(|group| group.join(", ")).collect();
        notes.push(format!(
            "no collective connects these clocks, so ranks are compared only within each group: {}",
            groups.join(" | ")
        ));
    }
    let without: Vec<&str> = reports
        .iter()
        .filter(|report| report.host.is_none() || report.utc_epoch_ns.is_none())
        .map(|report| report.file.as_str())
        .collect();
    if !without.is_empty() {
        notes.push(format!(
            "reports without host or time of their zero get a clock of their own: {}",
            without.join(", ")
        ));
    }
    let alone = evidence.ranks.iter().zip(&judgement.ranks).filter(|(_, result)| result.rounds.is_none());
    let alone = alone.map(|(rank, _)| match rank.gpu {
        Some(gpu) => format!("{} (GPU {gpu})", rank.rank),
        None => rank.rank.to_string(),
    });
    let alone: Vec<String> = alone.collect();
    if !alone.is_empty() {
        notes.push(format!("ranks without a peer to compare with: {}", alone.join(", ")));
    }
    notes
}
