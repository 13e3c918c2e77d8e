//! Takes out of a text what is not for a vendor: secrets, names and numbers of other nodes, users, hosts, addresses,
//! paths and stores. The same name becomes the same pseudonym in every file of a folder.

use crate::accept::hardware_numbers::{HardwareNumbers, NumberFinder};
use aho_corasick::AhoCorasick;
use base::colours::{MARK, marked};
use base::redact::Redactor;
use std::collections::BTreeSet;
use verdict::accept::pseudonyms::{PUBLIC_PATHS, Pseudonyms};

/// So much of a text is replaced at once; a line is never parted.
const BLOCK: usize = 1 << 20;

/// What stays and what goes.
#[derive(Default)]
pub(super) struct SiteNames {
    /// Nodes and numbers of the hardware itself: they stay.
    pub own: Vec<String>,
    /// Other nodes, each with what stands for it; none where they stay.
    pub peers: Vec<(String, String)>,
    /// Users, clusters, queues: what stands for each, and the name.
    pub others: Vec<(String, String)>,
    /// Serial numbers of other hardware.
    pub numbers: HardwareNumbers,
}

pub(super) struct Sanitiser {
    redactor: Redactor,
    finder: AhoCorasick,
    names: Vec<Name>,
    /// What stands for other nodes.
    peers: BTreeSet<String>,
    numbers: NumberFinder,
    forms: Pseudonyms,
    /// Secrets taken out so far.
    pub secrets: u64,
}

struct Name {
    name: String,
    other: String,
    /// It is found within a word too: no other word holds it by chance.
    is_distinct: bool,
}

/// From, to, and the number of the name.
type Place = (usize, usize, usize);

impl Sanitiser {
    pub(super) fn new(site: SiteNames, redactor: Redactor) -> Result<Sanitiser, String> {
        let SiteNames { own, peers, others, numbers } = site;
        let own_pairs = own.iter().map(|name| (name.clone(), name.clone()));
        let mut forms = Pseudonyms::for_ranges(own_pairs.chain(peers.iter().cloned()));
        forms.keep(&PUBLIC_PATHS);
        // What stands for folders of the site, with what lies below them.
        forms.keep(&["/shared", "/nccl-tests", "/program"]);
        let numbers = numbers.finder()?;
        let pseudonyms: BTreeSet<String> = peers.iter().map(|(_, other)| other.clone()).collect();
        let mut names: Vec<Name> = Vec::new();
        let pairs = own.into_iter().map(|name| (name.clone(), name)).chain(peers);
        for (name, other) in pairs.chain(others.into_iter().map(|(other, name)| (name, other))) {
            if !name.is_empty() && !names.iter().any(|known| known.name.eq_ignore_ascii_case(&name)) {
                let is_distinct = is_distinct(&name);
                names.push(Name { name, other, is_distinct });
            }
        }
        let patterns = names.iter().map(|name| name.name.as_bytes());
        let finder = AhoCorasick::builder().ascii_case_insensitive(true).build(patterns);
        let finder = finder.map_err(|error| format!("too many names to look for: {error}"))?;
        Ok(Sanitiser { redactor, finder, names, peers: pseudonyms, numbers, forms, secrets: 0 })
    }

    /// For bytes that are read piece by piece: secrets alone are taken out of them.
    pub(super) fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// The text as it may leave.
    pub(super) fn text(&mut self, text: &str) -> String {
        let redacted = self.redactor.bytes(text.as_bytes());
        self.secrets += redacted.count;
        self.names(&String::from_utf8_lossy(&redacted.bytes))
    }

    /// The same of a text whose secrets are gone, but for one that colour codes parted.
    pub(super) fn names(&mut self, text: &str) -> String {
        let Some(marked) = marked(text) else { return self.plain_names(text) };
        // A code may end a name, or part one.
        let replaced = self.plain_names(&marked).replace(MARK, "");
        let redacted = self.redactor.bytes(replaced.as_bytes());
        self.secrets += redacted.count;
        self.plain_names(&String::from_utf8_lossy(&redacted.bytes))
    }

