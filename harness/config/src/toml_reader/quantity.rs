//! Quantities as people write them: sizes (`64KiB`, `2G`), rates (`11 GB/s`), times (`75 us`), shares (`20 %`).

use super::Value;
use super::value::Scalar;
use metric::unit::Unit;

/// Bytes. Units are binary as in nccl-tests, where `1G` is 2^30.
pub fn size(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let factor: u64 = match unit.trim() {
        "" | "B" | "bytes" => 1,
        "K" | "k" | "KiB" => 1 << 10,
        "M" | "m" | "MiB" => 1 << 20,
        "G" | "g" | "GiB" => 1 << 30,
        "T" | "t" | "TiB" => 1 << 40,
        "KB" | "kB" | "MB" | "GB" | "TB" => {
            return Err(format!(
                "a size has a binary unit, such as `{number}{}iB`, not: `{text}`",
                unit_letter(unit)
            ));
        }
        _ => {
            return Err(format!(
                "a size is a number with KiB, MiB, GiB or nothing, not: `{}`",
                text.escape_debug()
            ));
        }
    };
    if number.is_empty() {
        return Err(format!("a size must begin with a number: `{}`", text.escape_debug()));
    }
    let too_large = || format!("a size must fit 64 bits: `{text}`");
    number.parse::<u64>().ok().and_then(|number| number.checked_mul(factor)).ok_or_else(too_large)
}

/// A size above zero, as text or as a whole number.
pub fn size_of(value: &Value<'_>) -> Option<u64> {
    let size = match value.scalar() {
        Some(Scalar::Text(text)) => value.parsed(size(&text))?,
        Some(Scalar::Integer(_)) => value.whole(0..=u64::MAX)?,
        _ => return value.wrong("a size such as `\"1GiB\"`"),
    };
    if size == 0 {
        value.diagnostic(format!("`{}` must be above 0", value.key()));
        return None;
    }
    Some(size)
}

/// A number in `unit`. What has a unit must be written with it; counts and ratios may stand as plain numbers.
pub(crate) fn quantity_of(value: &Value<'_>, unit: Unit) -> Option<f64> {
    let number = match (value.scalar(), unit) {
        (Some(Scalar::Text(text)), Unit::Bytes) => value.parsed(size(&text))? as f64,
        (Some(Scalar::Text(text)), _) => value.parsed(quantity(&text, unit))?,
        (Some(Scalar::Integer(_) | Scalar::Float(_)), Unit::Count | Unit::Ratio | Unit::Bytes) => {
            value.number()?
        }
        // Nothing is nothing in every unit.
        (Some(Scalar::Integer(0)), _) => 0.0,
        (Some(Scalar::Integer(_) | Scalar::Float(_)), _) => {
            let number = value.number()?;
            let suggestion = format!("write `\"{number} {unit}\"`");
            value.diagnostic_with(format!("`{}` needs its unit: `{number}`", value.key()), suggestion);
            return None;
        }
        _ => return value.wrong(&format!("a number in {unit}")),
    };
    if !number.is_finite() || number < 0.0 {
        value.diagnostic(format!("`{}` must be at least 0, not: {number}", value.key()));
        return None;
    }
    Some(number)
}

/// A share such as `"20 %"` or `0.2`, above 0 and below 1.
pub(crate) fn share_of(value: &Value<'_>) -> Option<f64> {
    let share = quantity_of(value, Unit::Ratio)?;
    if share <= 0.0 || share >= 1.0 {
        let message = format!("`{}` must lie between 0 % and 100 %, not: {} %", value.key(), share * 100.0);
        // `5` for `5 %`.
        let is_plain = !matches!(value.scalar(), Some(Scalar::Text(text)) if text.contains('%'));
        match is_plain && share > 1.0 && share < 100.0 {
            true => value.diagnostic_with(message, format!("write `\"{share} %\"`")),
            false => value.diagnostic(message),
        }
        return None;
    }
    Some(share)
}

/// A line rate such as `"100 Gb/s"`, in GB/s.
pub(crate) fn line_rate_of(value: &Value<'_>) -> Option<f64> {
    let text = value.text()?;
    let wrong_form =
        || format!("`{}` is written such as `\"100 Gb/s\"`, not: `{}`", value.key(), text.escape_debug());
    let rate = match split(&text) {
        Some((number, "Gb/s" | "Gbit/s")) if number > 0.0 => Ok(number / 8.0),
        _ => Err(wrong_form()),
    };
    value.parsed(rate)
}

