//! Names of steps without their number: `step 12`, `iteration=7/100` and `train_step`.

/// A name with the place of its first number marked by `#`, and that number.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stem {
    /// `step #` of `step 12`; the whole name where it has no number.
    pub text: String,
    /// `None` where there is none, or it does not fit into 64 bits.
    pub number: Option<u64>,
}

/// A number that is part of a word, as in `layer2` or `fp16`, is one too: its values show whether it counts steps. One
/// that does not fit is none.
pub fn stem(name: &str) -> Stem {
    let whole = || Stem { text: name.to_owned(), number: None };
    let Some(from) = name.find(|c: char| c.is_ascii_digit()) else { return whole() };
    let digits = name[from..].find(|c: char| !c.is_ascii_digit()).unwrap_or(name.len() - from);
    let (number, rest) = name[from..].split_at(digits);
    match number.parse() {
        Ok(number) => Stem { text: format!("{}#{rest}", &name[..from]), number: Some(number) },
        Err(_) => whole(),
    }
}

/// Words by which people call the steps of a run; `step` is in `train_step` too, and not in `stepper`.
const WORDS: [&str; 9] =
    ["step", "steps", "iteration", "iterations", "iter", "trainstep", "profilerstep", "batch", "minibatch"];

/// Whether it is called as steps are.
pub(super) fn speaks_of_steps(text: &str) -> bool {
    let text = text.to_lowercase();
    let mut words = text.split(|c: char| !c.is_alphabetic());
    words.any(|word| WORDS.contains(&word) && !NESTED.iter().any(|part| text.contains(part)))
}

/// Parts of steps that have the word in their names.
const NESTED: [&str; 4] = ["optimizer", "scheduler", "lr_", "microbatch"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_number_is_taken_out_of_a_name() {
        for (name, text, number) in [
            ("step 12", "step #", Some(12)),
            ("iteration=7/100", "iteration=#/100", Some(7)),
            ("step012", "step#", Some(12)),
            ("ProfilerStep#70", "ProfilerStep##", Some(70)),
            ("train_step", "train_step", None),
            ("step 99999999999999999999", "step 99999999999999999999", None),
            ("", "", None),
            ("Schritt 3é", "Schritt #é", Some(3)),
        ] {
            assert_eq!(stem(name), Stem { text: text.to_owned(), number }, "{name}");
        }
    }

    #[test]
    fn steps_are_called_by_their_words_and_parts_of_steps_are_not() {
        for name in ["step #", "train_step", "Iteration #", "ProfilerStep##", "global_batch"] {
            assert!(speaks_of_steps(name), "{name}");
        }
        for name in ["stepper", "optimizer_step", "lr_scheduler.step", "forward", "microbatch #", ""] {
            assert!(!speaks_of_steps(name), "{name}");
        }
    }
}
