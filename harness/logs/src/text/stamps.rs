//! Time stamps as programs, launchers and log collectors write them.

/// Whether bytes are as the pattern: `d` a digit, `a` a letter, `_` a digit or blank, all else itself.
fn is_shaped(text: &str, pattern: &str) -> bool {
    text.len() == pattern.len()
        && text.bytes().zip(pattern.bytes()).all(|(byte, form)| match form {
            b'd' => byte.is_ascii_digit(),
            b'a' => byte.is_ascii_alphabetic(),
            b'_' => byte.is_ascii_digit() || byte == b' ',
            form => byte == form,
        })
}

/// The length of `2025-01-31T12:00:00.123Z `, with or without brackets, and of the blank that joins it to the line.
pub(super) fn iso(text: &str) -> Option<usize> {
    let bare = text.strip_prefix('[').unwrap_or(text);
    let date = bare.get(..19)?;
    if !is_shaped(date, "dddd-dd-ddTdd:dd:dd") && !is_shaped(date, "dddd-dd-dd dd:dd:dd") {
        return None;
    }
    let zone = bare
        .get(19..)?
        .trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | ',' | ':' | '+' | '-' | 'Z'));
    let zone = zone.strip_prefix(']').unwrap_or(zone);
    let rest = zone.strip_prefix(' ').or_else(|| zone.is_empty().then_some(zone))?;
    Some(text.len() - rest.len())
}

/// The length of `[12:00:01] ` and of whatever else `NCCL_DEBUG_TIMESTAMP_FORMAT` puts into brackets.
pub(super) fn bracketed(text: &str) -> Option<usize> {
    let (stamp, rest) = text.strip_prefix('[')?.split_once("] ")?;
    let is_stamp = stamp.starts_with(|c: char| c.is_ascii_digit())
        && (8..40).contains(&stamp.len())
        && stamp.contains(':')
        && stamp.bytes().all(|byte| byte.is_ascii_digit() || b" :.,-+/TZ".contains(&byte));
    is_stamp.then_some(text.len() - rest.len())
}

/// The length of `Nov 20 10:00:01 ` of syslog and journald.
pub(super) fn syslog(text: &str) -> Option<usize> {
    text.get(..16).filter(|stamp| is_shaped(stamp, "aaa _d dd:dd:dd ")).map(str::len)
}

/// What stands before `Thu Nov 20 10:00:01 2025` at the end of a text.
pub(super) fn without_ctime(text: &str) -> Option<&str> {
    let (front, stamp) = text.split_at_checked(text.len().checked_sub(24)?)?;
    is_shaped(stamp, "aaa aaa _d dd:dd:dd dddd").then_some(front)
}

/// The first `2025-01-31 12:00:00` of a text, also with a `T`, in milliseconds since 1970 as if it were UTC.
pub(in super::super) fn moment_ms(text: &str) -> Option<i64> {
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
    let fraction = text.get(19..)?.strip_prefix(['.', ',']).map_or(0, |rest| {
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len()).min(3);
        format!("{:0<3}", &rest[..end]).parse().unwrap_or(0)
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
