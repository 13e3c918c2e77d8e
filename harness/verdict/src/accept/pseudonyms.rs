//! Names that identify a site, replaced by pseudonyms: equal names by equal ones, in every text. Known names are replaced
//! wherever they stand as words; addresses, hosts and paths are recognised by their form.

use base::nodeset;
use std::collections::BTreeMap;

/// The known names with their pseudonyms, and those found while texts were replaced.
#[derive(Debug, Default)]
pub struct Pseudonyms {
    /// By the first byte: names and what stands for them, longest first.
    known: BTreeMap<u8, Vec<(String, String)>>,
    nodes: BTreeMap<String, String>,
    /// Texts that were recognised by their form, by kind, in the order in which they were met.
    met: BTreeMap<&'static str, Vec<String>>,
    /// Beginnings of paths that stay, beside those of any Linux.
    kept: Vec<&'static str>,
}

/// Ends of names of hosts.
const DOMAINS: [&str; 10] =
    [".internal", ".local", ".cluster", ".com", ".net", ".org", ".edu", ".io", ".cloud", ".lan"];
/// How addresses of objects in a store begin, and names of resources in a cloud.
const STORES: [&str; 6] = ["s3://", "s3a://", "gs://", "az://", "abfss://", "arn:aws"];
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
/// Parts of any Linux.
const KEPT: [&str; 5] = ["/sys/", "/proc/", "/dev/", "/bin/", "/usr/bin/"];

impl Pseudonyms {
    /// Nodes are numbered in their order, so that ranges of them stay ranges.
    pub(crate) fn for_nodes(nodes: &[String]) -> Pseudonyms {
        let mut pseudonyms = Pseudonyms::default();
        let width = nodes.len().to_string().len().max(3);
        for (at, node) in nodes.iter().enumerate() {
            let other = format!("node-{:0width$}", at + 1);
            pseudonyms.nodes.insert(node.clone(), other.clone());
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
            pseudonyms.nodes.insert(node, other);
        }
        pseudonyms
    }

    /// One more name, and what stands for it.
    pub(crate) fn add(&mut self, name: &str, other: &str) {
        let Some(first) = name.bytes().next() else { return };
        let names = self.known.entry(first).or_default();
        if !names.iter().any(|(known, _)| known == name) {
            names.push((name.to_owned(), other.to_owned()));
            names.sort_by(|(a, _), (b, _)| b.len().cmp(&a.len()).then(a.cmp(b)));
        }
    }

    /// Paths that begin so stay as they are, unless they are known names.
    pub fn keep(&mut self, beginnings: &[&'static str]) {
        self.kept.extend(beginnings);
    }

    /// Replaces every name in `text`, and remembers newly met addresses, hosts and paths.
    pub fn text(&mut self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut at = 0;
        while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
            let found = match begins_here(text.as_bytes(), at) {
                true => self.known_at(rest).or_else(|| self.looks_like(rest)),
                false => None,
            };
            match found {
                Some((length, other)) => {
                    out.push_str(&other);
                    at += length;
                }
                None => {
                    let word = taken(rest, |c| c.is_ascii_alphanumeric()).len();
                    // What looks like the beginning of a word may end a line in an escaped text.
                    let is_escaped = text.get(..at).is_some_and(|before| before.ends_with('\\'));
                    let length = match word {
                        0 => rest.chars().next().map_or(1, char::len_utf8),
                        _ if is_escaped => 1,
                        word => word,
                    };
                    out.push_str(&rest[..length]);
                    at += length;
                }
            }
        }
        out
    }

    /// The first known name that a text still holds, words or not. Short and plain words identify no site.
    pub fn first_left<'a>(&'a self, text: &str) -> Option<&'a str> {
        let text = text.to_ascii_lowercase();
        let identifies =
            |name: &str| name.len() > 3 && name.contains(['-', '.', '/', '_', '0', '1', '2', '3', '4', '5']);
        let mut names = self.known.values().flatten().map(|(name, _)| name.as_str());
        names.find(|name| identifies(name) && text.contains(&name.to_ascii_lowercase()))
    }

    fn known_at(&self, rest: &str) -> Option<(usize, String)> {
        if let Some(range) = range(rest)
            && let Ok(names) = nodeset::expand(range)
            && names.iter().any(|name| self.nodes.contains_key(name))
        {
            let others: Vec<String> = names
                .iter()
                .map(|name| self.nodes.get(name).cloned().unwrap_or_else(|| "another".to_owned()))
                .collect();
            return Some((range.len(), nodeset::fold(&others)));
        }
        let names = self.known.get(rest.as_bytes().first()?)?;
        let ends = |name: &str| !rest.as_bytes().get(name.len()).is_some_and(u8::is_ascii_alphanumeric);
        let (name, other) = names.iter().find(|(name, _)| rest.starts_with(name.as_str()) && ends(name))?;
        Some((name.len(), other.clone()))
    }

    fn looks_like(&mut self, rest: &str) -> Option<(usize, String)> {
        if let Some(path) = path(rest) {
            if self.kept.iter().any(|kept| path.starts_with(kept)) {
                return Some((path.len(), path.to_owned()));
            }
            let other = self.met("path", path);
            return Some((path.len(), format!("/{other}")));
        }
        if STORES.iter().any(|begins| rest.starts_with(begins)) {
            let address = taken(rest, |c| c.is_ascii_graphic() && !"\"'`<>(),;\\".contains(c));
            let other = self.met("store", address);
            return Some((address.len(), other));
        }
        let word = taken(rest, |c| c.is_ascii_alphanumeric() || "-._:@+".contains(c))
            .trim_end_matches(['.', ':', '-']);
        let address = mail(word).or_else(|| ip(word)).or_else(|| hardware(word));
        if let Some(address) = address {
            let other = self.met("address", address);
            return Some((address.len(), other));
        }
        let host = taken(word, |c| c.is_ascii_alphanumeric() || c == '-' || c == '.').trim_end_matches('.');
        let is_host = DOMAINS.iter().any(|domain| host.ends_with(domain)) || is_cloud_host(host);
        (is_host && host.len() > 3).then(|| (host.len(), self.met("host", host)))
    }

    fn met(&mut self, kind: &'static str, what: &str) -> String {
        let those = self.met.entry(kind).or_default();
        let at = those.iter().position(|one| one == what).unwrap_or_else(|| {
            those.push(what.to_owned());
            those.len() - 1
        });
        format!("{kind}-{}", at + 1)
    }
}

