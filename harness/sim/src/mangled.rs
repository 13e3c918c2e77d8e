//! Text as a bad disk or cable leaves it.

/// Every third byte of all lines but the first becomes one that no text has.
pub fn mangle(mut bytes: Vec<u8>) -> Vec<u8> {
    let first = bytes.iter().position(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    // A text of one line is mangled whole.
    let first = if first == bytes.len() { 0 } else { first };
    for byte in bytes.iter_mut().skip(first).step_by(3).filter(|byte| **byte != b'\n') {
        *byte = 0xfe;
    }
    bytes
}
