//! A culprit as one line: who, what was measured, its code, and the next command. The whole evidence is in JSON.

use base::nodeset;
use base::text::{shorten, show};
use model::artefact::{Culprit, Plan, WorkloadFacts};
use verdict::isolate::code::Code;

/// A line that a person reads at a glance, in letters.
pub(crate) const MOST_LETTERS: usize = 120;
/// Letters for what was measured, below which a sentence that is cut says nothing.
const LITTLE_ROOM: usize = 40;
/// Suspects that are named one by one.
const MOST_SUSPECTS: usize = 4;
/// An isolation compares nodes with each other; with fewer there is nothing to compare.
const FEWEST_NODES: usize = 4;

/// The line about a culprit of a run, in at most so many letters; `run` is what its next command calls the run, such as
/// `latest`.
pub(crate) fn culprit_line(culprit: &Culprit, plan: &Plan, run: &str, most: usize) -> String {
    let next = next_command(culprit, plan, run).map(|next| format!("; next: {next}")).unwrap_or_default();
    // A command that explains the code has it in it.
    let code = Code::for_culprit(culprit).filter(|code| !next.ends_with(code.name));
    let code = code.map(|code| format!(" ({})", code.name)).unwrap_or_default();
    let head = format!("{}: ", show(&subject(culprit)));
    let tail = format!("{code}{next}");
    let room = most.saturating_sub(head.chars().count() + tail.chars().count());
    format!("{head}{}{tail}", fit(&show(&own_evidence(culprit)), is_measured(culprit), room))
}

/// A measurement begins with its number and limit: what stands behind them goes first. The words of a tool end with the reason.
fn fit(evidence: &str, is_measured: bool, room: usize) -> String {
    let is_long = |text: &str| text.chars().count() > room;
    let mut text = evidence;
    let late = lateness(text).filter(|_| is_long(text)).unwrap_or_default();
    if let Some(short) = late.into_iter().find(|form| !is_long(form)) {
        return short;
    }
    if is_measured && is_long(text) {
        text = text.split("; ").next().unwrap_or_default();
    }
    if is_measured && is_long(text) && text.ends_with(')') {
        text = text.rfind(" (").map_or(text, |at| &text[..at]);
    }
    let shorter = if is_long(text) { shorter_forms(text, is_measured) } else { Vec::new() };
    let last = shorter.len().saturating_sub(1);
    let fits = shorter.iter().position(|form| !is_long(form)).unwrap_or(last);
    let mut text = shorter.get(fits).map_or(text, String::as_str);
    // In little room the number alone stands, and not the ends of its sentence.
    while is_measured && is_long(text) && room < LITTLE_ROOM {
        let clause = [", ", " with ", " and "].iter().filter_map(|mark| text.rfind(mark)).max();
        match clause {
            Some(at) => text = &text[..at],
            None => break,
        }
    }
    shorten(text, room)
}

/// Evidence of an isolation where its line would be long: what was found, without the statistics behind it.
pub(crate) fn brief(evidence: &str, room: usize) -> String {
    if evidence.chars().count() <= room {
        return evidence.to_owned();
    }
    let late = lateness(evidence).unwrap_or_default();
    let first = evidence.split("; ").next().unwrap_or_default().to_owned();
    late.into_iter().find(|form| form.chars().count() <= room).unwrap_or(first)
}

/// How late a rank or node is, of how long an iteration, and whether on its GPU or its host, the longest first.
fn lateness(text: &str) -> Option<Vec<String>> {
    let (late, rest) = text.split_once(" late in each iteration of ")?;
    let (iteration, rest) = rest.split_once(',')?;
    let short = format!("{late} of {iteration} late");
    let cause = rest.split_once("; cause: ").and_then(|(_, cause)| cause.split(';').next());
    let mut forms = match cause.unwrap_or_default() {
        gpu if gpu.ends_with("run longer") => vec![format!("{short}, kernels run longer")],
        host if host.ends_with("start late") => {
            ["kernels start late: host", "kernels start late"].map(|cause| format!("{short}, {cause}")).into()
        }
        _ => Vec::new(),
    };
    forms.push(short);
    Some(forms)
}

/// What says the same in less, the longest first.
fn shorter_forms(text: &str, is_measured: bool) -> Vec<String> {
    if is_measured {
        return with_counted_partners(text).into_iter().collect();
    }
    // Which collective a rank is missing from comes before how it is called and how many wait.
    if let Some((missing, _)) =
        text.split_once(" of communicator ").filter(|_| text.contains(" did not enter "))
    {
        return vec![missing.to_owned()];
    }
    let Some((cause, of)) = text.split_once(": job ") else { return Vec::new() };
    let Some((case, why)) = of.split_once(" of ").and_then(|(_, of)| of.split_once(": ")) else {
        return Vec::new();
    };
    let why = why.strip_prefix("the job ").unwrap_or(why);
    let why = why.strip_prefix("made ").unwrap_or(why);
    let (short, _) = why.split_once(", last output: ").unwrap_or((why, ""));
    let of_case = |why: &str| format!("{cause} in {case}: {why}");
    vec![of_case(why), of_case(short), format!("{cause}: {why}"), format!("{cause}: {short}")]
}

