//! Words and numbers of lines of logs, whoever wrote them.

use super::step::Garbled;

/// A number as programs print them, `nan` and `inf` among them. Whatever stands behind it in the same word must be a unit.
pub(super) fn number(what: &str, text: &str) -> Result<f64, Garbled> {
    let word = text.split_whitespace().next().unwrap_or("").trim_end_matches([',', ';', '|']);
    let word = word.strip_suffix('%').unwrap_or(word);
    let word = word.trim_matches(['\'', '"']);
    let plain = match is_grouped(word) {
        true => word.replace(',', ""),
        false => word.to_owned(),
    };
    plain.parse().map_err(|_| Garbled { what: format!("`{what}` is no number: {:?}", shortened(text)) })
}

/// A number of steps or samples, also such as `2e+3` or `99.00`.
pub(super) fn count(what: &str, text: &str) -> Result<u64, Garbled> {
    let number = number(what, text)?;
    // Whole numbers above this are not all there as floats.
    let is_whole = number >= 0.0 && number.fract() == 0.0 && number <= 9_007_199_254_740_992.0;
    match is_whole {
        true => Ok(number as u64),
        false => Err(Garbled { what: format!("`{what}` is no count: {:?}", shortened(text)) }),
    }
}

/// `12,345`.
fn is_grouped(word: &str) -> bool {
    let mut groups = word.split('.').next().unwrap_or("").split(',');
    let first = groups.next().unwrap_or("");
    let digits = |group: &str| group.bytes().all(|b| b.is_ascii_digit());
    word.contains(',')
        && (1..=3).contains(&first.len())
        && digits(first)
        && groups.all(|group| group.len() == 3 && digits(group))
}

fn shortened(text: &str) -> String {
    text.trim().chars().take(24).collect()
}

/// What follows the first of such words.
pub(super) fn after<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    text.split_once(word).map(|(_, rest)| rest)
}

/// Digits at the front, and what follows them.
pub(super) fn digits(text: &str) -> Option<(u64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    Some((text.get(..end)?.parse().ok()?, text.get(end..)?))
}

/// The rank or task that a launcher put before a line; empty where none did.
pub(super) fn who(before: &str) -> String {
    let bare = before.trim_start();
    // ` 3: ` of srun --label.
    if let Some((task, rest)) = digits(bare)
        && rest.starts_with(':')
        && !rest[1..].starts_with(|c: char| c.is_ascii_digit())
    {
        return task.to_string();
    }
    // `[rank3]:` of torchtitan and PyTorch, `[default3]:` of torchrun.
    for word in ["[rank", "[default"] {
        if let Some((rank, rest)) = after(bare, word).and_then(digits)
            && rest.starts_with(']')
        {
            return rank.to_string();
        }
    }
    // `[pod/worker-0/pytorch]` of kubectl logs --prefix.
    if let Some((pod, _)) = bare.strip_prefix("[pod/").and_then(|rest| rest.split_once(']'))
        && pod.len() <= 128
    {
        return pod.to_owned();
    }
    // `[1,3]<stdout>:` of mpirun --tag-output.
    match bare.strip_prefix('[').and_then(|rest| rest.split_once("]<std")) {
        Some((tag, _)) if tag.len() <= 64 => tag.to_owned(),
        _ => String::new(),
    }
}

/// The first `2025-01-31 12:00:00` of a text, also with a `T`, in milliseconds since 1970 as if it were UTC.
pub(super) fn moment_ms(text: &str) -> Option<i64> {
    text.match_indices('-').find_map(|(at, _)| stamp(text.get(at.checked_sub(4)?..)?))
}

fn stamp(text: &str) -> Option<i64> {
    let bytes = text.as_bytes().get(..19)?;
    let separators = [(4, b"-" as &[u8]), (7, b"-"), (10, b" T"), (13, b":"), (16, b":")];
    if separators.iter().any(|(at, allowed)| !allowed.contains(&bytes[*at])) {
        return None;
    }
    let part =
        |from: usize, to: usize| text.get(from..to).filter(|part| part.bytes().all(|b| b.is_ascii_digit()));
    let part = |from: usize, to: usize| part(from, to)?.parse::<i64>().ok();
    let (year, month, day) = (part(0, 4)?, part(5, 7)?, part(8, 10)?);
    let (hour, minute, second) = (part(11, 13)?, part(14, 16)?, part(17, 19)?);
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let rest = text.get(19..)?;
    let fraction = rest.strip_prefix(['.', ',']).and_then(digits).map_or(0, |(_, behind)| {
        let digits = &rest[1..rest.len() - behind.len()];
        format!("{:0<3}", digits.get(..digits.len().min(3)).unwrap_or("")).parse().unwrap_or(0)
    });
    Some((((days(year, month, day) * 24 + hour) * 60 + minute) * 60 + second) * 1000 + fraction)
}

/// Days since 1970-01-01 of the calendar that all use; years begin in March here, so that the odd day is the last.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    year * 365 + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_programs_print_them_and_nothing_else_is_one() {
        let table = [
            ("1.258695E+01 ", 12.58695),
            (" 12,345.5", 12345.5),
            ("5.6%", 5.6),
            ("0.1,", 0.1),
            ("'2.5'", 2.5),
        ];
        for (text, expected) in table {
            assert_eq!(number("x", text), Ok(expected), "{text}");
        }
        assert!(number("x", "nan").is_ok_and(f64::is_nan) && number("x", "inf").is_ok_and(f64::is_infinite));
        for text in ["", "-", "****", "1,2", "12,34", "1.2.3", "12.3GiB(13%)"] {
            assert!(number("x", text).is_err(), "{text}");
        }
        assert_eq!((count("x", "2e+3"), count("x", "99.00")), (Ok(2000), Ok(99)));
        assert!(count("x", "-1").is_err() && count("x", "1.5").is_err() && count("x", "nan").is_err());
    }

    #[test]
    fn whose_line_it_is_stands_before_it() {
        let table = [
            (" 12: 2025-01-31 12:00:00 I", "12"),
            ("[rank3]:[titan] 2025", "3"),
            ("[default7]:", "7"),
            ("[1,5]<stdout>:", "1,5"),
            ("[pod/train-worker-1/pytorch] [2025-01-31", "train-worker-1/pytorch"),
            ("12:30:01 INFO", ""),
            ("2025-01-31", ""),
            ("", ""),
        ];
        for (before, expected) in table {
            assert_eq!(who(before), expected, "{before}");
        }
    }

    #[test]
    fn a_time_stamp_is_milliseconds_since_1970() {
        let table = [
            ("[1970-01-02 00:00:01]", Some(86_401_000)),
            ("0: 2025-04-07 22:06:15 I", Some(1_744_063_575_000)),
            ("2024-02-29T23:59:59.5Z", Some(1_709_251_199_500)),
            ("2021-11-12 00:32:26,118 - root", Some(1_636_677_146_118)),
            ("2025-13-07 22:06:15", None),
            ("a-b 2025-1-7 1:1:1", None),
        ];
        for (text, expected) in table {
            assert_eq!(moment_ms(text), expected, "{text}");
        }
    }
}
