//! Reads text of RAS: the report that `ncclras` prints, and the lines of `MONITOR`. A text lists ranks of small sets only:
//! that none is listed does not mean that there is none.

use super::{
    Absence, Communicator, Event, MOST_RANKS, MissingRank, OperationCounts, Owner, RankErrors, RankOwner,
    RanksAtCount, RasLog, Report, StatusOfRanks, hash,
};
use crate::stream::Pieces;
use metric::finding::Finding;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// What the lines below a heading are about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Section {
    Other,
    Summary,
    Table,
    Silent,
    Dead,
    Incomplete,
    Error,
    Timeout,
    Mismatch,
}

/// Of communicators.
const FAULTS: [&str; 3] = ["INCOMPLETE", "ERROR", "MISMATCH"];

struct TextReader<'a> {
    file: &'a str,
    log: RasLog,
    report: Option<Report>,
    section: Section,
    /// Of the table: size and errors by group.
    groups: BTreeMap<u64, (Option<u64>, String)>,
    /// Groups with a communicator below the table, with the fault that it has.
    explained: BTreeSet<(u64, &'static str)>,
    /// Places of the report's communicators, by hash, and of the one whose block is read.
    known: HashMap<String, usize>,
    current: Option<usize>,
    /// Processes that the report calls dead.
    dead: BTreeSet<Owner>,
    /// Headings of the report so far, each of which it has once.
    headings: BTreeSet<&'static str>,
    /// Whether it has one twice, as where two answers ran into one another.
    is_mixed: bool,
    /// Whether JSON stands behind a report.
    has_json: bool,
    /// The last heading, which counts where a rule stands below it.
    heading: String,
    /// Into what the next `Rank` lines without a number of their own go.
    open: Open,
    phase: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Open {
    Nothing,
    Counts,
    Errors,
    Statuses,
}

pub(super) fn read(text: &str, file: &str) -> RasLog {
    let mut reader = TextReader {
        file,
        log: RasLog::default(),
        report: None,
        section: Section::Other,
        groups: BTreeMap::new(),
        explained: BTreeSet::new(),
        known: HashMap::new(),
        current: None,
        dead: BTreeSet::new(),
        headings: BTreeSet::new(),
        is_mixed: false,
        has_json: false,
        heading: String::new(),
        open: Open::Nothing,
        phase: String::new(),
    };
    let mut pieces = Pieces::new(text.as_bytes());
    while let Ok(Some(piece)) = pieces.next_piece() {
        reader.line(&piece.text, piece.line);
    }
    reader.close();
    reader.log
}

impl TextReader<'_> {
    fn line(&mut self, line: &str, number: u64) {
        let bare = line.trim();
        if self.answer(bare, number) || self.event(bare) || self.json(bare, number) {
            return;
        }
        let version = bare.strip_prefix("NCCL version ").or_else(|| bare.strip_prefix("RCCL version "));
        if let Some(version) = version.filter(|rest| rest.contains(" compiled with ")) {
            self.close();
            let version = version.split(' ').next().unwrap_or_default().to_owned();
            self.report().nccl_version = Some(version);
        } else if bare == "Job summary" {
            if self.report.as_ref().is_some_and(|report| report.processes.is_some()) {
                self.close();
            }
            self.report();
            self.section = Section::Summary;
        } else if let Some(rest) = bare.strip_prefix("Communicators...") {
            self.section = Section::Table;
            self.is_mixed |= !self.headings.insert("Communicators");
            let seconds = rest.trim().strip_prefix('(').and_then(|rest| rest.strip_suffix("s)"));
            let seconds = seconds.and_then(|seconds| seconds.parse().ok()).filter(|it: &f64| it.is_finite());
            self.report().collection_s = seconds;
        } else if bare.len() > 3 && bare.bytes().all(|byte| byte == b'=') {
            if std::mem::take(&mut self.heading) == "Warnings" {
                self.report().has_end = true;
            }
        } else if !line.starts_with(' ') && matches!(bare, "Errors" | "Warnings") {
            self.is_mixed |= !self.headings.insert(if bare == "Errors" { "Errors" } else { "Warnings" });
            bare.clone_into(&mut self.heading);
            (self.section, self.open) = (Section::Other, Open::Nothing);
        } else if !line.starts_with(' ') && matches!(bare, "INCOMPLETE" | "DEAD" | "TIMEOUT") {
            self.open = Open::Nothing;
            self.section = match bare {
                "INCOMPLETE" => Section::Silent,
                "DEAD" => Section::Dead,
                _ => Section::Timeout,
            };
        } else if let Some((group, hash, fault)) = communicator_heading(line) {
            self.communicator(group, hash, fault);
        } else if self.report.is_some() || self.section != Section::Other {
            self.detail(line, bare);
        }
    }

    /// Answers of the protocol and of the client, which are no part of a report.
    fn answer(&mut self, bare: &str, number: u64) -> bool {
        let message = match bare {
            _ if bare.starts_with("ERROR: Unknown command set format") => {
                "this NCCL knows no `set format`: it is older than 2.28.7 and gives text only".to_owned()
            }
            _ if bare.starts_with("ERROR: ") => format!("RAS refused the request: {bare}"),
            _ if bare.starts_with("Failed to connect to the NCCL RAS service")
                || bare.starts_with("Connection timed out") =>
            {
                format!("no answer of RAS: {bare}")
            }
            _ => return false,
        };
        self.log.findings.push(Finding::new("ras-no-answer", message).file(self.file).line(number));
        true
    }

    /// `[2025-12-19 13:07:07] PEER_DEAD: Process 1524345 on node 172.16.64.245 managing GPU 1`
    fn event(&mut self, bare: &str) -> bool {
        let event = || {
            let (time, rest) = bare.strip_prefix('[')?.split_once("] ")?;
            let (name, rest) = rest.split_once(':')?;
            let is_name =
                name.starts_with("PEER_") && name.bytes().all(|b| b.is_ascii_uppercase() || b == b'_');
            let is_time = time.starts_with(|c: char| c.is_ascii_digit());
            (is_name && is_time).then(|| {
                let peer = process(rest.trim());
                let details = peer.is_none().then(|| rest.trim().to_owned()).filter(|text| !text.is_empty());
                let (time, event) = (Some(time.to_owned()), name.to_owned());
                Event { time, event, peer: peer.unwrap_or_default(), details }
            })
        };
        let Some(event) = event() else { return false };
        self.log.events.push(event);
        true
    }

    /// The first line of JSON behind a report: what it says would be missing without a sign.
    fn json(&mut self, bare: &str, number: u64) -> bool {
        let is_behind = self.report.is_some() || !self.log.reports.is_empty();
        if !(bare.starts_with('{') && is_behind) {
            return false;
        }
        if !std::mem::replace(&mut self.has_json, true) {
            let message = "JSON behind a text is not read: give each answer a file of its own";
            self.log.findings.push(Finding::new("ras-contradicts", message).file(self.file).line(number));
        }
        true
    }

    fn report(&mut self) -> &mut Report {
        let file = self.file;
        self.report.get_or_insert_with(|| Report { file: file.to_owned(), ..Report::default() })
    }

    fn communicator(&mut self, group: u64, hash: String, fault: &'static str) {
        let size = self.groups.get(&group).and_then(|(size, _)| *size);
        self.explained.insert((group, fault));
        self.open = Open::Nothing;
        self.section = match fault {
            "INCOMPLETE" => Section::Incomplete,
            "ERROR" => Section::Error,
            _ => Section::Mismatch,
        };
        // Each fault has a block of its own.
        let known = self.known.get(&hash).copied();
        self.current = Some(known.unwrap_or_else(|| {
            let all = &mut self.report().communicators;
            all.push(Communicator { hash: hash.clone(), size, ..Communicator::default() });
            all.len() - 1
        }));
        self.known.extend(self.current.map(|at| (hash, at)));
    }

    fn current(&mut self) -> Option<&mut Communicator> {
        let at = self.current?;
        self.report().communicators.get_mut(at)
    }

    fn detail(&mut self, line: &str, bare: &str) {
        match self.section {
            Section::Summary => self.summary(bare),
            Section::Table => self.row(bare),
            Section::Timeout => {
                if let Some(rest) = bare.strip_prefix("Encountered ") {
                    self.report().timeouts = first_number(rest).unwrap_or(1);
                }
            }
            Section::Silent | Section::Dead => self.processes(bare),
            _ if !line.starts_with(' ') => {}
            Section::Incomplete => self.missing(bare),
            Section::Error | Section::Mismatch => self.ranks(bare),
            Section::Other => {}
        }
    }

    /// The last row of the summary holds the totals: `4 8 1 32 32`, or `4 32 32` where nodes differ.
    fn summary(&mut self, bare: &str) {
        let numbers: Option<Vec<u64>> = bare.split_whitespace().map(|word| word.parse().ok()).collect();
        match numbers.as_deref() {
            Some([_, _, _, processes, _]) => self.report().processes = Some(*processes),
            Some([_, processes, _]) => self.report().processes = Some(*processes),
            _ => {}
        }
    }

    /// `0 1 4 7-8 32 32 RUNNING INCOMPLETE`
    fn row(&mut self, bare: &str) {
        if bare.starts_with("No communicator data collected") {
            let message = "RAS collected no data of any communicator";
            self.log.findings.push(Finding::new("ras-incomplete", message).file(self.file));
            return;
        }
        let words: Vec<&str> = bare.split_whitespace().collect();
        let [group, communicators, _, _, size, _, _, errors] = words.as_slice() else { return };
        let (Ok(group), Ok(communicators)) = (group.parse::<u64>(), communicators.parse::<u64>()) else {
            return;
        };
        let size = size.parse().ok().filter(|size| (1..=MOST_RANKS).contains(size));
        if size.is_none() {
            let message = format!("group {group} has an impossible number of ranks: unset memory");
            self.log.findings.push(Finding::new("ras-absurd", message).file(self.file));
        }
        self.groups.insert(group, (size, (*errors).to_owned()));
        let report = self.report();
        report.communicators_count = report.communicators_count.saturating_add(communicators);
    }

    fn processes(&mut self, bare: &str) {
        let is_dead = self.section == Section::Dead;
        let report = self.report();
        let into = if is_dead { &mut report.dead } else { &mut report.silent };
        if let Some(owner) = process(bare) {
            into.listed.push(owner.clone());
            self.dead.extend(Some(owner).filter(|_| is_dead));
        } else if bare.starts_with("Missing communicator data from ") || bare.contains(" considered dead") {
            into.count = first_number(bare).unwrap_or_default();
        }
    }

    fn missing(&mut self, bare: &str) {
        let (has_dead, has_silent) = self
            .report
            .as_ref()
            .map_or((false, false), |report| (report.dead.count > 0, report.silent.count > 0));
        let dead = std::mem::take(&mut self.dead);
        if let Some(communicator) = self.current() {
            communicator.add_missing(bare, |rank| match rank.owner.pid {
                Some(_) => dead.contains(&rank.owner),
                // 2.24 and 2.25 give a number alone: dead where all missing processes are.
                None => has_dead && !has_silent,
            });
        }
        self.dead = dead;
    }

    fn ranks(&mut self, bare: &str) {
        if let Some(rest) = bare.strip_prefix("Communicator ranks have different ") {
            self.open = match rest {
                "status" => Open::Statuses,
                _ => Open::Counts,
            };
            let operation = rest.strip_suffix(" operation counts").filter(|it| *it != "collective");
            let is_counts = self.open == Open::Counts;
            if let Some(communicator) = self.current().filter(|_| is_counts) {
                let operation = operation.map(str::to_owned);
                communicator.differing.push(OperationCounts { operation, launched: Vec::new() });
            }
            return;
        }
        if bare.starts_with("Initialization error") || bare.starts_with("Asynchronous error") {
            self.open = Open::Errors;
            self.phase = bare.split(' ').next().unwrap_or_default().to_ascii_lowercase();
            return;
        }
        let (open, phase) = (self.open, self.phase.clone());
        let Some(communicator) = self.current() else { return };
        if let Some((rank, what, owner)) = rank_line(bare) {
            let rank = RankOwner { rank, owner };
            match what {
                Some(what) => communicator.set(open, &phase, what, 1, vec![rank]),
                None => communicator.list(open, rank),
            }
        } else if let Some((ranks, what)) = bare.split_once(" ranks ").or_else(|| bare.split_once(" rank "))
            && let Ok(ranks) = ranks.parse()
        {
            communicator.set(open, &phase, what, ranks, Vec::new());
        }
    }

    fn close(&mut self) {
        (self.section, self.open) = (Section::Other, Open::Nothing);
        self.heading.clear();
        self.known.clear();
        self.dead.clear();
        self.headings.clear();
        self.current = None;
        let (groups, explained) = (std::mem::take(&mut self.groups), std::mem::take(&mut self.explained));
        let is_mixed = std::mem::take(&mut self.is_mixed);
        let Some(mut report) = self.report.take() else { return };
        if is_mixed {
            let message = "two answers in one report: left out; give each a file of its own";
            self.log.findings.push(Finding::new("ras-contradicts", message).file(self.file));
            return;
        }
        for (group, (_, errors)) in groups {
            let is_explained = |error: &str| {
                let fault = FAULTS.into_iter().find(|fault| *fault == error);
                error == "OK" || fault.is_some_and(|fault| explained.contains(&(group, fault)))
            };
            let open = errors.split(',').filter(|error| !is_explained(error));
            report.unexplained.extend(open.map(|error| format!("group {group}: {error}")));
        }
        for communicator in &mut report.communicators {
            communicator.missing_count = communicator.missing_count.max(communicator.missing.len() as u64);
            communicator.differing.iter_mut().for_each(|it| it.launched.sort_by_key(|it| it.launched));
            let absurd = communicator.drop_absurd();
            if absurd > 0 {
                let hash = &communicator.hash;
                let message = format!("{absurd} rank numbers of {hash} beyond its size: left out");
                self.log.findings.push(Finding::new("ras-absurd", message).file(self.file));
            }
        }
        self.log.reports.push(report);
    }
}

