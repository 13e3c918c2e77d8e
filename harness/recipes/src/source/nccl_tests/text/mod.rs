//! Reads text: hands each line to whom it belongs, and gives each run the complaints that are its own.
//! What single lines mean is asked of `line`, `nccl_log`, `head`, `row` and `failure`.

mod rows;
mod runs;
mod sweep;

use super::failure::{self, Complaint, Depth};
use super::head;
use super::line::{self, Line};
use super::nccl_log::{self, Hosts, LogLine};
use super::row::{self, Layout};
use super::{NcclRun, NcclTests, NotUnderstood};
use crate::finding::Finding;
use rows::Pending;
use runs::State;
use std::borrow::Cow;
use std::collections::HashMap;

pub fn read(text: &str) -> Result<NcclTests, NotUnderstood> {
    let mut hosts = Hosts::default();
    for line in line::lines(text).filter(|line| line.text.contains("NCCL ") || line.text.contains("Rank ")) {
        hosts.note(&line.text);
    }
    let mut reader = Reader { hosts, ..Reader::default() };
    for line in line::lines(text) {
        reader.line(&line);
    }
    reader.end(text)
}

#[derive(Default)]
struct Reader {
    hosts: Hosts,
    runs: Vec<State>,
    streams: Vec<Stream>,
    by_tag: HashMap<String, usize>,
    findings: Vec<Finding>,
    /// Complaints before any run.
    early: Vec<Complaint>,
    /// The program that the last command started, until a run takes it.
    launched: Option<String>,
    /// A version of NCCL that was printed before any run.
    nccl_version: Option<String>,
    lines: u64,
    understood: u64,
}

/// What comes from one place: one rank under a launcher that labels lines, otherwise the whole file.
#[derive(Default)]
struct Stream {
    run: Option<usize>,
    layout: Option<Layout>,
    pending: Option<Pending>,
    /// The length of the last row, to which one without a line break is held.
    row_length: usize,
}

impl Reader {
    fn line(&mut self, line: &Line) {
        self.lines = self.lines.max(line.number);
        if line.text.trim().is_empty() {
            return;
        }
        let mut stream = self.stream(&line.tag);
        let (text, log) = match nccl_log::split(&line.text, Some(&self.hosts)) {
            Some((before, log)) => (Cow::Borrowed(before), Some(log)),
            None => (Cow::Borrowed(&*line.text), None),
        };
        let cut_in = log.is_some();
        if let Some(log) = log {
            self.understood += u64::from(text.trim().is_empty());
            self.log(stream, &log, line.number);
        }
        if text.trim().is_empty() {
            return;
        }
        // A launcher may label only the first piece of a broken line.
        if line.tag.is_empty()
            && self.streams.get(stream).is_some_and(|stream| stream.pending.is_none())
            && text.split_whitespace().all(row::may_continue)
        {
            let mut others = self.streams.iter().enumerate().filter(|(_, stream)| stream.pending.is_some());
            if let (Some((only, _)), None) = (others.next(), others.next()) {
                stream = only;
            }
        }
        self.understood += u64::from(self.content(stream, &text, line, cut_in));
    }

    fn stream(&mut self, tag: &str) -> usize {
        if let Some(at) = self.by_tag.get(tag) {
            return *at;
        }
        let at = self.streams.len();
        self.streams.push(Stream::default());
        self.by_tag.insert(tag.to_owned(), at);
        at
    }

    /// What NCCL says. It concerns the run that its rank is in, or else the last one that began.
    fn log(&mut self, stream: usize, log: &LogLine, line: u64) {
        let version =
            log.text.split("NCCL version ").nth(1).or_else(|| log.text.strip_prefix("NCCL version "));
        let version = version.and_then(|rest| rest.split_whitespace().next()).map(str::to_owned);
        let complaint = if log.warns { failure::of_warning(log, line) } else { None };
        let Some(state) = self.state_of(stream) else {
            self.nccl_version = version.or(self.nccl_version.take());
            self.early.extend(complaint);
            return;
        };
        if version.is_some() {
            state.run.nccl_version = version;
        }
        for call in [
            "AllReduce: opCount",
            "AllGather: opCount",
            "ReduceScatter: opCount",
            "Broadcast: opCount",
            "Reduce: opCount",
        ] {
            if log.text.starts_with(call) {
                state.calls.insert(call);
            }
        }
        state.complaints.extend(complaint);
    }

