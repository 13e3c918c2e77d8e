//! What a person sees at a terminal of 80x24 and of 120x40: a run while its jobs run, and when it is over.

use crate::broken_launcher::without_controller;
use crate::project::Project;
use nix::pty::{Winsize, openpty};
use std::fs::File;
use std::io::Read;
use std::process::{Command, Stdio};

/// The lines that were written, as far as the harness needs a terminal for them: text, ends of lines, the cursor moved, parts
/// erased. Colours are left out.
struct Screen {
    columns: usize,
    /// Of what is seen at once.
    height: usize,
    lines: Vec<Vec<char>>,
    row: usize,
    column: usize,
    /// What came of a control sequence after its ESC.
    sequence: Option<String>,
}

impl Screen {
    fn new(columns: u16, rows: u16) -> Screen {
        let (columns, height) = (columns.into(), rows.into());
        Screen { columns, height, lines: vec![Vec::new()], row: 0, column: 0, sequence: None }
    }

    fn feed(&mut self, text: &str) {
        for letter in text.chars() {
            match (self.sequence.take(), letter) {
                (Some(begun), letter) => {
                    let sequence = format!("{begun}{letter}");
                    match letter.is_ascii_alphabetic() {
                        true => self.obey(&sequence),
                        false => self.sequence = Some(sequence),
                    }
                }
                (None, '\x1b') => self.sequence = Some(String::new()),
                (None, '\r') => self.column = 0,
                (None, '\n') => self.row += 1,
                (None, letter) => self.put(letter),
            }
            let needed = self.lines.len().max(self.row + 1);
            self.lines.resize(needed, Vec::new());
        }
    }

    fn put(&mut self, letter: char) {
        if self.column == self.columns {
            (self.row, self.column) = (self.row + 1, 0);
            let needed = self.lines.len().max(self.row + 1);
            self.lines.resize(needed, Vec::new());
        }
        let line = &mut self.lines[self.row];
        let needed = line.len().max(self.column + 1);
        line.resize(needed, ' ');
        line[self.column] = letter;
        self.column += 1;
    }

    fn obey(&mut self, sequence: &str) {
        let inner = sequence.trim_start_matches('[');
        let (number, what) = inner.split_at(inner.len().saturating_sub(1));
        let n = number.parse::<usize>().unwrap_or(1);
        match what {
            "A" => self.row = self.row.saturating_sub(n),
            "B" => self.row += n,
            "C" => self.column = (self.column + n).min(self.columns - 1),
            "D" => self.column = self.column.saturating_sub(n),
            "G" => self.column = n.saturating_sub(1),
            "K" if number == "2" => self.lines[self.row].clear(),
            "K" => self.lines[self.row].truncate(self.column),
            "J" => {
                self.lines.truncate(self.row + 1);
                self.lines[self.row].truncate(self.column);
            }
            "m" | "h" | "l" => {}
            other => panic!("a sequence that no test knows: {number}{other}"),
        }
    }

    /// What is seen, the prompt in the last row.
    fn text(&self) -> String {
        let from = (self.row + 1).saturating_sub(self.height);
        let lines =
            self.lines[from..].iter().map(|line| line.iter().collect::<String>().trim_end().to_owned());
        lines.collect::<Vec<_>>().join("\n")
    }
}

/// The last screen on which jobs run, the last of all, and the exit code.
fn at_terminal((columns, rows): (u16, u16), mut command: Command) -> (String, String, Option<i32>) {
    let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    let pty = openpty(Some(&size), None).expect("a terminal");
    let slave = || Stdio::from(pty.slave.try_clone().expect("cloned"));
    command.env("NO_COLOR", "1").env("TERM", "xterm").stdout(slave()).stderr(slave());
    let mut child = command.spawn().expect("the harness starts");
    // The end is seen when no other writer is left.
    drop(command);
    drop(pty.slave);
    let mut terminal = File::from(pty.master);
    let mut screen = Screen::new(columns, rows);
    let (mut running, mut buffer) = (String::new(), [0; 4096]);
    // A terminal without a writer cannot be read.
    while let Ok(read @ 1..) = terminal.read(&mut buffer) {
        screen.feed(&String::from_utf8_lossy(&buffer[..read]));
        let shown = screen.text();
        if shown.contains(" running") && shown.contains(" s: nic-pairs p5-") {
            running = shown;
        }
    }
    let code = child.wait().expect("the harness ends").code();
    (running, screen.text(), code)
}

#[test]
fn at_a_terminal_jobs_are_shown_while_they_run_and_then_the_culprit_with_a_whole_command() {
    let project = Project::new();
    for size in [(80, 24), (120, 40)] {
        let args = ["--suite", "nccl-p5", "--sim-fault", "p5-002:nic-slow=0.4@rdmap113s0", "nic-pairs"];
        let (running, last, code) = at_terminal(size, project.command(&args));
        println!("{size:?}\n{running}\n\n{last}");
        assert_eq!(code, Some(1), "{last}");
        let is_head = |line: &str| line.contains("/8] ") && line.contains(" node-hours, about ");
        let is_bar = |line: &str| line.starts_with('[') && line.contains(" s: nic-pairs ");
        assert!(running.lines().any(is_head) && running.lines().any(is_bar), "{running}");
        for piece in [
            "[8/8] 2:00  FAIL nic-pairs p5-002 rdmap113s0 4.79 GB/s (limit 11.00 GB/s)\n",
            "\nculprit p5-002 rdmap113s0: 4.8 GB/s",
            "next: harness isolate --run latest\n",
            "\nFAILED: 1 bad part on 1 of 4 nodes (exit 1)",
        ] {
            assert!(last.contains(piece), "{piece}: {last}");
        }
        assert!(!last.contains(" running"), "bars are removed: {last}");
    }
}

#[test]
fn at_a_terminal_a_controller_that_cannot_be_reached_is_said_in_lines_that_break_between_words() {
    let project = Project::new();
    for (size, nodes) in [((80, 24), "blamed:\n  p5-[001-032]\n"), ((120, 40), "blamed: p5-[001-032]\n")] {
        let (_, last, code) = at_terminal(size, without_controller(&project));
        println!("{size:?}\n{last}");
        assert_eq!(code, Some(3), "{last}");
        for piece in [nodes, "\ncheck: `sinfo` ", "\nINCONCLUSIVE: nothing was launched (exit 3)"] {
            assert!(last.contains(piece), "{piece}: {last}");
        }
    }
}

#[test]
fn the_screen_of_these_tests_moves_wraps_and_erases_like_a_terminal() {
    let mut screen = Screen::new(4, 2);
    screen.feed("abcdef\r\ngh\x1b[31mi\x1b[0m\r\x1b[2Kj\r\n\x1b[1Ak\x1b[K");
    assert_eq!(
        screen.lines.iter().map(|line| line.iter().collect()).collect::<Vec<String>>()[..3],
        ["abcd", "ef", "k"]
    );
    assert_eq!(screen.text(), "ef\nk\n");
}
