//! Reads the tables of an inventory.

use super::{
    Container, Instance, Instances, Inventory, Kind, NicTool, Paths, ReachBy, SamplePaths, form, hardware,
    instance, is_word, launcher, topology, world,
};
use crate::diagnostic::Diagnostics;
use crate::facts::requirements;
use crate::toml_reader::file::stem;
use crate::toml_reader::{self, Table, Value};
use base::nodeset;
use job::profile::NsysVersion;
use job::script::Runtime;
use std::collections::{BTreeMap, BTreeSet};
use toml::de::DeValue;

/// The defaults of the nodes of a simulated cluster.
const SIMULATED_NSYS: NsysVersion = NsysVersion::new(2025, 3);

pub(super) const KINDS: [(&str, Kind); 2] = [("simulated", Kind::Simulated), ("real", Kind::Real)];
pub(super) const RUNTIMES: [(&str, Runtime); 2] = [("docker", Runtime::Docker), ("podman", Runtime::Podman)];
pub(super) const NIC_TOOLS: [NicTool; 2] = [NicTool::FiRmaBw, NicTool::IbWriteBw];

pub(super) fn inventory(text: &str, file: &str, instances: &Instances) -> Result<Inventory, Diagnostics> {
    toml_reader::read(text, file, |table| {
        let kind = match table.get("kind") {
            None => {
                table.missing("kind", "write `kind = \"real\"`");
                None
            }
            Some(value) => value.one_of(&KINDS),
        };
        let instance = table.need("instance").and_then(|value| read_instance(&value, kind, instances));
        let nodes = table.need("nodes").and_then(|value| nodes_of(&value));
        let groups = table.get("groups").and_then(|value| value.table());
        let groups = groups.map(|groups| read_groups(&groups, nodes.as_deref())).unwrap_or_default();
        let reach = match (table.get("reach"), kind) {
            (Some(reach), _) => reach.table().and_then(|reach| launcher::read(&reach)),
            (None, Some(Kind::Real)) => {
                table.diagnostic_with("missing key: `reach`", "write `reach = { via = \"slurm\" }`");
                None
            }
            (None, _) => Some(ReachBy::default()),
        };
        let paths = match (table.get("paths"), kind) {
            (Some(paths), _) => paths.table().and_then(|paths| read_paths(&paths, kind)),
            (None, Some(Kind::Real)) => {
                let suggestion = "write `paths = { shared = \"/fsx/harness\" }`, a folder that all nodes see";
                table.diagnostic_with("missing key: `paths`", suggestion);
                None
            }
            (None, _) => Some(default_paths("/fsx/harness".to_owned())),
        };
        let topology = table.get("topology").and_then(|value| value.table());
        let topology = topology.and_then(|topology| topology::read(&topology));
        let container = table.get("container").and_then(|value| value.table());
        let container = container.map(|container| read_container(&container));
        let environment = table.get("environment").and_then(|value| value.table());
        let environment = environment.map(|table| crate::suite::variables(&table)).unwrap_or_default();
        let publish = table.get("publish").and_then(|value| value.table());
        let publish = publish.map(|table| read_publish(&table));
        let tools = NIC_TOOLS.map(|tool| (tool.name(), tool));
        let nic_tool = table.get("nic_tool").map_or(Some(NicTool::FiRmaBw), |value| value.one_of(&tools));
        let nsys_version = table.get("nsys_version").and_then(|value| {
            let text = value.non_empty_text()?;
            let version = NsysVersion::parse(&text);
            if version.is_none() {
                let message = format!("not a version of nsys: `{}`", text.escape_debug());
                value.diagnostic_with(message, "write it as `nsys --version` does: `2024.4.1`");
            }
            version
        });
        let asked = table.get("probe").and_then(|value| value.table());
        let requirements = asked.map(|table| requirements(&table)).unwrap_or_default();
        let delivered = table.get("hardware").and_then(|value| value.list()).unwrap_or_default();
        let delivered = hardware::read(&delivered, nodes.as_deref());
        let world = match (table.get("world"), kind) {
            (Some(value), Some(Kind::Real)) => {
                value.diagnostic("a real inventory has no `[world]`: it describes a simulated cluster");
                None
            }
            (value, _) => value.and_then(|value| value.table()).map(|table| world::read(&table)),
        };
        table.close(form::file);
        let in_path = || paths.as_ref()?.nsys.as_deref().and_then(NsysVersion::in_path);
        let of_simulated = || (kind == Some(Kind::Simulated)).then_some(SIMULATED_NSYS);
        let nsys_version = nsys_version.or_else(in_path).or_else(of_simulated);
        Some(Inventory {
            name: stem(file).to_owned(),
            kind: kind?,
            instance: instance?,
            nodes: nodes?,
            groups,
            topology,
            network: None,
            reach: reach?,
            paths: paths?,
            container: container.flatten(),
            environment,
            publish: publish.flatten(),
            nic_tool: nic_tool?,
            nsys_version,
            probe: requirements,
            hardware: delivered,
            world: world.unwrap_or_default(),
            file: file.to_owned(),
        })
    })
}

