//! What PyTorch says when a call of NCCL does not end: the rank that noticed, the call it waited for, and how far that
//! rank had come.

use serde::Serialize;

/// Of a longer name of a process group the rest is left out.
const LONGEST_GROUP: usize = 64;

/// A rank whose call did not end in time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TimedOut {
    /// One-based, in its file.
    pub line: u64,
    /// The rank that noticed, among all of the job; another one never joined the call. None where only its number in a smaller
    /// group is known.
    pub rank: Option<u64>,
    /// The number of the call in its process group, which older versions do not log.
    pub sequence: Option<u64>,
    /// The operation as PyTorch calls it.
    pub operation: String,
    /// How long the call ran, in milliseconds; None where the line does not say.
    pub after_ms: Option<u64>,
    /// When the line was written, by its writer's clock, in digits.
    #[serde(skip)]
    pub at: Option<u64>,
}

/// `last enqueued NCCL work: 9, last completed NCCL work: 6`: how far a rank had come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reached {
    /// One-based, in its file.
    pub line: u64,
    /// The rank that gave up, among all of the job.
    pub rank: Option<u64>,
    /// The process group, which counts its own calls.
    #[serde(skip)]
    pub group: Option<String>,
    /// Number of the last call that it had begun.
    pub enqueued: u64,
    /// Number of the last call that had ended.
    pub completed: u64,
}

/// `[Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE, …) ran for 600012 milliseconds`.
pub fn parse(text: &str, line: u64) -> Option<TimedOut> {
    let (before, rest) = text.split_once("Watchdog caught collective operation timeout: WorkNCCL(")?;
    let (inside, behind) = rest.split_once(')')?;
    let field = |name: &str| inside.split(", ").find_map(|field| field.strip_prefix(name)?.strip_prefix('='));
    let after_ms = rest.split_once(" ran for ").or_else(|| behind.split_once(" ran for "));
    let after_ms = after_ms.and_then(|(_, text)| text.split(' ').next()?.parse().ok());
    let sequence = match field("SeqNum") {
        Some(number) => Some(number.parse().ok()?),
        None => None,
    };
    Some(TimedOut {
        line,
        rank: known_rank(before)?,
        sequence,
        operation: field("OpType")?.to_owned(),
        after_ms,
        at: moment(before),
    })
}

/// `[PG 0 Rank 3] Timeout at NCCL work: 7, last enqueued NCCL work: 9, last completed NCCL work: 6.`; ranks that were asked for
/// a dump begin with `Last`, and those of PyTorch 2.7 leave out `NCCL`.
pub fn reached(text: &str, line: u64) -> Option<Reached> {
    let (before, rest) =
        text.split_once("ast enqueued NCCL work: ").or_else(|| text.split_once("ast enqueued work: "))?;
    let (enqueued, rest) = digits(rest)?;
    // Since May 2026 PyTorch may put the last call that was started between them.
    let (between, rest) = rest.split_once(", last completed ")?;
    if !(between.is_empty() || between.starts_with(", last started ")) {
        return None;
    }
    let (completed, _) = digits(rest.strip_prefix("NCCL ").unwrap_or(rest).strip_prefix("work: ")?)?;
    let group = group(before).map(|group| group.chars().take(LONGEST_GROUP).collect());
    let rank = known_rank(before)?;
    Some(Reached { line, rank, group, enqueued, completed })
}

/// The rank among all of the job that wrote an error of its watchdog or of its dump.
pub fn complaining_rank(text: &str) -> Option<u64> {
    let (before, rest) = text.split_once("ProcessGroupNCCL.cpp:")?;
    let is_error = before.rsplit_once('[')?.1.starts_with(['E', 'F']);
    // Behind the place in the source stands the rank in its group.
    let (end, _) = rest.match_indices(']').nth(1)?;
    global_rank(&text[..text.len() - rest.len() + end]).filter(|_| is_error)
}

/// The rank among all of the job, in what stands before the words: the last `[rank3]`. A `[Rank 3]` is that of a process
/// group, which counts as the job does only if it is the one of all ranks.
pub(super) fn global_rank(before: &str) -> Option<u64> {
    let labels = before.rmatch_indices("[rank").map(|(at, word)| &before[at + word.len()..]);
    let labelled = labels.filter_map(digits).find(|(_, rest)| rest.starts_with(']'));
    labelled.map(|(rank, _)| rank).or_else(|| {
        let is_of_all = group(before).is_none_or(|group| group == "0" || group.contains("default_pg"));
        group_rank(before).filter(|_| is_of_all)
    })
}

/// The same where only the number in a smaller group is known: some rank, and not which. None where there is no rank.
fn known_rank(before: &str) -> Option<Option<u64>> {
    global_rank(before).map(Some).or_else(|| group_rank(before).map(|_| None))
}

fn group_rank(before: &str) -> Option<u64> {
    let (_, rest) = before.rsplit_once("Rank ").or_else(|| before.rsplit_once("rank "))?;
    digits(rest).map(|(rank, _)| rank)
}

/// `1(DP)` of `[PG ID 1 PG GUID 1(DP) Rank 0]`, `0 (default_pg)` of `[PG 0 (default_pg) Rank 5]`.
fn group(before: &str) -> Option<&str> {
    let (name, _) = before.rsplit_once("[PG ")?.1.split_once(" Rank ")?;
    Some(name.rsplit_once("GUID ").map_or(name, |(_, guid)| guid))
}

/// Digits at the front, and what follows them.
fn digits(text: &str) -> Option<(u64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    Some((text.get(..end)?.parse().ok()?, text.get(end..)?))
}

