//! `harness recipe`: tables computed by recipes from reports.

use crate::error::Error;
use crate::library::Library;
use crate::memory;
use crate::publish::{RemoteInputs, is_remote};
use crate::recipe::{self, Order, RecipeRequest, TableForm};
use crate::session::load;
use crate::session::planning::to_lines;
use crate::session::print_errors;
use crate::stats::Exporting;
use crate::tasks::{Cluster, KUBERNETES, SLURM};
use clap::{Args, Command};
use model::exit_code;
use nsys::trace::Filter;
use recipes::catalogue::Catalogue;
use recipes::result_table::{Headings, Look, TimeUnit};
use std::io;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use store::Home;

const ABOUT: &str = "Tables computed by recipes from profiler reports, over many reports together.";

const LONG_ABOUT: &str = "\
Tables computed by recipes from profiler reports, over many reports together.

`harness recipe list` lists the recipes, `harness recipe NAME --help` describes one, `harness recipe index DIR` rewrites the \
index of the pages in a folder. Separate several names by commas; `summaries` is all summaries, `all` every recipe that needs \
no argument, into a folder with a summary of the outcomes; `--set NAME` is a named set of recipes. An input is an export (a folder of Parquet or Arrow files, a file of SQLite or of \
Arrow streams), a `.nsys-rep` beside which an export stands or that your own nsys can export, a folder with such files, \
or `folder:n` for the first n of it. Reports are numbered in the order of their names, a number in a name by its value.

With `--analyze-on slurm`, or `kubernetes`, reports are read where they lie: they must be in a folder that all nodes and this \
machine see by the same name. So must this program over Slurm (`paths.harness` of the inventory says where it is); for pods a \
copy goes into `paths.shared`. A lost task is restarted up to three times; then its reports are named, and the exit code is 3.

Exits 0 if there is a table, 3 if no report has data for any recipe or memory is short, 2 if an input cannot \
be read.";

/// `harness recipe`
#[derive(Debug, Args)]
#[command(about = ABOUT, long_about = LONG_ABOUT, disable_help_flag = true)]
pub(super) struct RecipeArgs {
    /// Recipe with its arguments, several between commas; `list`; `summaries`; `all`; `index`
    #[arg(value_name = "NAME[:ARG...]")]
    name: Option<String>,
    /// Report, export or folder of them
    #[arg(value_name = "INPUT")]
    more: Vec<PathBuf>,
    /// Report, export or folder of them
    #[arg(short, long = "input", value_name = "INPUT", num_args = 1..)]
    inputs: Vec<PathBuf>,
    /// The recipes of this set: `harness recipe all --set NAME`; may be repeated
    #[arg(long = "set", value_name = "NAME", value_delimiter = ',')]
    sets: Vec<String>,
    /// Folder for all tables; %q{NAME}, %h, %p, %n and %% are filled in
    #[arg(short, long, value_name = "DIR")]
    output: Option<String>,
    /// Replace an existing folder
    #[arg(long)]
    force_overwrite: bool,
    /// Tables as CSV
    #[arg(long)]
    csv: bool,
    /// Tables as JSON: on stdout one object per recipe and line
    #[arg(long)]
    json: bool,
    /// Tables as Parquet, unrounded, into the folder; without --output into NAME-1, NAME-2, ...
    #[arg(long)]
    parquet: bool,
    /// A page of charts and tables for a browser, into the folder, and an index if there are several; also writes
    /// Parquet unless another format is given
    #[arg(long)]
    html: bool,
    /// Which tables to print, such as `rank_stats`; by default the first of each recipe
    #[arg(long = "table", value_name = "NAME", value_delimiter = ',')]
    tables: Vec<String>,
    /// Unit of times: nsec, usec, msec or seconds
    #[arg(long, value_name = "UNIT", default_value = "nsec", value_parser = super::stats::time_unit)]
    timeunit: TimeUnit,
    /// Use only rows in this time span, in nanoseconds or with a unit
    #[arg(long, value_name = "[START]/[END]", allow_hyphen_values = true, conflicts_with = "filter_nvtx")]
    filter_time: Option<String>,
    /// Use only rows in NVTX ranges of this name
    #[arg(long, value_name = "RANGE[@DOMAIN][/INDEX]")]
    filter_nvtx: Option<String>,
    /// Your own recipes in addition to those of the project in `suites/recipes`: a file or a folder
    #[arg(long, value_name = "PATH", env = "HARNESS_RECIPE_PATH")]
    recipe_path: Option<PathBuf>,
    /// How many reports are open at once; by default the number of cores
    #[arg(short, long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
    /// Read reports in tasks of the cluster, one node's reports each, and join the results
    #[arg(long, value_name = "PLACE", value_parser = [SLURM, KUBERNETES])]
    analyze_on: Option<String>,
    /// With --analyze-on: the cluster, by name or path
    #[arg(long, value_name = "NAME|PATH", env = "HARNESS_INVENTORY", default_value = "default")]
    inventory: String,
    /// Export reports again, even if an export exists
    #[arg(long)]
    force_export: bool,
    /// Read exports that are older than their reports
    #[arg(long)]
    stale_ok: bool,
    /// The nsys that exports reports; else the one on PATH
    #[arg(long, value_name = "PATH")]
    nsys: Option<PathBuf>,
    /// Print only tables, notes and errors
    #[arg(short, long)]
    quiet: bool,
    /// Print help; with a recipe's name, describe that recipe
    #[arg(short, long)]
    help: bool,
}

