//! The steps of a window, from the first to the last, both with: `70..75`. Counted from 0.

use serde::{Deserialize, Serialize};
use std::fmt;

/// At least one step; as text `70..75`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Steps {
    /// Counted from 0.
    pub first: u64,
    /// The last step inside, not the one behind it.
    pub last: u64,
}

/// Beyond these no training goes, and sums cannot overflow.
const MOST: u64 = 1 << 50;

impl Steps {
    /// Without the last: a program that stops where its last step begins.
    pub fn without_last(self) -> Option<Steps> {
        (self.first < self.last).then(|| Steps { first: self.first, last: self.last - 1 })
    }
}

impl fmt::Display for Steps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..{}", self.first, self.last)
    }
}

impl TryFrom<String> for Steps {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let shown = || text.escape_debug();
        let ends = text.split_once("..").and_then(|(first, last)| {
            let number = |end: &str| {
                let digits = !end.is_empty() && end.bytes().all(|byte| byte.is_ascii_digit());
                digits.then(|| end.parse::<u64>().ok()).flatten().filter(|number| *number < MOST)
            };
            Some((number(first)?, number(last)?))
        });
        match ends {
            Some((first, last)) if first <= last => Ok(Steps { first, last }),
            Some(_) => Err(format!("window `{}` ends before it begins", shown())),
            None => Err(format!(
                "invalid window `{}`; write `FIRST..LAST`, both steps included, counted from 0",
                shown()
            )),
        }
    }
}

impl From<Steps> for String {
    fn from(steps: Steps) -> String {
        steps.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_read_back_as_it_is_written() {
        let steps = Steps::try_from("70..75".to_owned()).expect("a window");
        assert_eq!(steps, Steps { first: 70, last: 75 });
        assert_eq!(steps.to_string(), "70..75");
        assert_eq!(steps.without_last(), Some(Steps { first: 70, last: 74 }));
        assert_eq!(Steps { first: 3, last: 3 }.without_last(), None);
        for text in [
            "",
            "70",
            "70..",
            "..75",
            "70..=75",
            "75..70",
            "-1..5",
            "1..1e9",
            "1 .. 2",
            "0..99999999999999999999",
        ] {
            assert!(Steps::try_from(text.to_owned()).is_err(), "{text}");
        }
    }
}
