//! Reads text: assigns each line to its run, and gives each run the complaints that are its own.
//! What single lines mean is asked of `line`, `nccl_log`, `head`, `row` and `failure`.

pub(super) mod limits;
mod rows;
mod runs;
mod sweep;

use super::failure::{self, Complaint, Depth};
use super::head::{self, Comment};
use super::line::ProgramLine;
use super::nccl_log::{self, Hosts, LogLine};
use super::row::{self, Layout};
use super::{NcclRun, NcclTests, NotUnderstood};
use crate::stream::{LONGEST, Piece, Pieces};
use limits::{Complaints, Findings};
use metric::finding::Finding;
use rows::Pending;
use runs::State;
use std::borrow::Cow;
use std::collections::HashMap;
use std::io::{self, BufRead, Read};

/// Reads the head, which may be all, and what follows it.
pub(super) fn read(
    head: &[u8],
    is_whole: bool,
    rest: impl BufRead,
) -> io::Result<Result<NcclTests, NotUnderstood>> {
    let mut reader = Reader { is_json: looks_like_json(head, is_whole), ..Reader::default() };
    // A host may stick to a cell before a line begins with it.
    let noted = reader.note_hosts(head, is_whole)?;
    let mut pieces = Pieces::new(head.chain(rest));
    while let Some(piece) = pieces.next_piece()? {
        reader.piece(&piece, piece.line > noted);
    }
    reader.lines = reader.lines.max(pieces.lines());
    Ok(reader.end())
}

#[derive(Default)]
struct Reader {
    hosts: Hosts,
    runs: Vec<State>,
    streams: Vec<Stream>,
    by_tag: HashMap<String, usize>,
    findings: Findings,
    /// Complaints before any run.
    early: Complaints,
    /// The program that the last command started, until a run takes it.
    launched: Option<String>,
    /// A version of NCCL that was printed before any run.
    nccl_version: Option<String>,
    lines: u64,
    understood: u64,
    /// NCCL's own log is in it.
    has_log: bool,
    /// What its first line with a text looks like.
    first: Option<First>,
    is_json: bool,
    /// Bytes of what is held.
    held: usize,
    /// The line behind which there was no room for more.
    full_at: Option<u64>,
    /// How many lines are too long, and the first of them.
    too_long: u64,
    first_too_long: u64,
}

struct First {
    has_bracket: bool,
    has_commas: bool,
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
    /// The last line whose host is noted.
    fn note_hosts(&mut self, head: &[u8], is_whole: bool) -> io::Result<u64> {
        let mut pieces = Pieces::new(head);
        let mut noted = 0;
        while let Some(piece) = pieces.next_piece()? {
            if piece.ended || is_whole {
                self.hosts.note(&ProgramLine::new(&piece).text);
                noted = piece.line;
            }
        }
        Ok(noted)
    }

    fn piece(&mut self, piece: &Piece, is_new: bool) {
        self.lines = piece.line;
        if piece.too_long {
            self.first_too_long = if self.too_long == 0 { piece.line } else { self.first_too_long };
            self.too_long += 1;
        }
        if self.full_at.is_some() {
            return;
        }
        let line = ProgramLine::new(piece).labelled(|tag| self.by_tag.contains_key(tag));
        if is_new {
            self.hosts.note(&line.text);
        }
        if self.first.is_none() && !piece.text.trim().is_empty() {
            let text = piece.text.trim_start_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
            let has_commas = text.matches(',').count() >= 3;
            self.first = Some(First { has_bracket: text.starts_with(['[', '{']), has_commas });
        }
        self.line(&line);
        if self.held > limits::MOST_BYTES {
            self.full_at = Some(piece.line);
        }
    }

    fn line(&mut self, line: &ProgramLine) {
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
            self.has_log = true;
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
        self.held += limits::LABEL + tag.len();
        self.streams.push(Stream::default());
        self.by_tag.insert(tag.to_owned(), at);
        at
    }

