//! JSON in which no object has a key twice: of two values by one name the reader would see one, and another program the
//! other. It is looked through without being kept: a list of small numbers takes many times its bytes as a value.

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;

/// Keys of the objects that are open at one place; those of the largest artefacts have a hundredth of it.
const MOST_KEYS: usize = 4_000_000;

/// Refuses what is no JSON and what has a key twice. Gives `format` of the whole, where that is an object with such a
/// number.
pub(crate) fn check(bytes: &[u8]) -> Result<Option<u64>, serde_json::Error> {
    check_within(bytes, MOST_KEYS)
}

fn check_within(bytes: &[u8], most_keys: usize) -> Result<Option<u64>, serde_json::Error> {
    let mut seen = KeyCount { most_keys, open_keys: 0, format: None };
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    Strict { seen: &mut seen, depth: 0, is_format: false }.deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(seen.format)
}

struct KeyCount {
    most_keys: usize,
    open_keys: usize,
    format: Option<u64>,
}

/// One value, so many lists and objects deep.
struct Strict<'a> {
    seen: &'a mut KeyCount,
    depth: usize,
    is_format: bool,
}

impl<'de> DeserializeSeed<'de> for Strict<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value of JSON")
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, value: u64) -> Result<(), E> {
        if self.is_format {
            self.seen.format = Some(value);
        }
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<(), A::Error> {
        let Strict { seen, depth, .. } = self;
        let mut next =
            || access.next_element_seed(Strict { seen: &mut *seen, depth: depth + 1, is_format: false });
        while next()?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<(), A::Error> {
        let Strict { seen, depth, .. } = self;
        let mut keys: BTreeSet<Cow<'de, str>> = BTreeSet::new();
        while let Some(key) = access.next_key_seed(Key)? {
            if keys.contains(&key) {
                return Err(A::Error::custom(format!("key `{}` stands twice", key.escape_debug())));
            }
            let is_format = depth == 0 && key == "format";
            keys.insert(key);
            seen.open_keys += 1;
            if seen.open_keys > seen.most_keys {
                return Err(A::Error::custom(format!("more than {} keys in one object", seen.most_keys)));
            }
            access.next_value_seed(Strict { seen: &mut *seen, depth: depth + 1, is_format })?;
        }
        seen.open_keys -= keys.len();
        Ok(())
    }
}

/// A key, where it stands if it stands there as it is.
struct Key;

impl<'de> DeserializeSeed<'de> for Key {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Cow<'de, str>, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Key {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_borrowed_str<E>(self, key: &'de str) -> Result<Cow<'de, str>, E> {
        Ok(Cow::Borrowed(key))
    }

    fn visit_str<E>(self, key: &str) -> Result<Cow<'de, str>, E> {
        Ok(Cow::Owned(key.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_stands_twice_is_refused_at_any_depth_and_all_else_is_as_ever() {
        let text = r#"{"a": [1, -2, 3.5, 1e300, true, null, "x"], "b": {"c": {"a": 18446744073709551615}}}"#;
        assert_eq!(check(text.as_bytes()).expect("read"), None);
        for (text, format) in [
            (r#"{"a": {"format": 2}, "format": 3}"#, Some(3)),
            (r#"{"a": {"format": 2}, "format": "3"}"#, None),
            (r#"[{"format": 2}]"#, None),
            ("7", None),
        ] {
            assert_eq!(check(text.as_bytes()).expect("read"), format, "{text}");
        }
        for twice in [
            r#"{"status": "fail", "status": "pass"}"#,
            r#"[{"a": {"b": 1, "c": 2, "b": 1}}]"#,
            r#"{"b": 1, "\u0062": 1}"#,
        ] {
            let why = check(twice.as_bytes()).expect_err("twice").to_string();
            assert!(why.contains("stands twice"), "{why}");
        }
        assert!(check(b"{} {}").is_err() && check(b"{").is_err() && check(b"").is_err());
    }

    /// As values these took 32 bytes and more for each two.
    #[test]
    fn what_no_reader_asks_for_is_never_kept() {
        let text = format!(r#"{{"format": 1, "x": [{}0]}}"#, "0,".repeat(1 << 20));
        assert_eq!(check(text.as_bytes()).expect("read"), Some(1));
        // Of all objects that are open at one place.
        let within = |text: &str| check_within(text.as_bytes(), 3).map_err(|error| error.to_string());
        assert_eq!(within(r#"[{"a": 1, "b": 2, "c": 3}, {"d": {"e": 1, "f": 2}}]"#), Ok(None));
        let why = within(r#"{"a": {"b": {"c": {"d": 1}}}}"#).expect_err("too many");
        assert!(why.contains("more than 3 keys in one object"), "{why}");
    }
}
