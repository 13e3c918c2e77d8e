//! `harness recipe`: tables that recipes make of reports.

use super::load::load;
use crate::memory;
use crate::recipe::{self, Asked, Order, TableForm};
use crate::stats::Exporting;
use crate::tasks::{Cluster, SLURM};
use clap::{CommandFactory, Parser};
use model::exit_code;
use nsys::trace::Filter;
use recipes::sheet::{Headings, Look, TimeUnit};
use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use store::Home;

const ABOUT: &str = "Tables that recipes make of profiler reports, over many reports together.";

const LONG_ABOUT: &str = "\
Tables that recipes make of profiler reports, over many reports together.

`harness recipe list` tells the recipes, `harness recipe NAME --help` all about one, `harness recipe index DIR` makes the
index of the pages in a folder anew. Several are asked for between commas; `summaries` is all summaries, `all` every recipe
that answers without being told more, into a folder with a summary of what each gave; `--set NAME` is what is often asked
for together. An input is an export (a folder of Parquet or Arrow files, a file of SQLite or of
Arrow streams), a `.nsys-rep` beside which an export stands or that your own nsys can export, a folder with such files,
or `folder:n` for the first n of it. Reports are numbered in the order of their names, a number in a name by its value.

With `--analyze-on slurm` reports are read where they lie: they, and this program, must be in folders that all nodes see
(`paths.harness` of the inventory says where the program is). A task that is lost is started again, up to three times; then
its reports are named, and it exits 3.

Exits 0 if there is a table, 3 if no report has data for any recipe or the memory is not enough, 2 if an
input cannot be read.";

/// `harness recipe`
#[derive(Debug, Parser)]
#[command(name = "harness recipe", about = ABOUT, long_about = LONG_ABOUT, disable_help_flag = true)]
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
    /// Replace the folder where it is there already
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
    /// A page of pictures and tables for a browser, into the folder, and an index where there are several; brings
    /// Parquet along where no other form is asked for
    #[arg(long)]
    html: bool,
    /// Which tables are printed, such as `rank_stats`; the first of each recipe where none is named
    #[arg(long = "table", value_name = "NAME", value_delimiter = ',')]
    tables: Vec<String>,
    /// Of times: nsec, usec, msec or seconds
    #[arg(long, value_name = "UNIT", default_value = "nsec", value_parser = super::stats::time_unit)]
    timeunit: TimeUnit,
    /// Only what lies in this span of time, in nanoseconds or with a unit
    #[arg(long, value_name = "[START]/[END]", allow_hyphen_values = true, conflicts_with = "filter_nvtx")]
    filter_time: Option<String>,
    /// Only what lies in ranges of this name
    #[arg(long, value_name = "RANGE[@DOMAIN][/INDEX]")]
    filter_nvtx: Option<String>,
    /// Recipes of your own beside those of the project in `suites/recipes`: a file or a folder of them
    #[arg(long, value_name = "PATH", env = "HARNESS_RECIPE_PATH")]
    recipe_path: Option<PathBuf>,
    /// So many reports are open at once; as many as there are cores where it is not given
    #[arg(short, long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
    /// Read reports in tasks of the cluster's Slurm, one node's reports each, and join what they took: `slurm`
    #[arg(long, value_name = "PLACE", value_parser = [SLURM])]
    analyze_on: Option<String>,
    /// With --analyze-on: the cluster, by name or path
    #[arg(long, value_name = "NAME|PATH", env = "HARNESS_INVENTORY", default_value = "default")]
    inventory: String,
    /// Export reports anew, whatever stands beside them
    #[arg(long)]
    force_export: bool,
    /// Read exports that are older than their reports
    #[arg(long)]
    stale_ok: bool,
    /// The nsys that exports reports; else the one on PATH
    #[arg(long, value_name = "PATH")]
    nsys: Option<PathBuf>,
    /// Say only what is missing and what went wrong
    #[arg(short, long)]
    quiet: bool,
    /// This text; with a recipe's name all about that recipe
    #[arg(short, long)]
    help: bool,
}

