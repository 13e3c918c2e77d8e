//! The cells of a row: which texts nccl-tests may have printed there, and how it prints numbers itself.
//! How cells make a row is `row`'s business.

use super::{Half, Rounding, Wrong};

/// A time or bandwidth that was printed, and half a unit of its last digit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Figure {
    pub value: f64,
    pub half_width: f64,
}

/// What a text in the place of a figure is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Cell {
    Figure(Figure),
    NotApplicable,
    /// NaN, infinity or below zero.
    NotANumber,
    /// Nothing that is printed there.
    Odd,
}

/// Reads `83.33`, `39657`, `1.2e+07`, `N/A`, `-nan`. An integer below 10,000 is never a time or bandwidth: those have
/// decimals, so an integer there means that the cells are shifted.
pub(super) fn figure(text: &str) -> Cell {
    if text == "N/A" {
        return Cell::NotApplicable;
    }
    let bare = text.strip_prefix(['-', '+']).unwrap_or(text).to_ascii_lowercase();
    if bare == "nan" || bare.starts_with("nan(") || bare == "inf" || bare == "infinity" {
        return Cell::NotANumber;
    }
    let Some((value, half_width, decimals, exponent)) = number(&bare) else { return Cell::Odd };
    if decimals == 0 && !exponent && bare.len() < 5 {
        return Cell::Odd;
    }
    if text.starts_with('-') && value > 0.0 {
        return Cell::NotANumber;
    }
    if !value.is_finite() {
        return Cell::NotANumber;
    }
    Cell::Figure(Figure { value, half_width })
}

/// The value, half a unit of the last digit, the number of decimals, and whether there was an exponent.
fn number(text: &str) -> Option<(f64, f64, i32, bool)> {
    let (mantissa, exponent) = match text.split_once('e') {
        None => (text, None),
        Some((mantissa, exponent)) => {
            let digits = exponent.strip_prefix(['+', '-'])?;
            if !(2..=3).contains(&digits.len()) || !is_digits(digits) {
                return None;
            }
            (mantissa, Some(exponent.parse::<i32>().ok()?))
        }
    };
    let (whole, fraction) = mantissa.split_once('.').map_or((mantissa, None), |(w, f)| (w, Some(f)));
    if !is_digits(whole) || whole.len() > 18 || fraction.is_some_and(|f| !is_digits(f) || f.len() > 18) {
        return None;
    }
    let decimals = fraction.map_or(0, |f| f.len() as i32);
    let power = exponent.unwrap_or(0) - decimals;
    Some((text.parse().ok()?, 0.5 * 10f64.powi(power), decimals, exponent.is_some()))
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

/// A whole number without sign.
pub(super) fn whole(text: &str) -> Option<u64> {
    if is_digits(text) { text.parse().ok() } else { None }
}

/// What the last column of a half says it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WrongColumn {
    Count,
    MaxError,
    /// Without headings the format of the number decides: a count is never printed with so small an exponent.
    Unknown,
}

/// Reads the column `#wrong` or `error`; nothing where the text is neither.
pub(super) fn wrong(text: &str, column: WrongColumn) -> Option<Wrong> {
    if text == "N/A" {
        return Some(Wrong::NotChecked);
    }
    let (value, _, decimals, exponent) = number(text)?;
    if !value.is_finite() {
        return None;
    }
    // An error is printed with `%.0e`, a count with `%g`, which writes exponents from the sixth power on only.
    let as_error = exponent && decimals == 0;
    let as_count = if exponent { value >= 1e5 } else { decimals == 0 };
    match column {
        WrongColumn::MaxError | WrongColumn::Unknown
            if as_error && !(as_count && column == WrongColumn::Unknown) =>
        {
            Some(Wrong::MaxError(value))
        }
        WrongColumn::Count | WrongColumn::Unknown if as_count => Some(Wrong::Count(value)),
        _ => None,
    }
}

/// Whether no longer text of the same number could have been meant: only then may it be the end of a file.
pub(super) fn wrong_is_complete(text: &str, column: WrongColumn) -> bool {
    match column {
        _ if text == "N/A" => true,
        WrongColumn::MaxError => number(text).is_some_and(|(.., exponent)| exponent),
        WrongColumn::Count | WrongColumn::Unknown => text == "0",
    }
}

/// The types with the bytes of one element.
const DTYPES: [(&str, u64); 22] = [
    ("int8", 1),
    ("uint8", 1),
    ("int32", 4),
    ("uint32", 4),
    ("int64", 8),
    ("uint64", 8),
    ("half", 2),
    ("float", 4),
    ("double", 8),
    ("bfloat16", 2),
    ("f8e4m3", 1),
    ("f8e5m2", 1),
    // As variants of nccl-tests call them.
    ("fp8_e4m3", 1),
    ("fp8_e5m2", 1),
    ("fp8e4m3", 1),
    ("fp8e5m2", 1),
    ("char", 1),
    ("int", 4),
    ("float16", 2),
    ("float32", 4),
    ("float64", 8),
    ("bf16", 2),
];

pub(super) fn is_dtype(text: &str) -> bool {
    element_bytes(text).is_some()
}

/// Bytes of one element of a type, such as 2 for `bfloat16`; None for an unknown one.
pub fn element_bytes(dtype: &str) -> Option<u64> {
    DTYPES.iter().find(|(name, _)| *name == dtype).map(|(_, bytes)| *bytes)
}

pub(super) fn may_become_dtype(text: &str) -> bool {
    !text.is_empty() && DTYPES.iter().any(|(name, _)| name.starts_with(text))
}

pub(super) fn is_redop(text: &str) -> bool {
    ["sum", "prod", "max", "min", "avg", "mulsum", "none"].contains(&text)
}

