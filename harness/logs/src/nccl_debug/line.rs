//! One line of NCCL's log: who wrote it, and what it says, as a typed value. What many lines add up to is `tally`'s
//! business.

use super::super::nccl_prefix::{self, Level};
use super::super::nccl_tests::log_host;
use super::super::text;
use super::call::{self, Call, NoCall};
use super::choice::{self, Choice};
use super::developer_lines;
use super::graph::{self, Connection, Edge, Tree};
use super::setup::{self, Members, Setup, Timings};
use super::tokens::{Words, whole};

/// Who wrote a line, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DebugLine<'a> {
    pub level: Level,
    /// Empty where the line does not say.
    pub host: &'a str,
    pub pid: u64,
    pub device: Option<u64>,
    pub stamp: Option<&'a str>,
    pub place: &'a str,
    pub text: &'a str,
}

/// What one line says.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Said<'a> {
    Call(Call),
    Version {
        nccl: &'a str,
        cuda: Option<&'a str>,
    },
    Driver(u64),
    Setup(Setup<'a>),
    Timings(Timings<'a>),
    Members(Members),
    /// The interface by which ranks find each other.
    Bootstrap(&'a str),
    Network(&'a str),
    Provider {
        name: &'a str,
        fabric: Option<&'a str>,
        nics: Option<u64>,
    },
    /// How many cards NCCL's own networks use.
    Cards {
        by: &'a str,
        nics: u64,
    },
    Plugin(&'a str),
    Libfabric(&'a str),
    Order {
        channel: u64,
        /// The oldest versions do not log it.
        of: Option<u64>,
        ranks: Vec<u64>,
    },
    Ring {
        channel: u64,
        edge: Edge,
    },
    Tree {
        channel: u64,
        edge: Edge,
    },
    Trees(Vec<Tree>),
    NvlsTrees(Vec<Tree>),
    Connection(Connection<'a>),
    /// Which graph is ready: `all rings`, `all trees`, `NVLS tree`.
    Connected(&'a str),
    Channels {
        coll: u64,
        collnet: Option<u64>,
        nvls: Option<u64>,
        p2p: u64,
        per_peer: u64,
    },
    Choice(Choice<'a>),
    Nvls {
        available: bool,
        device: u64,
    },
    Variable {
        name: &'a str,
        value: &'a str,
    },
    /// Known, and nothing is taken of it.
    Known,
}

impl Said<'_> {
    /// Whether the last word is a name or a number, which may go on.
    pub(super) fn ends_openly(&self) -> bool {
        !matches!(
            self,
            Said::Call(_)
                | Said::Setup(_)
                | Said::Timings(_)
                | Said::Connected(_)
                | Said::Channels { .. }
                | Said::Known
        )
    }
}

/// Whether the beginning of a text may be that of a call or of a communicator's life.
pub(super) fn may_count(text: &str) -> bool {
    const OTHERS: [&str; 8] =
        ["Channel ", "Ring ", "Tree", "NET/", "NVLS ", "Connected ", "NCCL_", "Using network "];
    !OTHERS.iter().any(|other| text.trim_start().starts_with(other))
}

/// Why a line is not understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Unread<'a> {
    Call(NoCall<'a>),
    Unknown,
}

/// Splits a line into what stands before NCCL's text and the text; nothing where it is no line of NCCL.
pub(super) fn split(line: &str) -> Option<DebugLine<'_>> {
    let front = text::front(line, nccl_prefix::begins);
    let line = line.get(front.length..)?;
    let Some((at, text, level)) = nccl_prefix::mark(line) else { return version(line) };
    let before = line.get(..at)?;
    let text = line.get(text..)?.trim_end();
    let Some(prefix) = nccl_prefix::prefix(before) else {
        // In the middle of words it is prose.
        let bare = before.trim_end();
        let none = DebugLine { level, host: "", pid: 0, device: None, stamp: None, place: "", text };
        let is_placed = level == Level::Warn && is_place(bare);
        return (bare.is_empty() || is_label(bare) || is_placed).then_some(none);
    };
    // Behind a label that is not known, or in a row of a table, the stamp is not at the front.
    let own = front.last_stamp.and_then(|stamp| stamp.trim().strip_prefix('[')?.strip_suffix(']'));
    let stamp = nccl_prefix::stamp(prefix.before).map(|(_, stamp)| stamp).or(own);
    let host = match prefix.word.rsplit_once([':', '>', '|']) {
        // A label that is not known may stick to the host.
        Some((_, host)) if !host.is_empty() => host,
        _ if stamp.is_some() || prefix.before.trim().is_empty() || is_label(prefix.before.trim_end()) => {
            prefix.word
        }
        _ => log_host(before, &prefix),
    };
    let nccl_prefix::Prefix { pid, device, place, .. } = prefix;
    Some(DebugLine { level, host, pid, device, stamp, place, text })
}

/// `0:`, `[1,0]<stdout>:`, `(worker)`, `[rank0]`.
fn is_label(text: &str) -> bool {
    text.ends_with([':', '>', ']', '|', ')'])
}

/// `net.cc:626`, `nccl_net_ofi_init:45`: all that is left of a warning's prefix where its process was cut off.
fn is_place(text: &str) -> bool {
    let is_number = |line: &str| !line.is_empty() && line.bytes().all(|byte| byte.is_ascii_digit());
    !text.contains(char::is_whitespace)
        && text.rsplit_once(':').is_some_and(|(name, line)| !name.is_empty() && is_number(line))
}

/// The line of the version stands alone, up to its launcher's label.
fn version(line: &str) -> Option<DebugLine<'_>> {
    let (before, _) = line.split_once("NCCL version ")?;
    let bare = before.trim();
    let text = line.get(before.len()..)?.trim_end();
    let it = DebugLine { level: Level::Info, host: "", pid: 0, device: None, stamp: None, place: "", text };
    (bare.is_empty() || is_label(bare)).then_some(it)
}

/// What the text of a line says.
pub(super) fn parse(text: &str) -> Result<Said<'_>, Unread<'_>> {
    if let Some(call) = call::parse(text) {
        return call.map(Said::Call).map_err(Unread::Call);
    }
    let text = text.trim_start();
    let rest = |front: &str| text.strip_prefix(front);
    let first = text.as_bytes().first().copied().unwrap_or(b' ');
    let said = match first {
        b'B' => rest("Bootstrap : Using ").or_else(|| rest("Bootstrap: Using ")).map(Said::Bootstrap),
        b'C' => connected(text)
            .or_else(|| graph::connection(text).map(Said::Connection))
            .or_else(|| graph::order(text).map(|(channel, of, ranks)| Said::Order { channel, of, ranks })),
        b'I' => setup::timings(text).map(Said::Timings),
        b'N' => named(text),
        b'R' => graph::connection(text)
            .map(Said::Connection)
            .or_else(|| graph::place(text, "Ring").map(|(channel, edge)| Said::Ring { channel, edge })),
        b'T' => rest("Trees ")
            .and_then(|trees| graph::trees(trees).map(Said::Trees))
            .or_else(|| graph::place(text, "Tree").map(|(channel, edge)| Said::Tree { channel, edge })),
        b'U' => rest("Using network ").map(Said::Network),
        b'c' => rest("cudaDriverVersion ")
            .and_then(|version| whole(version).map(Said::Driver))
            .or_else(|| setup::members(text).map(Said::Members)),
        b'0'..=b'9' => channels(text),
        _ => None,
    };
    said.or_else(|| setup::parse(text).map(Said::Setup))
        .or_else(|| choice::parse(text).map(Said::Choice))
        .or_else(|| developer_lines::is_known(text).then_some(Said::Known))
        .ok_or_else(|| match text.contains("opCount") {
            // Whatever became of its operation, it was a call.
            true => Unread::Call(NoCall::Garbled("operation")),
            false => Unread::Unknown,
        })
}

fn connected(text: &str) -> Option<Said<'_>> {
    let what = text.strip_prefix("Connected ")?;
    let what = what.split_once(',').map_or(what, |(what, _)| what);
    matches!(what, "all rings" | "all trees" | "NVLS tree").then_some(Said::Connected(what))
}

/// What begins with an N.
fn named(text: &str) -> Option<Said<'_>> {
    if let Some(version) = text.strip_prefix("NCCL version ") {
        let (nccl, cuda) = match version.split_once("+cuda") {
            Some((nccl, cuda)) => (nccl, Some(cuda)),
            None => (version, None),
        };
        return nccl.starts_with(|c: char| c.is_ascii_digit()).then_some(Said::Version { nccl, cuda });
    }
    if let Some(rest) = text.strip_prefix("NET/OFI ") {
        return ofi(rest);
    }
    if let Some((by, cards)) = text.split_once(" : Using [")
        && matches!(by, "NET/IB" | "NET/Socket")
    {
        // Each begins with its number in brackets; other values stand behind a semicolon.
        let cards = cards.split(';').next().unwrap_or(cards);
        let nics = 1 + cards.match_indices(" [").filter(|(at, _)| is_number(cards, *at)).count() as u64;
        return Some(Said::Cards { by, nics });
    }
    if let Some(rest) = text.strip_prefix("NVLS multicast support is ") {
        let (available, rest) = match rest.strip_prefix("not ") {
            Some(rest) => (false, rest),
            None => (true, rest),
        };
        let device = rest.strip_prefix("available on dev ")?;
        let device = whole(device.split([' ', ',']).next()?)?;
        return Some(Said::Nvls { available, device });
    }
    if let Some(trees) = text.strip_prefix("NVLS Trees : ") {
        return graph::trees(trees).map(Said::NvlsTrees);
    }
    let (name, value) = text.split_once(" set by environment to ")?;
    let value = value.strip_suffix('.').unwrap_or(value);
    (!name.contains(' ')).then_some(Said::Variable { name, value })
}

/// Whether a number stands behind the bracket.
fn is_number(text: &str, at: usize) -> bool {
    text.get(at + 2..).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

/// What the plugin of EFA says.
fn ofi(text: &str) -> Option<Said<'_>> {
    let version =
        text.strip_prefix("Initializing aws-ofi-nccl ").or_else(|| text.strip_prefix("Using aws-ofi-nccl "));
    if let Some(version) = version {
        return Some(Said::Plugin(version));
    }
    if let Some(version) = text.strip_prefix("Using Libfabric version ") {
        return Some(Said::Libfabric(version));
    }
    // The second word changed its case with 1.14.
    let rest =
        text.strip_prefix("Selected Provider is ").or_else(|| text.strip_prefix("Selected provider is "));
    let Some(rest) = rest else { return Some(Said::Known) };
    let (rest, nics) = match rest.split_once(" (found ") {
        Some((rest, nics)) => (rest, Some(whole(nics.strip_suffix(" nics)")?)?)),
        None => (rest, None),
    };
    let (name, fabric) = match rest.split_once(", fabric is ") {
        Some((name, fabric)) => (name, Some(fabric)),
        None => (rest, None),
    };
    Some(Said::Provider { name, fabric, nics })
}

/// `24 coll channels, 0 collnet channels, 16 nvls channels, 32 p2p channels, 32 p2p channels per peer`.
fn channels(text: &str) -> Option<Said<'_>> {
    let (mut coll, mut collnet, mut nvls, mut p2p, mut per_peer) = (None, None, None, None, None);
    for part in text.split(", ") {
        let mut words = Words(part);
        let count = whole(words.next()?)?;
        match words.0.trim_start() {
            "coll channels" => coll = Some(count),
            "collnet channels" => collnet = Some(count),
            "nvls channels" => nvls = Some(count),
            "p2p channels" => p2p = Some(count),
            "p2p channels per peer" => per_peer = Some(count),
            _ => return None,
        }
    }
    Some(Said::Channels { coll: coll?, collnet, nvls, p2p: p2p?, per_peer: per_peer? })
}
