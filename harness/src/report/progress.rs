//! The progress of a run on stderr: bars at a terminal, plain lines elsewhere. Each case has a line as soon as it is judged.
//! It has no clock: the caller passes the time, which is simulated in a simulated run.

use super::judged_case;
use super::narrow;
use super::pace::{Pace, clock};
use base::nodeset;
use base::text::{count, duration, show};
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use model::artefact::{CaseEnd, CaseVerdict, Ended, NOT_RUN, Plan, Verdict};
use std::collections::BTreeMap;
use std::io::{Write, stderr};
use std::time::Duration;

/// How often a silent run prints a line: CI servers kill jobs without output.
const HEARTBEAT: Duration = Duration::from_secs(30);
/// Jobs of one case that end badly, or wait for their nodes, with a line each.
const MOST_LINES: u32 = 4;
/// Jobs that have a bar of their own.
const MOST_BARS: usize = 8;

/// How progress is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Bars at a terminal, plain lines elsewhere.
    Auto {
        /// Whether stderr is a terminal.
        is_terminal: bool,
    },
    /// Plain lines.
    Plain,
    /// Nothing.
    Silent,
}

/// The running jobs of a run, and the time.
pub struct Progress {
    out: Out,
    now: Duration,
    last_line: Duration,
    pace: Pace,
    running: Vec<Running>,
    /// Lines about jobs, by case.
    lines: BTreeMap<String, u32>,
    /// Of the line of a judged case.
    most_letters: usize,
    stops: bool,
}

enum Out {
    Silent,
    Lines(Box<dyn Write + Send>),
    Bars { all: MultiProgress, head: ProgressBar, jobs: Vec<ProgressBar> },
}

struct Running {
    case: String,
    job: String,
    nodes: Vec<String>,
    expected_s: u64,
    since: Duration,
    /// Why nothing of it runs yet, though it has its nodes.
    starting: Option<String>,
}

impl Progress {
    /// Shows progress on stderr.
    pub(crate) fn new(mode: Mode) -> Progress {
        match mode {
            Mode::Auto { is_terminal: true } => {
                let all = MultiProgress::with_draw_target(ProgressDrawTarget::stderr());
                let head = add_bar(&all);
                Progress::with_output(Out::Bars { all, head, jobs: vec![] })
            }
            Mode::Auto { is_terminal: false } | Mode::Plain => {
                Progress::with_output(Out::Lines(Box::new(stderr())))
            }
            Mode::Silent => Progress::with_output(Out::Silent),
        }
    }

    fn with_output(out: Out) -> Progress {
        Progress {
            out,
            now: Duration::ZERO,
            last_line: Duration::ZERO,
            pace: Pace::default(),
            running: Vec::new(),
            lines: BTreeMap::new(),
            most_letters: judged_case::MOST_LETTERS,
            stops: false,
        }
    }

    /// Whole lines of judged cases, however long, where that is wanted.
    pub(crate) fn whole_lines(self, wanted: bool) -> Progress {
        let most_letters = if wanted { usize::MAX } else { self.most_letters };
        Progress { most_letters, ..self }
    }

    /// What is to be done, before anything is.
    pub(crate) fn begin(&mut self, plan: &Plan) {
        self.pace = Pace::new(plan);
        self.draw();
    }

    /// The run launches nothing more. Cases of which nothing ran have no line from here on: its end counts them.
    pub(crate) fn stopping(&mut self, why: &str) {
        self.stops = true;
        self.note(&format!("stopping: {why}"));
    }

    /// Something of the run as a whole.
    pub(crate) fn note(&mut self, what: &str) {
        let what = show(what);
        self.line(&what);
        self.draw();
    }

    /// A job was launched; the plan estimates that it takes `expected_s` seconds.
    pub(crate) fn job_started(&mut self, case: &str, job: &str, nodes: &[String], expected_s: u64) {
        self.running.push(Running {
            case: case.to_owned(),
            job: job.to_owned(),
            nodes: nodes.to_vec(),
            expected_s,
            since: self.now,
            starting: None,
        });
        self.draw();
    }

