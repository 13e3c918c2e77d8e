//! What PyTorch says when a call of NCCL does not end: the rank that noticed, the call it waited for, and how far that
//! rank had come.

use serde::Serialize;

/// A rank whose call did not end in time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TimedOut {
    /// One-based, in its file.
    pub line: u64,
    /// The rank that noticed; another one never joined the call.
    pub rank: u64,
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
    /// The rank that gave up.
    pub rank: u64,
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
        rank: rank(before)?,
        sequence,
        operation: field("OpType")?.to_owned(),
        after_ms,
        at: moment(before),
    })
}

/// `[PG 0 Rank 3] Timeout at NCCL work: 7, last enqueued NCCL work: 9, last completed NCCL work: 6.`
pub(super) fn reached(text: &str, line: u64) -> Option<Reached> {
    let (before, rest) = text.split_once("last enqueued NCCL work: ")?;
    let (enqueued, rest) = rest.split_once(", last completed NCCL work: ")?;
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (enqueued, completed) = (enqueued.parse().ok()?, rest.get(..digits)?.parse().ok()?);
    Some(Reached { line, rank: rank(before)?, enqueued, completed })
}

/// The nearest rank before the words: launchers label lines with others.
fn rank(before: &str) -> Option<u64> {
    let (_, rest) = before.rsplit_once("Rank ").or_else(|| before.rsplit_once("rank "))?;
    rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// `[E1121 12:34:56.123456789 ProcessGroupNCCL.cpp:607]`: month and day, and the time of the day.
fn moment(before: &str) -> Option<u64> {
    let (_, rest) =
        before.rsplit_once("[E").or_else(|| before.rsplit_once("[W")).or_else(|| before.rsplit_once("[I"))?;
    let mut words = rest.split(' ');
    let (day, time) = (words.next()?, words.next()?);
    let (clock, part) = time.split_once('.')?;
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if day.len() != 4 || !digits(day) || clock.len() != 8 {
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
            (9, 3, Some(7), "ALLREDUCE")
        );
        assert_eq!((read.after_ms, read.at), (Some(600_012), Some(1_121_123_456_123_456)));
        assert_eq!(parse("Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7)", 1), None);
        assert_eq!(parse(&text.replace("SeqNum=7", "SeqNum=x"), 1), None);
    }

    #[test]
    fn older_versions_log_no_number_of_the_call() {
        let text = "[Rank 1] Watchdog caught collective operation timeout: WorkNCCL(OpType=BROADCAST, Timeout(ms)=1800000) ran for \
                    1802710 milliseconds before timing out.";
        let read = parse(text, 1).expect("a time-out");
        assert_eq!(
            (read.rank, read.sequence, read.operation.as_str(), read.at),
            (1, None, "BROADCAST", None)
        );
    }

    #[test]
    fn how_far_a_rank_had_come_is_read() {
        let text = "[PG 0 (default_pg) Rank 5] Timeout at NCCL work: 7, last enqueued NCCL work: 9, last completed NCCL work: 6.";
        let expected = Reached { line: 4, rank: 5, enqueued: 9, completed: 6 };
        assert_eq!(reached(text, 4), Some(expected));
        assert_eq!(reached("last enqueued NCCL work: 9, last completed NCCL work: 6", 1), None, "of no rank");
        assert_eq!(reached(&text.replace("work: 9", "work: "), 4), None);
    }
}
