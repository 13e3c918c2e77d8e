//! What a page allows itself: its own scripts and its own style, by their digests, and nothing from anywhere.

use sha2::{Digest, Sha256};

/// The value of a Content-Security-Policy that lets in these texts alone.
pub(super) fn policy(scripts: &[&str], style: &str) -> String {
    let scripts: Vec<String> = scripts.iter().map(|script| digest(script)).collect();
    format!(
        "default-src 'none'; script-src {}; style-src {}; img-src data:; base-uri 'none'; form-action 'none'",
        scripts.join(" "),
        digest(style)
    )
}

fn digest(text: &str) -> String {
    format!("'sha256-{}'", base64(&Sha256::digest(text.as_bytes())))
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let byte = |at: usize| u32::from(three.get(at).copied().unwrap_or_default());
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for place in 0..4 {
            let letter = LETTERS[(bits >> (18 - 6 * place)) as usize & 63];
            text.push(if place > three.len() { '=' } else { char::from(letter) });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_written_as_browsers_read_it() {
        for (bytes, text) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")]
        {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
        // As published for the empty text.
        assert_eq!(digest(""), "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='");
    }

    #[test]
    fn nothing_is_let_in_but_what_was_named() {
        let policy = policy(&["a", "b"], "c");
        assert!(policy.starts_with("default-src 'none'; script-src 'sha256-"), "{policy}");
        assert_eq!(policy.matches("'sha256-").count(), 3);
        assert!(!policy.contains("unsafe") && !policy.contains("http") && !policy.contains('*'));
    }
}
