//! Lines of how ranks are wired: rings, trees, and the connections between two ranks with what carries them. Whether
//! that is what the machine can do is `checks`' business.

use super::tokens::{Words, signed, whole};

/// The ranks before and behind a rank; `-1` is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Edge {
    pub before: Vec<i64>,
    pub me: i64,
    pub behind: Vec<i64>,
}

/// One tree of a channel; old versions log two halves of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tree {
    pub channel: u64,
    pub halves: Vec<Edge>,
}

/// What carries the traffic between two ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Connection<'a> {
    pub channel: u64,
    /// Of several between the same two.
    pub index: Option<u64>,
    pub from: u64,
    pub from_device: &'a str,
    pub to: u64,
    pub to_device: &'a str,
    pub direction: Option<Direction>,
    /// As it stands, such as `NET/AWS Libfabric/0/GDRDMA`.
    pub via: &'a str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    Send,
    Receive,
}

impl<'a> Connection<'a> {
    /// The kind and its name, such as `NET/AWS Libfabric` or `P2P/CUMEM`.
    pub(super) fn transport(&self) -> &'a str {
        match self.via.match_indices('/').nth(1) {
            Some((end, _)) => self.via.get(..end).unwrap_or(self.via),
            None => self.via,
        }
    }

    /// Whether the card reads and writes the GPU's memory itself.
    pub(super) fn is_gdrdma(&self) -> bool {
        self.via.split('/').skip(3).any(|word| word.starts_with("GDRDMA"))
    }
}

/// `Channel 00/0 : 1[a0] -> 2[b0] [send] via NET/…`; the oldest say `Ring`.
pub(super) fn connection<'a>(text: &'a str) -> Option<Connection<'a>> {
    let rest = text.strip_prefix("Channel ").or_else(|| text.strip_prefix("Ring "))?;
    let (head, rest) = rest.split_once(" : ")?;
    let (channel, index) = match head.split_once('/') {
        Some((channel, index)) => (channel, Some(whole(index)?)),
        None => (head, None),
    };
    let channel = whole(channel)?;
    let (from, rest) = rest.split_once(" -> ")?;
    let (ends, via) = rest.split_once(" via ")?;
    let (to, direction) = match ends.split_once(' ') {
        None => (ends, None),
        Some((to, "[send]")) => (to, Some(Direction::Send)),
        Some((to, "[receive]")) => (to, Some(Direction::Receive)),
        Some(_) => return None,
    };
    let end = |text: &'a str| -> Option<(u64, &'a str)> {
        // The oldest name no device between nodes.
        let (rank, device) = match text.strip_suffix(']') {
            Some(text) => text.split_once('[')?,
            None => (text, ""),
        };
        Some((whole(rank)?, device))
    };
    let ((from, from_device), (to, to_device)) = (end(from)?, end(to)?);
    (!via.is_empty()).then_some(Connection {
        channel,
        index,
        from,
        from_device,
        to,
        to_device,
        direction,
        via,
    })
}

/// `Channel 00/12 : 0 1 2 3`: the ranks of a ring, in their order. The oldest say `Channel 00 :`.
pub(super) fn order(text: &str) -> Option<(u64, Option<u64>, Vec<u64>)> {
    let (head, ranks) = text.strip_prefix("Channel ")?.split_once(" :")?;
    let (channel, of) = match head.split_once('/') {
        Some((channel, of)) => (channel, Some(whole(of)?)),
        None => (head, None),
    };
    let ranks = ranks.split_whitespace().map(whole).collect::<Option<Vec<_>>>()?;
    (!ranks.is_empty()).then_some((whole(channel)?, of, ranks))
}

/// `Ring 00 : 0 -> 1 -> 2`, `Tree 0 : -1 -> 0 -> 1/-1/-1`.
pub(super) fn place(text: &str, kind: &str) -> Option<(u64, Edge)> {
    let (channel, edge) = text.strip_prefix(kind)?.strip_prefix(' ')?.split_once(" : ")?;
    Some((whole(channel)?, self::edge(edge, " -> ")?))
}

/// `Trees [0] 1/-1/-1->0->-1 [1] …`; NVLS has trees of its own.
pub(super) fn trees(text: &str) -> Option<Vec<Tree>> {
    let mut words = Words(text);
    let mut trees = Vec::new();
    while let Some(channel) = words.next() {
        let channel = whole(channel.strip_prefix('[')?.strip_suffix(']')?)?;
        let halves = words.next()?.split('|').map(|half| edge(half, "->")).collect::<Option<Vec<_>>>()?;
        trees.push(Tree { channel, halves });
    }
    (!trees.is_empty()).then_some(trees)
}

fn edge(text: &str, arrow: &str) -> Option<Edge> {
    let mut parts = text.split(arrow);
    let ranks = |part: Option<&str>| part?.split('/').map(signed).collect::<Option<Vec<_>>>();
    let before = ranks(parts.next())?;
    let me = signed(parts.next()?)?;
    let behind = ranks(parts.next())?;
    parts.next().is_none().then_some(Edge { before, me, behind })
}