/// `[E1121 12:34:56.123456789 ProcessGroupNCCL.cpp:607]`: month and day, and the time of the day. Until October the month has
/// one digit: `[E321 ...` (<https://github.com/hiyouga/LlamaFactory/issues/7396>).
fn moment(before: &str) -> Option<u64> {
    let (_, rest) =
        before.rsplit_once("[E").or_else(|| before.rsplit_once("[W")).or_else(|| before.rsplit_once("[I"))?;
    let mut words = rest.split(' ');
    let (day, time) = (words.next()?, words.next()?);
    let (clock, part) = time.split_once('.')?;
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !(3..=4).contains(&day.len()) || !digits(day) || clock.len() != 8 {
        return None;
    }
    let micro = part.get(..6).filter(|part| digits(part))?;
    let clock: String = clock.split(':').filter(|part| part.len() == 2 && digits(part)).collect();
    if clock.len() != 6 {
        return None;
    }
    format!("{day}{clock}{micro}").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rank_that_noticed_and_the_call_are_read() {
        let text = "[rank3]:[E1121 12:34:56.123456789 ProcessGroupNCCL.cpp:607] [Rank 3] Watchdog caught collective operation timeout: \
                    WorkNCCL(SeqNum=7, OpType=ALLREDUCE, NumelIn=4, NumelOut=4, Timeout(ms)=600000) ran for 600012 \
                    milliseconds before timing out.";
        let read = parse(text, 9).expect("a time-out");
        assert_eq!(
            (read.line, read.rank, read.sequence, read.operation.as_str()),
            (9, Some(3), Some(7), "ALLREDUCE")
        );
        assert_eq!((read.after_ms, read.at), (Some(600_012), Some(1_121_123_456_123_456)));
        let of_march = parse(&text.replace("E1121", "E321"), 9).and_then(|read| read.at);
        assert_eq!(of_march, Some(321_123_456_123_456));
        assert_eq!(parse("Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7)", 1), None);
        assert_eq!(parse(&text.replace("SeqNum=7", "SeqNum=x"), 1), None);
    }

    #[test]
    fn a_rank_is_that_of_the_job_and_not_that_of_its_group() {
        let words = "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1, OpType=COALESCED, NumelIn=0, NumelOut=0, \
                     Timeout(ms)=600000) ran for 651421 milliseconds before timing out.";
        let stamp = "[E323 05:14:22.969036376 ProcessGroupNCCL.cpp:683]";
        for (front, rank) in [
            (format!("(Worker[rank=97] pid=3421713, ip=10.1.2.206) [rank97]:{stamp} [Rank 6] "), Some(97)),
            (format!("[rank97]:{stamp} [PG ID 1 PG GUID 1(DP) Rank 6] "), Some(97)),
            (format!("[default1]:[rank97]:{stamp} [Rank 6] "), Some(97)),
            (format!("{stamp} [PG ID 1 PG GUID 1(DP) Rank 6] "), None),
            (format!("{stamp} [PG ID 0 PG GUID 0(default_pg) Rank 6] "), Some(6)),
            (format!("{stamp} [PG 0 Rank 6] "), Some(6)),
            (format!("{stamp} [PG 3 Rank 6] "), None),
            ("[Rank 6] ".to_owned(), Some(6)),
        ] {
            let read = parse(&format!("{front}{words}"), 1).unwrap_or_else(|| panic!("{front}"));
            assert_eq!(read.rank, rank, "{front}");
        }
    }

    #[test]
    fn older_versions_log_no_number_of_the_call() {
        let text = "[Rank 1] Watchdog caught collective operation timeout: WorkNCCL(OpType=BROADCAST, Timeout(ms)=1800000) ran for \
                    1802710 milliseconds before timing out.";
        let read = parse(text, 1).expect("a time-out");
        assert_eq!(
            (read.rank, read.sequence, read.operation.as_str(), read.at),
            (Some(1), None, "BROADCAST", None)
        );
    }

    #[test]
    fn how_far_a_rank_had_come_is_read() {
        let text = "[PG 0 (default_pg) Rank 5] Timeout at NCCL work: 7, last enqueued NCCL work: 9, last completed NCCL work: 6.";
        let group = |name: &str| Some(name.to_owned());
        let expected =
            Reached { line: 4, rank: Some(5), group: group("0 (default_pg)"), enqueued: 9, completed: 6 };
        assert_eq!(reached(text, 4), Some(expected));
        let front = "[rank11]:[E626 06:24:45.103881913 ProcessGroupNCCL.cpp:1682] [PG ID 0 PG GUID 0(default_pg) Rank 11] ";
        for words in [
            "Received a dump signal due to a collective timeout from  rank 1 and we will try our best to dump the debug info. Last enqueued NCCL work: 811, last completed NCCL work: 807.This is most likely",
            "failure detected by watchdog at work sequence id: 808 PG status: last enqueued work: 811, last completed work: 807",
            "failure detected by watchdog at work sequence id: 808 PG status: last enqueued work: 811, last started work: 808 \
             (ALLREDUCE), last completed work: 807",
        ] {
            let text = format!("{front}{words}");
            let expected = Reached {
                line: 1,
                rank: Some(11),
                group: group("0(default_pg)"),
                enqueued: 811,
                completed: 807,
            };
            assert_eq!((reached(&text, 1), complaining_rank(&text)), (Some(expected), Some(11)), "{text}");
            assert_eq!(complaining_rank(&text.replace(":[E626", ":[W626")), None);
        }
        assert_eq!(reached("last enqueued NCCL work: 9, last completed NCCL work: 6", 1), None, "of no rank");
        assert_eq!(reached(&text.replace("work: 9", "work: "), 4), None);
        assert_eq!(reached(&text.replace("work: 9", "work: 9 [rank7]: torn"), 4), None);
    }
}