/// Not within a word; a line's end in an escaped text is none.
fn begins_here(bytes: &[u8], at: usize) -> bool {
    let before = |n: usize| at.checked_sub(n).and_then(|at| bytes.get(at)).copied();
    match (before(2), before(1)) {
        (_, None) | (Some(b'\\'), Some(b'n' | b't' | b'r')) => true,
        (_, Some(one)) => {
            let is_path = bytes.get(at) == Some(&b'/');
            !(one.is_ascii_alphanumeric() || !one.is_ascii() || (is_path && b"/.-_+]})>".contains(&one)))
        }
    }
}

fn taken(rest: &str, is_of_it: impl Fn(char) -> bool) -> &str {
    rest.split(|c: char| !is_of_it(c)).next().unwrap_or_default()
}

/// Such as `p5-[001-004,007]`, with what stands behind it.
fn range(rest: &str) -> Option<&str> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let before = taken(rest, is_name);
    let inside = rest.get(before.len()..)?.strip_prefix('[')?;
    let numbers = taken(inside, |c| c.is_ascii_digit() || c == '-' || c == ',');
    let behind = inside.get(numbers.len()..)?.strip_prefix(']')?;
    if numbers.is_empty() || before.is_empty() {
        return None;
    }
    let more = taken(behind, |c| c.is_ascii_alphanumeric());
    rest.get(..before.len() + numbers.len() + 2 + more.len())
}

fn path(rest: &str) -> Option<&str> {
    let path = taken(rest.strip_prefix('/')?, |c| c.is_ascii_alphanumeric() || "/._-+@%~=".contains(c));
    let first = path.chars().next()?;
    let whole = rest.get(..path.len() + 1)?.trim_end_matches('.');
    let is_kept = KEPT.iter().any(|kept| whole.starts_with(kept));
    ((first.is_ascii_alphanumeric() || "._~".contains(first)) && !is_kept).then_some(whole)
}

fn mail(word: &str) -> Option<&str> {
    let (user, host) = word.split_once('@')?;
    let ends = host
        .rsplit('.')
        .next()
        .is_some_and(|end| end.len() > 1 && end.chars().all(|c| c.is_ascii_alphabetic()));
    (!user.is_empty() && host.contains('.') && ends).then_some(word)
}

/// Of four numbers, or of the newer kind.
fn ip(word: &str) -> Option<&str> {
    let four = taken(word, |c| c.is_ascii_digit() || c == '.').trim_end_matches('.');
    // Zeros alone are a version of firmware, or every address.
    let is_one = four.parse::<std::net::Ipv4Addr>().is_ok_and(|address| !address.is_unspecified());
    if is_one && !followed_by_word(word, four) {
        return Some(four);
    }
    let six = taken(word, |c| c.is_ascii_hexdigit() || c == ':').trim_end_matches(':');
    // Names of code have such colons too, and no digit.
    let has_digit = six.contains(|c: char| c.is_ascii_digit());
    let is_one = has_digit && six.matches(':').count() > 1 && six.parse::<std::net::Ipv6Addr>().is_ok();
    (is_one && !followed_by_word(word, six)).then_some(six)
}

fn followed_by_word(word: &str, part: &str) -> bool {
    word.as_bytes().get(part.len()).is_some_and(|byte| byte.is_ascii_alphanumeric())
}

/// Of a network card: six pairs of digits.
fn hardware(word: &str) -> Option<&str> {
    let six = taken(word, |c| c.is_ascii_hexdigit() || c == ':');
    let pairs: Vec<&str> = six.split(':').collect();
    (pairs.len() == 6 && pairs.iter().all(|pair| pair.len() == 2)).then_some(six)
}

/// Such as `ip-10-0-12-7`.
fn is_cloud_host(host: &str) -> bool {
    let Some(numbers) = host.split('.').next().and_then(|name| name.strip_prefix("ip-")) else {
        return false;
    };
    numbers.split('-').count() == 4 && numbers.split('-').all(|number| number.parse::<u8>().is_ok())
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
    fn what_is_left_of_a_name_is_found() {
        let of = pseudonyms();
        assert_eq!(of.first_left("xACME-gpu007x"), Some("acme-gpu007"));
        assert_eq!(of.first_left("jdoe is a plain word"), None);
    }
}