    /// The job has its nodes, and nothing of it runs yet.
    pub(crate) fn job_starting(&mut self, case: &str, job: &str, reason: &str) {
        let found = self.running.iter_mut().find(|running| running.case == case && running.job == job);
        if let Some(running) = found {
            running.starting = Some(reason.to_owned());
        }
        self.job_line(case, &format!("{case} {job}: {reason}"));
        self.draw();
    }

    /// The job's script has begun: from here on its time counts.
    pub(crate) fn job_began(&mut self, case: &str, job: &str) {
        let found = self.running.iter_mut().find(|running| running.case == case && running.job == job);
        if let Some(running) = found.filter(|running| running.starting.is_some()) {
            (running.starting, running.since) = (None, self.now);
        }
    }

    /// A job is over; one that ended badly has a line.
    pub(crate) fn job_ended(&mut self, case: &str, job: &str, how: &Ended) {
        let at = self.running.iter().position(|running| running.case == case && running.job == job);
        let mut after = String::new();
        if let Some(running) = at.map(|at| self.running.remove(at)) {
            let took = self.now.saturating_sub(running.since).as_secs_f64();
            self.pace.job_ended(case, running.nodes.len(), running.expected_s as f64, took);
            after = format!(" after {}", duration(took));
        }
        // After the stop what is cut short ends badly, and the line of its case is enough.
        if *how != (Ended::Exited { code: 0 }) && !self.stops {
            self.job_line(case, &format!("{case} {job}: ended{after}: {}", how.cause()));
        }
        self.draw();
    }

    /// A case is judged by its own numbers; the run as a whole is judged at its end.
    pub(crate) fn case_judged(&mut self, case: &CaseVerdict) {
        self.pace.case_over(&case.case, case.end == CaseEnd::Fail);
        let head = format!("{} {}", self.pace.counter(), clock(self.now.as_secs_f64()));
        let is_unrun = |verdict: &Verdict| verdict.cause.as_deref() == Some(NOT_RUN);
        if !self.stops || case.verdicts.is_empty() || !case.verdicts.iter().all(is_unrun) {
            for line in judged_case::lines(case, self.most_letters) {
                self.line(&format!("{head}  {line}"));
            }
        }
        self.draw();
    }

    /// The time since the run began. Called at least every few seconds, for it is what moves bars and heartbeat.
    pub(crate) fn tick(&mut self, now: Duration) {
        self.now = now;
        if matches!(self.out, Out::Lines(_)) && now.saturating_sub(self.last_line) >= HEARTBEAT {
            let line = self.heartbeat();
            self.line(&line);
        }
        self.draw();
    }

    /// Takes the bars away, so that results begin on an empty line.
    pub(crate) fn done(&mut self) {
        if let Out::Bars { all, head, jobs } = &mut self.out {
            jobs.drain(..).for_each(|bar| bar.finish_and_clear());
            head.finish_and_clear();
            // A terminal that is gone is no reason to end differently.
            let _ = all.clear();
        }
        self.out = Out::Silent;
    }

    /// The state of the run in one line.
    pub(crate) fn now(&self) -> String {
        self.heartbeat()
    }

    fn heartbeat(&self) -> String {
        let oldest = self.running.iter().min_by_key(|running| running.since);
        let oldest = oldest.map(|oldest| format!("; longest: {}", self.describe(oldest))).unwrap_or_default();
        format!("{}{oldest}", self.head())
    }

    /// The most important first: a narrow terminal cuts the end.
    fn head(&self) -> String {
        let running = match self.running.len() {
            0 => String::new(),
            n => format!(", {} running", count(n, "job")),
        };
        format!("{}{running}", self.pace.head(self.now.as_secs_f64()))
    }

