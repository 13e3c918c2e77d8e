//! The objects of manifests as the rules see them: their kinds, pods, containers, commands and environment.

use super::yaml::{Node, Position};
use crate::lint::script::{Command, Word, assignment, base, shell_commands};
use std::collections::BTreeMap;
use std::rc::Rc;

/// All files of one command line, which may refer to each other.
pub(super) struct Manifests {
    pub(super) documents: Vec<Document>,
}

/// One object, or one file of Helm values.
pub(super) struct Document {
    pub(super) root: Rc<Node>,
    /// Empty where none is given.
    pub(super) kind: String,
    pub(super) is_values: bool,
    pub(super) pods: Vec<Pod>,
}

/// A pod, or what one is made from.
pub(super) struct Pod {
    pub(super) metadata: Option<Rc<Node>>,
    pub(super) spec: Rc<Node>,
    /// The key of the replicas that it is of, such as `Worker`.
    pub(super) role: String,
    pub(super) replicas: Option<u64>,
}

/// Keys that only values of the profiler's charts have.
const VALUES: [&str; 4] =
    ["injectionMatch", "devtoolBinariesImage", "devtoolArgs", "injectionIncludePatterns"];

impl Document {
    pub(super) fn new(root: Rc<Node>, file: &str, corrected: fn(&str) -> String) -> Vec<Document> {
        let kind = root.get("kind").and_then(Node::text).map(corrected).unwrap_or_default();
        if kind == "List" && root.get("items").is_some_and(|items| !items.items().is_empty()) {
            let items = root.get("items").map(Node::items).unwrap_or_default();
            return items.iter().flat_map(|item| Document::new(Rc::clone(item), file, corrected)).collect();
        }
        let is_object = root.get("apiVersion").is_some() || root.get("kind").is_some();
        let is_named = base(file).contains("values");
        let has_keys = VALUES.iter().any(|key| has_key(&root, key, 4));
        let is_values = !is_object && (is_named || has_keys);
        let mut pods = Vec::new();
        find_pods(&root, &mut Vec::new(), &mut pods);
        vec![Document { root, kind, is_values, pods }]
    }

    pub(super) fn is_job(&self) -> bool {
        matches!(
            self.kind.as_str(),
            "Job" | "CronJob" | "JobSet" | "MPIJob" | "PyTorchJob" | "TrainJob" | "HyperPodPyTorchJob"
        )
    }

    /// Whether its result is a number that somebody will compare.
    pub(super) fn is_measurement(&self) -> bool {
        self.pods.iter().flat_map(Pod::containers).any(|container| {
            let image = container
                .get("image")
                .and_then(Node::text)
                .is_some_and(|image| base(image).starts_with("nccl"));
            image || container_words(container).any(is_measuring)
        })
    }

    pub(super) fn pod(&self, role: &str) -> Option<&Pod> {
        self.pods.iter().find(|pod| pod.role == role)
    }
}

fn is_measuring(word: &str) -> bool {
    let program = base(word);
    program.ends_with("_perf")
        || ["nvbandwidth", "fi_pingpong", "fi_rdm_pingpong", "ib_write_bw", "ib_read_bw", "nsys"]
            .contains(&program)
}

fn has_key(node: &Node, key: &str, depth: usize) -> bool {
    depth > 0
        && node.entries().iter().any(|entry| &*entry.key == key || has_key(&entry.value, key, depth - 1))
}

/// Pods of one object that are looked at, so that a hostile file takes no minutes.
pub(super) const MOST_PODS: usize = 2000;

fn find_pods<'a>(node: &'a Node, path: &mut Vec<(&'a str, &'a Node)>, pods: &mut Vec<Pod>) {
    if let Some(spec) = node
        .entry("spec")
        .filter(|spec| !spec.value.get("containers").map_or(&[][..], Node::items).is_empty())
    {
        // `Worker: {replicas: 2, template: {spec}}`, and a list of replicas for HyperPod.
        let around = path.iter().rev().find(|(key, _)| *key != "template");
        let replicas = path.iter().rev().find_map(|(_, node)| node.get("replicas"));
        pods.push(Pod {
            metadata: node.entry("metadata").map(|entry| Rc::clone(&entry.value)),
            spec: Rc::clone(&spec.value),
            role: around.map(|(key, _)| (*key).to_owned()).unwrap_or_default(),
            replicas: replicas.and_then(Node::number),
        });
    }
    for entry in node.entries() {
        path.push((&entry.key, &entry.value));
        find_pods(&entry.value, path, pods);
        path.pop();
        if pods.len() >= MOST_PODS {
            return;
        }
    }
    for item in node.items() {
        find_pods(item, path, pods);
        if pods.len() >= MOST_PODS {
            return;
        }
    }
}

impl Pod {
    pub(super) fn containers(&self) -> impl Iterator<Item = &Node> {
        self.spec.get("containers").map_or(&[][..], Node::items).iter().map(|node| &**node)
    }

