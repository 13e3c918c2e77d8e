//! The rule about secrets that stand in a file, by what the harness redacts in its own (`base::redact`). It says by what a
//! secret is known and never shows it.

use super::shell::Word;
use super::{Diagnostics, ParsedFile};
use base::redact::Redactor;
use std::collections::BTreeMap;

const ADVICE: &str = "revoke it, for it stays in copies and in the history; hand it over by the environment, by a file of mode \
                      0600, or by `secretKeyRef` of a manifest";

pub(super) fn rule(file: &ParsedFile, _: &[ParsedFile], diagnostics: &mut Diagnostics) {
    let redactor = Redactor::default();
    let first = |text: &str| redactor.first(without_references(text).as_bytes()).map(|(_, what)| what);
    // By line, with the column: one for each line.
    let mut found: BTreeMap<usize, (usize, String)> = BTreeMap::new();
    for (line, at) in file.text.lines().zip(1..) {
        if let Some(what) = first(line) {
            found.insert(at, (line.len() - line.trim_start().len() + 1, what));
        }
    }
    for command in &file.script.commands {
        for word in &command.words {
            // A variable of a manifest has its name on one line and its value on the next.
            let is_known =
                found.contains_key(&word.line) || (file.is_manifest && found.contains_key(&(word.line + 1)));
            if !is_known && let Some(what) = first(&word.text) {
                found.insert(word.line, (word.column, what));
            }
        }
    }
    for (line, (column, what)) in found {
        let place = Word { text: String::new(), line, column, uses: Vec::new(), is_quoted: false };
        diagnostics.error(&place, format!("a secret stands in the file, known by `{what}`"), ADVICE);
    }
}

/// No reference is longer: a secret behind a bracket that is closed much later is still found.
const LONGEST: usize = 1024;

/// A text in which each value that is put in later is `$X`: `$(cat token)`, `${TOKEN:?}`, `` `cat token` ``.
fn without_references(text: &str) -> String {
    replace_references(text).0
}

/// With how many bytes were looked at for the ends of references.
fn replace_references(text: &str) -> (String, usize) {
    let bytes = text.as_bytes();
    let (round, curly) = (closings(bytes, b'(', b')'), closings(bytes, b'{', b'}'));
    let mut looked_at = 2 * bytes.len();
    let mut kept = String::with_capacity(text.len());
    let mut at = 0;
    while let Some(found) = text[at..].find(['$', '`']) {
        kept.push_str(&text[at..at + found]);
        at += found;
        let end = match &bytes[at..] {
            [b'$', b'(', ..] => round.get(&(at + 1)).copied(),
            [b'$', b'{', ..] => curly.get(&(at + 1)).copied(),
            [b'`', more @ ..] => {
                let length = more.iter().take(LONGEST).position(|byte| *byte == b'`');
                looked_at += length.unwrap_or(more.len().min(LONGEST));
                length.map(|length| at + 1 + length)
            }
            _ => None,
        };
        match end.filter(|end| end - at <= LONGEST) {
            Some(end) => {
                kept.push_str("$X");
                at = end + 1;
            }
            None => {
                kept.push_str(&text[at..=at]);
                at += 1;
            }
        }
    }
    kept.push_str(&text[at..]);
    (kept, looked_at)
}

/// Where each bracket that is closed has its end, by one pass: a nested text must not be searched for each of them.
fn closings(bytes: &[u8], open: u8, close: u8) -> BTreeMap<usize, usize> {
    let (mut opened, mut closings) = (Vec::new(), BTreeMap::new());
    for (at, byte) in bytes.iter().enumerate() {
        if *byte == open {
            opened.push(at);
        } else if *byte == close
            && let Some(begin) = opened.pop()
        {
            closings.insert(begin, at);
        }
    }
    closings
}

#[cfg(test)]
mod tests {
    use super::super::tests::diagnostics_of;

    /// Made up, of the form of those of Hugging Face.
    fn token() -> String {
        format!("hf_{}", "aBcDeFgHiJkLmNoPqRsTuVwXyZ12345678")
    }

