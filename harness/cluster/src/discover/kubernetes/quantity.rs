//! Quantities of Kubernetes, such as `8`, `191450m`, `1.5Gi` and `1e3`, in thousandths: no processor and no byte is asked for
//! in smaller parts.

const DECIMAL: [(&str, i32); 10] =
    [("n", -9), ("u", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];
const BINARY: [(&str, u32); 6] = [("Ki", 10), ("Mi", 20), ("Gi", 30), ("Ti", 40), ("Pi", 50), ("Ei", 60)];
/// More digits are no quantity of a node.
const LONGEST: usize = 32;

/// Thousandths, rounded down; nothing where it is no quantity, or below 0.
pub(super) fn milli(quantity: &str) -> Option<u128> {
    let is_number = |c: char| c.is_ascii_digit() || c == '.';
    let (number, suffix) =
        quantity.split_at(quantity.find(|c: char| !is_number(c)).unwrap_or(quantity.len()));
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    if quantity.len() > LONGEST || part.contains('.') || (whole.is_empty() && part.is_empty()) {
        return None;
    }
    let digits: u128 = format!("{whole}{part}").parse().ok()?;
    let below = u32::try_from(part.len()).ok()?;
    if let Some((_, bits)) = BINARY.iter().find(|(name, _)| *name == suffix) {
        return digits
            .checked_mul(1000)?
            .checked_mul(1_u128 << *bits)?
            .checked_div(10u128.checked_pow(below)?);
    }
    let exponent = match DECIMAL.iter().find(|(name, _)| *name == suffix) {
        Some((_, exponent)) => *exponent,
        None => suffix.strip_prefix(['e', 'E'])?.parse::<i32>().ok().filter(|e| (-18..=18).contains(e))?,
    };
    let shift = exponent + 3 - i32::try_from(below).ok()?;
    let scale = 10u128.checked_pow(shift.unsigned_abs())?;
    if shift < 0 { digits.checked_div(scale) } else { digits.checked_mul(scale) }
}

/// A quantity that is a whole number.
pub(super) fn whole(quantity: &str) -> Option<u64> {
    let milli = milli(quantity).filter(|milli| milli % 1000 == 0)?;
    u64::try_from(milli / 1000).ok()
}

#[cfg(test)]
mod tests {
    use super::milli;

    #[test]
    fn quantities_are_read_in_thousandths() {
        for (quantity, expected) in [
            ("8", Some(8000)),
            ("191450m", Some(191_450)),
            ("0.5", Some(500)),
            (".5", Some(500)),
            ("1.5Gi", Some(3 * 512 * 1024 * 1024 * 1000)),
            ("2061359464Ki", Some(2_061_359_464 * 1024 * 1000)),
            ("2T", Some(2_000_000_000_000_000)),
            ("1e3", Some(1_000_000)),
            ("1E3", Some(1_000_000)),
            ("2E", Some(2_000_000_000_000_000_000_000)),
            ("1Ei", Some((1_u128 << 60) * 1000)),
            ("100n", Some(0)),
            ("1.2345", Some(1234)),
            ("-1", None),
            ("", None),
            (".", None),
            ("1.2.3", None),
            ("1e99", None),
            ("1 Gi", None),
            ("1Xi", None),
            ("99999999999999999999999999999999Pi", None),
            ("12345678901234567890123456789012345678901234567890", None),
        ] {
            assert_eq!(milli(quantity), expected, "{quantity}");
        }
    }
}
