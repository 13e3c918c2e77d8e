//! What opens and closes a window on the nodes, as one argument of `profile.sh`.

use super::Steps;
use std::fmt;

/// Where the program's own options or a clock do it there is none.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Trigger {
    /// The python module counts steps of optimizers.
    Hook(Steps),
    /// A watcher reads the numbers of steps in the log.
    Watch(Watch),
}

/// What a watcher of the log looks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Watch {
    /// Counted from 0, whatever the log counts from.
    pub steps: Steps,
    /// The number that the log gives its first step.
    pub counts_from: u32,
    /// An extended regular expression; its first group is the number of the step that has ended.
    pub line: String,
}

impl Trigger {
    /// The steps of the window, counted from 0.
    pub fn steps(&self) -> Steps {
        match self {
            Trigger::Hook(steps) => *steps,
            Trigger::Watch(watch) => watch.steps,
        }
    }

    /// Whether a word is one: switches of nsys begin otherwise.
    pub(crate) fn is_one(word: &str) -> bool {
        word.starts_with("hook:") || word.starts_with("watch:")
    }
}

impl fmt::Display for Trigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trigger::Hook(steps) => write!(f, "hook:{steps}"),
            Trigger::Watch(watch) => write!(f, "watch:{}:{}:{}", watch.steps, watch.counts_from, watch.line),
        }
    }
}

impl TryFrom<String> for Trigger {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let bad = || format!("invalid window trigger `{}`", text.escape_debug());
        if let Some(steps) = text.strip_prefix("hook:") {
            return Steps::try_from(steps.to_owned()).map(Trigger::Hook);
        }
        let rest = text.strip_prefix("watch:").ok_or_else(bad)?;
        let mut parts = rest.splitn(3, ':');
        let mut part = || parts.next().ok_or_else(bad);
        let steps = Steps::try_from(part()?.to_owned())?;
        let counts_from = part()?.parse().map_err(|_| bad())?;
        Ok(Trigger::Watch(Watch { steps, counts_from, line: part()?.to_owned() }))
    }
}

impl From<Trigger> for String {
    fn from(trigger: Trigger) -> String {
        trigger.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_trigger_is_read_back_as_it_is_written() {
        let steps = Steps { first: 3, last: 5 };
        let line = "iteration +([0-9]+)/ *: [a-z]+".to_owned();
        for trigger in [Trigger::Hook(steps), Trigger::Watch(Watch { steps, counts_from: 1, line })] {
            assert!(Trigger::is_one(&trigger.to_string()));
            assert_eq!(Trigger::try_from(trigger.to_string()), Ok(trigger));
        }
        for text in ["", "hook:", "hook:5..3", "watch:3..5", "watch:3..5:x:l", "delay:3..5"] {
            assert!(Trigger::try_from(text.to_owned()).is_err(), "{text}");
        }
    }
}
