//! Durations as people type them: `90`, `90s`, `10m`, `1h30m`, `30d`.

const UNITS: [(char, u64); 4] = [('s', 1), ('m', 60), ('h', 3600), ('d', 86400)];

/// Whole seconds, at least one. A number without a unit is seconds.
pub(super) fn parse(text: &str) -> Result<u64, String> {
    let odd = || "expected a duration such as `90s`, `10m` or `1h30m`; a number alone is seconds".to_owned();
    let mut seconds = 0u64;
    let mut digits = String::new();
    let mut least = u64::MAX;
    for letter in text.chars() {
        if letter.is_ascii_digit() {
            digits.push(letter);
            continue;
        }
        let (_, unit) = UNITS.into_iter().find(|(name, _)| *name == letter).ok_or_else(odd)?;
        // `30m1h` is a slip, and so is `1h1h`.
        if unit >= least {
            return Err(odd());
        }
        least = unit;
        let count: u64 = std::mem::take(&mut digits).parse().map_err(|_| odd())?;
        seconds = count.checked_mul(unit).and_then(|more| seconds.checked_add(more)).ok_or_else(odd)?;
    }
    if !digits.is_empty() {
        if least != u64::MAX {
            return Err(odd());
        }
        seconds = digits.parse().map_err(|_| odd())?;
    }
    if seconds == 0 { Err(odd()) } else { Ok(seconds) }
}

/// The same where a forgotten unit would do harm: `90` may have been meant as days.
pub(super) fn with_unit(text: &str) -> Result<u64, String> {
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(format!("{text} of what? write `{text}d`, `{text}h` or `{text}s`"));
    }
    parse(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_a_unit_is_needed_a_number_alone_is_refused() {
        assert_eq!(with_unit("90").expect_err("refused"), "90 of what? write `90d`, `90h` or `90s`");
        assert_eq!(with_unit("90d"), Ok(90 * 86400));
        assert!(with_unit("").is_err());
    }

    #[test]
    fn a_duration_has_units_from_the_largest_on() {
        let all = [("90", 90), ("90s", 90), ("10m", 600), ("1h30m", 5400), ("2h", 7200), ("1d1s", 86401)];
        for (text, seconds) in all {
            assert_eq!(parse(text), Ok(seconds), "{text}");
        }
        for text in ["", "0", "m", "10x", "30m1h", "1h1h", "1h30", "-5", "1.5h", "99999999999999999999s"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