    fn plain_names(&mut self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while !rest.is_empty() {
            let (block, behind) = rest.split_at(block_end(rest));
            let replaced = self.replace_names(&self.forms.ranges(&self.numbers.replaced(block)));
            out.push_str(&self.forms.text(&replaced));
            rest = behind;
        }
        out
    }

    /// One name of a file or folder as it may leave: without names, and without anything that leads elsewhere.
    pub(super) fn file_name(&mut self, name: &str) -> String {
        const LONGEST: usize = 120;
        let replaced = self.replace_names(&self.forms.ranges(&self.numbers.replaced(name)));
        let replaced = self.forms.text(&replaced);
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-+".contains(c);
        let plain: String =
            replaced.chars().map(|c| if is_plain(c) { c } else { '_' }).take(LONGEST).collect();
        match plain.strip_prefix('.') {
            Some(rest) => format!("_{rest}"),
            None if plain.is_empty() => "_".to_owned(),
            None => plain,
        }
    }

    /// What a text still holds that must not leave.
    pub(super) fn first_left(&self, text: &str) -> Option<String> {
        if let Some((line, what)) = self.redactor.first(text.as_bytes()) {
            return Some(format!("what looks like a secret in line {line}: `{what}`"));
        }
        let left = self.places(text).into_iter().map(|(.., name)| &self.names[name]);
        if let Some(name) = left.into_iter().find(|name| name.name != name.other) {
            return Some(format!("the name of {}", name.other));
        }
        if self.forms.ranges(text) != text {
            return Some("a range of other nodes".to_owned());
        }
        (self.numbers.replaced(text) != text).then(|| "a number of other hardware".to_owned())
    }

    /// The pseudonyms of other nodes that stand in a text.
    pub(super) fn peers_in<'a>(&'a self, text: &'a str) -> impl Iterator<Item = &'a str> {
        let found = text.match_indices("peer-").map(|(at, begins)| {
            let digits = text[at + begins.len()..].bytes().take_while(u8::is_ascii_digit).count();
            &text[at..at + begins.len() + digits]
        });
        found.filter(|name| self.peers.contains(*name))
    }

    fn replace_names(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut at = 0;
        for (from, to, name) in self.places(text) {
            let Name { name, other, .. } = &self.names[name];
            out.push_str(&text[at..from]);
            // What stays is not written in another case.
            out.push_str(if name == other { &text[from..to] } else { other });
            at = to;
        }
        out.push_str(&text[at..]);
        out
    }

    /// Where names stand, each place once: the longest name that begins first.
    fn places(&self, text: &str) -> Vec<Place> {
        let found = self.finder.find_overlapping_iter(text);
        let mut found: Vec<Place> = found
            .map(|found| (found.start(), found.end(), found.pattern().as_usize()))
            .filter(|place| self.stands(text.as_bytes(), *place))
            .collect();
        found.sort_by_key(|(from, to, name)| (*from, std::cmp::Reverse(*to), *name));
        let mut end = 0;
        found.retain(|(from, to, _)| {
            let is_next = *from >= end;
            if is_next {
                end = *to;
            }
            is_next
        });
        found
    }

    /// Whether a name stands there, and is not a piece of another word.
    fn stands(&self, text: &[u8], (from, to, name): Place) -> bool {
        let Name { name, is_distinct, .. } = &self.names[name];
        let at = |n: usize| from.checked_sub(n).and_then(|at| text.get(at)).copied();
        // A line's end in an escaped text ends a word, too.
        let before = match (at(2), at(1)) {
            (Some(b'\\'), Some(b'n' | b'r' | b't')) => None,
            (_, before) => before,
        };
        let after = text.get(to).copied();
        let is = |byte: Option<u8>, of: fn(&u8) -> bool| byte.as_ref().is_some_and(of);
        let is_word = !is(before, u8::is_ascii_alphanumeric) && !is(after, u8::is_ascii_alphanumeric);
        let number_goes_on = |edge: Option<char>, next: Option<u8>| {
            edge.is_some_and(|c| c.is_ascii_digit()) && is(next, u8::is_ascii_digit)
        };
        let is_cut =
            number_goes_on(name.chars().next_back(), after) || number_goes_on(name.chars().next(), before);
        is_word || (*is_distinct && !is_cut)
    }
}

