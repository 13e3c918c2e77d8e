//! The key of each file below the prefix. It follows from the file's path alone, so that whoever reads a manifest need
//! not believe the keys in it, and two paths never share one.

use base::digest::sha256;
use std::fmt::Write;

/// Taken first, so that no two publications write below one prefix.
pub(super) const CLAIM: &str = "claim.json";
/// Written last: what has none is incomplete.
pub(super) const MANIFEST: &str = "manifest.json";

/// Stores allow 1,024 bytes, the prefix among them; file systems 255 for one name.
const LONGEST: usize = 700;
const LONGEST_NAME: usize = 200;

/// `files/PATH`, with what is no plain letter as `%XX`; by its digest where that would be too long.
pub(super) fn from_path(path: &str) -> String {
    let names: Vec<String> = path.split('/').map(encode).collect();
    let key = format!("files/{}", names.join("/"));
    match key.len() > LONGEST || names.iter().any(|name| name.len() > LONGEST_NAME) {
        true => format!("long/{}", sha256(path.as_bytes())),
        false => key,
    }
}

/// Stores and those who read them differ in what they make of other characters, and of dots at the ends of names.
fn encode(name: &str) -> String {
    let dots_from = name.trim_end_matches('.').len();
    let mut key = String::with_capacity(name.len());
    for (at, byte) in name.bytes().enumerate() {
        let is_plain =
            byte.is_ascii_alphanumeric() || b"-_+=@,".contains(&byte) || (byte == b'.' && at < dots_from);
        match is_plain {
            true => key.push(char::from(byte)),
            false => write!(key, "%{byte:02X}").unwrap_or_default(),
        }
    }
    key
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn plain_paths_are_their_keys_and_others_are_encoded() {
        for (path, key) in [
            ("cases/pair/raw/p5-001+p5-002/stdout", "files/cases/pair/raw/p5-001+p5-002/stdout"),
            ("a b?c#d%20", "files/a%20b%3Fc%23d%2520"),
            ("..a/b..", "files/..a/b%2E%2E"),
            ("é", "files/%C3%A9"),
            ("~[x]{y}\\", "files/%7E%5Bx%5D%7By%7D%5C"),
        ] {
            assert_eq!(from_path(path), key, "{path}");
        }
    }

    #[test]
    fn long_paths_have_keys_that_every_store_allows_and_no_two_share_one() {
        let long = ["é".repeat(120), vec!["a".repeat(150); 6].join("/"), vec!["a".repeat(150); 7].join("/")];
        let keys: BTreeSet<String> = long.iter().map(|path| from_path(path)).collect();
        assert_eq!(keys.len(), long.len());
        assert!(keys.iter().all(|key| key.starts_with("long/") && key.len() < 80), "{keys:?}");
        assert_ne!(from_path("a%20b"), from_path("a b"));
    }
}