fn quantity(text: &str, unit: Unit) -> Result<f64, String> {
    let shown = text.escape_debug();
    let Some((number, written)) = split(text) else {
        return Err(match unit {
            Unit::Count => format!("a count is a plain number, not: `{shown}`"),
            _ => format!("a number with its unit ({unit}) is needed, not: `{shown}`"),
        });
    };
    match (written, unit) {
        ("%", Unit::Ratio) => Ok(number / 100.0),
        ("", Unit::Count | Unit::Ratio) => Ok(number),
        (written, _) if written == unit.name() => Ok(number),
        ("", _) => Err(format!("the unit is missing, {unit} is needed: `{shown}`; write `{number} {unit}`")),
        (_, Unit::Count) => Err(format!("wrong unit, a count has none: `{shown}`; write `{number}`")),
        _ => {
            let meant = converted(number, written, unit);
            let meant = meant.map(|number| format!("; write `{number} {unit}`")).unwrap_or_default();
            Err(format!("wrong unit, {unit} is needed: `{shown}`{meant}"))
        }
    }
}

/// The same in the unit that is needed, where the unit that was written is of its kind.
fn converted(number: f64, written: &str, unit: Unit) -> Option<f64> {
    let in_base = |name: &str| {
        Some(match name {
            "Gb/s" | "Gbit/s" | "Gbps" => (0.125, true),
            "GBps" | "GB/sec" | "GB/s" => (1.0, true),
            "GiB/s" => (1.073_741_824, true),
            "MB/s" | "MBps" => (1e-3, true),
            "TB/s" => (1e3, true),
            "ns" => (1e-9, false),
            "us" | "µs" => (1e-6, false),
            "ms" => (1e-3, false),
            "s" | "sec" | "seconds" => (1.0, false),
            "m" | "min" => (60.0, false),
            _ => return None,
        })
    };
    let ((from, is_rate), (to, other)) = (in_base(written)?, in_base(unit.name())?);
    // Rounded: `0.3`, not `0.30000000000000004`.
    let value = number * from / to;
    (is_rate == other).then(|| format!("{value:.6}").parse().unwrap_or(value))
}

/// A duration such as `10m` or `90 s` in seconds.
pub(crate) fn seconds(text: &str) -> Option<u64> {
    let (number, unit) = split(text)?;
    let factor = match unit {
        "s" | "sec" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return None,
    };
    let seconds = number * factor;
    (seconds >= 1.0 && seconds.fract() == 0.0 && seconds < 1e9).then_some(seconds as u64)
}

/// A finite number and what stands behind it. Words such as `inf` and `NaN` are no numbers here.
fn split(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let is_part = |c: char| c.is_ascii_digit() || matches!(c, '.' | '-' | '+');
    let end = text.find(|c: char| !is_part(c)).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let number: f64 = number.parse().ok()?;
    number.is_finite().then_some((number, unit.trim()))
}

fn unit_letter(unit: &str) -> char {
    unit.trim().chars().next().unwrap_or('K').to_ascii_uppercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_in_the_units_of_nccl_tests() {
        for (text, bytes) in
            [("8", 8), ("64KiB", 65536), ("1 GiB", 1 << 30), ("2G", 2 << 30), ("16GiB", 16 << 30)]
        {
            assert_eq!(size(text), Ok(bytes));
        }
        for text in ["", "GiB", "1.5GiB", "1GB", "-1", "99999999999999999999", "20000000T", "1 GiB x", "é"] {
            assert!(size(text).is_err(), "{text}");
        }
        assert_eq!(size("4 GB"), Err("a size has a binary unit, such as `4GiB`, not: `4 GB`".to_owned()));
    }

    #[test]
    fn a_quantity_must_have_the_unit_of_its_metric() {
        let rate = Unit::GigabytesPerSecond;
        assert_eq!(quantity("11 GB/s", rate), Ok(11.0));
        assert_eq!(quantity("11.5GB/s", rate), Ok(11.5));
        assert_eq!(quantity("20 %", Unit::Ratio), Ok(0.2));
        assert_eq!(quantity("75 us", Unit::Microseconds), Ok(75.0));
        let wrong = [
            ("400 Gb/s", rate, "`50 GB/s`"),
            ("11 us", rate, "wrong unit, GB/s is needed"),
            ("11", rate, "the unit is missing, GB/s is needed: `11`; write `11 GB/s`"),
            ("300 MB/s", rate, "write `0.3 GB/s`"),
            ("2400 Gbps", rate, "write `300 GB/s`"),
            ("75 ms", Unit::Microseconds, "write `75000 us`"),
            ("3 GB/s", Unit::Count, "a count has none"),
            ("NaN GB/s", rate, "a number with its unit"),
            ("inf", Unit::Count, "a plain number"),
        ];
        for (text, unit, part) in wrong {
            let message = quantity(text, unit).expect_err(text);
            assert!(message.contains(part), "{text}: {message}");
        }
    }
}