impl Communicator {
    /// From a line below `INCOMPLETE`.
    fn add_missing(&mut self, bare: &str, is_dead: impl Fn(&RankOwner) -> bool) {
        let mut add = |rank: RankOwner| {
            let why = if is_dead(&rank) { Absence::Dead } else { Absence::Unresponsive };
            self.missing.push(MissingRank { rank, why });
        };
        if let Some(rest) = bare.strip_prefix("The missing rank") {
            let list = rest.trim_start_matches('s').trim_start_matches(':');
            let ranks = list.split([',', ' ']).filter_map(|word| word.parse().ok());
            ranks.for_each(|rank| add(RankOwner { rank, owner: Owner::default() }));
        } else if bare.starts_with("Missing communicator data from ") {
            self.missing_count = first_number(bare).unwrap_or_default();
        } else if let Some((rank, _, owner)) = rank_line(bare) {
            add(RankOwner { rank, owner });
        }
    }

    /// Leaves out ranks that the communicator cannot have, and returns how many.
    fn drop_absurd(&mut self) -> usize {
        let size = self.size.unwrap_or(MOST_RANKS);
        let mut absurd = 0;
        let mut is_possible = |rank: &RankOwner| {
            let is_possible = rank.rank < size;
            absurd += usize::from(!is_possible);
            is_possible
        };
        self.missing.retain(|it| is_possible(&it.rank));
        let counts = self.differing.iter_mut().flat_map(|it| &mut it.launched).map(|it| &mut it.listed);
        let errors = self.errors.iter_mut().map(|it| &mut it.listed);
        let statuses = self.statuses.iter_mut().map(|it| &mut it.listed);
        counts.chain(errors).chain(statuses).for_each(|listed| listed.retain(&mut is_possible));
        absurd
    }