pub(super) fn run(args: &RecipeArgs) -> i32 {
    let home = super::home();
    if let Err(diagnostics) =
        crate::own_recipes::load(home.as_ref().map(Home::path), args.recipe_path.as_deref())
    {
        for diagnostic in diagnostics {
            eprintln!("error: {diagnostic}");
        }
        return exit_code::USAGE;
    }
    let told = match (args.name.as_deref(), args.help) {
        (None | Some("all" | "index" | "summaries"), true) => {
            Ok(RecipeArgs::command().render_long_help().to_string())
        }
        (None, false) if args.sets.is_empty() => {
            Err(vec!["no recipe: `harness recipe list` tells which there are".to_owned()])
        }
        (Some("list"), _) => Ok(recipe::list()),
        (Some("index"), false) => {
            let folders: Vec<PathBuf> = args.inputs.iter().chain(&args.more).cloned().collect();
            return recipe::index(&folders, args.quiet, &mut io::stderr());
        }
        (Some(name), true) => recipe::manual(name).map_err(|why| vec![why]),
        (name, _) => match order(args, name.unwrap_or_default(), home.as_ref()) {
            Ok(order) => {
                memory::limit();
                return recipe::recipe(&order, &mut io::stdout(), &mut io::stderr());
            }
            Err(wrong) => Err(wrong),
        },
    };
    match told {
        Ok(text) => {
            let _ = io::stdout().write_all(text.as_bytes());
            exit_code::PASSED
        }
        Err(wrong) => {
            for why in wrong {
                eprintln!("error: {why}");
            }
            exit_code::USAGE
        }
    }
}

/// All that is wrong, at once.
fn order(args: &RecipeArgs, name: &str, home: Option<&Home>) -> Result<Order, Vec<String>> {
    let mut wrong = Vec::new();
    let asked = recipe::asked(&[name.to_owned()], &args.sets).unwrap_or_else(|diagnostics| {
        wrong.extend(diagnostics);
        Asked::default()
    });
    let mut filter = None;
    if let Some(text) = &args.filter_time {
        match text.parse() {
            Ok(span) => filter = Some(Filter::Time(span)),
            Err(error) => wrong.push(format!("--filter-time: {error}")),
        }
    }
    if let Some(text) = &args.filter_nvtx {
        match text.parse() {
            Ok(range) => filter = Some(Filter::Range(range)),
            Err(error) => wrong.push(format!("--filter-nvtx: {error}")),
        }
    }
    let filtered = match (&args.filter_time, &args.filter_nvtx) {
        (Some(span), _) => Some(format!("--filter-time {span}")),
        (None, Some(range)) => Some(format!("--filter-nvtx {range}")),
        (None, None) => None,
    };
    let inputs: Vec<PathBuf> = args.inputs.iter().chain(&args.more).cloned().collect();
    if inputs.is_empty() {
        wrong.push("no input: name reports, exports or folders with `--input`".to_owned());
    }
    // What many recipes give is for people and for programs.
    let every = asked.is_survey && ![args.csv, args.json, args.parquet, args.html].contains(&true);
    // A page holds no more than a browser bears: what is whole lies beside it.
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
        wrong.push(
            "stdout holds one form: `--csv` or `--json`; both go to a folder with `--output`".to_owned(),
        );
    }
    if output.is_some() && !args.tables.is_empty() {
        wrong.push("`--table` chooses what is printed; a folder holds all tables".to_owned());
    }
    let on = match (&args.analyze_on, home) {
        (None, _) => None,
        (Some(_), None) => {
            wrong.push(format!(
                "--analyze-on {SLURM}: no `inventory` here or above: run it inside the project's folder"
            ));
            None
        }
        (Some(_), Some(home)) => load(home, &[], &args.inventory, None)
            .and_then(|loaded| {
                let jobs = args.jobs.map(NonZeroUsize::get);
                Cluster::of(&loaded.inventory, jobs).map_err(|why| vec![why])
            })
            .map_err(|diagnostics| wrong.extend(diagnostics))
            .ok(),
    };
    if !wrong.is_empty() {
        return Err(wrong);
    }
    let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    Ok(Order {
        asked,
        inputs,
        filter,
        filtered,
        forms,
        output,
        overwrite: args.force_overwrite,
        tables: args.tables.clone(),
        jobs: args.jobs.map_or(cores, NonZeroUsize::get),
        exporting: Exporting { anew: args.force_export, stale_ok: args.stale_ok, nsys: args.nsys.clone() },
        look: Look { headings: Headings::Today, unit: args.timeunit },
        quiet: args.quiet,
        on,
    })
}