/// `4.8 GB/s (2 partners), 31 others at 12.0` of what names each of the partners.
fn with_counted_partners(text: &str) -> Option<String> {
    let (value, rest) = text.split_once(" with ")?;
    let (partners, others) = rest.split_once(", the other ")?;
    let (count, at) = others.split_once(" at ").filter(|(count, _)| count.parse::<u32>().is_ok())?;
    let partners = partners.split(" and with ").filter(|partner| !partner.contains(' ')).count();
    (partners > 1).then(|| format!("{value} ({partners} partners), {count} others at {at}"))
}

/// Whether the evidence is a number of a part or of a metric, and not what a tool wrote.
fn is_measured(culprit: &Culprit) -> bool {
    let is_part = matches!(culprit, Culprit::Culprit { part, .. } if part != "node");
    is_part || metric_of(evidence(culprit)).is_some()
}

/// The metric that an evidence begins with.
fn metric_of(evidence: &str) -> Option<&str> {
    let first = evidence.split([':', ' ']).next()?;
    recipes::recipe::built_in(first).map(|_| first)
}

/// The evidence without the part that the line begins with, and without the name of a metric where it is said in words.
fn own_evidence(culprit: &Culprit) -> String {
    let whole = match culprit {
        // Its code says that the others wait.
        Culprit::Culprit { node, part, evidence, .. } => evidence
            .replacen(&format!(" on {node} {part}"), "", 1)
            .replacen(" keeps the others waiting: ", ": ", 1),
        other => evidence(other).to_owned(),
    };
    let rest = metric_of(&whole).map(|metric| whole[metric.len()..].trim_start_matches([':', ' ']));
    match rest {
        Some(rest) if !rest.starts_with(|c: char| c.is_ascii_digit() || c == '-') => rest.to_owned(),
        _ => whole,
    }
}

/// `culprit NODE PART`, `suspects NODE NODE` or `no culprit`.
pub(crate) fn subject(culprit: &Culprit) -> String {
    match culprit {
        Culprit::Culprit { node, part, .. } => format!("culprit {node} {part}"),
        Culprit::Suspects { nodes, .. } if nodes.len() > MOST_SUSPECTS => {
            format!("suspects {}", nodeset::fold(nodes))
        }
        Culprit::Suspects { nodes, .. } => format!("suspects {}", nodes.join(" ")),
        Culprit::Fleet { .. } => "no culprit".to_owned(),
    }
}

/// What was measured or reported.
pub(crate) fn evidence(culprit: &Culprit) -> &str {
    match culprit {
        Culprit::Culprit { evidence, .. }
        | Culprit::Suspects { evidence, .. }
        | Culprit::Fleet { evidence } => evidence,
    }
}

/// The command that leads on from this evidence: further runs where they can show more, otherwise what the code means.
pub(crate) fn next_command(culprit: &Culprit, plan: &Plan, run: &str) -> Option<String> {
    let isolate = || can_isolate(plan).then(|| format!("harness isolate --run {}", show(run)));
    let explain = || Code::for_culprit(culprit).map(|code| format!("harness explain {}", code.name));
    let more_runs_help = match culprit {
        Culprit::Culprit { .. } => {
            Code::for_culprit(culprit).is_some_and(|code| code.asks_for_isolation(evidence(culprit), plan))
        }
        Culprit::Suspects { .. } => true,
        Culprit::Fleet { .. } => false,
    };
    if more_runs_help { isolate().or_else(explain) } else { explain() }
}

