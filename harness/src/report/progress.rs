//! The progress of a run on stderr: bars at a terminal, plain lines elsewhere.
//! It has no clock: the caller passes the time, which is simulated in a simulated run.

use base::nodeset;
use base::text::{count, duration, show};
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use model::artefact::Ended;
use std::collections::BTreeMap;
use std::io::{Write, stderr};
use std::time::Duration;

/// How often a silent run prints a line: CI servers kill jobs without output.
const HEARTBEAT: Duration = Duration::from_secs(30);
/// Jobs of one case with a line each in plain output; jobs that end badly always have one.
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
    stage: String,
    running: Vec<Running>,
    started: BTreeMap<String, u32>,
    ended: usize,
}

enum Out {
    Silent,
    Lines(Box<dyn Write + Send>),
    Bars { all: MultiProgress, head: ProgressBar, jobs: Vec<ProgressBar> },
}

struct Running {
    case: String,
    job: String,
    nodes: String,
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
            stage: String::new(),
            running: Vec::new(),
            started: BTreeMap::new(),
            ended: 0,
        }
    }

    /// A stage begins, or an event of the run is reported.
    pub(crate) fn stage(&mut self, stage: &str) {
        self.stage = show(stage);
        self.line(&format!("stage: {}", show(stage)));
        self.draw();
    }

    /// A job was launched; the plan estimates that it takes `expected_s` seconds.
    pub(crate) fn job_started(&mut self, case: &str, job: &str, nodes: &[String], expected_s: u64) {
        let nodes = show(&nodeset::fold(nodes));
        let started = self.started.entry(case.to_owned()).or_default();
        *started += 1;
        let (case, job) = (show(case), show(job));
        let message = match *started {
            n if n <= MOST_LINES => {
                let expected = duration(expected_s as f64);
                Some(format!("{case} {job}: started on {nodes}, expected to take: {expected}"))
            }
            n if n == MOST_LINES + 1 => {
                Some(format!("{case}: further jobs are shown only if they end badly"))
            }
            _ => None,
        };
        self.running.push(Running { case, job, nodes, expected_s, since: self.now, starting: None });
        if let Some(message) = message {
            self.line(&message);
        }
        self.draw();
    }

    /// The job has its nodes, and nothing of it runs yet.
    pub(crate) fn job_starting(&mut self, case: &str, job: &str, reason: &str) {
        let is_shown = self.started.get(case).is_none_or(|started| *started <= MOST_LINES);
        let (case, job, reason) = (show(case), show(job), show(reason));
        let found = self.running.iter_mut().find(|running| running.case == case && running.job == job);
        if let Some(running) = found {
            running.starting = Some(reason.clone());
        }
        if is_shown {
            self.line(&format!("{case} {job}: {reason}"));
        }
        self.draw();
    }

    /// The job's script has begun: from here on its time counts.
    pub(crate) fn job_began(&mut self, case: &str, job: &str) {
        let (case, job) = (show(case), show(job));
        let found = self.running.iter_mut().find(|running| running.case == case && running.job == job);
        if let Some(running) = found.filter(|running| running.starting.is_some()) {
            (running.starting, running.since) = (None, self.now);
        }
    }

    /// A job is over; one that ended badly always has a line.
    pub(crate) fn job_ended(&mut self, case: &str, job: &str, how: &Ended) {
        let is_shown = self.started.get(case).is_none_or(|started| *started <= MOST_LINES);
        let (case, job) = (show(case), show(job));
        let at = self.running.iter().position(|running| running.case == case && running.job == job);
        let took =
            at.map(|at| duration((self.now.saturating_sub(self.running.remove(at).since)).as_secs_f64()));
        self.ended += 1;
        let is_well = *how == Ended::Exited { code: 0 };
        if is_shown || !is_well {
            let after = took.map(|took| format!(" after {took}")).unwrap_or_default();
            self.line(&format!("{case} {job}: ended{after}: {}", show(&how.cause())));
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

    fn heartbeat(&self) -> String {
        let elapsed = duration(self.now.as_secs_f64());
        let counts = format!("{} running, {} ended", count(self.running.len(), "job"), self.ended);
        let oldest = self.running.iter().min_by_key(|running| running.since);
        let oldest = oldest.map(|oldest| format!("; longest: {}", self.describe(oldest))).unwrap_or_default();
        format!("{elapsed} in stage {}: {counts}{oldest}", self.stage)
    }

    fn describe(&self, running: &Running) -> String {
        let Running { case, job, nodes, expected_s, since, starting } = running;
        let elapsed = duration(self.now.saturating_sub(*since).as_secs_f64());
        if let Some(reason) = starting {
            return format!("{case} {job} on {nodes}: {reason} for {elapsed}");
        }
        format!("{case} {job} on {nodes}: {elapsed} of {}", duration(*expected_s as f64))
    }

    fn line(&mut self, line: &str) {
        if let Out::Lines(out) = &mut self.out {
            // A closed stderr is no error of the run.
            let _ = writeln!(out, "{line}");
            self.last_line = self.now;
        }
    }

    /// The oldest jobs have a bar each: what hangs is among them.
    fn draw(&mut self) {
        let more = self.running.len().saturating_sub(MOST_BARS);
        let more = if more > 0 { format!(", {more} more") } else { String::new() };
        let head_line = format!(
            "{}: {}, {} running{more}, {} ended",
            self.stage,
            duration(self.now.as_secs_f64()),
            self.running.len(),
            self.ended
        );
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
    fn plain_lines_show_changes_and_a_heartbeat_between_them() {
        let text = lines_of(|progress| {
            progress.stage("run");
            let nodes = ["p5-001", "p5-002"].map(String::from);
            progress.job_started("nics", "p5-001-p5-002", &nodes, 90);
            for second in 1..=100 {
                progress.tick(at(second));
            }
            progress.job_ended("nics", "p5-001-p5-002", &Ended::TimeLimit { limit_s: 100 });
            progress.stage("collect\x1b[2J");
        });
        insta::assert_snapshot!(text, @r#"
        stage: run
        nics p5-001-p5-002: started on p5-[001-002], expected to take: 90 s
        30 s in stage run: 1 job running, 0 ended; longest: nics p5-001-p5-002 on p5-[001-002]: 30 s of 90 s
        60 s in stage run: 1 job running, 0 ended; longest: nics p5-001-p5-002 on p5-[001-002]: 60 s of 90 s
        90 s in stage run: 1 job running, 0 ended; longest: nics p5-001-p5-002 on p5-[001-002]: 90 s of 90 s
        nics p5-001-p5-002: ended after 100 s: hang
        stage: collect\x1b[2J
        "#);
    }

    #[test]
    fn only_the_first_and_the_failed_of_many_jobs_are_shown() {
        let text = lines_of(|progress| {
            for n in 0..500 {
                progress.job_started("each", &format!("job-{n}"), &[format!("p5-{n:03}")], 10);
            }
            for n in 0..500 {
                let code = i32::from(n == 77);
                progress.job_ended("each", &format!("job-{n}"), &Ended::Exited { code });
            }
        });
        insta::assert_snapshot!(text, @r#"
        each job-0: started on p5-000, expected to take: 10 s
        each job-1: started on p5-001, expected to take: 10 s
        each job-2: started on p5-002, expected to take: 10 s
        each job-3: started on p5-003, expected to take: 10 s
        each: further jobs are shown only if they end badly
        each job-77: ended after 0 s: exit 1
        "#);
    }

    #[test]
    fn bars_follow_the_jobs_and_silence_is_silence() {
        let all = MultiProgress::with_draw_target(ProgressDrawTarget::hidden());
        let head = add_bar(&all);
        let mut progress = Progress::with_output(Out::Bars { all, head, jobs: vec![] });
        progress.stage("run");
        for n in 0..20 {
            progress.job_started("each", &format!("job-{n}"), &["p5-001".to_owned()], 10);
        }
        progress.tick(at(5));
        let Out::Bars { head, jobs, .. } = &progress.out else { panic!("bars were made") };
        assert_eq!(head.message(), "run: 5 s, 20 running, 12 more, 0 ended");
        assert_eq!(jobs.len(), MOST_BARS);
        assert_eq!(jobs[0].message(), "each job-0 on p5-001: 5 s of 10 s");
        assert_eq!((jobs[0].position(), jobs[0].length()), (5, Some(10)));
        for n in 0..18 {
            progress.job_ended("each", &format!("job-{n}"), &Ended::Exited { code: 0 });
        }
        let Out::Bars { jobs, .. } = &progress.out else { panic!("bars were made") };
        assert_eq!(jobs.len(), 2);
        progress.done();
        let mut silent = Progress::new(Mode::Silent);
        silent.stage("run");
        silent.tick(at(500));
        assert!(matches!(silent.out, Out::Silent));
    }
}
