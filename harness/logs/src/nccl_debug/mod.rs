//! Logs that NCCL writes with `NCCL_DEBUG`, read line by line in bounded memory: communicators, what connects their
//! ranks, and every call with its bytes. Files are read as parts of one log; what other programs print is skipped.

mod advice;
mod agreement;
mod call;
mod checks;
mod choice;
mod chunks;
mod communicators;
mod compat;
mod counts;
mod developer_lines;
mod distinct;
pub mod events;
mod explain;
mod finish;
mod graph;
mod hasher;
mod lanes;
mod libfabric;
mod line;
mod network;
mod operations;
mod other_programs;
mod processes;
mod quick;
mod ray;
mod setup;
mod steps;
mod tables;
mod tally;
#[cfg(test)]
mod tests;
mod tokens;
mod torn;
mod warnings;
mod wire;
mod wired;
mod worlds;

pub use crate::watchdog::{Reached, TimedOut, complaining_rank, parse as timed_out, reached};
pub use advice::{KINDS, Kind};
pub use call::{OPERATIONS, Operation, type_bytes, type_name};
pub use compat::{Compat, Script};
pub use explain::{Explain, Wrong};
pub use tables::*;

use super::nccl_prefix::{self, Level};
use super::stream::{Piece, Pieces};
use super::text;
use super::training_log;
use call::NoCall;
use chunks::Chunks;
use counts::Counts;
use graph::Edge;
use line::{DebugLine, Said, Unread};
use metric::finding::Finding;
use quick::{Item, Parsed};
use std::io::{self, BufRead};
use tally::Tally;
use warnings::Warnings;

/// The edges of the buckets unless others are asked for: 64 KiB, 1 MiB and 16 MiB.
pub const EDGES: [u64; 3] = [64 << 10, 1 << 20, 16 << 20];

/// Bytes that are parsed at once.
const CHUNK: usize = 1 << 20;
/// NCCL cuts its lines at 1023 characters; where exactly depends on what stands before the text.
const CUT_FROM: usize = 1015;
/// At most this many garbled lines, clocks and time-outs are listed one by one.
const MOST_LISTED: usize = 3;
const MOST_TIMED_OUT: usize = 4096;
/// So many lines may have broken into one.
const MOST_BROKEN: usize = 64;

/// Reads one stream. A log without any line of NCCL has empty tables.
pub fn read(from: impl BufRead, file: &str, edges: &[u64]) -> io::Result<NcclLog> {
    let mut reader = Reader::new(edges);
    reader.read(from, file)?;
    Ok(reader.finish())
}

/// Takes one stream after another.
#[derive(Debug)]
pub struct Reader {
    files: Vec<String>,
    lines: u64,
    of_nccl: u64,
    understood: u64,
    cut: u64,
    garbled_calls: u64,
    unknown_calls: u64,
    unknown_operations: Counts,
    unknown: Counts,
    tally: Tally,
    warnings: Warnings,
    timed_out: Vec<TimedOut>,
    reached: Vec<Reached>,
    ends: training_log::Ends,
    /// What the file seems to be, judged by a line of another program.
    looks_like: Option<&'static str>,
    /// How many network cards each host is to have.
    nics: Option<u64>,
    /// Calls and lines of communicators that torn lines may have lost, where it is not known of which process.
    lost: u64,
    /// Lines that Ray left out, among those.
    repeats: u64,
    clocks_back: usize,
    findings: Vec<Finding>,
    chunk: usize,
}

impl Reader {
    /// Edges in any order; zero and copies are none.
    pub fn new(edges: &[u64]) -> Self {
        let mut edges: Vec<u64> = edges.iter().copied().filter(|edge| *edge > 0).collect();
        edges.sort_unstable();
        edges.dedup();
        Reader {
            files: Vec::new(),
            lines: 0,
            of_nccl: 0,
            understood: 0,
            cut: 0,
            garbled_calls: 0,
            unknown_calls: 0,
            unknown_operations: Counts::default(),
            unknown: Counts::default(),
            tally: Tally::new(edges),
            warnings: Warnings::default(),
            timed_out: Vec::new(),
            reached: Vec::new(),
            ends: training_log::Ends::default(),
            looks_like: None,
            nics: None,
            lost: 0,
            repeats: 0,
            clocks_back: 0,
            findings: Vec::new(),
            chunk: CHUNK,
        }
    }