    /// The time first: a narrow terminal cuts the end.
    fn describe(&self, running: &Running) -> String {
        let Running { case, job, nodes, expected_s, since, starting } = running;
        let elapsed = duration(self.now.saturating_sub(*since).as_secs_f64());
        // Most jobs are named by their nodes.
        let is_said = nodes.iter().all(|node| job.contains(node.as_str()));
        let who = if is_said { job.clone() } else { format!("{job} on {}", nodeset::fold(nodes)) };
        let who = show(&format!("{case} {who}"));
        match starting {
            Some(reason) => format!("{} for {elapsed}: {who}", show(reason)),
            None => format!("{elapsed}, expected {}: {who}", duration(*expected_s as f64)),
        }
    }

    /// A few of a case: its own line comes when it is judged.
    fn job_line(&mut self, case: &str, line: &str) {
        let shown = self.lines.entry(case.to_owned()).or_default();
        *shown += 1;
        match *shown {
            n if n <= MOST_LINES => self.line(&show(line)),
            n if n == MOST_LINES + 1 => self.line(&format!("{}: more of its jobs ended badly", show(case))),
            _ => {}
        }
    }

    fn line(&mut self, line: &str) {
        match &mut self.out {
            Out::Lines(out) => {
                // A closed stderr is no error of the run.
                let _ = writeln!(out, "{line}");
                self.last_line = self.now;
            }
            Out::Bars { all, .. } => {
                let _ = all.println(narrow::fit(line, stderr()));
            }
            Out::Silent => {}
        }
    }

    /// The oldest jobs have a bar each: what hangs is among them.
    fn draw(&mut self) {
        if !matches!(self.out, Out::Bars { .. }) {
            return;
        }
        let head_line = self.head();
        let lines: Vec<(String, u64, u64)> = self
            .running
            .iter()
            .take(MOST_BARS)
            .map(|job| {
                let elapsed = self.now.saturating_sub(job.since).as_secs();
                (self.describe(job), elapsed, job.expected_s)
            })
            .collect();
        let Out::Bars { all, head, jobs } = &mut self.out else { return };
        head.set_message(head_line);
        while jobs.len() < lines.len() {
            jobs.push(add_job_bar(all));
        }
        for bar in jobs.drain(lines.len()..) {
            bar.finish_and_clear();
            all.remove(&bar);
        }
        for (bar, (message, elapsed, expected)) in jobs.iter().zip(lines) {
            bar.set_length(expected.max(1));
            bar.set_position(elapsed.min(expected.max(1)));
            bar.set_message(message);
        }
    }
}

fn add_bar(all: &MultiProgress) -> ProgressBar {
    let bar = all.add(ProgressBar::new_spinner());
    bar.set_style(style("{wide_msg}"));
    bar
}