/// Where the first lines end that are long enough together, or the whole of a text.
fn block_end(text: &str) -> usize {
    let from = text.ceil_char_boundary(BLOCK.min(text.len()));
    text[from..].find('\n').map_or(text.len(), |at| from + at + 1)
}

/// A digest or a plain word holds no such name.
fn is_distinct(name: &str) -> bool {
    let has = |is: fn(char) -> bool| name.chars().any(is);
    let is_more_than_hex = has(|c| c.is_ascii_alphabetic() && !c.is_ascii_hexdigit());
    name.len() > 3 && (has(|c| "-._/".contains(c)) || (has(|c| c.is_ascii_digit()) && is_more_than_hex))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sanitiser() -> Sanitiser {
        let peers = [("gpu-1", "peer-1"), ("gpu-110", "peer-2"), ("n7", "peer-3"), ("ab12", "peer-4")];
        let site = SiteNames {
            own: vec!["gpu-11".into()],
            peers: peers.map(|(name, other)| (name.to_owned(), other.to_owned())).to_vec(),
            others: vec![("user-1".into(), "jdoe".into())],
            numbers: HardwareNumbers::default(),
        };
        Sanitiser::new(site, Redactor::default()).expect("few names")
    }

    #[test]
    fn peers_are_replaced_alike_everywhere_and_the_own_node_stays() {
        let mut sanitiser = sanitiser();
        for (text, wanted) in [
            ("gpu-1, gpu-11 and gpu-110", "peer-1, gpu-11 and peer-2"),
            ("xGPU-1x.log gpu-11.log", "xpeer-1x.log gpu-11.log"),
            ("raw/gpu-1-to-gpu-11/x", "raw/peer-1-to-gpu-11/x"),
            ("on gpu-[1,11] and gpu-12", "on gpu-11,peer-1 and gpu-12"),
            (r#"{"a": "x\nn7 n71 an7 ab12 0ab12f"}"#, r#"{"a": "x\npeer-3 n71 an7 peer-4 0ab12f"}"#),
            ("/home/jdoe/x by jdoe at 10.1.2.3", "/path-1 by user-1 at address-1"),
            ("aws s3 cp s3://acme-runs/jdoe/x .", "aws s3 cp store-1 ."),
            ("\u{1b}[32mjdoe\u{1b}[0m gpu-\u{1b}[1m110", "user-1 peer-2"),
            (r#"{"m": "\u001b[32mjdoe\u001b[0mgpu-1"}"#, r#"{"m": "user-1peer-1"}"#),
            (
                "GPU-[1-60000].acme.ai gpu-110/001 GPU-110.acme.ai",
                "another,gpu-11,peer-[1-2].host-1 peer-[1-2] host-2",
            ),
        ] {
            let replaced = sanitiser.text(text);
            assert_eq!((replaced.as_str(), sanitiser.first_left(&replaced)), (wanted, None), "{text}");
        }
        let left = |text: &str| sanitiser.first_left(text).unwrap_or_default();
        assert_eq!(left("ssh to gpu-110"), "the name of peer-2");
        assert!(left("HF_TOKEN=hf_abcdefghijklmnopqrstuvwxyz01234567").contains("secret in line 1"));
    }

    #[test]
    fn names_of_files_lead_nowhere_else() {
        let mut sanitiser = sanitiser();
        for (name, wanted) in [
            ("stdout", "stdout"),
            ("gpu-1-to-gpu-11", "peer-1-to-gpu-11"),
            ("../../etc", "_._.._etc"),
            ("a\nb\u{1}é", "a_b__"),
            ("ip-10-0-12-7.log", "host-1"),
            ("", "_"),
        ] {
            assert_eq!(sanitiser.file_name(name), wanted);
        }
        assert_eq!(sanitiser.file_name(&"x".repeat(500)).len(), 120);
    }

    #[test]
    fn a_text_of_many_blocks_is_replaced_as_if_it_were_one() {
        let line = "rank 3 of gpu-110 wrote to gpu-11\n";
        let text = line.repeat(3 * BLOCK / line.len());
        let wanted = "rank 3 of peer-2 wrote to gpu-11\n".repeat(3 * BLOCK / line.len());
        assert!(sanitiser().text(&text) == wanted);
    }
}
