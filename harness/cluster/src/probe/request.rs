//! The probe of one node: the script, and its arguments. What comes back is read in `answer.rs`.

use base::redact::{Reference, reference};
use config::inventory::{Inventory, Paths};
use job::script::PROFILE_SH;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

/// The arguments of the script on one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbeRequest {
    /// By its name in the inventory.
    pub node: String,
    /// `paths.shared`: the folder that all nodes see.
    pub shared: String,
    /// `paths.nccl_tests`: the folder of their programs.
    pub nccl_tests: String,
    /// `paths.counters`: the folder of the NICs, with `{host}` for the node.
    pub counters: String,
    /// How many there should be: fewer are looked for again.
    pub nics: usize,
    /// Seconds before NICs are looked for again.
    pub pause_s: u32,
    /// The program, or `find`.
    pub nsys: String,
    /// What `[paths]` names for jobs to run: programs, and folders of programs.
    pub programs: Vec<String>,
    /// What the inventory sets for jobs, as far as it decides which software they find and how that is set.
    pub environment: BTreeMap<String, String>,
}

/// Beginnings of names: other variables are a job's alone, and a command line is no place for secrets.
const MATTERS: [&str; 7] = ["NCCL_", "FI_", "RDMAV_", "OFI_NCCL_", "LD_LIBRARY_PATH", "PATH", "HARNESS_"];

/// The node's clock alone: over a connection that is there already its answer takes milliseconds.
pub const CLOCK: [&str; 2] = ["date", "+%s.%N"];

const PAUSE_S: u32 = 5;
const NAME: &str = "probe.sh";
const HEAD: &str = include_str!("probe.sh");
/// Functions that it calls.
const PARTS: [&str; 3] = [include_str!("gpu_health.sh"), include_str!("devices.sh"), include_str!("host.sh")];

/// How nsys is found stands in `profile.sh` and nowhere else: what the probe reports is what a job will use.
static SCRIPT: LazyLock<String> = LazyLock::new(|| {
    let mut text = HEAD.to_owned();
    for part in PARTS {
        text.push('\n');
        text.push_str(part);
    }
    for function in functions(PROFILE_SH, "find_nsys") {
        text.push('\n');
        text.push_str(function);
    }
    text.push_str("\nmain \"$@\"\n");
    text
});

impl ProbeRequest {
    /// From the inventory's paths, NICs and environment.
    pub fn for_node(inventory: &Inventory, node: &str) -> ProbeRequest {
        let paths = &inventory.paths;
        ProbeRequest {
            node: node.to_owned(),
            shared: paths.shared.clone(),
            nccl_tests: paths.nccl_tests.clone(),
            counters: paths.counters.clone(),
            nics: inventory.instance.nics.len(),
            pause_s: PAUSE_S,
            nsys: paths.nsys.clone().unwrap_or_else(|| "find".to_owned()),
            programs: programs(paths),
            environment: inventory
                .environment
                .iter()
                .filter(|(name, _)| MATTERS.iter().any(|begins| name.starts_with(begins)))
                .filter(|(_, value)| matches!(reference(value), Reference::None))
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect(),
        }
    }

    /// `bash -c` with the script's text and its arguments, after `env` where variables are set.
    pub fn argv(&self) -> Vec<String> {
        let mut argv = Vec::new();
        if !self.environment.is_empty() {
            argv.push("env".to_owned());
            argv.extend(self.environment.iter().map(|(name, value)| format!("{name}={value}")));
        }
        let words = ["bash", "-c", SCRIPT.as_str(), NAME, &self.node, &self.shared, &self.nccl_tests];
        argv.extend(words.map(str::to_owned));
        argv.push(self.counters.clone());
        argv.push(self.nics.to_string());
        argv.push(self.pause_s.to_string());
        argv.push(self.nsys.clone());
        argv.extend(self.programs.iter().cloned());
        argv
    }

