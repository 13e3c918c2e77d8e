//! Long lines at a narrow terminal: broken between words, and never within a command that a reader copies.

use std::os::fd::AsFd;
use terminal_size::{Width, terminal_size_of};

/// What stands before the command of a line.
const NEXT: &str = "next: ";
/// A command that can be pasted: broken by us it would be two, and a terminal wraps it without that.
const OWN: &str = "next: harness ";
/// Of each further part of a line, beside what the line itself has.
const INDENT: usize = 2;
/// In fewer columns nothing can be read anyway.
const FEWEST_COLUMNS: u16 = 40;

/// The text as it is; where it goes to a terminal, each line of more than its columns in parts.
pub(crate) fn fit(text: &str, terminal: impl AsFd) -> String {
    match terminal_size_of(terminal) {
        Some((Width(columns), _)) if columns >= FEWEST_COLUMNS => break_lines(text, columns.into()),
        _ => text.to_owned(),
    }
}

/// Colours take no room.
fn break_lines(text: &str, columns: usize) -> String {
    let mut broken = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let (line, end) = line.strip_suffix('\n').map_or((line, ""), |line| (line, "\n"));
        break_line(&mut broken, line, columns);
        broken.push_str(end);
    }
    broken
}

fn break_line(broken: &mut String, line: &str, columns: usize) {
    if letters(line) <= columns {
        return broken.push_str(line);
    }
    let body = line.trim_start_matches(' ');
    let own = line.len() - body.len();
    let indent = own + INDENT;
    broken.push_str(&" ".repeat(own));
    let mut used = own;
    for (nth, part) in parts(body, columns.saturating_sub(indent)).into_iter().enumerate() {
        let needed = letters(part);
        if nth > 0 && used + 1 + needed > columns {
            broken.push('\n');
            broken.push_str(&" ".repeat(indent));
            used = indent;
        } else if nth > 0 {
            broken.push(' ');
            used += 1;
        }
        broken.push_str(part);
        used += needed;
    }
}

/// Words; what stands between backticks is one, and so is the next command with its label. Of advice in words this holds
/// only where there is room for it.
fn parts(line: &str, room: usize) -> Vec<&str> {
    let is_one = |at: &usize| line[*at..].starts_with(OWN) || letters(&line[*at..]) <= room;
    let command = line.rfind(NEXT).filter(is_one).unwrap_or(line.len());
    let words = &line[..command];
    let is_paired = words.matches('`').count().is_multiple_of(2);
    let (mut parts, mut start, mut is_quoted) = (Vec::new(), 0, false);
    for (at, letter) in words.char_indices() {
        match letter {
            '`' => is_quoted = is_paired && !is_quoted,
            ' ' if !is_quoted => {
                parts.push(&line[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&line[start..]);
    parts
}

/// Columns that a text takes: what sets a colour, from ESC to `m`, takes none.
fn letters(text: &str) -> usize {
    let mut is_colour = false;
    let is_shown = |letter: &char| {
        let was_colour = is_colour;
        is_colour = *letter == '\x1b' || (is_colour && *letter != 'm');
        !is_colour && !was_colour
    };
    text.chars().filter(is_shown).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_80_columns_a_command_is_whole_on_one_line_and_short_lines_stay() {
        let text = "\
culprit p5-002 rdmap113s0: 4.8 GB/s (2 partners), 31 others at 12.0 (HRN-NIC-SLOW); next: harness isolate --run latest
  explains 36 of 36 red assertions, in 18 cases

\x1b[31mculprit p5-002 node: NODE_FAIL: `sinfo` reports down*: Not responding; next: harness explain HRN-NODE-LOST\x1b[0m
[64/86] 13:10  FAIL pair-hypercube p5-[001-002] nccl.busbw 35.52 GB/s (limit 44.01 GB/s), 1 more
  next: set `gpus = \"none\"` in `[reach]` of the inventory, and run `harness rerun --run latest` on p5-001
";
        let expected = "\
culprit p5-002 rdmap113s0: 4.8 GB/s (2 partners), 31 others at 12.0
  (HRN-NIC-SLOW); next: harness isolate --run latest
  explains 36 of 36 red assertions, in 18 cases

\x1b[31mculprit p5-002 node: NODE_FAIL: `sinfo` reports down*: Not responding;
  next: harness explain HRN-NODE-LOST\x1b[0m
[64/86] 13:10  FAIL pair-hypercube p5-[001-002] nccl.busbw 35.52 GB/s (limit
  44.01 GB/s), 1 more
  next: set `gpus = \"none\"` in `[reach]` of the inventory, and run
    `harness rerun --run latest` on p5-001
";
        assert_eq!(break_lines(text, 80), expected);
        assert_eq!(break_lines(text, 120), text);
    }

    #[test]
    fn what_has_no_place_to_break_stays_as_it_is() {
        let path = "p".repeat(100);
        assert_eq!(break_lines(&format!("page: {path}"), 80), format!("page:\n  {path}"));
        assert_eq!(break_lines("an odd ` tick breaks", 12), "an odd `\n  tick\n  breaks");
        let command = format!("  next: harness baseline propose --run {path}");
        assert_eq!(break_lines(&command, 80), command);
        assert_eq!(letters("\x1b[31mred\x1b[0m é"), 5);
    }
}
