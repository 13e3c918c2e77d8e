//! Words shared by the reports: data made fit to be shown, names, times and numbers of things.
//! Which of it is said where is decided in each report.

use std::borrow::Cow;
use std::fmt::{Display, Write};

/// Said of every simulated run, wherever its results are seen.
pub const SIMULATED: &str = "SIMULATED: nothing in this run was measured on real hardware";

/// One line of text that neither a terminal nor a CI obeys and every XML document may hold: control characters, and
/// those that turn the direction of writing, are written as escapes such as `\x1b`.
pub fn show(s: &str) -> String {
    let mut shown = String::with_capacity(s.len());
    for (at, c) in s.char_indices() {
        match c {
            '#' if shown.ends_with('#') && opens_ci_command(&s[at + 1..]) => shown.push_str("\\x23"),
            '\n' => shown.push_str("\\n"),
            '\r' => shown.push_str("\\r"),
            '\t' => shown.push_str("\\t"),
            c if c.is_control() => write!(shown, "\\x{:02x}", u32::from(c)).unwrap_or_default(),
            c if is_deceptive(c) => write!(shown, "\\u{{{:x}}}", u32::from(c)).unwrap_or_default(),
            c => shown.push(c),
        }
    }
    shown
}

/// GitHub and Azure obey `##[...]` and `##vso[...]` anywhere in a line that a job prints, and TeamCity `##teamcity[...]`.
fn opens_ci_command(rest: &str) -> bool {
    let word = rest.split('[').next().unwrap_or_default();
    word.len() < rest.len() && ["", "vso", "teamcity"].iter().any(|name| word.eq_ignore_ascii_case(name))
}

/// Characters that show something else than what stands there, or nothing, and the two that XML 1.0 leaves out.
pub fn is_deceptive(c: char) -> bool {
    // Those that turn the direction of writing or are invisible, and tags, which are letters that no font shows.
    matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
        || matches!(c, '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
        || matches!(c, '\u{fffe}' | '\u{ffff}')
}

/// Several lines of text, each of them shown; line ends and tabs are kept.
pub fn show_lines(s: &str) -> String {
    let tabs = |line: &str| line.split('\t').map(show).collect::<Vec<_>>().join("\t");
    s.lines().map(tabs).collect::<Vec<_>>().join("\n")
}

/// The beginning and the end of a text of more than `most` bytes, with what was left out between them.
pub fn cap(text: &str, most: usize) -> Cow<'_, str> {
    if text.len() <= most {
        return Cow::Borrowed(text);
    }
    let head = text.floor_char_boundary(most / 2);
    let tail = text.ceil_char_boundary(text.len() - most / 2);
    Cow::Owned(format!("{}\n[{} bytes left out]\n{}", &text[..head], tail - head, &text[tail..]))
}

/// At most so many letters of a line: its beginning, where numbers stand, and its end, where a reason stands. It is cut
/// between words where that costs little.
pub fn shorten(text: &str, most: usize) -> String {
    // Where there is no blank to cut at, none is added.
    let gap = if text.contains(' ') { " ... " } else { "..." };
    let letters = text.chars().count();
    if letters <= most {
        return text.to_owned();
    }
    let Some(room) = most.checked_sub(gap.len()) else { return ".".repeat(most.min(3)) };
    let byte = |letter: usize| text.char_indices().nth(letter).map_or(text.len(), |(at, _)| at);
    let (head, after) = text.split_at(byte((room * 2).div_ceil(3)));
    // A name is not made another one: it is cut at blanks only, but where there is none.
    let (head, left) = match head.rfind(' ').filter(|_| !after.starts_with(' ')) {
        Some(at) => (with_unit(text, &head[..at], room), " "),
        None => (head, if after.starts_with(' ') { " " } else { "" }),
    };
    let head = head.trim_end_matches([',', ';', ':', ' ']);
    let (before, tail) = text.split_at(byte(letters - (room - head.chars().count())));
    let is_whole = before.ends_with(' ') || tail.starts_with(' ');
    match tail.find(' ').filter(|_| !is_whole) {
        Some(at) => format!("{head}{left}... {}", tail[at..].trim_start()),
        None if is_whole => format!("{head}{left}... {}", tail.trim_start()),
        None if left == " " => format!("{head} ..."),
        None => format!("{head}{left}...{tail}"),
    }
}

/// The head of a text, and the unit behind it where it ends with a number.
fn with_unit<'a>(text: &'a str, head: &'a str, most: usize) -> &'a str {
    let is_number = head.rsplit(' ').next().is_some_and(|word| word.parse::<f64>().is_ok());
    let unit = text[head.len()..].trim_start().split(' ').next().unwrap_or_default();
    let whole = head.chars().count() + 1 + unit.chars().count();
    if is_number && (1..=LONGEST_UNIT).contains(&unit.chars().count()) && whole <= most {
        return &text[..head.len() + 1 + unit.len()];
    }
    head
}

/// Such as `TFLOPS`.
const LONGEST_UNIT: usize = 6;

/// `1 node`, `3 nodes`.
pub fn count<N: Display + PartialEq + From<u8>>(n: N, word: &str) -> String {
    let plural = if n == N::from(1) { "" } else { "s" };
    format!("{n} {word}{plural}")
}

