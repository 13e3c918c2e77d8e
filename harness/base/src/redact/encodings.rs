//! Known values as other programs encode them: base64 (also behind something else, as in `user:VALUE`), hexadecimal,
//! with percent signs as in addresses, and with backslashes as shells and languages do.

pub(super) fn encodings(value: &str) -> Vec<String> {
    let mut forms: Vec<String> = (0..3).map(|before| digits(value.as_bytes(), before, BASE64)).collect();
    let whole = value.len() * 8;
    // At the very beginning and end nothing is shared with what stands beside it.
    let padding = (3 - value.len() % 3) % 3;
    if padding > 0 {
        let last = digit(value.as_bytes(), whole / 6, BASE64);
        forms[0].push(last);
    }
    let hex = value.bytes().map(|byte| format!("{byte:02x}")).collect::<String>();
    forms.extend([hex.to_uppercase(), hex]);
    // Base64 of these, and of what JSON and addresses make of the value.
    let json = serde_json::Value::from(value).to_string();
    let json = &json[1..json.len() - 1];
    let within = [ascii(json), json.to_owned(), percent(value, "-_.~", false)];
    let inner: Vec<String> = forms.iter().cloned().chain(within).collect();
    for before in 0..3 {
        forms.extend(inner.iter().map(|text| digits(text.as_bytes(), before, BASE64)));
    }
    forms.extend(forms.clone().iter().map(|form| form.replace('+', "-").replace('/', "_")));
    forms.extend((0..5).map(|before| digits(value.as_bytes(), before, BASE32)));
    for form in backslashes(value) {
        forms.push(form.replace('\\', r"\\").replace('"', "\\\""));
        forms.push(form);
    }
    for stays in ["-_.~", "-_.~/"] {
        for lower in [false, true] {
            let form = percent(value, stays, lower);
            // Forms of pages write a blank so.
            forms.push(form.replace("%20", "+"));
            forms.push(form);
        }
    }
    forms
}

fn percent(value: &str, stays: &str, lower: bool) -> String {
    let one = |byte: u8| match char::from(byte) {
        c if c.is_ascii_alphanumeric() || stays.contains(c) => c.to_string(),
        _ if lower => format!("%{byte:02x}"),
        _ => format!("%{byte:02X}"),
    };
    value.bytes().map(one).collect()
}

/// In letters of ASCII alone, as JSON is written by Python.
pub(super) fn ascii(text: &str) -> String {
    let one = |c: char| match c {
        c if c.is_ascii() => c.to_string(),
        c => c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect(),
    };
    text.chars().map(one).collect()
}

/// Bytes of Python and `$'...'` of bash, with either mark around them; and words of a shell.
fn backslashes(value: &str) -> Vec<String> {
    let bytes = |marks: &str, is_octal: bool| -> String {
        let one = |byte: u8| match byte {
            b'\\' => r"\\".to_owned(),
            b'\n' => r"\n".to_owned(),
            b'\t' => r"\t".to_owned(),
            b' '..=b'~' if marks.contains(char::from(byte)) => format!("\\{}", char::from(byte)),
            b' '..=b'~' => char::from(byte).to_string(),
            _ if is_octal => format!("\\{byte:03o}"),
            _ => format!("\\x{byte:02x}"),
        };
        value.bytes().map(one).collect()
    };
    let stays = |c: char| !c.is_ascii() || c.is_ascii_alphanumeric() || "%+-./:=@_~#".contains(c);
    let one = |c: char| if stays(c) { c.to_string() } else { format!("\\{c}") };
    vec![
        bytes("'", false),
        bytes("", false),
        bytes("'", true),
        bytes("", true),
        value.chars().map(one).collect(),
    ]
}

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const BASE32: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/// The digits that depend on nothing but the value, where so many bytes stand before it in a group.
fn digits(value: &[u8], before: usize, alphabet: &[u8]) -> String {
    let mut bytes = vec![0; before];
    bytes.extend_from_slice(value);
    let bits = alphabet.len().ilog2() as usize;
    let first = (before * 8).div_ceil(bits);
    (first..bytes.len() * 8 / bits).map(|at| digit(&bytes, at, alphabet)).collect()
}

/// One digit; what is behind the last byte counts as zero.
fn digit(bytes: &[u8], at: usize, alphabet: &[u8]) -> char {
    let bits = alphabet.len().ilog2() as usize;
    let bit = at * bits;
    let byte = |at: usize| usize::from(bytes.get(at).copied().unwrap_or_default());
    let two = byte(bit / 8) << 8 | byte(bit / 8 + 1);
    char::from(alphabet[two >> (16 - bits - bit % 8) & (alphabet.len() - 1)])
}
