//! Numbers in lines of training logs, of all programs.

use super::step::Garbled;

/// A number as programs print them, `nan` and `inf` among them. Whatever stands behind it in the same word must be a
/// unit.
pub(super) fn number(what: &str, text: &str) -> Result<f64, Garbled> {
    let word = text.split_whitespace().next().unwrap_or("").trim_end_matches([',', ';', '|']);
    let word = word.strip_suffix('%').unwrap_or(word);
    let word = word.trim_matches(['\'', '"']);
    let plain = match is_grouped(word) {
        true => word.replace(',', ""),
        false => word.to_owned(),
    };
    // Lightning adds a point and zeros to whatever has no point: `nan.0`, `-inf.`.
    let named = plain.trim_end_matches('0').strip_suffix('.').filter(|name| !name.contains(is_digit));
    let number = plain.parse::<f64>().or_else(|error| named.map_or(Err(error), str::parse));
    number.map_err(|_| Garbled { what: format!("`{what}` is not a number: {:?}", shortened(text)) })
}

/// A number of steps or samples, also such as `2e+3` or `99.00`.
pub(super) fn count(what: &str, text: &str) -> Result<u64, Garbled> {
    let number = number(what, text)?;
    // Whole numbers above this are not all there as floats.
    let is_whole = number >= 0.0 && number.fract() == 0.0 && number <= 9_007_199_254_740_992.0;
    match is_whole {
        true => Ok(number as u64),
        false => Err(Garbled { what: format!("`{what}` is not a count: {:?}", shortened(text)) }),
    }
}

fn is_digit(c: char) -> bool {
    c.is_ascii_digit()
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

/// `1.31K`, `25.4M`: thousands, millions and so on.
pub(super) fn human(what: &str, text: &str) -> Result<f64, Garbled> {
    const SCALES: [(char, f64); 4] = [('K', 1e3), ('M', 1e6), ('B', 1e9), ('T', 1e12)];
    let text = text.trim();
    let scaled = SCALES.iter().find_map(|(letter, scale)| Some((text.strip_suffix(*letter)?, *scale)));
    let (digits, scale) = scaled.unwrap_or((text, 1.0));
    Ok(number(what, digits)? * scale)
}

/// How many digits stand behind the point of a number that has no exponent.
pub(super) fn decimals(text: &str) -> Option<i8> {
    let number = text.trim();
    let is_plain = number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let decimals = number.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    i8::try_from(decimals).ok().filter(|_| is_plain)
}

/// Parts a text at a mark that stands behind no more than a few words: a line of heads alone takes linear time.
pub(super) fn part_near<'a>(text: &'a str, mark: &str) -> Option<(&'a str, &'a str)> {
    const NEAR: usize = 128;
    let at = text.get(..text.floor_char_boundary(NEAR))?.find(mark)?;
    Some((text.get(..at)?, text.get(at + mark.len()..)?))
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
        assert!(number("x", "nan.0").is_ok_and(f64::is_nan) && number("x", "NaN.0,").is_ok_and(f64::is_nan));
        assert_eq!((number("x", "inf.0"), number("x", "-inf.")), (Ok(f64::INFINITY), Ok(f64::NEG_INFINITY)));
        for text in
            ["", "-", "****", "1,2", "12,34", "1.2.3", "12.3GiB(13%)", "12.0.0", "1e999.0", "x.0", ".0.0"]
        {
            assert!(number("x", text).is_err(), "{text}");
        }
        assert_eq!(
            (human("x", " 1.31K "), human("x", "25.4M"), human("x", "11")),
            (Ok(1310.0), Ok(25.4e6), Ok(11.0))
        );
        assert!(human("x", "K").is_err() && human("x", "1.3KK").is_err() && human("x", "1.3k").is_err());
        assert_eq!((decimals("20.25"), decimals("20"), decimals("2e1")), (Some(2), Some(0), None));
        assert_eq!((part_near("3.1, time 2", ", time "), part_near("", "]")), (Some(("3.1", "2")), None));
        assert_eq!(part_near(&("é".repeat(64) + "]"), "]"), None);
        assert_eq!((count("x", "2e+3"), count("x", "99.00")), (Ok(2000), Ok(99)));
        assert!(count("x", "-1").is_err() && count("x", "1.5").is_err() && count("x", "nan").is_err());
    }
}