    /// What NCCL says. It concerns the run that its rank is in, or else the last one that began.
    fn log(&mut self, stream: usize, log: &LogLine, line: u64) {
        let version =
            log.text.split("NCCL version ").nth(1).or_else(|| log.text.strip_prefix("NCCL version "));
        let version = version.and_then(|rest| rest.split_whitespace().next()).map(str::to_owned);
        let complaint = if log.warns { failure::parse_warning(log, line) } else { None };
        self.held += version.as_ref().map_or(0, String::len);
        let Some(state) = self.state_of(stream) else {
            self.nccl_version = version.or(self.nccl_version.take());
            complaint.into_iter().for_each(|complaint| self.early.push(complaint));
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
        complaint.into_iter().for_each(|complaint| state.complaints.push(complaint));
    }

    fn state_of(&mut self, stream: usize) -> Option<&mut State> {
        let own = self.streams.get(stream).and_then(|stream| stream.run);
        let at = own.or(self.runs.len().checked_sub(1))?;
        self.runs.get_mut(at)
    }

    /// Anything but NCCL's log; whether it was understood.
    fn content(&mut self, stream: usize, text: &str, line: &ProgramLine, cut_in: bool) -> bool {
        let words: Vec<&str> = text.split_whitespace().collect();
        if self.row(stream, text, &words, line, cut_in) {
            return true;
        }
        if let Some(comment) = head::comment(text) {
            self.held += match comment {
                // Each of its words.
                Comment::Headings(..) => 16 * text.len(),
                Comment::Rank(_) => limits::ENTRY + text.len(),
                _ => text.len(),
            };
            self.comment(stream, comment, line.number);
            return true;
        }
        if let Some(complaint) = failure::parse_line(text, line.number) {
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
            self.held += 2 * limits::ENTRY;
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

    fn end(mut self) -> Result<NcclTests, NotUnderstood> {
        let pending = |(at, stream): (usize, &mut Stream)| Some((at, stream.pending.take()?.line));
        let broken: Vec<(usize, u64)> = self.streams.iter_mut().enumerate().filter_map(pending).collect();
        for (at, line) in broken {
            self.cut(at, line, "the file ends within it");
        }
        if self.runs.is_empty() {
            if !self.early.is_hard() {
                return Err(NotUnderstood { reason: self.why_not() });
            }
            let program = self.launched.take();
            self.runs.push(State { run: NcclRun { program, ..NcclRun::default() }, ..State::default() });
        }
        if let Some(state) = self.runs.first_mut() {
            // What kept an earlier try from starting is no failure of a run that ended.
            let got_over = state.run.concluded && !state.run.rows.is_empty();
            state.complaints.append(if got_over { self.early.without_starts() } else { self.early });
        }
        let mut findings = self.findings;
        if let Some(line) = self.full_at {
            let most = limits::MOST_BYTES >> 20;
            let why = format!("nothing after this line was read: rows, ranks and headers exceed {most} MiB");
            findings.push(Finding::new("read-in-part", why).line(line));
        }
        if self.too_long > 0 {
            let why = format!("lines longer than {} KiB, cut there: {}", LONGEST >> 10, self.too_long);
            findings.push(Finding::new("line-too-long", why).line(self.first_too_long));
        }
        let runs = self.runs.into_iter().map(|state| state.finish(&mut findings)).collect();
        Ok(NcclTests { runs, findings: findings.all(), lines: self.lines, understood: self.understood })
    }

    fn why_not(&self) -> String {
        if let Some(line) = self.full_at {
            let most = limits::MOST_BYTES >> 20;
            return format!(
                "nothing after line {line} was read: labels and headers exceed {most} MiB, without a row"
            );
        }
        let why = match &self.first {
            None => "the file is empty",
            Some(first) if first.has_bracket && self.is_json => "JSON, but not of nccl-tests",
            Some(first) if first.has_commas => "comma-separated values, which nccl-tests does not print",
            Some(_) if self.has_log => {
                "only lines of NCCL or of launchers: no row, header or failure of nccl-tests"
            }
            Some(_) => "no row, header or failure of nccl-tests",
        };
        why.to_owned()
    }
}

/// The beginning of a text, for a message.
fn render(text: &str) -> String {
    let text = text.trim();
    if text.chars().count() <= 200 {
        text.to_owned()
    } else {
        text.chars().take(200).chain(['…']).collect()
    }
}

/// Whether the head is JSON, as far as it goes.
fn looks_like_json(head: &[u8], is_whole: bool) -> bool {
    let text = super::without_mark(head);
    text.trim_start().starts_with(['[', '{'])
        && match serde_json::from_str::<serde::de::IgnoredAny>(&text) {
            Ok(_) => is_whole,
            Err(error) => error.is_eof() && !is_whole,
        }
}
