//! `harness run`, which runs suites, and the flags that other verbs about runs share with it. libtest-mimic's arguments
//! are flattened in, so that its vocabulary works as everywhere.

use super::requested_reports::RequestedReports;
use super::usage;
use crate::attach;
use crate::filters::{Expression, Filters};
use crate::isolate::after_run::IsolateAfterRun;
use crate::report::JunitFlavor;
use crate::session::webhook::{self, Webhook};
use crate::session::{self, ReportedFacts, RunOptions, load};
use crate::tasks::{KUBERNETES, SLURM};
use clap::Args;
use cluster::reach::openssh;
use config::inventory::Stack;
use libtest_mimic::FormatSetting;
use std::path::PathBuf;
use store::Home;

const EXPRESSIONS: &str = "\
Only what matches this expression; may be repeated. `test(WORD)` is a part of an assertion's name, `case(NAME)`, `tag(NAME)` and \
`metric(NAME)` are whole names, `node(RANGE)` is any of these nodes. `=WORD` is the whole, `~WORD` a part, `/REGEX/` a pattern. \
They are combined by `&`, `|`, `not` and parentheses: `tag(gpu) & not node(p5-003)`.";

/// `harness run`, also where no verb is given.
#[derive(Debug, Clone, Args)]
#[command(about = "Run suites, judge every number, and name the faulty component.", after_help = None::<&str>)]
pub(super) struct RunVerbArgs {
    /// Launch nothing: judge what the pods of `harness manifest` left in this folder, for the suite and case of then
    #[arg(long, value_name = "FOLDER", conflicts_with_all = LAUNCHING)]
    attach: Option<PathBuf>,
    #[command(flatten)]
    run: RunArgs,
}

/// What says how jobs are launched.
const LAUNCHING: [&str; 16] = [
    "no_probe",
    "probe",
    "allow_busy",
    "reservation",
    "seed",
    "sim_faults",
    "max_fail",
    "errors",
    "keep_bad_nodes",
    "on_failure",
    "timeout",
    "ssh_fanout",
    "analyze_on",
    "list",
    "tags",
    "expressions",
];

/// The flags of `harness run` that other verbs about runs share.
#[derive(Debug, Clone, Args)]
#[command(about = "Run suites, judge every number, and name the faulty component.", after_help = None::<&str>)]
pub(super) struct RunArgs {
    /// Suite to run, by name or path; may be repeated
    #[arg(long = "suite", value_name = "NAME|PATH")]
    pub suites: Vec<String>,
    /// The cluster, by name or path
    #[arg(long, value_name = "NAME|PATH", env = "HARNESS_INVENTORY", default_value = "default")]
    pub inventory: String,
    /// Run on these nodes of the inventory only, such as `p5-[001-004]` or `@group`
    #[arg(long, value_name = "RANGE")]
    pub nodes: Option<String>,
    /// Leave these nodes out
    #[arg(long, value_name = "RANGE")]
    pub exclude_nodes: Option<String>,
    /// Launch on all nodes without probing them
    #[arg(long)]
    pub no_probe: bool,
    /// Probe the nodes of a simulated cluster too, before anything is launched
    #[arg(long, conflicts_with = "no_probe")]
    pub probe: bool,
    /// Nodes whose GPUs are in use take part
    #[arg(long)]
    pub allow_busy: bool,
    /// Run inside this reservation of Slurm, whatever the inventory says
    #[arg(long, value_name = "NAME")]
    pub reservation: Option<String>,
    /// Override a value of the suite for this run; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = super::key_and_value)]
    pub settings: Vec<(String, String)>,
    /// Seed of the simulated cluster
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// A fault of the simulated cluster, such as `p5-002:nic-slow=0.4@rdmap113s0`; may be repeated
    #[arg(long = "sim-fault", value_name = "NODE:FAULT")]
    pub sim_faults: Vec<String>,
    /// Write the JUnit report here too
    #[arg(long, value_name = "PATH")]
    pub junit: Option<PathBuf>,
    /// For whom the report of --junit is written
    #[arg(long, value_name = "READER", value_parser = ["default", "jenkins", "gitlab"], requires = "junit")]
    pub junit_flavor: Option<String>,
    /// Write the summary here too
    #[arg(long, value_name = "PATH")]
    pub json: Option<PathBuf>,
    #[command(flatten)]
    pub requested: RequestedReports,
    /// Send the outcome here when the run has ended, as JSON
    #[arg(long, value_name = "URL", value_parser = webhook::parse_url)]
    pub webhook: Option<String>,
    /// Sign what --webhook sends by HMAC-SHA256 with the secret that this environment variable holds
    #[arg(long, value_name = "VARIABLE", requires = "webhook")]
    pub webhook_secret_env: Option<String>,
    /// More detail: a line for each assertion; in a plan, every job in full
    #[arg(short, long)]
    pub verbose: bool,
    /// Launch nothing more after this many failures
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_fail: Option<u32>,
    /// Exit 3 where any number has nothing to be compared with, or a whole case was skipped
    #[arg(long)]
    pub strict: bool,
    /// With --max-fail: errors count as failures
    #[arg(long, requires = "max_fail")]
    pub errors: bool,
    /// Nodes that hung, were lost or crashed take part in later cases all the same
    #[arg(long)]
    pub keep_bad_nodes: bool,
    /// Where a suite failed: isolate the faulty component, as `harness isolate` does, or do nothing
    #[arg(long, value_name = "WHAT", value_parser = ["isolate", "nothing"])]
    pub on_failure: Option<String>,
    /// End the whole run after this time, such as `10m`
    #[arg(long, value_name = "DURATION", value_parser = super::duration::parse)]
    pub timeout: Option<u64>,
    /// Recipes of your own beside those in `suites/recipes`: a file or a folder of them
    #[arg(long, value_name = "PATH", env = "HARNESS_RECIPE_PATH")]
    pub recipe_path: Option<PathBuf>,
    /// Connect to at most this many hosts by ssh at the same time, and launch as many jobs over ssh
    #[arg(long, value_name = "N", default_value_t = openssh::FANOUT as u32, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub ssh_fanout: u32,
    /// Read reports in tasks of the inventory's nodes, one node's reports each, and join the results
    #[arg(long, value_name = "PLACE", value_parser = [SLURM, KUBERNETES])]
    pub analyze_on: Option<String>,
    /// Take baselines from this folder instead of the project's own
    #[arg(long, value_name = "DIR")]
    pub baselines: Option<PathBuf>,
    /// Only cases with this tag; may be repeated
    #[arg(long = "tag", value_name = "NAME")]
    pub tags: Vec<String>,
    /// Only this case; may be repeated
    #[arg(long = "case", value_name = "NAME")]
    pub cases: Vec<String>,
    /// Only what matches this expression, such as `tag(gpu) & not node(p5-003)`; may be repeated
    #[arg(short = 'E', long = "filter-expr", value_name = "EXPRESSION", value_parser = Expression::parse, long_help = EXPRESSIONS)]
    pub expressions: Vec<Expression>,
    #[command(flatten)]
    pub libtest: libtest_mimic::Arguments,
}

