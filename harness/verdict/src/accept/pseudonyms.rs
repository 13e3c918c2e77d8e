//! Names that identify a site, replaced by pseudonyms: equal names by equal ones, in every text. Known names are replaced
//! wherever they stand as words; addresses, hosts and paths are recognised by their form.

use super::node_ranges::NodeRanges;
use super::site_forms::{self, Form};
use super::words::{begins_here, equals, step};
use base::colours::{MARK, marked};
use std::collections::{BTreeMap, HashMap};

/// The known names with their pseudonyms, and those found while texts were replaced.
#[derive(Debug, Default)]
pub struct Pseudonyms {
    /// By the first byte: names and what stands for them, longest first.
    known: BTreeMap<u8, Vec<(String, String)>>,
    nodes: NodeRanges,
    /// Texts that were recognised by their form, by kind, each with its place in the order in which they were met.
    met: BTreeMap<&'static str, HashMap<String, usize>>,
    /// Beginnings of paths that stay, beside those of any Linux.
    kept: Vec<&'static str>,
}

/// Paths that every such machine has, and that show what is installed.
pub const PUBLIC_PATHS: [&str; 10] = [
    "/opt/amazon/",
    "/opt/slurm/",
    "/opt/nvidia/",
    "/opt/aws",
    "/usr/local/cuda",
    "/usr/local/lib",
    "/usr/lib",
    "/usr/sbin/",
    "/lib/",
    "/lib64/",
];
impl Pseudonyms {
    /// Nodes are numbered in their order, so that ranges of them stay ranges.
    pub(crate) fn for_nodes(nodes: &[String]) -> Pseudonyms {
        let mut pseudonyms = Pseudonyms::default();
        let width = nodes.len().to_string().len().max(3);
        for (at, node) in nodes.iter().enumerate() {
            let other = format!("node-{:0width$}", at + 1);
            pseudonyms.nodes.add(node, &other);
            pseudonyms.add(node, &other);
        }
        pseudonyms
    }

    /// These names as they stand in ranges of nodes, such as `p5-[001-004]`, each with what stands for it; by itself none
    /// of them is looked for but those that stand for themselves.
    pub fn for_ranges(nodes: impl IntoIterator<Item = (String, String)>) -> Pseudonyms {
        let mut pseudonyms = Pseudonyms::default();
        for (node, other) in nodes {
            if node == other {
                pseudonyms.add(&node, &other);
            }
            pseudonyms.nodes.add(&node, &other);
        }
        pseudonyms
    }

    /// One more name, and what stands for it.
    pub(crate) fn add(&mut self, name: &str, other: &str) {
        let Some(first) = name.bytes().next() else { return };
        let names = self.known.entry(first.to_ascii_lowercase()).or_default();
        if !names.iter().any(|(known, _)| known == name) {
            names.push((name.to_owned(), other.to_owned()));
            names.sort_by(|(a, _), (b, _)| b.len().cmp(&a.len()).then(a.cmp(b)));
        }
    }

