//! What nsys leaves of a profiled rank: its account, as `profile.sh` writes it, the report, and the tables that it was
//! exported to. What they hold is in `report`; how a report can go wrong is an active fault of its node.

mod collective;
mod events;
mod layouts;
mod nccl_tests;
mod observed;
mod payload;
mod report;
mod training;
mod window;

use super::active_faults::{Ending, Report};
use super::cluster::Cluster;
use super::over::{How, NamedTables, Over};
use base::digest::sha256;
use job::profile::account::file_name;
use job::script::Profile;
use std::fmt::Write;
use std::rc::Rc;
use window::Opening;

/// A release that knows none of what profiles need.
const OLD: &str = "2023.2.1";
/// From the start of nsys to the first kernel.
pub(super) const FIRST_KERNEL_S: f64 = 6.0;

/// In whole nanoseconds.
fn ns(seconds: f64) -> i64 {
    (seconds * 1e9) as i64
}

/// The file of that name and the node that left it, if a profiled rank of the job did. Tables lie in a folder below the
/// job's.
pub(crate) fn file(cluster: &Cluster, epoch_s: f64, over: &Over, name: &str) -> Option<(usize, Vec<u8>)> {
    let profile = over.execution.profile.as_ref()?;
    let rank = rank_of(name)?;
    let one = Rank::new(cluster, over, profile, rank)?;
    if over.execution.active_faults.output_missing(one.node) || !one.started() {
        return None;
    }
    if name == file_name(rank) {
        return Some((one.node, one.account(epoch_s).into_bytes()));
    }
    let report = one.report()?;
    if let Some(table) = name.strip_prefix(&format!("{}_pqtdir/", one.report_name())) {
        let tables = one.tables(epoch_s);
        return tables.iter().find(|(known, _)| known == table).map(|(_, bytes)| (one.node, bytes.clone()));
    }
    (name == format!("{}.nsys-rep", one.report_name())).then_some((one.node, report))
}

/// The tables of a rank's report by their names, where it saw anything; the rank is one of those that are profiled.
/// `collected`: from when to when, in nanoseconds since the job's start, where somebody started and stopped it by hand.
pub fn tables_of(
    cluster: &Cluster,
    epoch_s: f64,
    over: &Over,
    rank: u32,
    collected: Option<(i64, i64)>,
) -> Option<Rc<NamedTables>> {
    let one = Rank { collected, ..Rank::new(cluster, over, over.execution.profile.as_ref()?, rank)? };
    (!matches!(one.opening(), Opening::Never)).then(|| one.tables(epoch_s))
}

/// What nsys prints among the workload's lines.
pub(crate) fn chatter(cluster: &Cluster, over: &Over) -> String {
    let Some(profile) = &over.execution.profile else { return String::new() };
    let per_node = tasks_per_node(over, profile);
    let mut text = String::new();
    for rank in profile.ranks.in_job(profile.tasks, per_node) {
        let Some(one) = Rank::new(cluster, over, profile, rank) else { continue };
        if one.report().is_none() {
            continue;
        }
        let name = one.report_name();
        // Infallible: writing to a string.
        let _ = write!(
            text,
            "Generating '/tmp/nsys-report-{rank:04x}.qdstrm'\n\
             [1/1] [========================100%] {name}.nsys-rep\n\
             Generated:\n    ./{name}.nsys-rep\n"
        );
    }
    text
}

/// `profile.rank3.txt`, or anything that holds `.rank3.`.
fn rank_of(name: &str) -> Option<u32> {
    let (_, tail) = name.rsplit_once(".rank")?;
    tail.split('.').next()?.parse().ok()
}

fn tasks_per_node(over: &Over, profile: &Profile) -> u32 {
    (profile.tasks / over.execution.nodes.len().max(1) as u32).max(1)
}

/// One profiled rank of a job that is over.
struct Rank<'a> {
    cluster: &'a Cluster,
    over: &'a Over,
    profile: &'a Profile,
    rank: u32,
    local: u32,
    /// Among the job's nodes.
    node: usize,
    /// From when to when it was collected, where that was by hand.
    collected: Option<(i64, i64)>,
}