impl RunArgs {
    /// How a run is made, without the choice of a stored one.
    pub(super) fn into_options(self) -> RunOptions {
        let RunArgs {
            suites,
            inventory,
            nodes,
            exclude_nodes,
            no_probe,
            probe,
            allow_busy,
            reservation,
            settings,
            seed,
            sim_faults,
            junit,
            junit_flavor,
            json,
            requested,
            webhook,
            webhook_secret_env,
            verbose,
            max_fail,
            strict,
            errors,
            keep_bad_nodes,
            on_failure,
            timeout,
            recipe_path,
            ssh_fanout,
            analyze_on,
            baselines,
            tags,
            cases,
            expressions,
            libtest,
        } = self;
        RunOptions {
            suites,
            inventory,
            nodes,
            exclude_nodes,
            no_probe,
            probe,
            allow_busy,
            reservation,
            bears: &[],
            dry_run: false,
            settings,
            stack: Stack::default(),
            seed,
            sim_faults,
            junit,
            junit_flavor: junit_flavor.as_deref().and_then(JunitFlavor::named).unwrap_or_default(),
            json,
            requested: requested.0,
            webhook: webhook.map(|url| Webhook { url, secret_variable: webhook_secret_env }),
            verbose,
            max_fail,
            strict,
            errors,
            keep_bad_nodes,
            on_failure,
            timeout,
            recipe_path,
            ssh_fanout,
            analyze_on,
            baselines,
            filters: Filters { tags, cases, expressions },
            reported: ReportedFacts::default(),
            libtest,
            after_run: Some(&IsolateAfterRun),
        }
    }
}

/// `harness run`.
pub(super) fn run_or_attach(home: &Home, args: RunVerbArgs) -> i32 {
    let options = args.run.into_options();
    match args.attach {
        Some(folder) => attach::attach(home, &options, &folder),
        None => run(home, &options),
    }
}

/// A new run of the suites that are named, or its plan, or the list of its assertions.
pub(super) fn run(home: &Home, options: &RunOptions) -> i32 {
    if options.suites.is_empty() {
        let names = load::names(home, "suites");
        if let Some(name) = options.libtest.filter.as_ref().filter(|word| names.contains(word)) {
            return usage(&format!("which suite? `{name}` is one: write `--suite {name}`"));
        }
        return usage(
            "which suite? write `--suite NAME`; `harness list` names them, `harness help` the verbs",
        );
    }
    session::plan_and_run(home, options)
}

/// What libtest-mimic offers and means nothing here: verdicts are known before it is called.
pub(super) const MEANINGLESS: [&str; 4] = ["bench", "test_threads", "logfile", "unstable_flags"];
/// What does nothing, and is accepted from programs that start tests.
pub(super) const WITHOUT_EFFECT: [&str; 5] =
    ["test", "nocapture", "show_output", "ignored", "include_ignored"];

/// `text` is the word of every other verb for what libtest-mimic calls `pretty`.
pub(super) fn format(text: &str) -> Result<FormatSetting, String> {
    match text {
        "text" | "pretty" => Ok(FormatSetting::Pretty),
        "terse" => Ok(FormatSetting::Terse),
        "json" => Ok(FormatSetting::Json),
        _ => Err("expected `text`, `terse` or `json`".to_owned()),
    }
}