    /// Sets the number of network cards that each host is to have: what it finds is compared with it.
    pub fn expect_nics(&mut self, nics: u64) {
        self.nics = Some(nics);
    }

    /// Reads to the end. Where the stream breaks off, what was read before counts.
    pub fn read(&mut self, from: impl BufRead, file: &str) -> io::Result<()> {
        self.files.push(file.to_owned());
        self.tally.steps.begin();
        let mut chunks = Chunks::new(from, self.chunk);
        let read = lanes::each(&mut chunks, |parsed| self.take(&parsed));
        self.lines += chunks.lines();
        read
    }

    /// The lines of a chunk, in their order.
    fn take(&mut self, parsed: &Parsed) {
        let first = parsed.chunk.first_line;
        let file = u32::try_from(self.files.len() - 1).unwrap_or(u32::MAX);
        let mut processes: Vec<Option<u32>> = vec![None; parsed.who.len()];
        for item in &parsed.items {
            match item {
                Item::Call { line, who, stamp, call } => {
                    let line = first + u64::from(*line);
                    let (Some(who), Some(process)) =
                        (parsed.who.get(*who as usize), processes.get_mut(*who as usize))
                    else {
                        continue;
                    };
                    self.of_nccl += 1;
                    self.understood += 1;
                    if process.is_none() {
                        *process = self.tally.processes.id_of(&who.host, who.pid);
                    }
                    let process = *process;
                    if let Some(process) = process.and_then(|it| self.tally.processes.get_mut(it)) {
                        process.lines += 1;
                        process.counted += 1;
                    }
                    let stamp =
                        stamp.and_then(|(from, to)| parsed.chunk.bytes.get(from as usize..to as usize));
                    if let Some(stamp) = stamp.and_then(|stamp| std::str::from_utf8(stamp).ok()) {
                        self.clock(stamp, &who.host, process, line);
                    }
                    self.tally.call(call, process, who.device, line, file);
                }
                Item::Others { line, from, to } => {
                    let mut pieces = Pieces::new(parsed.chunk.bytes.get(*from..*to).unwrap_or_default());
                    // A slice cannot break off.
                    while let Ok(Some(piece)) = pieces.next_piece() {
                        let line = first + u64::from(*line) + piece.line - 1;
                        self.piece(&Piece { line, ..piece });
                    }
                }
            }
        }
    }

    fn piece(&mut self, piece: &Piece) {
        let text = text::without_escapes(&piece.text);
        let text = text::without_tags(&text);
        let (text, repeats) = ray::without_repeats(&text);
        if repeats > 0 {
            self.repeats = self.repeats.saturating_add(repeats);
            self.lose(None, repeats);
        }
        let Some(line) = line::split(text) else {
            self.parse_other_programs(text, piece.line);
            return;
        };
        self.line(&line, piece, text.len() >= CUT_FROM);
    }

    /// What other programs say that bears on NCCL.
    fn parse_other_programs(&mut self, text: &str, line: u64) {
        if self.timed_out.len() < MOST_TIMED_OUT {
            self.timed_out.extend(crate::watchdog::parse(text, line));
        }
        if self.reached.len() < MOST_TIMED_OUT {
            self.reached.extend(crate::watchdog::reached(text, line));
        }
        if let Some(why) = libfabric::failed_transfer(text) {
            let file = self.files.last().map_or("", String::as_str);
            self.warnings.add("", &why, line, file);
        }
        self.looks_like = self.looks_like.or_else(|| other_programs::recognize(text));
        if let Some(step) = self.ends.step_ended_by(text) {
            self.tally.steps.ends(step, line);
        }
    }

    /// A line, and those that broke into it: what stands before each is the line's, the rest is its own.
    fn line(&mut self, line: &DebugLine, piece: &Piece, is_long: bool) {
        let mut line = *line;
        for _ in 0..MOST_BROKEN {
            let broken = if line.level == Level::Info { self.broken_into(line.text) } else { None };
            let Some((first, second)) = broken else { return self.entry(&line, piece, is_long, false) };
            self.entry(&DebugLine { text: first, ..line }, piece, false, true);
            let Some(second) = line::split(second) else { return };
            line = second;
        }
        self.lose(None, 1);
    }

    /// Counts what torn lines may have lost of a process; where it is not known, of any.
    fn lose(&mut self, process: Option<u32>, lines: u64) {
        match process.and_then(|process| self.tally.processes.get_mut(process)) {
            Some(process) => process.lost += lines,
            None => self.lost = self.lost.saturating_add(lines),
        }
    }

