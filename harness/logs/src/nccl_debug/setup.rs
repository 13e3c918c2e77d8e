//! Lines of the life of communicators: they begin, are complete, take their time, and end. Which lines belong to one
//! communicator is `communicators`' business.

use super::tokens::{Words, pointer, seconds, signed, whole};

/// How far a communicator has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    InitStart,
    InitComplete,
    DestroyComplete,
    AbortComplete,
}

pub(super) const STAGES: [(Stage, &str); 4] = [
    (Stage::InitStart, "Init START"),
    (Stage::InitComplete, "Init COMPLETE"),
    (Stage::DestroyComplete, "Destroy COMPLETE"),
    (Stage::AbortComplete, "Abort COMPLETE"),
];

/// What a rank says of its communicator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Setup<'a> {
    pub stage: Stage,
    /// The call that began it.
    pub function: Option<&'a str>,
    pub comm: u64,
    pub rank: u64,
    pub nranks: u64,
    pub cuda_device: Option<u64>,
    pub nvml_device: Option<u64>,
    pub bus_id: Option<&'a str>,
    /// The same on all ranks.
    pub comm_id: Option<u64>,
    /// Of a communicator that was split off another.
    pub parent: Option<u64>,
    pub color: Option<i64>,
    pub key: Option<i64>,
}

pub(super) fn parse(text: &str) -> Option<Setup<'_>> {
    let (head, stage) = text.rsplit_once(" - ")?;
    let stage = STAGES.iter().find(|(_, words)| *words == stage)?.0;
    let (before, rest) = match head.strip_prefix("comm ") {
        Some(rest) => ("", rest),
        None => head.split_once(" comm ")?,
    };
    // The rank of a line that says what it begins with: the same stands behind.
    let before = match before.strip_prefix("[Rank ") {
        Some(ranked) => ranked.split_once(']')?.1.trim_start(),
        None => before,
    };
    if before.contains(' ') {
        return None;
    }
    let mut words = Words(rest);
    let comm = pointer(words.next()?)?;
    let rank = whole(words.labelled("rank")?)?;
    let nranks = whole(words.labelled("nranks")?)?;
    let mut setup = Setup {
        stage,
        function: (!before.is_empty()).then_some(before),
        comm,
        rank,
        nranks,
        cuda_device: None,
        nvml_device: None,
        bus_id: None,
        comm_id: None,
        parent: None,
        color: None,
        key: None,
    };
    while let Some(label) = words.next() {
        let word = words.next()?;
        match label {
            "cudaDev" => setup.cuda_device = Some(whole(word)?),
            "nvmlDev" => setup.nvml_device = Some(whole(word)?),
            "busId" => setup.bus_id = Some(word),
            "commId" => setup.comm_id = Some(pointer(word)?),
            "parent" => setup.parent = Some(pointer(word)?),
            "color" => setup.color = Some(signed(word)?),
            "key" => setup.key = Some(signed(word)?),
            // What newer versions add is theirs.
            _ => {}
        }
    }
    Some(setup)
}

/// How long a communicator took to begin, in seconds.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Timings<'a> {
    pub function: Option<&'a str>,
    pub rank: u64,
    pub nranks: u64,
    pub total: f64,
    pub parts: Vec<(&'a str, f64)>,
}

pub(super) fn timings<'a>(text: &'a str) -> Option<Timings<'a>> {
    let rest = text.strip_prefix("Init timings")?;
    let (function, rest) = match rest.strip_prefix(" - ") {
        Some(rest) => rest.split_once(": ").map(|(function, rest)| (Some(function), rest))?,
        None => (None, rest.strip_prefix(": ")?),
    };
    let (head, parts) = rest.strip_suffix(')')?.split_once(" (")?;
    let mut words = Words(head);
    let rank = whole(words.labelled("rank")?)?;
    let nranks = whole(words.labelled("nranks")?)?;
    let total = seconds(words.labelled("total")?)?;
    let part = |part: &'a str| part.trim().split_once(' ').and_then(|(name, s)| Some((name, seconds(s)?)));
    let parts = parts.split(',').map(part).collect::<Option<Vec<_>>>()?;
    Some(Timings { function, rank, nranks, total, parts })
}

/// Where a rank stands among nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Members {
    pub comm: u64,
    pub rank: u64,
    pub nranks: u64,
    pub nodes: u64,
    pub local_ranks: u64,
}

pub(super) fn members(text: &str) -> Option<Members> {
    let mut words = Words(text.strip_prefix("comm ")?);
    let comm = pointer(words.next()?)?;
    let rank = whole(words.labelled("rank")?)?;
    let nranks = whole(words.labelled("nRanks")?)?;
    let nodes = whole(words.labelled("nNodes")?)?;
    let local_ranks = whole(words.labelled("localRanks")?)?;
    Some(Members { comm, rank, nranks, nodes, local_ranks })
}
