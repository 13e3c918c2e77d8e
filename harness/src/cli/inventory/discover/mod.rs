//! `harness inventory discover`: writes an inventory from what Slurm or Kubernetes reports of a cluster.

mod kubernetes;

use crate::cli::usage;
use crate::library::Library;
use crate::session::reached::Reached;
use base::text::count;
use cluster::discover::{self as found_by, Discovered, Failure, LeftOut, Request};
use config::inventory::{Instances, Inventory, Topology, TopologyFile};
use model::exit_code;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use store::{Home, iso8601, wall_clock_s, write_whole};

#[derive(Debug, clap::Args)]
pub(crate) struct DiscoverArgs {
    /// Who is asked; by default Slurm
    #[arg(long, value_name = "SCHEDULER", value_enum)]
    via: Option<Via>,
    /// Slurm: the partition of the nodes
    #[arg(long, value_name = "NAME", required_unless_present = "via", required_if_eq("via", "slurm"))]
    partition: Option<String>,
    /// Slurm: only nodes with this feature; may be repeated, a node must have all of them
    #[arg(long = "feature", value_name = "NAME")]
    features: Vec<String>,
    /// Slurm: only nodes of this reservation, in which runs will take place
    #[arg(long, value_name = "NAME")]
    reservation: Option<String>,
    #[command(flatten)]
    pods: kubernetes::PodArgs,
    /// The instance type of the nodes, such as `p5.48xlarge`; by default what is reported
    #[arg(long, value_name = "TYPE")]
    instance: Option<String>,
    /// A folder that all nodes see
    #[arg(long, value_name = "FOLDER", default_value = SHARED)]
    shared: String,
    /// The inventory to write: its name, or a path
    #[arg(long, value_name = "NAME|FILE")]
    output: String,
    /// Overwrite an existing inventory
    #[arg(long)]
    force: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Via {
    Slurm,
    Kubernetes,
}

/// A folder that all nodes see, on most clusters.
const SHARED: &str = "/fsx/harness";

impl DiscoverArgs {
    /// Every node of a partition, into this file.
    pub(super) fn with_partition(partition: &str, file: &str) -> DiscoverArgs {
        DiscoverArgs {
            via: Some(Via::Slurm),
            partition: Some(partition.to_owned()),
            features: Vec::new(),
            reservation: None,
            pods: kubernetes::PodArgs::default(),
            instance: None,
            shared: SHARED.to_owned(),
            output: file.to_owned(),
            force: false,
        }
    }
}

/// The partition of jobs that name none; why not, where Slurm gives no answer.
pub(super) fn default_partition() -> Result<Option<String>, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    runtime.block_on(found_by::default_partition(Reached::slurm(None).reach()))
}

pub(super) fn discover(home: &Home, args: &DiscoverArgs) -> i32 {
    let path = output(home, &args.output);
    // Checked before anything is asked: a person should not wait for a refusal.
    if path.exists() && !args.force {
        return usage(&format!(
            "--output: `{}` already exists; --force overwrites it",
            home.display_path(&path)
        ));
    }
    let instances = match Library::for_project(home.path()).instances() {
        Ok(instances) => instances,
        Err(diagnostics) => return usage(&diagnostics.to_string()),
    };
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return usage(&error.to_string()),
    };
    let ask = Ask { home, args, path: &path, instances: &instances, runtime: &runtime };
    match args.via {
        None | Some(Via::Slurm) => slurm(&ask),
        Some(Via::Kubernetes) => kubernetes::discover(&ask),
    }
}

/// What every scheduler is asked with.
struct Ask<'a> {
    home: &'a Home,
    args: &'a DiscoverArgs,
    /// Of the inventory.
    path: &'a Path,
    instances: &'a Instances,
    runtime: &'a tokio::runtime::Runtime,
}