    /// Counts a call of a process that is not known as lost by each that has a communicator of this handle; where none
    /// has, by any.
    fn lose_of_handle(&mut self, comm: u64) {
        let Some(processes) = self.tally.communicators.with_handle(comm) else { return self.lose(None, 1) };
        for process in processes {
            if let Some(process) = self.tally.processes.get_mut(*process) {
                process.lost += 1;
            }
        }
    }

    /// Counts a line of a process that may be a call, or of the life of a communicator.
    fn count(&mut self, process: Option<u32>, may_count: bool) {
        if let Some(process) = process.and_then(|process| self.tally.processes.get_mut(process)) {
            process.counted += u64::from(may_count);
        }
    }

    /// What one process says; of a broken line the end may be missing.
    fn entry(&mut self, line: &DebugLine, piece: &Piece, is_long: bool, is_broken: bool) {
        self.of_nccl += 1;
        let process = match line.host {
            "" => None,
            host => self.tally.processes.id_of(host, line.pid),
        };
        if let Some(process) = process.and_then(|it| self.tally.processes.get_mut(it)) {
            process.lines += 1;
            process.has_warned |= line.level == Level::Warn;
        }
        if let Some(stamp) = line.stamp {
            self.clock(stamp, line.host, process, piece.line);
        }
        match line.level {
            Level::Info => {}
            Level::Warn => {
                self.understood += 1;
                let file = self.files.last().map_or("", String::as_str);
                self.warnings.add(line.host, line.text, piece.line, file);
                return;
            }
            Level::Trace | Level::Call => {
                self.understood += 1;
                return;
            }
        }
        match line::parse(line.text.trim_end()) {
            // A name that is cut off is another name.
            Ok(said) if is_broken && said.ends_openly() => {
                self.not_understood(Unread::Unknown, line.text, process, piece);
            }
            Ok(said) => {
                self.understood += 1;
                self.cut += u64::from(is_long && said == Said::Known);
                let of_handle = match &said {
                    Said::Call(call) => Some(call.comm),
                    Said::Setup(setup) => Some(setup.comm),
                    _ => None,
                };
                // Without its end the line of a communicator does not say how far that came.
                let is_open = said == Said::Known && line.text.contains(" comm 0x");
                self.lose(process, u64::from(is_broken && is_open));
                match (of_handle, process) {
                    // Whose it is was torn off.
                    (Some(comm), None) if line.host.is_empty() => self.lose_of_handle(comm),
                    (Some(_), None) => self.lose(None, 1),
                    _ => self.count(process, of_handle.is_some() || is_open),
                }
                self.said(&said, line, process, piece);
            }
            Err(why) => {
                self.cut += u64::from(is_long);
                let may_count = line::may_count(line.text);
                self.lose(process, u64::from(is_broken && may_count));
                self.count(process, may_count);
                self.not_understood(why, line.text, process, piece);
            }
        }
    }