/// A name among the profiles, or a profile of the inventory's own.
fn read_instance(value: &Value<'_>, kind: Option<Kind>, instances: &Instances) -> Option<Instance> {
    let instance = match value.raw().get_ref() {
        DeValue::Table(_) => instance::inline(&value.table()?, instances)?,
        _ => {
            let name = value.non_empty_text()?;
            match instances.by_name(&name) {
                Some(instance) => instance.clone(),
                None if instances.is_broken(&name) => return None,
                None => {
                    instance::unknown(value, &name, instances);
                    return None;
                }
            }
        }
    };
    let other = || {
        let name = instance.name.trim_start_matches("sim-");
        let is_other = |other: &&str| *other != instance.name && other.trim_start_matches("sim-") == name;
        instances.names().find(is_other)
    };
    let message = match (kind, instance.is_simulated()) {
        (Some(Kind::Simulated), false) => "a simulated inventory needs a `sim-` instance",
        (Some(Kind::Real), true) => "a real inventory cannot have a `sim-` instance",
        _ => return Some(instance),
    };
    let message = format!("{message}: `{}`", instance.name);
    match other() {
        Some(near) => value.diagnostic_with(message, format!("did you mean `{near}`?")),
        None => value.diagnostic(message),
    }
    None
}

fn nodes_of(value: &Value<'_>) -> Option<Vec<String>> {
    match value.raw().get_ref() {
        DeValue::Array(_) => value.parsed(nodeset::expand(&value.texts().join(","))),
        _ => value.parsed(nodeset::expand(&value.text()?)),
    }
}

fn read_groups(table: &Table<'_>, nodes: Option<&[String]>) -> BTreeMap<String, Vec<String>> {
    let known: Option<BTreeSet<&String>> = nodes.map(|nodes| nodes.iter().collect());
    let mut groups = BTreeMap::new();
    for (name, span, value) in table.entries() {
        if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
        {
            let message = format!("a group name may contain letters, digits, `-`, `_` and `.`: {name:?}");
            table.source().diagnostic(&span, message);
        }
        let Some(members) = nodes_of(&value) else { continue };
        let unknown = |node: &&String| known.as_ref().is_some_and(|known| !known.contains(node));
        if let Some(unknown) = members.iter().find(unknown) {
            value.diagnostic(format!("not a node of the inventory: `{unknown}`"));
        }
        groups.insert(name.to_owned(), members);
    }
    groups
}

fn default_paths(shared: String) -> Paths {
    Paths {
        shared,
        nccl_tests: "/opt/nccl-tests/build".to_owned(),
        mpirun: None,
        nccl_inspector: None,
        nsys: None,
        slurm: None,
        harness: None,
        counters: "/sys/class/infiniband".to_owned(),
        samples: SamplePaths::default(),
    }
}

fn read_paths(table: &Table<'_>, kind: Option<Kind>) -> Option<Paths> {
    let path = |value: Value<'_>| {
        let path = line_of_text(&value)?;
        if !path.starts_with('/') {
            let message = format!("a path on the nodes must begin with `/`: `{path}`");
            match path.starts_with(|c: char| c.is_ascii_alphanumeric()) {
                true => value.diagnostic_with(message, format!("write `/{path}`")),
                false => value.diagnostic(message),
            }
            return None;
        }
        Some(path)
    };
    let shared = match kind {
        Some(Kind::Simulated) => table.get("shared").map_or(Some("/fsx/harness".to_owned()), path),
        _ => table.need("shared").and_then(path),
    };
    let nccl_tests = table.get("nccl_tests").and_then(path);
    let mpirun = table.get("mpirun").and_then(path);
    let nccl_inspector = table.get("nccl_inspector").and_then(path);
    let nsys = table.get("nsys").and_then(path);
    let slurm = table.get("slurm").and_then(path);
    let harness = table.get("harness").and_then(path);
    let counters = table.get("counters").and_then(path);
    let samples = SamplePaths {
        fsdp: table.get("fsdp").and_then(path),
        nemo: table.get("nemo").and_then(path),
        megatron: table.get("megatron").and_then(path),
        ddp: table.get("ddp").and_then(path),
        torchrun: table.get("torchrun").and_then(path),
    };
    table.close(|| form::paths(kind));
    let default = default_paths(shared?);
    Some(Paths {
        nccl_tests: nccl_tests.unwrap_or(default.nccl_tests),
        mpirun,
        nccl_inspector,
        nsys,
        slurm,
        harness,
        counters: counters.unwrap_or(default.counters),
        shared: default.shared,
        samples,
    })
}