    /// Paths that begin so stay as they are, unless they are known names.
    pub fn keep(&mut self, beginnings: &[&'static str]) {
        self.kept.extend(beginnings);
    }

    /// Ranges of nodes alone, before single names are looked for in another way.
    pub fn ranges(&self, text: &str) -> String {
        self.nodes.text(text)
    }

    /// Replaces every name in `text`, and remembers newly met addresses, hosts and paths. Colour codes go first.
    pub fn text(&mut self, text: &str) -> String {
        match marked(text) {
            // A code may end a name, or part one.
            Some(marked) => {
                let replaced = self.plain_text(&marked).replace(MARK, "");
                self.plain_text(&replaced)
            }
            None => self.plain_text(text),
        }
    }

    fn plain_text(&mut self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut at = 0;
        while let Some((before, rest)) = text.split_at_checked(at).filter(|(_, rest)| !rest.is_empty()) {
            let found = if begins_here(text.as_bytes(), at) {
                self.known_at(rest).or_else(|| self.looks_like(before, rest))
            } else {
                site_forms::within_word(before, rest).map(|path| self.path(path))
            };
            match found {
                Some((length, other)) => {
                    out.push_str(&other);
                    at += length;
                }
                None => {
                    let length = step(text, at);
                    out.push_str(rest.get(..length).unwrap_or_default());
                    at += length;
                }
            }
        }
        out
    }

    /// The first known name that a text still holds, words or not. Short and plain words identify no site.
    pub fn first_left<'a>(&'a self, text: &str) -> Option<&'a str> {
        let text = text.to_ascii_lowercase();
        let mut names = self.known.values().flatten().map(|(name, _)| name.as_str());
        names.find(|name| identifies(name) && text.contains(&name.to_ascii_lowercase()))
    }

    fn known_at(&self, rest: &str) -> Option<(usize, String)> {
        if let Some(range) = self.nodes.at(rest) {
            return Some(range);
        }
        let names = self.known.get(&rest.as_bytes().first()?.to_ascii_lowercase())?;
        let ends = |name: &str| !rest.as_bytes().get(name.len()).is_some_and(u8::is_ascii_alphanumeric);
        // A plain word in capitals is another word.
        let is_it = |name: &str| rest.starts_with(name) || (identifies(name) && equals(rest, name));
        let (name, other) = names.iter().find(|(name, _)| is_it(name) && ends(name))?;
        Some((name.len(), other.clone()))
    }

    fn looks_like(&mut self, before: &str, rest: &str) -> Option<(usize, String)> {
        match site_forms::form(before, rest)? {
            Form::Path(path) => Some(self.path(path)),
            Form::Url { scheme, whole } => {
                let other = self.met("url", whole.get(scheme.len()..)?);
                Some((whole.len(), format!("{scheme}{other}")))
            }
            Form::Other(kind, text) => Some((text.len(), self.met(kind, text))),
        }
    }

    fn path(&mut self, path: &str) -> (usize, String) {
        match self.kept.iter().any(|kept| path.starts_with(kept)) {
            true => (path.len(), path.to_owned()),
            false => (path.len(), format!("/{}", self.met("path", path))),
        }
    }

    fn met(&mut self, kind: &'static str, what: &str) -> String {
        // What was replaced before stays.
        let number = what.trim_start_matches('/').strip_prefix(kind).and_then(|rest| rest.strip_prefix('-'));
        if number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
        {
            return what.trim_start_matches('/').to_owned();
        }
        // Hosts and addresses are the same in any case.
        let what = match kind {
            "host" | "address" => what.to_ascii_lowercase(),
            _ => what.to_owned(),
        };
        let those = self.met.entry(kind).or_default();
        let next = those.len() + 1;
        format!("{kind}-{}", those.entry(what).or_insert(next))
    }
}

/// Short and plain words identify no site.
fn identifies(name: &str) -> bool {
    name.len() > 3 && name.contains(['-', '.', '/', '_', '0', '1', '2', '3', '4', '5'])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pseudonyms() -> Pseudonyms {
        let nodes: Vec<String> = (1..=40).map(|n| format!("acme-gpu{n:03}")).collect();
        let mut pseudonyms = Pseudonyms::for_nodes(&nodes);
        for (name, other) in
            [("acme-east", "cluster-1"), ("jdoe", "user-1"), ("/fsx/jdoe/harness", "/shared")]
        {
            pseudonyms.add(name, other);
        }
        pseudonyms
    }

    #[test]
    fn the_same_name_becomes_the_same_other_in_every_text() {
        let mut of = pseudonyms();
        for (text, wanted) in [
            (
                "acme-gpu007 rdmap79s0: 4.1 GB/s with acme-gpu001",
                "node-007 rdmap79s0: 4.1 GB/s with node-001",
            ),
            ("raw/acme-gpu001-to-acme-gpu002/x.out", "raw/node-001-to-node-002/x.out"),
            ("on acme-gpu[001-004,007] of acme-east", "on node-[001-004,007] of cluster-1"),
            ("\"folder\": \"/fsx/jdoe/harness/run-1\"", "\"folder\": \"/shared/run-1\""),
            ("jdoe@10.1.2.3, 10.1.2.3 and fe80::1:2", "user-1@address-1, address-1 and address-2"),
            ("ip-10-0-12-7.ec2.internal, head.acme.com", "host-1, host-2"),
            ("first\\n/home/jdoe/x and /sys/class/infiniband", "first\\n/path-1 and /sys/class/infiniband"),
            ("mail a.b@acme.com; mac 0a:1b:2c:3d:4e:5f", "mail address-3; mac address-4"),
            ("to s3://acme/runs/1?x=2, \"arn:aws:iam::12:role/acme\"", "to store-1, \"store-2\""),
        ] {
            let replaced = of.text(text);
            assert_eq!((replaced.as_str(), of.first_left(&replaced)), (wanted, None), "{text}");
        }
    }

    #[test]
    fn numbers_moments_versions_and_devices_are_not_names() {
        let text = "2026-11-22T04:02:03.250Z 570.133.20 2.27.7 0000:53:00.0 1/2 GB/s 0.0.0.0 rdmap113s0 nic-slow=0.4@rdmap113s0 \
                    [1, 2] a::b https gpu3 jdoes";
        assert_eq!(pseudonyms().text(text), text);
    }

    #[test]
    fn remains_of_a_name_are_found() {
        let of = pseudonyms();
        assert_eq!(of.first_left("xACME-gpu007x"), Some("acme-gpu007"));
        assert_eq!(of.first_left("jdoe is a plain word"), None);
    }
}