/// Whether an isolation has anything to run: a case of collectives or flows, and nodes to compare.
fn can_isolate(plan: &Plan) -> bool {
    let is_of_fabric = |case: &model::artefact::PlannedCase| {
        matches!(case.workload, WorkloadFacts::NcclTests { .. } | WorkloadFacts::NicPairs { .. })
    };
    plan.nodes.len() >= FEWEST_NODES && plan.suites.len() == 1 && plan.cases.iter().any(is_of_fabric)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixture;

    fn named(node: &str, part: &str, evidence: &str, code: Option<&str>) -> Culprit {
        Culprit::Culprit {
            node: node.into(),
            part: part.into(),
            evidence: evidence.into(),
            code: code.map(str::to_owned),
        }
    }

    #[test]
    fn a_long_evidence_of_an_isolation_is_its_finding_without_statistics() {
        let late = "rank 11 keeps the others waiting: 5.0 ms late in each iteration of 5.4 ms, more than 1000 standard errors; \
                    cause: its kernels run as long as others', but start late; late in 29 of 29 rounds";
        let short = "rank 11 keeps the others waiting: 5.0 ms of 5.4 ms late, kernels start late: host";
        assert_eq!(brief(late, 90), short);
        assert_eq!(brief(late, 500), late, "what fits is not cut");
        assert_eq!(brief("50 % of its peers; in 3 of 4 runs", 20), "50 % of its peers");
    }

    #[test]
    fn each_culprit_is_one_short_line_with_its_code_and_the_next_command() {
        let straggler = "rank 11 keeps the others waiting: 5.0 ms late in each iteration of 5.4 ms, more than 1000 standard \
                         errors; cause: its kernels run as long as others', but start late; late in 29 of 29 rounds";
        let slow = "the node keeps the others waiting: 5.0 ms late in each iteration of 42.5 ms, 434 standard errors; \
                    cause: its kernels run longer; late in 29 of 29 rounds";
        let hang =
            "hang: job p5-002 of `gpu-each`: the job made no progress for 180 s, last output: `line 2`";
        let missing = "hang: rank 12 (p5-002 GPU 4) did not enter all_gather #204 of communicator fsdp_shard; 31 ranks wait";
        let nodes: Vec<String> = (1..=32).map(|n| format!("p5-{n:03}")).collect();
        let all = [
            named(
                "p5-002",
                "rdmap113s0",
                "4.8 GB/s with p5-001 and with p5-003, the other 31 at 12.0",
                Some("HRN-NIC-SLOW"),
            ),
            named("p5-002", "gpu3", straggler, Some("HRN-RANK-LATE")),
            named("ip-10-123-200-117", "gpu3", straggler, Some("HRN-RANK-LATE")),
            named("p5-002", "node", slow, Some("HRN-RANK-LATE")),
            named("p5-002", "node", hang, Some("HRN-NODE-BROKEN")),
            named("p5-002", "node", missing, Some("HRN-NODE-BROKEN")),
            named(
                "p5-003",
                "node",
                "nccl.busbw: NVLink 222.4 GB/s, limit 415.2 GB/s (all_reduce 1GiB, this node alone)",
                None,
            ),
            named(
                "p5-003",
                "gpu2",
                "nccl.algbw all_reduce 4GiB on p5-003 gpu2: 652.7 GB/s, expected 1221 GB/s to 1377 GB/s (baseline sim-p5)",
                Some("HRN-GPU-SLOW"),
            ),
            named("p5-003", "node", "nccl.busbw: out of bounds in job p5-003 of `node-all_reduce`", None),
            named(
                "p5-003",
                "node",
                "host-unreachable: ssh: connect to host p5-003.cluster.internal port 22: Connection refused",
                None,
            ),
            named("p5-003", "node", "disk-full: job p5-003 of `gpu-each`: No space left on device", None),
            named("p5-002", "gpu3", "nccl.wrong on p5-002 gpu3: 1\x1b[2J", Some("HRN-GPU-WRONG")),
            Culprit::Suspects { nodes: nodes[..2].to_vec(), evidence: "hang".into() },
            Culprit::Suspects { nodes, evidence: "hang".into() },
            Culprit::Fleet { evidence: "all NICs of all nodes are at 6.0 GB/s, below 11 GB/s".into() },
        ];
        let lines = all.map(|culprit| culprit_line(&culprit, &fixture::plan(), "latest", MOST_LETTERS));
        assert!(lines.iter().all(|line| line.chars().count() <= MOST_LETTERS), "{lines:#?}");
        insta::assert_snapshot!(lines.join("\n"));
    }

    #[test]
    fn a_node_that_is_low_in_a_metric_of_a_users_recipe_is_isolated() {
        let evidence = "mine.part: out of bounds in job p5-003 of `node-all_reduce`";
        let culprit = named("p5-003", "node", evidence, None);
        let mut plan = fixture::plan();
        let next = |plan: &Plan| next_command(&culprit, plan, "latest");
        assert_eq!(
            next(&plan).as_deref(),
            Some("harness explain HRN-NODE-UNCLEAR"),
            "a cause by which a job failed"
        );
        plan.cases[0].assertions[0].metric = "mine.part".to_owned();
        assert_eq!(next(&plan).as_deref(), Some("harness isolate --run latest"));
    }

    #[test]
    fn a_whole_line_has_all_of_the_evidence() {
        let evidence = format!("hang: {}; the end", "word ".repeat(60));
        let line =
            culprit_line(&named("p5-003", "node", &evidence, None), &fixture::plan(), "latest", usize::MAX);
        assert!(line.contains(&evidence), "{line}");
    }

    #[test]
    fn a_name_is_never_cut() {
        let long = "n".repeat(200);
        let line = culprit_line(
            &named(&long, "node", "hang: it stands", Some("HRN-NODE-BROKEN")),
            &fixture::plan(),
            "latest",
            MOST_LETTERS,
        );
        assert!(
            line.starts_with(&format!("culprit {long} node: ")) && line.contains("HRN-NODE-BROKEN"),
            "{line}"
        );
    }
}