    /// A set of ranks, by what stands behind their number: `have launched up to operation 640`.
    fn set(&mut self, open: Open, phase: &str, what: &str, ranks: u64, listed: Vec<RankOwner>) {
        match open {
            Open::Counts => {
                let launched = match what.rsplit_once("launched up to operation ") {
                    Some((_, number)) => number.parse().ok(),
                    None => what.contains("not launched any operations").then_some(0),
                };
                if let (Some(launched), Some(counts)) = (launched, self.differing.last_mut()) {
                    counts.launched.push(RanksAtCount { launched, ranks, listed });
                }
            }
            Open::Statuses => {
                if let Some((_, status)) = what.rsplit_once("status ") {
                    self.statuses.push(StatusOfRanks { status: status.to_owned(), ranks, listed });
                }
            }
            Open::Errors => {
                if let Some(error) = what.strip_prefix("reported ") {
                    let (phase, error) = (phase.to_owned(), error.to_owned());
                    self.errors.push(RankErrors { phase, error, ranks, listed });
                }
            }
            Open::Nothing => {}
        }
    }

    /// A rank of the set that stands above it.
    fn list(&mut self, open: Open, rank: RankOwner) {
        let listed = match open {
            Open::Counts => {
                self.differing.last_mut().and_then(|it| it.launched.last_mut()).map(|it| &mut it.listed)
            }
            Open::Errors => self.errors.last_mut().map(|it| &mut it.listed),
            Open::Statuses => self.statuses.last_mut().map(|it| &mut it.listed),
            Open::Nothing => None,
        };
        listed.into_iter().for_each(|listed| listed.push(rank.clone()));
    }
}