/// The first of these names, and how many more there are: `a, b and 2 more`.
pub fn first_few<S: AsRef<str>>(names: &[S], most: usize) -> String {
    let first = names.iter().take(most).map(AsRef::as_ref).collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(most) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

/// `1,234,567`.
pub fn thousands(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A duration for a person: exact where it is short, in two units where it is long.
pub fn duration(seconds: f64) -> String {
    if !seconds.is_finite() || seconds < 0.0 {
        return "unknown".to_owned();
    }
    let whole = seconds.round() as u64;
    match whole {
        0..10 if seconds.fract() != 0.0 => format!("{seconds:.1} s"),
        0..120 => format!("{whole} s"),
        120..7200 if whole.is_multiple_of(60) => format!("{} min", whole / 60),
        120..7200 => format!("{} min {:02} s", whole / 60, whole % 60),
        _ if whole % 3600 < 60 => format!("{} h", whole / 3600),
        _ => format!("{} h {:02} min", whole / 3600, whole % 3600 / 60),
    }
}

/// An argument list as a shell would have to be given it.
pub fn command_line(argv: &[String]) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    let word = |word: &String| {
        if !word.is_empty() && word.chars().all(is_plain) {
            word.clone()
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    };
    show(&argv.iter().map(word).collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_beyond_the_first_few_are_counted() {
        assert_eq!(first_few(&["a", "b", "c", "d"], 4), "a, b, c, d");
        assert_eq!(first_few(&["a", "b", "c", "d", "e", "f"], 4), "a, b, c, d and 2 more");
        assert_eq!(first_few(&[] as &[&str], 4), "");
    }

    #[test]
    fn thousands_are_parted_by_commas() {
        for (number, text) in [(0, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(thousands(number), text);
        }
    }

    #[test]
    fn control_characters_are_shown_and_not_sent() {
        let table = [
            ("p5-001", "p5-001"),
            ("\x1b[31mred\x07", "\\x1b[31mred\\x07"),
            ("\0", "\\x00"),
            ("a\nb\tc\r", "a\\nb\\tc\\r"),
            ("\u{9b}31m", "\\x9b31m"),
            ("\u{202e}gpj.exe", "\\u{202e}gpj.exe"),
            ("\u{ffff}", "\\u{ffff}"),
            ("p5-0\u{61c}01\u{2060}", "p5-0\\u{61c}01\\u{2060}"),
            ("\u{e0061}\u{ad}", "\\u{e0061}\\u{ad}"),
            ("größe 中", "größe 中"),
        ];
        for (raw, shown) in table {
            assert_eq!(show(raw), shown);
        }
        assert_eq!(show_lines("a\tb\x1b\nc"), "a\tb\\x1b\nc");
    }

    #[test]
    fn commands_of_ci_systems_are_defused_anywhere_in_a_line() {
        for raw in [
            "left out p5-002: ##[error]x",
            "##vso[task.complete]",
            "###[group]",
            "##VSO[a]",
            "##teamcity[buildProblem description='x']",
        ] {
            let shown = show(raw).to_lowercase();
            assert!(
                !["##[", "##vso[", "##teamcity["].iter().any(|command| shown.contains(command)),
                "{shown}"
            );
        }
        assert_eq!(show("## heading #[a] #1"), "## heading #[a] #1");
    }

    #[test]
    fn a_long_text_keeps_its_beginning_and_its_end() {
        assert_eq!(cap("short", 64), "short");
        assert_eq!(cap("aaaabbbbbbbbcccc", 8), "aaaa\n[8 bytes left out]\ncccc");
    }

    #[test]
    fn a_line_that_is_cut_keeps_the_reason_at_its_end() {
        let refused = "ssh: connect to host p5-003.cluster.internal port 22: Connection refused";
        for (text, most, expected) in [
            ("as it is", 8, "as it is"),
            (refused, 44, "ssh: connect to host ... Connection refused"),
            ("one_word_without_any_blank", 15, "one_word...lank"),
            ("größe größe größe größe", 14, "größe ..."),
            (
                "culprit p5-002 rdmap113s0: 4.8 GB/s with p5-001 (2 partners)",
                54,
                "culprit p5-002 rdmap113s0: 4.8 GB/s ... (2 partners)",
            ),
            (
                "job p5-002 of `gpu-each`: gpu0.p5-002.out: not there",
                42,
                "job p5-002 of `gpu-each` ... not there",
            ),
            ("abcd", 3, "..."),
            ("abc", 2, ".."),
            ("", 0, ""),
        ] {
            let short = shorten(text, most);
            assert_eq!(short, expected);
            assert!(short.chars().count() <= most, "{short}");
        }
    }

    #[test]
    fn durations_are_exact_where_short_and_rounded_where_long() {
        let said = [0.0, 2.5, 42.0, 119.6, 754.0, 7200.0, 9000.0, f64::NAN].map(duration);
        assert_eq!(said, ["0 s", "2.5 s", "42 s", "2 min", "12 min 34 s", "2 h", "2 h 30 min", "unknown"]);
    }

    #[test]
    fn arguments_are_quoted_where_a_shell_would_split_or_obey_them() {
        let argv = ["srun", "--mpi=pmix", "a b", "", "it's", "$HOME"].map(String::from);
        assert_eq!(command_line(&argv), r"srun --mpi=pmix 'a b' '' 'it'\''s' '$HOME'");
    }

    proptest! {
        #[test]
        fn nothing_shown_is_a_control_character_and_capped_text_is_short(s in any::<String>(), most in 0usize..64) {
            prop_assert!(!show(&s).chars().any(|c| c.is_control() || is_deceptive(c)));
            prop_assert!(cap(&s, most).len() <= most.max(s.len().min(most)) + 48);
        }
    }
}
