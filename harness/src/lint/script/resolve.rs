//! Words with the variables put in that the script itself gives a plain value. Values known only at run time are left
//! as they are.

use super::assignment;
use super::shell::{Command, Script, Word};
use std::cell::Cell;
use std::collections::BTreeMap;

/// What the variables of a script hold, as far as it says so.
pub(super) struct Values {
    of_name: BTreeMap<String, Vec<Word>>,
    /// How many bytes may still be put in.
    budget: Cell<usize>,
}

/// Variables within variables; deeper ones are left as they are.
const DEEPEST: usize = 4;
const LONGEST: usize = 4096;
/// All values of one script together: a few short variables within each other have no end.
const MOST: usize = 4 << 20;

impl Values {
    pub(super) fn from_script(script: &Script) -> Values {
        let mut of_name: BTreeMap<String, Vec<Word>> = BTreeMap::new();
        for command in &script.commands {
            if let Some(name) = &command.list {
                of_name.entry(name.clone()).or_default().extend(command.words.iter().cloned());
                continue;
            }
            for word in &command.words {
                let Some((name, value)) = assignment(word) else { continue };
                // What another program prints is not known.
                if !value.contains("$(") && !value.contains('`') && !value.is_empty() {
                    of_name.insert(name.to_owned(), vec![Word { text: value.to_owned(), ..word.clone() }]);
                }
            }
        }
        Values { of_name, budget: Cell::new(MOST) }
    }

    /// Whether there were too many values to put all of them in.
    pub(super) fn is_exhausted(&self) -> bool {
        self.budget.get() == 0
    }

    /// Whether a value may still be put in.
    fn spend(&self, value: &Word) -> bool {
        let left = self.budget.get().checked_sub(value.text.len() + 1);
        self.budget.set(left.unwrap_or_default());
        left.is_some()
    }

    /// The words of a command, lists and plain values put in.
    pub(super) fn resolved(&self, command: &Command) -> Vec<Word> {
        let mut all = Vec::new();
        for word in &command.words {
            self.put(word, DEEPEST, &mut all);
        }
        all
    }

    fn put(&self, word: &Word, depth: usize, all: &mut Vec<Word>) {
        if all.len() >= LONGEST {
            return;
        }
        let bare = word.text.strip_prefix('$').unwrap_or_default();
        let bare = bare.strip_prefix('{').and_then(|bare| bare.strip_suffix('}')).unwrap_or(bare);
        let bare = bare.strip_suffix("[@]").or(bare.strip_suffix("[*]")).unwrap_or(bare);
        match self.of_name.get(bare) {
            Some(values) if depth > 0 => {
                let values = values.iter().take_while(|value| self.spend(value));
                values.for_each(|value| self.put(value, depth - 1, all));
            }
            _ => all.push(Word { text: self.text(word, depth), ..word.clone() }),
        }
    }

    /// A word with its variables put in one by one, or their defaults where they have none.
    fn text(&self, word: &Word, depth: usize) -> String {
        let mut text = word.text.clone();
        if depth == 0 {
            return text;
        }
        for it in word.uses.iter().filter(|it| !it.is_quoted) {
            let default = || it.behind.strip_prefix(":-").or(it.behind.strip_prefix(":=")).map(str::to_owned);
            let value = match self.of_name.get(&it.name).map(Vec::as_slice) {
                Some([value]) => self.spend(value).then(|| self.text(value, depth - 1)),
                Some(_) => None,
                None => default().filter(|value| !value.contains('$')),
            };
            let Some(value) = value else { continue };
            let braced = format!("${{{}{}}}", it.name, it.behind);
            let name = format!("${}", it.name);
            let seen = if text.contains(&braced) { braced } else { name };
            text = text.replacen(&seen, &value, 1);
            if text.len() > LONGEST {
                break;
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::super::shell::read;
    use super::*;

    #[test]
    fn variables_within_each_other_are_put_in_up_to_a_number_of_bytes() {
        let times = |text: &str| text.repeat(40);
        let texts = format!("D=${{E:-}}\nB={}\nA={}\nrun x{}\n", times("$D"), times("$B"), times("$A"));
        let lists = format!("C=()\nB=({})\nA=({})\nrun {}\n", times("$C "), times("$B "), times("$A "));
        for text in [texts, lists] {
            let script = read(&text);
            let values = Values::from_script(&script);
            values.budget.set(1000);
            let command = script.commands.last().expect("a command");
            assert_eq!(
                values.resolved(command).first().map(|word| word.text.as_str()),
                Some("run"),
                "{text}"
            );
            assert!(values.is_exhausted(), "{text}");
        }
        let script = read("A=1\nrun x$A\n");
        let values = Values::from_script(&script);
        assert_eq!(values.resolved(&script.commands[1])[1].text, "x1");
        assert_eq!(values.budget.get(), MOST - 2);
    }
}