fn read_container(table: &Table<'_>) -> Option<Container> {
    let runtime = table.get("runtime").map(|value| value.one_of(&RUNTIMES));
    let image = table.need("image").and_then(|value| line_of_text(&value));
    if let (Some(Some(_)), Some(image), Some(value)) = (runtime, &image, table.get("image"))
        && (image.starts_with(['-', '/']) || image.contains(char::is_whitespace))
    {
        // It becomes an argument of `docker run`; files of Enroot are no images there.
        value.diagnostic(format!("not the name of an image: `{image}`; write `REGISTRY/NAME:TAG`"));
    }
    for key in ["remap_root", "reuse"] {
        if let (Some(_), Some(value)) = (runtime, table.get(key)) {
            value.diagnostic(format!("`{key}` is of Pyxis alone; remove it, or `runtime`"));
        }
    }
    let mounts = table.get("mounts");
    let mount_home = table.get("mount_home").and_then(|value| value.boolean()).unwrap_or(false);
    let remap_root = table.get("remap_root").and_then(|value| value.boolean()).unwrap_or(false);
    let reuse = table.get("reuse").and_then(|value| value.boolean()).unwrap_or(true);
    table.close(form::container);
    let mounts_texts = mounts.as_ref().map(|value| value.texts()).unwrap_or_default();
    for mount in &mounts_texts {
        // Pyxis parts mounts by commas, and a mount's two ends by a colon.
        if mount.contains([',', '\n']) || !mount.starts_with('/') {
            let shown = mount.escape_debug();
            if let Some(value) = &mounts {
                value.diagnostic(format!("a mount must be `/source:/target`: `{shown}`"));
            }
        }
    }
    let runtime = match runtime {
        Some(runtime) => Some(runtime?),
        None => None,
    };
    Some(Container { runtime, image: image?, mounts: mounts_texts, mount_home, remap_root, reuse })
}

fn read_publish(table: &Table<'_>) -> Option<String> {
    let to = table.need("to").and_then(|value| {
        let text = line_of_text(&value)?;
        let (scheme, rest) = text.split_once("://").unwrap_or(("", &text));
        let is_plain = !rest.contains(['?', '#', '@']);
        let is_url = match scheme {
            "file" => rest.len() > 1 && rest.starts_with('/'),
            "s3" | "gs" | "az" => rest.split_once('/').is_some_and(|(bucket, prefix)| {
                let is_named = |c: char| c.is_ascii_alphanumeric() || "._$-".contains(c);
                !bucket.is_empty() && bucket.chars().all(is_named) && !prefix.is_empty() && !prefix.contains(' ')
            }),
            _ => false,
        };
        if !is_plain || !is_url {
            // It may hold a key.
            value.diagnostic_with(
                "`to` is no place for runs",
                "write `s3://BUCKET/PREFIX`, `gs://`, `az://` or `file:///FOLDER`; credentials come from the environment",
            );
            return None;
        }
        Some(text)
    });
    table.close(form::publish);
    to
}

pub(super) fn word_of(value: &Value<'_>) -> Option<String> {
    let text = value.non_empty_text()?;
    if !is_word(&text) {
        value.diagnostic(format!("`{}` must be one word: {text:?}", value.key()));
        return None;
    }
    Some(text)
}

pub(super) fn line_of_text(value: &Value<'_>) -> Option<String> {
    let text = value.non_empty_text()?;
    if text.chars().any(char::is_control) {
        value.diagnostic(format!("`{}` contains control characters: {text:?}", value.key()));
        return None;
    }
    Some(text)
}