impl<'a> Rank<'a> {
    fn new(cluster: &'a Cluster, over: &'a Over, profile: &'a Profile, rank: u32) -> Option<Rank<'a>> {
        let per_node = tasks_per_node(over, profile);
        let (node, local) = ((rank / per_node) as usize, rank % per_node);
        (rank < profile.tasks && profile.ranks.holds(rank, local)).then_some(Rank {
            cluster,
            over,
            profile,
            rank,
            local,
            node,
            collected: None,
        })
    }

    fn host(&self) -> &str {
        self.over.execution.nodes.get(self.node).map_or("", String::as_str)
    }

    fn ailing(&self) -> Option<Report> {
        self.over.execution.active_faults.report(self.node)
    }

    fn started(&self) -> bool {
        self.over.run_s >= self.over.execution.work_from_s
    }

    /// Whether the rank's command came to its end by itself, and so its report was made.
    fn ended_itself(&self) -> bool {
        let broken = matches!(
            self.over.execution.active_faults.ending,
            Some((
                Ending::RankDies
                    | Ending::DiskFull
                    | Ending::NodeFails
                    | Ending::Hang
                    | Ending::Desync
                    | Ending::Preempted,
                _
            ))
        );
        matches!(self.over.how, How::Exit(_)) && !broken
    }

    fn report_name(&self) -> String {
        format!("{}.step0.try0.rank{}.{}", self.profile.name, self.rank, self.host())
    }

    /// The report itself, where there is one.
    fn report(&self) -> Option<Vec<u8>> {
        if !self.ended_itself() || matches!(self.opening(), Opening::Never) {
            return None;
        }
        let whole = format!("a simulated report of rank {} on {}\n", self.rank, self.host());
        match self.ailing() {
            Some(Report::NsysMissing | Report::NsysOld | Report::Missing) => None,
            Some(Report::Empty) => Some(Vec::new()),
            Some(Report::Truncated) => Some(whole.as_bytes()[..12].to_vec()),
            Some(Report::EventsDropped | Report::WindowShut) | None => Some(whole.into_bytes()),
        }
    }

    /// Its tables, which a broken one does not have.
    fn tables(&self, epoch_s: f64) -> Rc<NamedTables> {
        if matches!(self.ailing(), Some(Report::Empty | Report::Truncated)) {
            return Rc::default();
        }
        self.over.reports.for_rank(self.rank, || report::tables(self, epoch_s))
    }

    fn seconds(&self) -> f64 {
        let execution = &self.over.execution;
        FIRST_KERNEL_S + (execution.work_to_s.min(self.over.run_s) - execution.work_from_s).max(0.0)
    }

    fn traces(&self, what: &str) -> bool {
        let traced = self.profile.words.every.iter().find_map(|word| word.strip_prefix("--trace="));
        traced.is_some_and(|list| list.split(',').any(|traced| traced == what))
    }

    fn account(&self, epoch_s: f64) -> String {
        let mut text = format!("profile 1\nrank {} {}\nnode {}\n", self.rank, self.local, self.host());
        let mut say = |line: String| {
            text.push_str(&line);
            text.push('\n');
        };
        let bare = match self.ailing() {
            Some(Report::NsysMissing) => Some(format!("bare nsys-missing {}", self.profile.nsys)),
            Some(Report::NsysOld) => {
                say(format!("nsys {OLD}"));
                Some(format!("bare nsys-old {OLD} is older than {}", self.profile.version))
            }
            _ => None,
        };
        if let Some(bare) = bare {
            say(bare);
            if self.ended_itself() {
                say("exit 0".to_owned());
                say("end".to_owned());
            }
            return text;
        }
        say(format!("nsys {}", self.profile.version));
        if self.profile.node_ranks.holds(self.rank, self.local) {
            say("node-sampling yes".to_owned());
        }
        let name = self.report_name();
        say(format!("report {name}"));
        if !self.ended_itself() {
            return text;
        }
        say(format!("seconds {:.2}", self.seconds()));
        say("exit 0".to_owned());
        if let Some(mark) = self.mark() {
            say(format!("window {mark}"));
        }
        match self.report() {
            None => say(format!("missing nsys left no {name}.nsys-rep")),
            Some(report) => {
                say(format!("report-file {} {} {name}.nsys-rep", report.len(), sha256(&report)));
                let broken = matches!(self.ailing(), Some(Report::Empty | Report::Truncated));
                let form = self.profile.export.split(',').next().unwrap_or_default();
                say(format!("export {form} {}", u8::from(broken)));
                for (table, bytes) in self.tables(epoch_s).iter() {
                    say(format!("table {} {} {name}_pqtdir/{table}", bytes.len(), sha256(bytes)));
                }
            }
        }
        say("end".to_owned());
        text
    }
}
