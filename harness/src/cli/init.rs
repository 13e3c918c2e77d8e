//! `harness init`: writes a project into this folder: an inventory, a suite, a CI file and the project's settings.

use super::inventory::{default_partition, discover_into};
use super::{home, project};
use crate::error::Error;
use crate::library::Library;
use base::text::show;
use clap::{Args, ValueEnum};
use config::schema;
use config::toml_reader::file;
use model::exit_code;
use std::fs;
use std::path::{Path, PathBuf};
use store::{Home, write_whole};

const HOW: &str = "\
Nothing is overwritten: a file that is there already is kept. On a cluster with Slurm the inventory is written from what Slurm \
reports of the partition, by default that of jobs that name none; where Slurm gives no answer, and with SSH or \
Kubernetes, it is an example in which the lines to be changed are marked CHANGE.";

/// `harness init`
#[derive(Debug, Args)]
#[command(about = "Write a project into this folder: an inventory, a suite, a CI file.", after_help = HOW)]
pub(super) struct InitArgs {
    /// The kind of cluster; a simulated one where absent
    #[arg(long, value_name = "KIND", value_enum)]
    cluster: Option<ClusterKind>,
    /// The partition of the nodes: Slurm is asked which they are; by default Slurm's own default
    #[arg(long, value_name = "NAME")]
    partition: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "lower")]
enum ClusterKind {
    ParallelCluster,
    HyperPod,
    Slurm,
    Ssh,
    Kubernetes,
}

impl ClusterKind {
    /// The inventory that ships for it.
    fn example(self) -> &'static str {
        match self {
            ClusterKind::ParallelCluster => "parallelcluster",
            ClusterKind::HyperPod => "hyperpod-slurm",
            ClusterKind::Slurm => "slurm-example",
            ClusterKind::Ssh => "ec2-ssh",
            ClusterKind::Kubernetes => "eks",
        }
    }

    fn has_slurm(self) -> bool {
        matches!(self, ClusterKind::ParallelCluster | ClusterKind::HyperPod | ClusterKind::Slurm)
    }
}

const INVENTORY: &str = "inventory/cluster.toml";
const SUITE: &str = "suites/first.toml";
const SETTINGS: &str = ".config/harness.toml";
const CI: &str = ".github/workflows/harness.yml";

const SUITE_TEXT: &str = r#"# The first suite of this project: each node by itself, then every NIC. All of it is compared with peers, so that it needs
# no baselines. `harness list` names the suites that ship, such as nccl-p5; a suite may extend one: `extends = "nccl-p5"`.
instance = "INSTANCE"
about = "a first look at every node"

[[case]]
name = "node-all_reduce"
about = "the GPUs of each node by themselves"
tags = ["single-node"]
placement = "each"
workload = { kind = "nccl-tests", op = "all_reduce", from = "1GiB", to = "1GiB", factor = 2 }
recipes = ["nccl_tests"]
limit_s = 600

[[case.assert]]
metric = "nccl.busbw"
size = "1GiB"
within_peers = "10 %"

[[case.assert]]
metric = "nccl.wrong"
place = "both"
equals = 0

[[case]]
name = "pair-all_reduce"
about = "pairs of nodes: the fabric between them"
tags = ["multi-node"]
placement = "pairs"
workload = { kind = "nccl-tests", op = "all_reduce", from = "1GiB", to = "1GiB", factor = 2 }
recipes = ["nccl_tests"]
limit_s = 600

[[case.assert]]
metric = "nccl.busbw"
size = "1GiB"
within_peers = "10 %"
"#;

const SETTINGS_TEXT: &str = "# What need not be typed each time; the command line and HARNESS_INVENTORY win over it.\ninventory = \"cluster\"\n";

const CI_TEXT: &str = r#"# Checks this project on every push, and runs the suite on a machine that reaches the cluster: change its label below.
name: harness
on:
  push:
  schedule:
    - cron: "0 3 * * 1"
jobs:
  check:
    runs-on: [self-hosted, cluster]
    steps:
      - uses: actions/checkout@v4
      - run: harness check
      - run: harness plan --suite first
  nodes:
    if: github.event_name == 'schedule'
    needs: check
    runs-on: [self-hosted, cluster]
    steps:
      - uses: actions/checkout@v4
      - run: |
          code=0
          harness run --suite first --junit junit.xml || code=$?
          if [ "$code" -eq 3 ]; then
            echo "::warning title=inconclusive::not everything was measured: look at the infrastructure"
            exit 0
          fi
          exit "$code"
      - uses: actions/upload-artifact@v4
        if: always()
        with:
          name: harness
          path: junit.xml
"#;

