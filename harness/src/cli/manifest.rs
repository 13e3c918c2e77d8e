//! `harness manifest`: its arguments.

use super::home;
use crate::error::Error;
use crate::filters::Filters;
use crate::manifest::{ManifestKind, ManifestRequest, manifest};
use crate::session::{RunOptions, print_errors, report_error};
use base::text::show;
use clap::Args;
use model::exit_code;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

const CODES: &str = "\
Pods are made as `[reach]` with `via = \"kubernetes\"` says: image, queue, tolerations, devices, huge \
pages. They run the scripts of the plan under the same profiler and environment, record on the claim \
where Kubernetes put them, and leave their files there: `harness run --attach` judges the folder.
Under torchrun: job, jobset, pytorchjob, trainjob, hyperpod-pytorchjob.
Under mpirun:   job, jobset, mpijob, without an sshd in the image.
Other programs: job, jobset.

Exit codes: 0 rendered; 2 wrong usage, or a case that pods of a manifest cannot run; 3 the file \
could not be written.";

/// `harness manifest`
#[derive(Debug, Args)]
#[command(about = "Render a case as a job for Kubernetes, whose results `harness run --attach` judges.", after_help = CODES)]
pub(super) struct ManifestArgs {
    /// What is rendered
    #[arg(long = "as", value_name = "KIND")]
    kind: ManifestKind,
    /// The suite, by name or path
    #[arg(long, value_name = "NAME|PATH")]
    suite: String,
    /// The case of the suite
    #[arg(long, value_name = "NAME")]
    case: String,
    /// The cluster, by name or path
    #[arg(long, value_name = "NAME|PATH", env = "HARNESS_INVENTORY", default_value = "default")]
    inventory: String,
    /// Pods, one on each node; else as many as there are nodes
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    nodes: Option<u32>,
    /// Kubernetes chooses among these nodes of the inventory only, such as `p5-[001-004]` or `@group`
    #[arg(long, value_name = "RANGE")]
    among: Option<String>,
    /// Name of the job, and of its folder on the claim; else SUITE-CASE. Each job needs another one
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// The claim that holds what the pods leave; else `shared` of the inventory
    #[arg(long, value_name = "NAME")]
    claim: Option<String>,
    /// Pods have the network and the host names of their nodes
    #[arg(long)]
    host_network: bool,
    /// Override a value of the suite; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = super::key_and_value)]
    settings: Vec<(String, String)>,
    /// Recipes of your own beside those in `suites/recipes`: a file or a folder of them
    #[arg(long, value_name = "PATH", env = "HARNESS_RECIPE_PATH")]
    recipe_path: Option<PathBuf>,
    /// Write it here, instead of to stdout
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(super) fn run(args: ManifestArgs) -> Result<i32, Error> {
    let home = home()?;
    let options = RunOptions {
        suites: vec![args.suite],
        inventory: args.inventory,
        nodes: args.among,
        settings: args.settings,
        recipe_path: args.recipe_path,
        filters: Filters { cases: vec![args.case], ..Filters::default() },
        ..RunOptions::default()
    };
    let request = ManifestRequest {
        options,
        kind: args.kind,
        pods: args.nodes,
        name: args.name,
        claim: args.claim,
        host_network: args.host_network,
    };
    let text = match manifest(&home, &request) {
        Ok(text) => text,
        Err(diagnostics) => return Ok(print_errors(&diagnostics)),
    };
    let written = match &args.output {
        Some(path) if !folder_of(path).is_dir() => {
            let (path, folder) = (path.display().to_string(), folder_of(path).display().to_string());
            Err(format!("cannot write `{}`: no such folder: `{}`", show(&path), show(&folder)))
        }
        Some(path) => store::write_output(path, text.as_bytes()).map_err(|error| error.to_string()),
        None => {
            let mut out = io::stdout().lock();
            out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|error| error.to_string())
        }
    };
    Ok(match written {
        Ok(()) => exit_code::PASSED,
        Err(why) => report_error(&why),
    })
}

/// Where a file is to be, which is not made for it.
fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