    fn state_of(&mut self, stream: usize) -> Option<&mut State> {
        let own = self.streams.get(stream).and_then(|stream| stream.run);
        let at = own.or(self.runs.len().checked_sub(1))?;
        self.runs.get_mut(at)
    }

    /// Anything but NCCL's log; whether it was understood.
    fn content(&mut self, stream: usize, text: &str, line: &Line, cut_in: bool) -> bool {
        let words: Vec<&str> = text.split_whitespace().collect();
        if self.row(stream, text, &words, line, cut_in) {
            return true;
        }
        if let Some(comment) = head::comment(text) {
            self.comment(stream, comment, line.number);
            return true;
        }
        if let Some(complaint) = failure::of_line(text, line.number) {
            self.complain(stream, complaint, text);
            return true;
        }
        if let Some(program) = head::launched(text) {
            self.launched = Some(program.to_owned());
            return true;
        }
        false
    }

    fn complain(&mut self, at: usize, complaint: Complaint, text: &str) {
        let op = head::op_of_source_file(text);
        let own = self.streams.get(at).and_then(|stream| stream.run);
        let at_hand = own.or(self.runs.len().checked_sub(1));
        let concluded = at_hand.and_then(|run| self.runs.get(run)).is_some_and(|state| state.run.concluded);
        // What a program says of itself after the end of another is not that other's.
        if concluded && complaint.depth < Depth::Aftermath && text.contains(": Test ") {
            self.runs.push(State { began: complaint.failure.line, ..State::default() });
            if let Some(stream) = self.streams.get_mut(at) {
                stream.run = Some(self.runs.len() - 1);
                stream.layout = None;
            }
        }
        match self.state_of(at) {
            Some(state) => {
                state.op_of_failure = state.op_of_failure.or(op);
                state.complaints.push(complaint);
            }
            None => self.early.push(complaint),
        }
    }

    fn end(mut self, text: &str) -> Result<NcclTests, NotUnderstood> {
        let pending = |(at, stream): (usize, &mut Stream)| Some((at, stream.pending.take()?.line));
        let broken: Vec<(usize, u64)> = self.streams.iter_mut().enumerate().filter_map(pending).collect();
        for (at, line) in broken {
            self.cut(at, line, "the file ends before it does");
        }
        if self.runs.is_empty() {
            if !self.early.iter().any(|complaint| complaint.hard) {
                return Err(NotUnderstood { reason: why_not(text, self.understood) });
            }
            let program = self.launched.take();
            self.runs.push(State { run: NcclRun { program, ..NcclRun::default() }, ..State::default() });
        }
        if let Some(state) = self.runs.first_mut() {
            state.complaints.append(&mut self.early);
        }
        let mut findings = self.findings;
        let runs = self.runs.into_iter().map(|state| state.finish(&mut findings)).collect();
        findings.sort_by_key(|finding| finding.line);
        Ok(NcclTests { runs, findings, lines: self.lines, understood: self.understood })
    }
}

/// The beginning of a text, for a message.
fn shown(text: &str) -> String {
    let text = text.trim();
    if text.chars().count() <= 200 {
        text.to_owned()
    } else {
        text.chars().take(200).chain(['…']).collect()
    }
}

fn why_not(text: &str, understood: u64) -> String {
    let first = text.lines().find(|line| !line.trim().is_empty());
    match first {
        None => "the file is empty".to_owned(),
        Some(first)
            if first.trim_start().starts_with(['[', '{'])
                && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok() =>
        {
            "JSON, and none of nccl-tests".to_owned()
        }
        Some(first) if first.matches(',').count() >= 3 => {
            "comma-separated values, which nccl-tests does not print".to_owned()
        }
        Some(_) if understood > 0 => {
            "only lines of NCCL or of launchers: no row, no head, no failure of nccl-tests".to_owned()
        }
        Some(_) => "no row, no head and no failure of nccl-tests".to_owned(),
    }
}