pub(super) fn run(args: &RecipeArgs) -> Result<i32, Error> {
    let home = super::home()?;
    let library = Library::without_built_in(home.path());
    let catalogue = match crate::own_recipes::load(Some(&library), args.recipe_path.as_deref()) {
        Ok(catalogue) => catalogue,
        Err(diagnostics) => return Ok(print_errors(&to_lines(&diagnostics))),
    };
    let printed = match (args.name.as_deref(), args.help) {
        (None | Some("all" | "index" | "summaries"), true) => {
            Ok(RecipeArgs::augment_args(Command::new("harness recipe")).render_long_help().to_string())
        }
        (None, false) if args.sets.is_empty() => {
            Err(vec!["no recipe given; `harness recipe list` lists them".to_owned()])
        }
        (Some("list"), _) => Ok(recipe::list(&catalogue)),
        (Some("index"), false) => {
            let folders: Vec<PathBuf> = args.inputs.iter().chain(&args.more).cloned().collect();
            return Ok(recipe::index(&folders, args.quiet, &mut io::stderr()));
        }
        (Some(name), true) => recipe::manual(&catalogue, name).map_err(|why| vec![why]),
        (name, _) => match order(args, &catalogue, name.unwrap_or_default(), &home) {
            Ok(order) => {
                memory::limit();
                return Ok(recipe::recipe(&order, &mut io::stdout(), &mut io::stderr()));
            }
            Err(errors) => Err(errors),
        },
    };
    Ok(match printed {
        Ok(text) => {
            crate::standard_output::print(text.as_bytes());
            exit_code::PASSED
        }
        Err(errors) => print_errors(&errors),
    })
}

/// All errors at once.
fn order<'a>(
    args: &RecipeArgs,
    catalogue: &'a Catalogue,
    name: &str,
    home: &Home,
) -> Result<Order<'a>, Vec<String>> {
    let mut errors = Vec::new();
    let asked =
        recipe::parse_request(catalogue, &[name.to_owned()], &args.sets).unwrap_or_else(|diagnostics| {
            errors.extend(diagnostics);
            RecipeRequest::default()
        });
    let mut filter = None;
    if let Some(text) = &args.filter_time {
        match text.parse() {
            Ok(span) => filter = Some(Filter::Time(span)),
            Err(error) => errors.push(format!("--filter-time: {error}")),
        }
    }
    if let Some(text) = &args.filter_nvtx {
        match text.parse() {
            Ok(range) => filter = Some(Filter::Range(range)),
            Err(error) => errors.push(format!("--filter-nvtx: {error}")),
        }
    }
    let filtered = match (&args.filter_time, &args.filter_nvtx) {
        (Some(span), _) => Some(format!("--filter-time {span}")),
        (None, Some(range)) => Some(format!("--filter-nvtx {range}")),
        (None, None) => None,
    };
    let inputs: Vec<PathBuf> = args.inputs.iter().chain(&args.more).cloned().collect();
    if inputs.is_empty() {
        errors.push("no input: give reports, exports or folders with `--input`".to_owned());
    }
    // A survey writes tables for people and for programs.
    let every = asked.is_survey && ![args.csv, args.json, args.parquet, args.html].contains(&true);
    // A page is limited in size, so that complete tables are written beside it.
    let parquet = every || args.parquet || args.html && !args.csv && !args.json;
    let forms = [
        (args.csv || every, TableForm::Csv),
        (args.json, TableForm::Json),
        (parquet, TableForm::Parquet),
        (args.html || every, TableForm::Html),
    ];
    let forms: Vec<TableForm> = forms.into_iter().filter(|(asked, _)| *asked).map(|(_, form)| form).collect();
    // A folder is needed for what stdout cannot hold.
    let output = match (&args.output, parquet || args.html || asked.is_survey) {
        (Some(output), _) => Some(output.clone()),
        (None, true) => Some(match (asked.recipes.as_slice(), args.sets.as_slice()) {
            (_, [set]) => format!("{set}-%n"),
            _ if asked.is_survey => "all-%n".to_owned(),
            ([(recipe, _)], _) => format!("{}-%n", recipe.name),
            _ => "recipes-%n".to_owned(),
        }),
        (None, false) => None,
    };
    if output.is_none() && forms.len() > 1 {
        errors.push("stdout holds one format: `--csv` or `--json`; for both add `--output DIR`".to_owned());
    }
    if output.is_some() && !args.tables.is_empty() {
        errors.push(
            "`--table` chooses what is printed, but `--output` writes all tables to a folder".to_owned(),
        );
    }
    let on = match &args.analyze_on {
        None => None,
        Some(place) => load::without_suite(home, &args.inventory)
            .and_then(|loaded| {
                let jobs = args.jobs.map(NonZeroUsize::get);
                Cluster::from_inventory(&loaded.inventory, place, jobs).map_err(|why| vec![why])
            })
            .map_err(|diagnostics| errors.extend(diagnostics))
            .ok(),
    };
    if args.analyze_on.is_some() && inputs.iter().any(|input| is_remote(input)) {
        errors.push(
            "--analyze-on: the nodes read no object store; leave it out, or fetch the reports".to_owned(),
        );
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    let inputs = RemoteInputs::open(&inputs).map_err(|why| vec![why.to_string()])?;
    let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    Ok(Order {
        catalogue,
        asked,
        inputs,
        filter,
        filtered,
        forms,
        output,
        overwrite: args.force_overwrite,
        tables: args.tables.clone(),
        jobs: args.jobs.map_or(cores, NonZeroUsize::get),
        exporting: Exporting { again: args.force_export, stale_ok: args.stale_ok, nsys: args.nsys.clone() },
        look: Look { headings: Headings::Today, unit: args.timeunit },
        quiet: args.quiet,
        on,
    })
}