pub(super) fn run(args: &InitArgs) -> Result<i32, Error> {
    if args.partition.is_some() && !args.cluster.is_none_or(ClusterKind::has_slurm) {
        return Err(Error::Usage("--partition: only Slurm has partitions".to_owned()));
    }
    home()?;
    let here = std::env::current_dir().map_err(|error| Error::Usage(format!("this folder: {error}")))?;
    if let (above, _) = project()?
        && above.path() != here
    {
        let above = above.path().display();
        return Err(Error::Usage(format!(
            "this folder lies in the project `{above}`; use that, or choose a folder outside"
        )));
    }
    let home = Home::bare(&here);
    let Some(Begun { instance, is_example }) = inventory(&home, args)? else {
        return Ok(exit_code::INCONCLUSIVE);
    };
    put(&here, SUITE, &SUITE_TEXT.replace("INSTANCE", &instance))?;
    put(&here, SETTINGS, SETTINGS_TEXT)?;
    put(&here, CI, CI_TEXT)?;
    let begin = match args.cluster {
        Some(_) if is_example => {
            format!("change nodes, paths and all that is marked CHANGE in {INVENTORY}, then:\n")
        }
        _ => String::new(),
    };
    println!(
        "next:\n{begin}  harness inventory probe\n  harness plan --suite first\n  harness run --suite first"
    );
    Ok(exit_code::PASSED)
}

/// The inventory that a project begins with.
struct Begun {
    /// Of its nodes.
    instance: String,
    /// Whether lines of it are to be changed.
    is_example: bool,
}

/// The partition to ask Slurm about: the one that was named, else its default, which is printed. `None` where there is no
/// Slurm, or none that answers.
fn partition(args: &InitArgs) -> Option<String> {
    if args.partition.is_some() || !args.cluster.is_some_and(ClusterKind::has_slurm) {
        return args.partition.clone();
    }
    match default_partition() {
        Ok(Some(name)) => {
            println!("partition `{}`, the default of Slurm; choose another with --partition", show(&name));
            Some(name)
        }
        Ok(None) => {
            println!(
                "note: Slurm has no default partition, so that the inventory is an example; choose one with --partition"
            );
            None
        }
        Err(why) => {
            let why = why.lines().next().unwrap_or_default();
            println!("note: Slurm gives no answer here, so that the inventory is an example: {}", show(why));
            None
        }
    }
}

/// Writes the inventory. `None` if Slurm has no usable answer, which was printed.
fn inventory(home: &Home, args: &InitArgs) -> Result<Option<Begun>, Error> {
    let library = Library::for_project(home.path());
    let path = home.path().join(INVENTORY);
    let mut is_example = false;
    if path.exists() {
        let remedy =
            if args.cluster.is_some() { "; to have it as --cluster says, remove it first" } else { "" };
        println!("kept     {INVENTORY}{remedy}");
    } else {
        let discovered =
            partition(args).map(|name| discover_into(home, &name, INVENTORY) == exit_code::PASSED);
        match discovered {
            Some(true) => {}
            Some(false) if args.partition.is_some() => return Ok(None),
            Some(false) | None => {
                if discovered.is_some() {
                    println!(
                        "note: the inventory is an example; `harness inventory discover` has more options"
                    );
                }
                let name = args.cluster.map_or("default", ClusterKind::example);
                let entry = library.find("inventory", name);
                let text = entry.and_then(|entry| entry.read().ok());
                let text =
                    text.ok_or_else(|| Error::Usage(format!("no inventory `{name}` to begin with")))?;
                put(home.path(), INVENTORY, schema::without_directive(&text))?;
                is_example = true;
            }
        }
    }
    let text = file::read(&path).map_err(|error| Error::Usage(format!("{INVENTORY}: {error}")))?;
    let read = config::inventory::Inventory::read(&text, INVENTORY, &library.instances()?)?;
    let instance = read.instance.like.unwrap_or(read.instance.name);
    Ok(Some(Begun { instance, is_example: is_example || text.contains("# CHANGE") }))
}

fn put(folder: &Path, file: &str, text: &str) -> Result<(), Error> {
    let path: PathBuf = folder.join(file);
    if path.symlink_metadata().is_ok() {
        println!("kept     {file}");
        return Ok(());
    }
    let made = path.parent().map_or(Ok(()), fs::create_dir_all);
    made.map_err(|error| Error::Usage(format!("{file}: {error}")))?;
    write_whole(&path, text.as_bytes()).map_err(|error| Error::Usage(error.to_string()))?;
    println!("written  {file}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_in_the_place_of_the_inventory_is_refused_and_not_waited_for() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(INVENTORY);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
        let args = InitArgs { cluster: None, partition: None };
        let refused = inventory(&Home::bare(folder.path()), &args).err().map(|error| error.to_string());
        assert_eq!(refused.as_deref(), Some("inventory/cluster.toml: not a regular file"));
    }
}
