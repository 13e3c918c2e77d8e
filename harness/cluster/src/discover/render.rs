//! An inventory's text, from what was discovered: what it was made from and who was left out stand in it as comments.

use super::{Discovered, LeftOut, Request};
use base::nodeset;
use job::script::GpuRequest;
use std::collections::BTreeMap;
use std::fmt::Write;

/// `when` is written into the file, `shared` is the folder that all nodes see, `topology` is where Slurm's topology lies.
pub fn render(
    found: &Discovered,
    request: &Request,
    shared: &str,
    topology: Option<&str>,
    when: &str,
) -> String {
    let mut text = String::new();
    let mut from = format!("partition `{}`", request.partition);
    if !request.features.is_empty() {
        let _ = write!(from, ", features `{}`", request.features.join("`, `"));
    }
    if let Some(reservation) = &request.reservation {
        let _ = write!(from, ", reservation `{reservation}`");
    }
    comment(
        &mut text,
        &format!("Written by `harness inventory discover` at {when} from {}: {from}.", found.slurm),
    );
    comment(&mut text, "It is read as it is; rewrite it with --force after a change of the cluster.");
    left_out(&mut text, &found.left_out, &format!("Left out at {when}, with Slurm's reasons:"));
    let _ = writeln!(text, "kind = \"real\"");
    let _ = writeln!(text, "instance = {}", quoted(&found.instance));
    let _ = writeln!(text, "nodes = {}", quoted(&nodeset::fold(&found.nodes)));
    groups(&mut text, &found.groups, "nodes by their features");
    if let Some(file) = topology {
        let _ = writeln!(text, "\n[topology] # ranks are numbered along it");
        let _ = writeln!(text, "file = {} # what `scontrol show topology` printed", quoted(file));
    }
    let _ = writeln!(text, "\n[reach]\nvia = \"slurm\"\npartition = {}", quoted(&request.partition));
    if let Some(reservation) = &request.reservation {
        let _ = writeln!(text, "reservation = {}", quoted(reservation));
    }
    let gpus = if found.gpus == GpuRequest::None { "none" } else { "gres" };
    let _ = writeln!(text, "gpus = {}", quoted(gpus));
    if let Some(qos) = &found.qos {
        let _ = writeln!(text, "qos = {} # of those that the partition admits", quoted(qos));
    }
    if let Some(mem) = &found.mem {
        let _ = writeln!(text, "mem = {} # all memory of a node: Slurm shares memory out", quoted(mem));
    }
    if let Some(mpi) = &found.mpi {
        let _ = writeln!(text, "mpi = {} # of those that `srun --mpi=list` lists", quoted(mpi));
    }
    let _ = writeln!(text, "\n[paths]\nshared = {} # a folder that all nodes see", quoted(shared));
    text
}

/// Who is not in the inventory, as comments.
pub(super) fn left_out(text: &mut String, left_out: &[LeftOut], head: &str) {
    if left_out.is_empty() {
        return;
    }
    comment(text, "");
    comment(text, head);
    for left in left_out {
        comment(text, &format!("  {}: {}", left.node, left.why));
    }
}

pub(super) fn groups(text: &mut String, groups: &BTreeMap<String, Vec<String>>, about: &str) {
    if groups.is_empty() {
        return;
    }
    let _ = writeln!(text, "\n[groups] # {about}, for `--nodes @NAME`");
    for (name, members) in groups {
        let _ = writeln!(text, "{} = {}", quoted(name), quoted(&nodeset::fold(members)));
    }
}

/// One line whatever is in it: reasons are written by people and programs of all kinds.
pub(super) fn comment(text: &mut String, line: &str) {
    let plain: String = line.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let _ = writeln!(text, "# {}", plain.trim_end());
    if plain.is_empty() {
        text.truncate(text.len() - 2);
        text.push('\n');
    }
}

pub(super) fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}
