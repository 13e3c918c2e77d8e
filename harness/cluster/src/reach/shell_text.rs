//! The text that makes a node's shell run an argument list, and the markers in its output that report how that went.
//! The text goes to the standard input of a plain `sh`: a person's login shell may be csh or fish, which quote in
//! another way, may print what it likes before, and takes no more than 128 KiB of command line. Markers may hold a word
//! that differs from question to question, so that no answer is taken for that to another one.

use crate::reach::Command;
use std::time::Duration;

/// The command line itself: the same for every login shell.
pub(super) const SHELL: &str = "sh";

const BEGINS: &str = "\x01harness begins";
const ENDS: &str = "\x01harness ends";
/// Behind `ENDS`: an exit code or `absent`, and the line's end.
const LONGEST_END: usize = 12;

/// What may stand around a command's own output, beside what a login shell prints.
pub(super) const AROUND: usize = BEGINS.len() + ENDS.len() + LONGEST_END + 2 * (LONGEST_WORD + 2);
/// Of the word in a marker.
const LONGEST_WORD: usize = 64;

/// The node ends the command by itself this long after the caller stopped waiting.
const SLACK: Duration = Duration::from_secs(5);

/// What stands before a command's own output. `word` may be empty.
pub(super) fn begins(word: &str) -> String {
    format!("{BEGINS}{}\n", spaced(word))
}

/// What stands behind it, up to the exit code.
pub(super) fn ends(word: &str) -> String {
    format!("{ENDS}{} ", spaced(word))
}

fn spaced(word: &str) -> String {
    if word.is_empty() { String::new() } else { format!(" {word}") }
}

/// The text for `sh`, or why there is none: no argument can hold a zero byte. `mark` is a word of letters and digits.
pub(super) fn text(command: &Command, mark: &str) -> Result<String, String> {
    let Some(program) = command.argv.first().filter(|program| !program.is_empty()) else {
        return Err("the argument list names no program".to_owned());
    };
    if let Some(odd) = command.argv.iter().find(|word| word.contains('\0')) {
        return Err(format!("an argument cannot hold a zero byte: {odd:?}"));
    }
    let program = quoted(program);
    let words = command.argv.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ");
    let limit_s = (command.limit + SLACK).as_secs();
    let mark = spaced(mark);
    Ok(format!(
        "printf '\\001harness begins{mark}\\n'\n\
         if command -v -- {program} > /dev/null 2>&1; then\n\
         if command -v timeout > /dev/null 2>&1; then timeout -k 10 {limit_s} {words} < /dev/null\n\
         else {words} < /dev/null\n\
         fi\n\
         printf '\\001harness ends{mark} %d\\n' \"$?\"\n\
         else printf '\\001harness ends{mark} absent\\n'\n\
         fi\n"
    ))
}

/// Between single quotes a POSIX shell takes everything as it is. A word that is always quoted is never a keyword, an
/// alias or an assignment.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// How a command ended, by the output of its shell.
#[derive(Debug, PartialEq)]
pub(super) enum CommandEnd {
    Ended {
        code: i32,
        stdout: Vec<u8>,
    },
    /// The program is not there.
    Absent,
    /// The output breaks off: whether the command ran to its end is not known.
    Cut,
    /// The shell never got so far: what came instead.
    NeverBegan {
        printed: Vec<u8>,
    },
}

/// Reads what came between the two marks. ssh itself cannot say whether a command ended or the connection did.
pub(super) fn parse_output(mut output: Vec<u8>, mark: &str) -> CommandEnd {
    let (begin, end) = (begins(mark), ends(mark));
    let Some(begins) = find(&output, begin.as_bytes()) else {
        return CommandEnd::NeverBegan { printed: output };
    };
    let Some(ends) = rfind(&output, end.as_bytes()).filter(|at| *at >= begins + begin.len()) else {
        return CommandEnd::Cut;
    };
    let tail = output.split_off(ends);
    let end = String::from_utf8_lossy(&tail[end.len()..]).into_owned();
    output.drain(..begins + begin.len());
    match end.strip_suffix('\n') {
        Some("absent") => CommandEnd::Absent,
        Some(code) => match code.parse() {
            Ok(code) => CommandEnd::Ended { code, stdout: output },
            Err(_) => CommandEnd::Cut,
        },
        None => CommandEnd::Cut,
    }
}

/// The first line that says anything, as far as it can be shown.
pub(super) fn first_line(printed: &[u8]) -> Option<String> {
    const SHOWN: usize = 160;
    let head = &printed[..printed.len().min(16 << 10)];
    let text = String::from_utf8_lossy(head);
    let shown = |line: &str| line.chars().filter(|c| !c.is_control()).take(SHOWN).collect::<String>();
    text.lines().map(|line| shown(line).trim().to_owned()).find(|line| !line.is_empty())
}

fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
    text.windows(wanted.len()).position(|window| window == wanted)
}

/// The end's mark is the last thing that is said: only so many bytes from the end are looked through.
fn rfind(text: &[u8], wanted: &[u8]) -> Option<usize> {
    let from = text.len().saturating_sub(wanted.len() + LONGEST_END);
    text[from..].windows(wanted.len()).rposition(|window| window == wanted).map(|at| from + at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Write;
    use std::process::{Command as Process, Stdio};

    fn command(argv: &[&str]) -> Command {
        Command::new(argv.iter().copied(), Duration::from_secs(60))
    }

    /// What a real shell makes of the text.
    fn run(shell: &str, text: &str) -> Vec<u8> {
        let mut child = Process::new(shell)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("a shell");
        child.stdin.take().expect("a pipe").write_all(text.as_bytes()).expect("written");
        child.wait_with_output().expect("an end").stdout
    }

    fn ended(code: i32, stdout: &str) -> CommandEnd {
        CommandEnd::Ended { code, stdout: stdout.into() }
    }

    #[test]
    fn a_shell_says_how_a_command_ended_whatever_was_printed_before() {
        for (argv, wanted) in [
            (vec!["printf", "a b"], ended(0, "a b")),
            (vec!["sh", "-c", "echo x; exit 7"], ended(7, "x\n")),
            (vec!["sh", "-c", "exit 127"], ended(127, "")),
            (vec!["sh", "-c", "kill -9 $$"], ended(137, "")),
            (vec!["/no/such/program"], CommandEnd::Absent),
            (vec!["A=b", "echo"], CommandEnd::Absent),
            (vec!["-x"], CommandEnd::Absent),
            (vec!["cat"], ended(0, "")),
        ] {
            let output = run("sh", &text(&command(&argv), "").expect("text"));
            assert_eq!(
                parse_output([b"welcome to the node\n", output.as_slice()].concat(), ""),
                wanted,
                "{argv:?}"
            );
        }
    }

    #[test]
    fn output_that_breaks_off_is_never_an_end() {
        let output = run("sh", &text(&command(&["echo", "x"]), "").expect("text"));
        for cut in 0..output.len() {
            let wanted = match cut < begins("").len() {
                true => CommandEnd::NeverBegan { printed: output[..cut].to_vec() },
                false => CommandEnd::Cut,
            };
            assert_eq!(parse_output(output[..cut].to_vec(), ""), wanted, "{cut}");
        }
        assert_eq!(parse_output(output, ""), ended(0, "x\n"));
    }

    #[test]
    fn the_first_line_that_says_anything_is_shown_without_what_moves_a_terminal() {
        let text = b"\r\n  \x1b[31mThis account is currently not available.\x07\r\nmore\n";
        assert_eq!(first_line(text).as_deref(), Some("[31mThis account is currently not available."));
        assert_eq!(first_line(b"\n \r\n"), None);
        assert_eq!(first_line(&[b'x'; 1000]).map(|line| line.len()), Some(160));
    }

    #[test]
    fn what_looks_like_an_end_in_the_middle_is_output() {
        let inner = "\x01harness ends 3\n".repeat(3) + "more and more and more and more and more\n";
        let output = run("sh", &text(&command(&["printf", "%s", &inner]), "").expect("text"));
        assert_eq!(parse_output(output, ""), ended(0, &inner));
    }

    #[test]
    fn the_answer_to_another_question_is_no_answer() {
        let output = run("sh", &text(&command(&["echo", "x"]), "a1").expect("text"));
        assert_eq!(parse_output(output.clone(), "a1"), ended(0, "x\n"));
        assert_eq!(parse_output(output.clone(), "a2"), CommandEnd::NeverBegan { printed: output });
        // The command itself prints an end, and the stream breaks off before the real one.
        let forged = [begins("a1").as_bytes(), b"\x01harness ends 0\n"].concat();
        assert_eq!(parse_output(forged, "a1"), CommandEnd::Cut);
    }

    #[test]
    fn what_no_argument_can_be_is_refused() {
        assert!(text(&command(&[]), "").is_err());
        assert!(text(&command(&[""]), "").is_err());
        let why = text(&command(&["a\0b"]), "").expect_err("refused");
        assert_eq!(why, "an argument cannot hold a zero byte: \"a\\0b\"");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn any_text_is_one_argument_for_a_real_shell(words in prop::collection::vec("[^\\x00]{0,12}", 1..4)) {
            let argv: Vec<&str> = ["printf", "%s|"].into_iter().chain(words.iter().map(String::as_str)).collect();
            let output = run("sh", &text(&command(&argv), "").expect("text"));
            prop_assert_eq!(parse_output(output, ""), ended(0, &(words.join("|") + "|")));
        }
    }
}