impl Half {
    /// A half as it would be printed: rounded to the digits that fit the columns.
    #[cfg(test)]
    pub(crate) fn printed(time_us: f64, algbw_gb_s: f64, busbw_gb_s: f64, wrong: Wrong) -> Option<Half> {
        let read = |value: f64, width: usize| match figure(&fit(value, width)) {
            Cell::Figure(figure) => Some(figure),
            _ => None,
        };
        let wrong = match wrong {
            Wrong::Count(count) => self::wrong(&general(count), WrongColumn::Count)?,
            other => other,
        };
        Some(Half::new(read(time_us, 7)?, read(algbw_gb_s, 6)?, read(busbw_gb_s, 6)?, wrong))
    }

    pub(super) fn new(time: Figure, algbw: Figure, busbw: Figure, wrong: Wrong) -> Half {
        Half {
            time_us: time.value,
            algbw_gb_s: algbw.value,
            busbw_gb_s: busbw.value,
            wrong,
            iterations: None,
            rounding: Rounding {
                time_us: time.half_width,
                algbw_gb_s: algbw.half_width,
                busbw_gb_s: busbw.half_width,
            },
        }
    }
}

/// A figure with as many decimals as the width leaves room for, as 2.17.3 and later print it, without padding.
pub(super) fn fit(value: f64, width: usize) -> String {
    let mut power = 0;
    let mut bound = 1.0;
    while value >= bound && power <= width {
        bound *= 10.0;
        power += 1;
    }
    if power + 2 < width {
        format!("{value:.2}")
    } else if power + 1 < width {
        format!("{value:.1}")
    } else if power < width + 1 {
        format!("{value:.0}")
    } else if width >= 7 {
        scientific(value, 1)
    } else {
        scientific(value, 0)
    }
}

/// C's `%.Ne`.
fn scientific(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$e}");
    let Some((mantissa, exponent)) = text.split_once('e') else { return text };
    let (sign, digits) = exponent.strip_prefix('-').map_or(('+', exponent), |digits| ('-', digits));
    format!("{mantissa}e{sign}{digits:0>2}")
}

/// C's `%.0e`, for the column `error`.
pub(super) fn error(value: f64) -> String {
    scientific(value, 0)
}

/// C's `%g`: six digits, without trailing zeros.
pub(super) fn general(value: f64) -> String {
    let rounded = scientific(value, 5);
    let Some((mantissa, exponent)) = rounded.split_once('e') else { return rounded };
    let trim = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    match exponent.parse::<i32>() {
        Ok(power) if (-4..6).contains(&power) => trim(&format!("{value:.*}", (5 - power).max(0) as usize)),
        _ => format!("{}e{exponent}", trim(mantissa)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_printed_as_wide_as_they_fit() {
        let table = [
            (0.0, 7, "0.00"),
            (83.327, 7, "83.33"),
            (1625.634, 7, "1625.63"),
            (27211.04, 7, "27211.0"),
            (196284.2, 7, "196284"),
            (1234567.0, 7, "1234567"),
            (12345678.0, 7, "1.2e+07"),
            (999.994, 6, "999.99"),
            (1000.0, 6, "1000.0"),
            (123456.0, 6, "123456"),
            (1234567.0, 6, "1e+06"),
        ];
        for (value, width, text) in table {
            assert_eq!(fit(value, width), text, "{value}");
        }
    }

    #[test]
    fn averages_are_printed_as_c_prints_them() {
        let table =
            [(156.742, "156.742"), (0.733914, "0.733914"), (745.53, "745.53"), (0.0, "0"), (12.0, "12")];
        for (value, text) in table {
            assert_eq!(general(value), text);
        }
        assert_eq!(general(1.0e6), "1e+06");
        assert_eq!(general(1234567.0), "1.23457e+06");
        assert_eq!(general(999999.7), "1e+06");
    }

    #[test]
    fn only_what_is_printed_is_a_figure() {
        assert_eq!(figure("83.33"), Cell::Figure(Figure { value: 83.33, half_width: 0.5 * 10f64.powi(-2) }));
        assert_eq!(figure("39657"), Cell::Figure(Figure { value: 39657.0, half_width: 0.5 }));
        assert_eq!(figure("1.2e+07"), Cell::Figure(Figure { value: 1.2e7, half_width: 5e5 }));
        for text in ["nan", "-nan", "inf", "-inf", "-3.25", "-nan(ind)"] {
            assert_eq!(figure(text), Cell::NotANumber, "{text}");
        }
        for text in ["0", "17", "-1", "1.", ".5", "0x10", "1e5", "1e+5", "12,5", "", "--1.0", "1.0\u{fffd}"] {
            assert_eq!(figure(text), Cell::Odd, "{text}");
        }
    }

    #[test]
    fn the_last_column_is_a_count_or_an_error() {
        use WrongColumn::*;
        assert_eq!(wrong("0", Count), Some(Wrong::Count(0.0)));
        assert_eq!(wrong("1.2e+07", Count), Some(Wrong::Count(1.2e7)));
        assert_eq!(wrong("0.00", Count), None);
        assert_eq!(wrong("5e-07", Count), None);
        assert_eq!(wrong("0e+00", MaxError), Some(Wrong::MaxError(0.0)));
        assert_eq!(wrong("4e-07", Unknown), Some(Wrong::MaxError(4e-7)));
        assert_eq!(wrong("1e+06", Unknown), Some(Wrong::Count(1e6)));
        assert_eq!(wrong("N/A", Unknown), Some(Wrong::NotChecked));
        assert_eq!(wrong("-1", Count), None);
    }
}