/// `#0-0 (cf264af53edbe986) INCOMPLETE`
fn communicator_heading(line: &str) -> Option<(u64, String, &'static str)> {
    let (group, rest) = line.trim_end().strip_prefix('#')?.split_once('-')?;
    let (_, rest) = rest.split_once(" (")?;
    let (digits, fault) = rest.split_once(") ")?;
    let fault = FAULTS.into_iter().find(|known| *known == fault)?;
    Some((group.parse().ok()?, hash(digits)?, fault))
}

/// `Rank 21 has status ABORT -- GPU 5 managed by process 3487984 on node 172.16.64.213`: the rank, what stands behind it,
/// and its process.
fn rank_line(bare: &str) -> Option<(u64, Option<&str>, Owner)> {
    let (head, tail) = bare.strip_prefix("Rank ")?.split_once("-- ")?;
    let head = head.trim_end();
    let (rank, what) = head.split_once(' ').map_or((head, None), |(rank, what)| (rank, Some(what)));
    let owner = || {
        let (gpu, rest) = tail.strip_prefix("GPU ")?.split_once(" managed by process ")?;
        let (pid, node) = rest.split_once(" on node ")?;
        Some(Owner { node: Some(node.to_owned()), pid: pid.parse().ok(), gpu: Some(gpu.to_owned()) })
    };
    Some((rank.parse().ok()?, what, owner().unwrap_or_default()))
}

/// `Process 3487984 on node 172.16.64.213 managing GPU 5`
fn process(bare: &str) -> Option<Owner> {
    let (pid, rest) = bare.strip_prefix("Process ")?.split_once(" on node ")?;
    let (node, gpu) = rest.split_once(" managing GPU")?;
    let gpu = gpu.trim_start_matches('s').trim().to_owned();
    Some(Owner { node: Some(node.to_owned()), pid: Some(pid.parse().ok()?), gpu: Some(gpu) })
}

fn first_number(text: &str) -> Option<u64> {
    text.split_whitespace().find_map(|word| word.parse().ok())
}
