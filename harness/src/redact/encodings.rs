//! Known values as other programs encode them: base64 (also behind something else, as in `user:VALUE`), hexadecimal, and
//! with percent signs as in addresses.

pub fn of(value: &str) -> Vec<String> {
    let mut forms: Vec<String> = (0..3).map(|before| base64(value.as_bytes(), before)).collect();
    let whole = value.len() * 8;
    // At the very beginning and end nothing is shared with what stands beside it.
    let padding = (3 - value.len() % 3) % 3;
    if padding > 0 {
        let last = six_bits(value.as_bytes(), whole / 6);
        forms[0].push(last);
    }
    forms.extend(forms.clone().iter().map(|form| form.replace('+', "-").replace('/', "_")));
    let hex: String = value.bytes().map(|byte| format!("{byte:02x}")).collect();
    forms.push(hex.to_ascii_uppercase());
    forms.push(hex);
    for stays in ["-_.~", "-_.~/"] {
        let percent = |lower: bool| -> String {
            let one = |byte: u8| match char::from(byte) {
                c if c.is_ascii_alphanumeric() || stays.contains(c) => c.to_string(),
                _ if lower => format!("%{byte:02x}"),
                _ => format!("%{byte:02X}"),
            };
            value.bytes().map(one).collect()
        };
        for lower in [false, true] {
            let form = percent(lower);
            // Forms of pages write a blank so.
            forms.push(form.replace("%20", "+"));
            forms.push(form);
        }
    }
    forms
}

/// The digits that depend on nothing but the value, where so many bytes stand before it in a group of three.
fn base64(value: &[u8], before: usize) -> String {
    let mut bytes = vec![0; before];
    bytes.extend_from_slice(value);
    let first = (before * 8).div_ceil(6);
    (first..bytes.len() * 8 / 6).map(|at| six_bits(&bytes, at)).collect()
}

/// One digit of base64; what is behind the last byte counts as zero.
fn six_bits(bytes: &[u8], at: usize) -> char {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let bit = at * 6;
    let byte = |at: usize| usize::from(bytes.get(at).copied().unwrap_or_default());
    let two = byte(bit / 8) << 8 | byte(bit / 8 + 1);
    char::from(DIGITS[two >> (10 - bit % 8) & 63])
}