fn add_job_bar(all: &MultiProgress) -> ProgressBar {
    let bar = all.add(ProgressBar::new(1));
    bar.set_style(style("[{bar:20}] {wide_msg}").progress_chars("=> "));
    bar
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixture;
    use model::artefact::Status;
    use std::sync::{Arc, Mutex};

    #[derive(Clone, Default)]
    struct Paper(Arc<Mutex<Vec<u8>>>);

    impl Write for Paper {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn lines_of(drive: impl FnOnce(&mut Progress)) -> String {
        let paper = Paper::default();
        let mut progress = Progress::with_output(Out::Lines(Box::new(paper.clone())));
        drive(&mut progress);
        progress.done();
        String::from_utf8(paper.0.lock().unwrap().clone()).unwrap()
    }

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn plain_lines_show_verdicts_bad_jobs_and_a_heartbeat_between_them() {
        let text = lines_of(|progress| {
            progress.begin(&fixture::plan());
            let nodes = ["p5-001", "p5-002"].map(String::from);
            progress.job_started("nics", "p5-001-p5-002", &nodes, 90);
            for second in 1..=100 {
                progress.tick(at(second));
            }
            progress.job_ended("nics", "p5-001-p5-002", &Ended::TimeLimit { limit_s: 100 });
            progress.case_judged(&fixture::red().cases[0]);
            progress.stopping("enough\x1b[2J");
        });
        insta::assert_snapshot!(text, @r#"
        [0/2] 0:30, 0.0 node-hours, about 90 s left, 1 job running; longest: 30 s, expected 90 s: nics p5-001-p5-002
        [0/2] 1:00, 0.0 node-hours, about 90 s left, 1 job running; longest: 60 s, expected 90 s: nics p5-001-p5-002
        [0/2] 1:30, 0.0 node-hours, about 90 s left, 1 job running; longest: 90 s, expected 90 s: nics p5-001-p5-002
        nics p5-001-p5-002: ended after 100 s: hang
        [2/2] 1:40  FAIL nics p5-003 rdmap113s0 4.10 GB/s (limit 11.00 GB/s)
        stopping: enough\x1b[2J
        "#);
    }

    #[test]
    fn after_the_stop_neither_jobs_nor_cases_of_which_nothing_ran_have_a_line() {
        let mut unrun = fixture::case("nics");
        unrun.verdicts = vec![fixture::verdict("nics", "rate", "p5-001", "x", Status::Error); 2];
        unrun.verdicts.iter_mut().for_each(|verdict| verdict.cause = Some(NOT_RUN.into()));
        let mut part = unrun.clone();
        part.verdicts[0].cause = Some("hang".into());
        let text = lines_of(|progress| {
            progress.begin(&fixture::plan());
            progress.case_judged(&unrun);
            progress.stopping("enough");
            progress.job_ended("nics", "p5-001", &Ended::Interrupted { why: "enough".into() });
            progress.case_judged(&unrun);
            progress.case_judged(&part);
        });
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3, "{text}");
        assert!(lines[0].ends_with("ERR  nics p5-001 x not-run, 1 more"), "{text}");
        assert!(lines[1] == "stopping: enough" && lines[2].ends_with("hang, 1 more"), "{text}");
    }

    #[test]
    fn the_first_of_many_jobs_that_end_badly_are_shown() {
        let text = lines_of(|progress| {
            for n in 0..500 {
                progress.job_started("each", &format!("job-{n}"), &[format!("p5-{n:03}")], 10);
            }
            for n in 0..500 {
                let code = i32::from(n >= 77);
                progress.job_ended("each", &format!("job-{n}"), &Ended::Exited { code });
            }
        });
        insta::assert_snapshot!(text, @r#"
        each job-77: ended after 0 s: exit 1
        each job-78: ended after 0 s: exit 1
        each job-79: ended after 0 s: exit 1
        each job-80: ended after 0 s: exit 1
        each: more of its jobs ended badly
        "#);
    }

    #[test]
    fn bars_follow_the_jobs_and_silence_is_silence() {
        let all = MultiProgress::with_draw_target(ProgressDrawTarget::hidden());
        let head = add_bar(&all);
        let mut progress = Progress::with_output(Out::Bars { all, head, jobs: vec![] });
        progress.begin(&fixture::plan());
        for n in 0..20 {
            progress.job_started("each", &format!("job-{n}"), &["p5-001".to_owned()], 10);
        }
        progress.tick(at(5));
        let Out::Bars { head, jobs, .. } = &progress.out else { panic!("bars were made") };
        assert_eq!(head.message(), "[0/2] 0:05, 0.0 node-hours, about 90 s left, 20 jobs running");
        assert_eq!(jobs.len(), MOST_BARS);
        assert_eq!(jobs[0].message(), "5 s, expected 10 s: each job-0 on p5-001");
        assert_eq!((jobs[0].position(), jobs[0].length()), (5, Some(10)));
        for n in 0..18 {
            progress.job_ended("each", &format!("job-{n}"), &Ended::Exited { code: 0 });
        }
        let Out::Bars { jobs, .. } = &progress.out else { panic!("bars were made") };
        assert_eq!(jobs.len(), 2);
        progress.done();
        let mut silent = Progress::new(Mode::Silent);
        silent.note("run");
        silent.tick(at(500));
        assert!(matches!(silent.out, Out::Silent));
    }
}
