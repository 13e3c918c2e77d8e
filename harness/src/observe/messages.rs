//! Findings as lines for a person, and what could not be judged.

use super::follow::{Looked, Oddities};
use base::size;
use base::text::{count, shorten, show};
use observe::{Coverage, Event, Finding, FindingKind};

const LONGEST: usize = 120;
/// Hosts that a line names.
const MOST_NAMED: usize = 4;

/// One line of at most 120 characters.
pub(super) fn line(event: &Event) -> String {
    let line = match event {
        Event::Found(finding) => found(finding),
        Event::Over { number, kind, hosts, .. } => {
            let who = if hosts.is_empty() { "all".to_owned() } else { named(hosts, hosts.len()) };
            format!("{who}: {} is over (finding {number})", kind.name())
        }
    };
    shorten(&show(&line), LONGEST)
}

fn found(finding: &Finding) -> String {
    let who = who(finding);
    let percent = finding.lower_by * 100.0;
    let communicators = count(finding.communicators_in_all, "communicator");
    let what = || format!("{} {}", finding.operation, size::show(finding.bytes));
    let rate = finding.busbw.map(|rate| format!(" {rate:.0} GB/s,")).unwrap_or_default();
    let (higher, all) = finding.peers;
    match finding.kind {
        FindingKind::Straggler => {
            format!(
                "{who}: comes last, waits {percent:.0} % less than its peers in {communicators} of up to {} ranks",
                all + 1
            )
        }
        FindingKind::Sinking => format!(
            "{who}: {}{rate} {percent:.0} % below its own past and below {higher} of {all} peers",
            what()
        ),
        FindingKind::AllSlower => format!(
            "{communicators}: {}{rate} {percent:.0} % below the past: the job or the fabric, no node is blamed",
            what()
        ),
    }
}

fn who(finding: &Finding) -> String {
    let all = finding.processes_in_all;
    match (finding.hosts.as_slice(), finding.processes.as_slice()) {
        ([], _) => count(finding.communicators_in_all, "communicator") + ", no process in common",
        ([host], [process]) => format!("{host} rank {} (pid {})", process.rank, process.pid),
        ([host], _) if finding.is_whole_host => format!("{host}, {all} processes"),
        ([host], _) => format!("{host}, one of {all} processes"),
        (hosts, _) => format!("one of {all} processes ({})", named(hosts, all)),
    }
}

fn named(hosts: &[String], all: usize) -> String {
    let some: Vec<&str> = hosts.iter().take(MOST_NAMED).map(String::as_str).collect();
    let more = if all > MOST_NAMED { " ..." } else { "" };
    format!("{}{more}", some.join(" "))
}

/// Why the records do not suffice for a pass; empty where they do.
pub(super) fn gaps(looked: &Looked, coverage: &Coverage) -> Vec<String> {
    let mut gaps = Vec::new();
    if let Some(why) = &looked.folder {
        return vec![format!("the folder cannot be read: {}", show(why))];
    }
    let mut gap = |is: bool, message: String| {
        if is {
            gaps.push(message);
        }
    };
    if let Some((n, first)) = &looked.unreadable {
        gap(true, format!("{} unreadable: {}", count(*n, "file"), show(first)));
    }
    let left_out = looked.left_out;
    gap(left_out > 0, format!("{} left out: more than can be followed", count(left_out, "file")));
    gap(
        looked.files == 0,
        "no file `*.log` or `*.jsonl`: Inspector writes none without NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS"
            .to_owned(),
    );
    let Coverage { records, untimed, no_room, unjudged, judged, communicators, .. } = *coverage;
    gap(
        looked.files > 0 && records == 0,
        "no record of NCCL's Inspector in the files; do jobs set NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS?"
            .to_owned(),
    );
    gap(
        untimed > 0 && untimed * 2 > records,
        format!("{untimed} of {} without a time of the GPU", count(records, "record")),
    );
    gap(no_room > 0, format!("{} left out: no room for their communicators", count(no_room, "record")));
    gap(
        unjudged > 0,
        format!(
            "{unjudged} of {} not judged: calls miss records of some ranks, or clocks are far apart",
            count(communicators, "communicator")
        ),
    );
    gap(
        records > 0 && judged == 0 && unjudged == 0,
        "too few calls of which all ranks have a record: 40 windows of 10 s are needed".to_owned(),
    );
    let late = count(looked.too_late, "call");
    gap(
        looked.too_late > 0,
        format!("{late} came after their time was judged: late files, or clocks far apart"),
    );
    gaps
}

