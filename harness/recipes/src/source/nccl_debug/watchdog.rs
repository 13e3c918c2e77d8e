//! What PyTorch says when a call of NCCL does not end: the rank that noticed, and the call it waited for.

use serde::Serialize;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TimedOut {
    pub line: u64,
    pub rank: u64,
    /// The number of the call in its process group, and its operation as PyTorch calls it.
    pub sequence: u64,
    pub operation: String,
    pub after_ms: Option<u64>,
}

/// `[Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE, …) ran for 600012 milliseconds`.
pub fn parse(text: &str, line: u64) -> Option<TimedOut> {
    let (before, rest) = text.split_once("Watchdog caught collective operation timeout: WorkNCCL(")?;
    let (inside, behind) = rest.split_once(')')?;
    // The nearest rank before the words: launchers label lines with others.
    let rank = before.to_ascii_lowercase().rsplit_once("rank ").map(|(_, rest)| rest.to_owned())?;
    let rank = rank.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()?;
    let field = |name: &str| inside.split(", ").find_map(|field| field.strip_prefix(name)?.strip_prefix('='));
    let after_ms = rest.split_once(" ran for ").or_else(|| behind.split_once(" ran for "));
    let after_ms = after_ms.and_then(|(_, text)| text.split(' ').next()?.parse().ok());
    Some(TimedOut {
        line,
        rank,
        sequence: field("SeqNum")?.parse().ok()?,
        operation: field("OpType")?.to_owned(),
        after_ms,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rank_that_noticed_and_the_call_are_read() {
        let text = "[rank3]:[E1121 ProcessGroupNCCL.cpp:607] [Rank 3] Watchdog caught collective operation timeout: \
                    WorkNCCL(SeqNum=7, OpType=ALLREDUCE, NumelIn=4, NumelOut=4, Timeout(ms)=600000) ran for 600012 \
                    milliseconds before timing out.";
        let read = parse(text, 9).expect("a time-out");
        assert_eq!((read.line, read.rank, read.sequence, read.operation.as_str()), (9, 3, 7, "ALLREDUCE"));
        assert_eq!(read.after_ms, Some(600_012));
        assert_eq!(parse("Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7)", 1), None);
    }
}