    /// The request that an argument list makes, by this very script; none for any other list.
    pub fn read<S: AsRef<str>>(argv: &[S]) -> Option<ProbeRequest> {
        let words: Vec<&str> = argv.iter().map(AsRef::as_ref).collect();
        let (set, words) = match words.split_first() {
            Some((&"env", rest)) => rest.split_at(rest.iter().position(|word| *word == "bash")?),
            _ => words.split_at(0),
        };
        let [
            "bash",
            "-c",
            text,
            NAME,
            node,
            shared,
            nccl_tests,
            counters,
            nics,
            pause_s,
            nsys,
            programs @ ..,
        ] = words
        else {
            return None;
        };
        if *text != SCRIPT.as_str() {
            return None;
        }
        let word = |word: &str| word.to_owned();
        Some(ProbeRequest {
            node: word(node),
            shared: word(shared),
            nccl_tests: word(nccl_tests),
            counters: word(counters),
            nics: nics.parse().ok()?,
            pause_s: pause_s.parse().ok()?,
            nsys: word(nsys),
            programs: programs.iter().map(|program| word(program)).collect(),
            environment: set
                .iter()
                .map(|pair| pair.split_once('=').map(|(name, value)| (word(name), word(value))))
                .collect::<Option<_>>()?,
        })
    }
}

fn programs(paths: &Paths) -> Vec<String> {
    let samples = &paths.samples;
    let named = [
        &paths.mpirun,
        &paths.nccl_inspector,
        &paths.nsys,
        &paths.slurm,
        &paths.harness,
        &samples.fsdp,
        &samples.nemo,
        &samples.megatron,
        &samples.ddp,
        &samples.torchrun,
    ];
    let named = named.into_iter().flatten().filter(|path| path.starts_with('/'));
    std::iter::once(&paths.nccl_tests).chain(named).cloned().collect()
}

/// A function of a script with all those of the same script that it calls, as they stand there.
fn functions<'a>(script: &'a str, name: &str) -> Vec<&'a str> {
    let bodies = bodies(script);
    let mut seen = BTreeSet::from([name]);
    let mut open = vec![name];
    let mut found = Vec::new();
    while let Some(name) = open.pop() {
        let Some(&body) = bodies.get(name) else { continue };
        for word in body.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')) {
            if let Some((&called, _)) = bodies.get_key_value(word)
                && seen.insert(called)
            {
                open.push(called);
            }
        }
        found.push(body);
    }
    found.sort_unstable();
    found
}

/// Each function of a script by its name, from there to the brace that closes it, both at the beginning of a line.
fn bodies(script: &str) -> BTreeMap<&str, &str> {
    script
        .match_indices("() {\n")
        .filter_map(|(at, _)| {
            let from = script[..at].rfind('\n')? + 1;
            let to = at + script[at..].find("\n}\n")? + 3;
            Some((&script[from..at], &script[from..to]))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_finds_nsys_by_the_words_of_profile_sh() {
        let found = functions(PROFILE_SH, "find_nsys");
        assert!(found.iter().any(|function| function.starts_with("find_nsys() {\n")), "{found:?}");
        assert!(found.iter().any(|function| function.starts_with("older() {\n")), "{found:?}");
        assert!(found.iter().all(|function| PROFILE_SH.contains(function) && SCRIPT.contains(function)));
    }

    #[test]
    fn an_argument_list_is_read_back_and_any_other_is_not() {
        let mut ask = ProbeRequest {
            node: "p5-001".into(),
            shared: "/fsx/two words".into(),
            nccl_tests: "/opt".into(),
            counters: "/sys/{host}".into(),
            nics: 32,
            pause_s: 5,
            nsys: "find".into(),
            programs: vec!["/opt".into(), "/opt/bin/torchrun".into()],
            environment: BTreeMap::from([("LD_LIBRARY_PATH".into(), "/opt/a b".into())]),
        };
        assert_eq!(ask.argv()[..2], ["env", "LD_LIBRARY_PATH=/opt/a b"]);
        assert_eq!(ProbeRequest::read(&ask.argv()).as_ref(), Some(&ask));
        ask.environment.clear();
        let argv = ask.argv();
        assert_eq!(ProbeRequest::read(&argv), Some(ask));
        let mut other = argv.clone();
        other[2].push_str("rm -rf /\n");
        assert_eq!(ProbeRequest::read(&other), None);
        assert_eq!(ProbeRequest::read(&argv[..10]), None);
    }
}