/// What is no gap, and may explain one.
pub(super) fn notes(looked: &Looked, odd: &Oddities, coverage: &Coverage) -> Vec<String> {
    let Coverage { sends, rooted, contradictory, too_late, incomplete_calls, .. } = *coverage;
    let all = [
        (odd.damaged, count(odd.damaged, "line") + " damaged, left out"),
        (odd.restarted, count(odd.restarted, "file") + " shorter or replaced, read from the start"),
        (looked.no_files, count(looked.no_files, "name") + " of a link or a pipe, not opened"),
        (sends, format!("{sends} sends or receives not judged: their times may hold waiting")),
        (rooted, format!("{rooted} calls with a root not judged: it has less to do than others")),
        (looked.ahead, count(looked.ahead, "file") + " by a clock that is ahead, set right by their calls"),
        (contradictory, count(contradictory, "record") + " left out: a copy, or another one contradicts it"),
        (too_late, count(too_late, "call") + " written after its time was judged"),
        (incomplete_calls, count(incomplete_calls, "call") + " without a record of each rank"),
    ];
    all.into_iter().filter(|(n, _)| *n > 0).map(|(_, note)| note).collect()
}

/// What was looked at.
pub(super) fn covered(looked: &Looked, coverage: &Coverage) -> String {
    let Coverage { records, judged, communicators, hosts, processes, .. } = coverage;
    let who = format!("{processes} processes on {}", count(*hosts, "host"));
    format!(
        "judged {judged} of {}: {} of {who}, {}",
        count(*communicators, "communicator"),
        count(*records, "record"),
        count(looked.files, "file"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn event(kind: &str, hosts: &[&str], processes: usize, more: &Value) -> Event {
        let mut fields = json!({
            "event": "found", "number": 1, "kind": kind, "processes_in_all": processes, "hosts": hosts,
            "processes": (0..processes)
                .map(|rank| json!({"host": hosts.get(rank).or(hosts.first()), "pid": 7, "rank": rank}))
                .collect::<Vec<_>>(),
            "is_whole_host": false, "communicators": ["0x1"], "communicators_in_all": 2,
            "operation": "AllReduce", "bytes": 1 << 27, "lower_by": 0.123, "busbw": 310.4, "peers": [62, 63],
            "at_s": 0, "shows": [],
        });
        for (key, value) in more.as_object().into_iter().flatten() {
            fields[key] = value.clone();
        }
        serde_json::from_value(fields).expect("an event")
    }

    #[test]
    fn findings_are_lines_of_at_most_120_characters() {
        let many: Vec<String> = (0..64).map(|n| format!("a-host-with-a-long-name-{n}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let over = json!({"event": "over", "number": 3, "kind": "sinking", "hosts": ["p5-007"], "at_s": 0});
        let events = [
            event("straggler", &["p5-002"], 1, &json!({})),
            event("straggler", &["p5-002"], 8, &json!({"is_whole_host": true})),
            event("sinking", &["p5-007"], 1, &json!({})),
            event("sinking", &["p5-007"], 2, &json!({"busbw": null})),
            event("sinking", &["p5-007", "p5-008"], 2, &json!({})),
            event("sinking", &many, 64, &json!({})),
            event("sinking", &[], 0, &json!({})),
            event("all-slower", &[], 0, &json!({"communicators_in_all": 64})),
            event("straggler", &["bad\u{1b}[2J\nhost"], 1, &json!({})),
            serde_json::from_value(over).expect("an event"),
        ];
        let lines: Vec<String> = events.iter().map(line).collect();
        assert!(lines.iter().all(|line| line.chars().count() <= LONGEST));
        insta::assert_snapshot!(lines.join("\n"));
    }

    #[test]
    fn what_is_missing_is_reported_by_cause() {
        let looked = Looked {
            files: 2,
            unreadable: Some((2, "x.log: denied".to_owned())),
            no_files: 1,
            left_out: 3,
            folder: None,
            ahead: 2,
            too_late: 3,
        };
        let odd = Oddities { damaged: 1, restarted: 2 };
        let coverage = Coverage {
            records: 10,
            sends: 4,
            rooted: 7,
            untimed: 6,
            contradictory: 1,
            no_room: 2,
            too_late: 3,
            incomplete_calls: 5,
            communicators: 8,
            unjudged: 2,
            ..Coverage::default()
        };
        let none = Looked::default();
        let few = Coverage { records: 3, ..Coverage::default() };
        let lines = [
            gaps(&looked, &coverage),
            notes(&looked, &odd, &coverage),
            vec![covered(&looked, &coverage)],
            gaps(&none, &Coverage::default()),
            gaps(&Looked { folder: Some("x: denied".to_owned()), ..none.clone() }, &Coverage::default()),
            gaps(&Looked { files: 1, ..none.clone() }, &Coverage::default()),
            gaps(&Looked { files: 1, ..none }, &few),
        ];
        insta::assert_snapshot!(lines.concat().join("\n"));
    }
}