impl Ask<'_> {
    /// Says why there is no inventory.
    fn refused(&self, failure: Failure) -> i32 {
        match failure {
            Failure::InvalidRequest(why) => usage(&why),
            Failure::NoAnswer(why) => {
                eprintln!("error: {why}");
                exit_code::INCONCLUSIVE
            }
            Failure::NoUsableNode(left_out) => {
                print_left_out(&left_out);
                eprintln!("error: none of {} takes jobs, nothing is written", count(left_out.len(), "node"));
                exit_code::NOTHING_SELECTED
            }
        }
    }

    /// Writes the inventory. What was written must be what is read.
    fn write(&self, text: &str) -> Result<(), String> {
        let shown = self.home.display_path(self.path);
        Inventory::read(text, &shown, self.instances).map_err(|diagnostics| {
            format!("the discovered cluster makes no valid inventory: {diagnostics}")
        })?;
        let made = self.path.parent().map_or(Ok(()), std::fs::create_dir_all);
        made.map_err(|error| format!("{shown}: {error}"))?;
        write_whole(self.path, text.as_bytes()).map_err(|error| error.to_string())
    }

    fn summary(&self, found: &Summary<'_>) {
        print_left_out(found.left_out);
        for note in found.notes {
            println!("note: {note}");
        }
        let (nodes, left) = (count(found.nodes.len(), "node"), found.left_out.len());
        println!("{nodes} of {}: {}; {left} excluded", found.instance, base::nodeset::fold(found.nodes));
        println!("written: {}", self.home.display_path(self.path));
    }
}

/// What a person reads of it.
struct Summary<'a> {
    instance: &'a str,
    nodes: &'a [String],
    left_out: &'a [LeftOut],
    notes: &'a [String],
}

fn slurm(ask: &Ask<'_>) -> i32 {
    let (home, args) = (ask.home, ask.args);
    let request = Request {
        partition: args.partition.clone().unwrap_or_default(),
        features: args.features.clone(),
        reservation: args.reservation.clone(),
        instance: args.instance.clone(),
    };
    if let Some(flag) = args.pods.first_given() {
        return usage(&format!("{flag}: only `--via kubernetes` makes pods"));
    }
    let odd = |word: &&String| word.is_empty() || word.starts_with('-') || word.chars().any(char::is_control);
    let words = [&request.partition].into_iter().chain(&args.features).chain(&args.reservation);
    if let Some(odd) = words.into_iter().find(odd) {
        return usage(&format!("not a name in Slurm: {odd:?}"));
    }
    let slurm = Reached::slurm(None);
    let asked = found_by::discover(slurm.reach(), &request, ask.instances);
    let found = match ask.runtime.block_on(asked) {
        Ok(found) => found,
        Err(failure) => return ask.refused(failure),
    };
    let topology = found.topology.as_ref().map(|printed| (beside(home, ask.path), printed));
    let topology = topology.filter(|((_, name), printed)| fits(name, printed, &found.nodes));
    let named = topology.as_ref().map(|((_, name), _)| name.as_str());
    let text = found_by::render(&found, &request, &args.shared, named, &iso8601(wall_clock_s()));
    let written = ask.write(&text).and_then(|()| match &topology {
        Some(((path, _), printed)) => {
            write_whole(path, printed.as_bytes()).map_err(|error| error.to_string())
        }
        None => Ok(()),
    });
    if let Err(why) = written {
        return usage(&why);
    }
    let Discovered { instance, nodes, left_out, notes, .. } = &found;
    ask.summary(&Summary { instance, nodes, left_out, notes });
    if let Some(file) = named {
        println!("written: {file}, ranks are numbered along it");
    }
    println!("assumed shared folder: `{}`; change it with --shared", args.shared);
    exit_code::PASSED
}

fn output(home: &Home, name: &str) -> PathBuf {
    match name.contains('/') || name.ends_with(".toml") {
        true => PathBuf::from(name),
        false => home.path().join("inventory").join(format!("{name}.toml")),
    }
}

/// One that does not fit the nodes would be a warning of every run.
fn fits(name: &str, printed: &str, nodes: &[String]) -> bool {
    let wanted = TopologyFile { file: name.to_owned(), instances: BTreeMap::new() };
    let read = Topology::read(printed, &wanted, nodes);
    if let Err(why) = &read {
        println!("note: Slurm's topology is not written: {why}");
    }
    read.is_ok()
}

/// Where Slurm's topology is written, and how the inventory names it: from the project's folder on, where it lies there.
fn beside(home: &Home, inventory: &Path) -> (PathBuf, String) {
    let path = inventory.with_extension("topology");
    let path = std::path::absolute(&path).unwrap_or(path);
    let within = std::path::absolute(home.path()).ok().and_then(|home| path.strip_prefix(home).ok());
    let name = within.unwrap_or(&path).display().to_string();
    (path, name)
}

fn print_left_out(left_out: &[LeftOut]) {
    for left in left_out {
        let why: String = left.why.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        println!("excluded {}: {why}", left.node);
    }
}