    fn found(name: &str, text: &str) -> Vec<String> {
        let all = diagnostics_of(&[(name, text)]);
        assert!(all.iter().all(|line| !line.contains(&token()) && !line.contains("hunter")), "{all:#?}");
        all.into_iter().filter(|line| line.contains("a secret stands in the file")).collect()
    }

    #[test]
    fn a_secret_is_reported_at_its_place_and_never_shown() {
        let token = token();
        let manifest =
            "env:\n  - name: DB_PASSWORD\n    value: hunter22hunter\n  - name: HF_TOKEN\n    value: TOKEN\n";
        for (name, text, places) in [
            ("a.sbatch", format!("#!/bin/bash\n  export HF_TOKEN={token}\n"), vec!["a.sbatch:2:3"]),
            (
                "a.sh",
                format!("#!/bin/bash\n# old: {token}\nsrun --export=ALL,HF_TOKEN={token} prog\n"),
                vec!["a.sh:2:1", "a.sh:3:1"],
            ),
            ("a.sh", "#!/bin/bash\nsshpass -p hunter22 ssh n1 true\n".into(), vec!["a.sh:2:1"]),
            ("a.sh", format!("#!/bin/bash\nexport HF_TOKNE={token}\n"), vec!["a.sh:2:1"]),
            (
                "m.yaml",
                manifest.replace("value: TOKEN", &format!("value: {token}")),
                vec!["m.yaml:2:", "m.yaml:5:5"],
            ),
            (
                "Dockerfile",
                format!("FROM a:1\nENV HF_TOKEN={token}\nENV DB_PASSWORD hunter22\n"),
                vec!["Dockerfile:2:1", "Dockerfile:3:1"],
            ),
        ] {
            let found = found(name, &text);
            assert_eq!(found.len(), places.len(), "{text}: {found:#?}");
            for place in places {
                assert!(found.iter().any(|line| line.contains(place)), "{place}: {found:#?}");
            }
        }
    }

    #[test]
    fn references_are_looked_for_so_far_that_no_line_of_opened_brackets_takes_long() {
        for (open, close) in [("$(", ")"), ("${", "}"), ("`", "`")] {
            let of_length = |length: usize| format!("{open}{}{close}", "x".repeat(length));
            assert_eq!(super::without_references(&of_length(100)), "$X");
            assert_eq!(
                super::without_references(&of_length(2 * super::LONGEST)),
                of_length(2 * super::LONGEST)
            );
        }
    }

    #[test]
    fn nested_references_are_found_by_a_few_looks_at_each_byte() {
        for (open, close) in [("$(", ")"), ("${", "}"), ("`", ""), ("` $(", ""), ("$(${`", "")] {
            let text = open.repeat(4000) + &close.repeat(4000);
            let (_, looked_at) = super::replace_references(&text);
            assert!(looked_at <= 3 * text.len() + super::LONGEST, "{open}: {looked_at} of {}", text.len());
        }
        assert_eq!(super::without_references("a $(b $(c) ${d) `e` ${f} \u{e9}$)"), "a $X $X $X \u{e9}$)");
    }

    #[test]
    fn what_is_put_in_later_is_no_secret() {
        for (name, text) in [
            ("a.sh", "#!/bin/bash\nexport HF_TOKEN=$HF_TOKEN\n"),
            ("a.sh", "#!/bin/bash\nexport HF_TOKEN=\"$(cat ~/.cache/huggingface/token)\" A=1\n"),
            (
                "a.sh",
                "#!/bin/bash\nexport HF_TOKEN=${HF_TOKEN:?set it first}\nexport WANDB_API_KEY=`pass wandb`\n",
            ),
            ("a.sh", "#!/bin/bash\nexport MAX_TOKENS=4096 HF_TOKEN=\n"),
            (
                "m.yaml",
                "env:\n  - name: HF_TOKEN\n    valueFrom:\n      secretKeyRef:\n        name: hf\n        key: token\n",
            ),
            ("Dockerfile", "FROM a:1\nARG HF_TOKEN\nENV HF_TOKEN=$HF_TOKEN\n"),
        ] {
            assert_eq!(found(name, text), [] as [&str; 0], "{text}");
        }
    }
}