    /// Parts a text where a line of NCCL begins within it.
    fn broken_into<'a>(&self, text: &'a str) -> Option<(&'a str, &'a str)> {
        let (at, ..) = nccl_prefix::mark(text)?;
        let prefix = nccl_prefix::prefix(text.get(..at)?)?;
        let host = self.tally.processes.host_at_end(prefix.word).unwrap_or(prefix.word);
        text.split_at_checked(prefix.before.len() + prefix.word.len() - host.len())
    }

    fn said(&mut self, said: &Said, line: &DebugLine, process: Option<u32>, piece: &Piece) {
        let tally = &mut self.tally;
        match said {
            Said::Call(call) => {
                let file = u32::try_from(self.files.len() - 1).unwrap_or(u32::MAX);
                tally.call(call, process, line.device, piece.line, file);
            }
            Said::Setup(setup) => {
                if let Some(process) = process {
                    if let Some(it) = tally.processes.get_mut(process) {
                        it.has_begun = true;
                    }
                    tally.communicators.set_up(process, setup);
                }
            }
            Said::Version { nccl, cuda } => tally.versions.count(&match cuda {
                Some(cuda) => format!("{nccl}+cuda{cuda}"),
                None => (*nccl).to_owned(),
            }),
            Said::Driver(version) => tally.drivers.count(&version.to_string()),
            Said::Network(name) => {
                tally.networks.count(name);
                tally.wired.chosen(line.host, "network", name);
            }
            Said::Bootstrap(by) => tally.bootstraps.count(by.split(':').next().unwrap_or(by)),
            Said::Cards { by, nics } => tally.wired.nics(line.host, by, *nics),
            Said::Order { channel, ranks, .. } => tally.wired.ring(*channel, ranks),
            Said::Trees(trees) => tally.wired.trees(trees, false),
            Said::NvlsTrees(trees) => tally.wired.trees(trees, true),
            Said::Tree { channel, edge } => {
                // These lines begin with who is above.
                let (before, behind) = (edge.behind.clone(), edge.before.clone());
                tally.wired.tree(false, *channel, &Edge { before, behind, me: edge.me });
            }
            Said::Channels { coll, collnet, nvls, p2p, per_peer } => {
                tally.wired.channels([Some(*coll), *collnet, *nvls, Some(*p2p), Some(*per_peer)]);
            }
            Said::Nvls { available, .. } => tally.wired.nvls(line.host, *available),
            Said::Timings(timings) => tally.wired.begun(line.host, timings),
            Said::Provider { name, fabric, nics } => {
                tally.wired.chosen(line.host, "provider", name);
                if let Some(nics) = nics {
                    tally.wired.nics(line.host, name, *nics);
                }
                let fabric = fabric.map_or_else(String::new, |fabric| format!(", fabric {fabric}"));
                let nics = nics.map_or_else(String::new, |nics| format!(", {nics} NICs"));
                tally.providers.count(&format!("{name}{fabric}{nics}"));
            }
            Said::Plugin(version) => tally.plugins.count(&format!("aws-ofi-nccl {version}")),
            Said::Libfabric(version) => tally.plugins.count(&format!("libfabric {version}")),
            Said::Variable { name, value } => tally.variables.count(&format!("{name}={value}")),
            Said::Connection(connection) => {
                tally.connection(connection);
                if connection.transport().starts_with("NET/") {
                    tally.wired.net(line.host, connection.is_gdrdma());
                }
            }
            Said::Choice(choice) => tally.choice(choice),
            Said::Members(_) | Said::Ring { .. } | Said::Connected(_) | Said::Known => {}
        }
    }

    fn not_understood(&mut self, why: Unread, text: &str, process: Option<u32>, piece: &Piece) {
        match why {
            Unread::Unknown => self.unknown.count(&shape(text)),
            Unread::Call(NoCall::Unknown(name)) => {
                self.unknown_calls += 1;
                self.unknown_operations.count(name);
            }
            Unread::Call(NoCall::Garbled(what)) => {
                self.garbled_calls += 1;
                if let Some(process) = process.and_then(|process| self.tally.processes.get_mut(process)) {
                    process.has_hole = true;
                }
                if self.garbled_calls <= MOST_LISTED as u64 {
                    let ends = if piece.ended { "" } else { "; the file ends mid-line" };
                    let why = format!("skipped a call line: cannot read `{what}`{ends}");
                    self.find(Finding::new("nccl-garbled", why), piece.line);
                }
            }
        }
    }

    fn clock(&mut self, stamp: &str, host: &str, process: Option<u32>, line: u64) {
        let digits = stamp.bytes().filter(u8::is_ascii_digit).take(14);
        let now = digits.fold(0, |all, digit| all * 10 + u64::from(digit - b'0'));
        let Some(process) = process.and_then(|process| self.tally.processes.get_mut(process)) else { return };
        let is_back = now < process.clock;
        process.clock = now;
        if is_back {
            self.clocks_back += 1;
            if self.clocks_back <= MOST_LISTED {
                let why = format!("`{host}`: clock goes back to {stamp}");
                self.find(Finding::new("nccl-clock-back", why).node(host), line);
            }
        }
    }

    fn find(&mut self, finding: Finding, line: u64) {
        let file = self.file().to_owned();
        self.findings.push(finding.file(file).line(line));
    }

    fn file(&self) -> &str {
        self.files.last().map_or("", String::as_str)
    }
}

/// A line with its digits masked: they do not distinguish its kind.
fn shape(text: &str) -> String {
    let mut shape = String::new();
    for c in text.chars().take(120) {
        let is_digit = c.is_ascii_digit();
        if !(is_digit && shape.ends_with('#')) {
            shape.push(if is_digit { '#' } else { c });
        }
    }
    shape
}