    /// Those that run before the others too.
    pub(super) fn all_containers(&self) -> impl Iterator<Item = &Node> {
        let before = self.spec.get("initContainers").map_or(&[][..], Node::items);
        before.iter().map(|node| &**node).chain(self.containers())
    }

    pub(super) fn is_on_host_network(&self) -> bool {
        self.spec.get("hostNetwork").is_some_and(Node::is_true)
    }

    /// How many of a resource the containers ask for together.
    pub(super) fn count(&self, resource: &str) -> Option<u64> {
        let mut counts = self.containers().filter_map(|container| count(container, resource)).peekable();
        counts.peek()?;
        Some(counts.fold(0, u64::saturating_add))
    }
}

/// How many of a resource a container asks for.
pub(super) fn count(container: &Node, resource: &str) -> Option<u64> {
    let of = |part: &str| container.at(&["resources", part, resource]).and_then(Node::number);
    of("limits").or_else(|| of("requests"))
}

/// A value that something fills in before kubectl sees it.
pub(super) fn is_placeholder(text: &str) -> bool {
    let begins = |c: char| c.is_ascii_alphabetic() || matches!(c, '_' | '{');
    text.split('$').skip(1).any(|rest| rest.starts_with(begins)) || placeholder_in_brackets(text).is_some()
}

/// `<account>`: what authors of examples write for a word of the reader's.
pub(super) fn placeholder_in_brackets(text: &str) -> Option<&str> {
    let begin = text.find('<')?;
    let end = begin + text[begin..].find('>')?;
    let inside = &text[begin + 1..end];
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ' ');
    (!inside.is_empty() && inside.len() < 40 && inside.chars().all(is_word)).then_some(&text[begin..=end])
}

/// The texts of `command` and `args`, in their order.
pub(super) fn arguments(container: &Node) -> impl Iterator<Item = &Rc<Node>> {
    ["command", "args"].into_iter().flat_map(|key| container.get(key).map_or(&[][..], Node::items))
}

fn container_words(container: &Node) -> impl Iterator<Item = &str> {
    arguments(container).filter_map(|node| node.scalar()).flat_map(str::split_whitespace)
}

/// Whether a shell reads the arguments of a container.
pub(super) fn is_shell(container: &Node) -> bool {
    let first = arguments(container).next().and_then(|node| node.text()).unwrap_or_default();
    matches!(base(first), "sh" | "bash" | "dash" | "zsh")
}

/// The commands of a container: its argument list, or those of its shell script, and its environment as `export`.
pub(super) fn commands(container: &Node) -> Vec<Command> {
    let word = |text: &str, place: Position| Word {
        text: text.to_owned(),
        line: place.line,
        column: place.column,
        ..Word::default()
    };
    let mut all: Vec<Command> = Vec::new();
    // The last of several counts; a rule of its own reports the others.
    let last: BTreeMap<&str, (&str, Position)> =
        variables(container).map(|(name, value, place)| (name, (value, place))).collect();
    for (name, (value, place)) in last {
        let words = vec![word("export", place), word(&format!("{name}={value}"), place)];
        all.push(Command { words, list: None });
    }
    if is_shell(container) {
        for script in
            arguments(container).filter(|node| node.text().is_some_and(|text| text.contains([' ', '\n'])))
        {
            all.extend(within(script));
        }
    } else {
        let words = arguments(container).filter_map(|node| Some(word(node.scalar()?, node.place)));
        all.push(Command { words: words.collect(), list: None });
    }
    all
}

/// The commands of a shell script that is one value. Of a block each word has its place, of another the value's.
fn within(script: &Node) -> Vec<Command> {
    let Some(text) = script.text() else { return Vec::new() };
    let empty = text.len() - text.trim_start_matches('\n').len();
    let mut commands = shell_commands(text).commands;
    for word in commands.iter_mut().flat_map(|command| &mut command.words) {
        (word.line, word.column) = match script.is_block {
            true => (
                (script.place.line + word.line).saturating_sub(1 + empty),
                script.place.column + word.column - 1,
            ),
            false => (script.place.line, script.place.column),
        };
    }
    commands
}

/// The plain variables of a container's environment.
pub(super) fn variables(container: &Node) -> impl Iterator<Item = (&str, &str, Position)> {
    container.get("env").map_or(&[][..], Node::items).iter().filter_map(|variable| {
        let value = variable.get("value")?;
        Some((variable.get("name")?.text()?, value.scalar()?, value.place))
    })
}

/// What the environment of a container and the words of its commands set: `env`, `export`, `-x NAME=VALUE`.
pub(super) fn settings(container: &Node) -> Vec<(String, String, Position)> {
    let file = container.place.file;
    let commands = commands(container);
    let words = commands.iter().flat_map(|command| &command.words);
    let set = words.filter_map(|word| {
        let (name, value) = assignment(word)?;
        Some((name.to_owned(), value.to_owned(), Position { file, line: word.line, column: word.column }))
    });
    set.collect()
}
