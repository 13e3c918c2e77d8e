//! `harness inventory discover`: an inventory, written from what a cluster tells of itself.

use crate::cli::reached::Reached;
use crate::cli::usage;
use cluster::discover::{self as found_by, Discovered, Failure, LeftOut, Request};
use config::inventory::{Instances, Inventory};
use model::exit_code;
use std::path::PathBuf;
use store::{Home, iso8601, wall_clock_s, write_whole};

#[derive(Debug, clap::Args)]
pub(super) struct DiscoverArgs {
    /// The partition whose nodes are meant
    #[arg(long, value_name = "NAME")]
    partition: String,
    /// Only nodes with this feature; may be repeated, a node must have all of them
    #[arg(long = "feature", value_name = "NAME")]
    features: Vec<String>,
    /// Only nodes of this reservation, in which the runs will be
    #[arg(long, value_name = "NAME")]
    reservation: Option<String>,
    /// What the nodes are, such as `p5.48xlarge`; what Slurm says of them without it
    #[arg(long, value_name = "TYPE")]
    instance: Option<String>,
    /// A folder that all nodes see
    #[arg(long, value_name = "FOLDER", default_value = "/fsx/harness")]
    shared: String,
    /// The inventory to write: its name, or a path
    #[arg(long, value_name = "NAME|FILE")]
    output: String,
    /// Overwrite it where it is there
    #[arg(long)]
    force: bool,
}

pub(super) fn discover(home: &Home, args: &DiscoverArgs) -> i32 {
    let path = output(home, &args.output);
    // Asked before Slurm is: a person should not wait for a refusal.
    if path.exists() && !args.force {
        return usage(&format!(
            "--output: it is there already, say --force to overwrite it: `{}`",
            home.shown(&path)
        ));
    }
    let odd = |word: &&String| word.is_empty() || word.starts_with('-') || word.chars().any(char::is_control);
    let words = [&args.partition].into_iter().chain(&args.features).chain(&args.reservation);
    if let Some(odd) = words.into_iter().find(odd) {
        return usage(&format!("no name of Slurm's: {odd:?}"));
    }
    let instances = match Instances::load(home.path()) {
        Ok(instances) => instances,
        Err(diagnostics) => return usage(&diagnostics.to_string()),
    };
    let request = Request {
        partition: args.partition.clone(),
        features: args.features.clone(),
        reservation: args.reservation.clone(),
        instance: args.instance.clone(),
    };
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return usage(&error.to_string()),
    };
    let found = match runtime.block_on(found_by::discover(Reached::slurm(None).reach(), &request, &instances))
    {
        Ok(found) => found,
        Err(Failure::Asked(why)) => return usage(&why),
        Err(Failure::Unanswered(why)) => {
            eprintln!("error: {why}");
            return exit_code::INCONCLUSIVE;
        }
        Err(Failure::NothingLeft(left_out)) => {
            tell(&left_out);
            eprintln!("error: none of {} nodes takes jobs, nothing is written", left_out.len());
            return exit_code::NOTHING_SELECTED;
        }
    };
    let text = found_by::render(&found, &request, &args.shared, &iso8601(wall_clock_s()));
    let shown = home.shown(&path);
    // What was written must be what is read.
    if let Err(diagnostics) = Inventory::read(&text, &shown, &instances) {
        return usage(&format!("what was found makes no inventory: {diagnostics}"));
    }
    if let Err(error) = write_whole(&path, text.as_bytes()) {
        return usage(&error.to_string());
    }
    summary(&found, args, &shown);
    exit_code::PASSED
}

fn output(home: &Home, name: &str) -> PathBuf {
    match name.contains('/') || name.ends_with(".toml") {
        true => PathBuf::from(name),
        false => home.path().join("inventory").join(format!("{name}.toml")),
    }
}

fn summary(found: &Discovered, args: &DiscoverArgs, shown: &str) {
    tell(&found.left_out);
    for note in &found.notes {
        println!("note: {note}");
    }
    let (nodes, left) = (found.nodes.len(), found.left_out.len());
    println!("{nodes} nodes of {}, {left} left out: {}", found.instance, base::nodeset::fold(&found.nodes));
    println!("written: {shown}");
    println!("the folder that all nodes see is taken to be `{}`; say --shared for another", args.shared);
}

fn tell(left_out: &[LeftOut]) {
    for left in left_out {
        let why: String = left.why.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        println!("left out {}: {why}", left.node);
    }
}
