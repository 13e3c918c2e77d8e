//! Puts the rows of the table together from whole lines and from pieces between which NCCL wrote.
//! Whether a line of cells is a row is asked of `super::super::row`.

use super::super::line::ProgramLine;
use super::super::row::{self, Layout, Parsed};
use super::super::{Row, RowFinding};
use super::{Reader, limits, render};
use metric::finding::Finding;

/// A row of which the end is still to come.
pub(super) struct Pending {
    text: String,
    pub(super) line: u64,
}

impl Pending {
    fn cells(&self) -> Vec<&str> {
        self.text.split_whitespace().collect()
    }

    fn goes_on_with(&self, text: &str) -> bool {
        let mut words = text.split_whitespace();
        if self.text.ends_with(char::is_whitespace) || text.starts_with(char::is_whitespace) {
            return words.all(row::may_continue);
        }
        // The cell that was torn in two need be a cell only when whole.
        let (head, tail) = (self.text.split_whitespace().next_back(), words.next());
        row::may_continue(&format!("{}{}", head.unwrap_or(""), tail.unwrap_or("")))
            && words.all(row::may_continue)
    }
}

impl Reader {
    /// Takes a line of cells; whether it was one.
    pub(super) fn row(
        &mut self,
        at: usize,
        text: &str,
        words: &[&str],
        line: &ProgramLine,
        cut_in: bool,
    ) -> bool {
        let Some(stream) = self.streams.get_mut(at) else { return false };
        let in_table = stream.layout.is_some();
        let layout = stream.layout.clone().unwrap_or_else(Layout::bare);
        let begins = |words: &[&str]| words.get(layout.foreign.len()..).is_some_and(row::begins);
        if let Some(stub) = stream.pending.take_if(|pending| !begins(&pending.cells())) {
            // Torn in its first cells: the rest shows whether it was a row.
            let text = format!("{}{text}", stub.text);
            let whole = Pending { text, line: stub.line };
            if begins(&whole.cells()) || row::may_begin(&whole.cells()) {
                stream.pending = Some(whole);
                self.complete(at, &layout, line, cut_in, true);
                return true;
            }
            if stub.cells().len() > 1 {
                self.cut(at, stub.line, "what follows is not its rest");
            }
        }
        let Some(stream) = self.streams.get_mut(at) else { return false };
        if begins(words) {
            let broken = stream.pending.replace(Pending { text: text.to_owned(), line: line.number });
            if let Some(broken) = broken {
                self.cut(at, broken.line, "another row begins before it ends");
            }
            self.complete(at, &layout, line, cut_in, false);
            return true;
        }
        let Some(pending) = &mut stream.pending else {
            let may_begin = layout.foreign.is_empty() && text.len() <= limits::LONGEST_ROW;
            if in_table && may_begin && row::may_begin(words) {
                stream.pending = Some(Pending { text: text.to_owned(), line: line.number });
                return true;
            }
            if row::ends(words) && (in_table || words.len() >= 9) {
                let message = format!("row with a missing or unknown beginning: `{}`", render(text));
                self.findings.push(Finding::new(RowFinding::Odd.code(), message).line(line.number));
                return true;
            }
            return false;
        };
        // A line is cut between blanks and cells or inside a cell, so its pieces join without a blank between them.
        // What is no cell is not the row's.
        if !pending.goes_on_with(text) && line.ended {
            return false;
        }
        if pending.text.len() + text.len() > limits::LONGEST_ROW {
            return false;
        }
        pending.text.push_str(text);
        self.complete(at, &layout, line, cut_in, true);
        true
    }

    /// Looks whether the pending row is whole by now.
    pub(super) fn complete(
        &mut self,
        at: usize,
        layout: &Layout,
        line: &ProgramLine,
        cut_in: bool,
        joined: bool,
    ) {
        let Some(stream) = self.streams.get_mut(at) else { return };
        let Some(pending) = stream.pending.take() else { return };
        let words: Vec<&str> = pending.text.split_whitespace().collect();
        let length = pending.text.trim_end().len();
        let fits = pending.text.len() <= limits::LONGEST_ROW;
        match row::parse(&words, layout, pending.line) {
            Parsed::Row(..) if line.too_long => {
                self.cut(at, pending.line, "the end of its line was left out")
            }
            Parsed::Row(row, sure) => {
                // Without a line break the last cell may be the beginning of a longer one, unless it cannot be or the
                // line is as long as the one before.
                let whole = line.ended
                    || cut_in
                    || sure
                    || (!joined && length >= stream.row_length && stream.row_length > 0);
                if !whole {
                    self.cut(at, pending.line, "the file ends in its last cell");
                    return;
                }
                if row::size_is_torn(&pending.text, &row) {
                    self.cut(at, pending.line, "its size lacks digits");
                    return;
                }
                if !joined {
                    stream.row_length = length;
                }
                self.push(at, *row, layout);
            }
            Parsed::Partial if (line.ended || cut_in) && fits => stream.pending = Some(pending),
            Parsed::Other if line.ended && fits && row::may_begin(&words) => stream.pending = Some(pending),
            Parsed::Partial if !fits => self.cut(at, pending.line, "it is longer than any row"),
            Parsed::Partial => self.cut(at, pending.line, "the file ends within it"),
            // The last word of a file that ends in the middle of a line is nothing to wonder about.
            Parsed::Odd(_) | Parsed::Other if !line.ended => {
                self.cut(at, pending.line, "the file ends within it");
            }
            Parsed::NotANumber => {
                let message = format!("row with values that are not numbers: `{}`", render(&pending.text));
                self.refuse(at, Finding::new(RowFinding::NotANumber.code(), message).line(pending.line));
            }
            Parsed::Odd(why) => {
                let message = format!("row with {why}: `{}`", render(&pending.text));
                self.refuse(at, Finding::new(RowFinding::Odd.code(), message).line(pending.line));
            }
            Parsed::Other => (),
        }
    }

    fn refuse(&mut self, at: usize, finding: Finding) {
        let line = finding.line.unwrap_or_default();
        self.findings.push(finding);
        if let Some(state) = self.rows_begin(at, line) {
            state.run.refused_rows += 1;
        }
    }

    pub(super) fn cut(&mut self, at: usize, line: u64, why: &str) {
        self.findings
            .push(Finding::new(RowFinding::Cut.code(), format!("row is incomplete: {why}")).line(line));
        if let Some(state) = self.state_of(at) {
            state.run.refused_rows += 1;
        }
    }

    pub(super) fn push(&mut self, at: usize, row: Row, layout: &Layout) {
        let texts = [Some(&row.dtype), row.redop.as_ref(), row.timestamp.as_ref()];
        self.held += limits::ENTRY + texts.into_iter().flatten().map(String::len).sum::<usize>();
        if let Some(state) = self.rows_begin(at, row.line) {
            state.run.cpu_time = layout.cpu_time;
            state.run.rows.push(row);
        }
    }
}
