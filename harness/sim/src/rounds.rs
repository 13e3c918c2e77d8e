//! The order in which a program of nccl-tests makes its calls, and when: warm-up of all sizes first, then for each size
//! and placement one call by which the ranks meet, those that are timed, and one whose result is checked. How long one
//! call takes is decided in `work`; what bytes cross, and which kernels run, in `timeline` and `nsys`.

use super::work::Table;

/// Calls one behind the other, after which all ranks wait until they are done.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Round {
    pub kind: RoundKind,
    pub in_place: bool,
    pub bytes: u64,
    /// Elements, as the program counts them for its operation.
    pub count: u64,
    /// Each one kernel, or one for each step of its operation.
    pub iterations: u32,
    /// Operations of one iteration, in one group.
    pub aggregated: u32,
    /// Of one iteration.
    pub us: f64,
    /// Seconds from the program's first call.
    pub from_s: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RoundKind {
    WarmUp,
    Meet,
    Timed,
    Checked,
}

impl Round {
    pub(crate) fn operations(&self) -> u32 {
        self.iterations * self.aggregated
    }

    pub(crate) fn seconds(&self) -> f64 {
        f64::from(self.iterations) * self.us * 1e-6
    }
}

/// Between two rows: lines are printed.
const ROW_S: f64 = 0.02;
/// From the end of a round to what comes next: the host notices.
const NOTICE_S: f64 = 0.000_1;
/// From the meeting of the ranks to the first call that is timed: long enough to record a graph of all calls.
pub(crate) const BARRIER_S: f64 = 0.001;

/// One kernel that fills a buffer or checks it: it reads the buffer once at the pace of a GPU's own memory.
pub(crate) fn fill_us(bytes: u64) -> f64 {
    3.0 + bytes as f64 / 1.5e6
}

/// What passes before a round whose buffers are refilled, or after one whose result is checked: two kernels, or one.
pub(crate) fn filling_s(bytes: u64) -> f64 {
    2.0 * (fill_us(bytes) + 10.0) * 1e-6 + NOTICE_S
}

impl Table {
    /// All calls of the program, in their order.
    pub(crate) fn rounds(&self) -> Vec<Round> {
        self.passage().0
    }

    /// Each row's end, in seconds from the program's first call.
    pub fn ends(&self) -> Vec<f64> {
        self.passage().1
    }

    /// From the program's first call to the end of its last row.
    pub(crate) fn seconds(&self) -> f64 {
        self.ends().last().copied().unwrap_or_default()
    }

    fn passage(&self) -> (Vec<Round>, Vec<f64>) {
        let options = &self.options;
        let mut now = 0.0;
        let mut rounds = Vec::new();
        let mut push = |now: &mut f64, round: Round| {
            rounds.push(Round { from_s: *now, ..round });
            *now += round.seconds() + NOTICE_S;
        };
        for warm in &self.warmup {
            let iterations = options.warmup;
            let (bytes, count, us) = (warm.bytes, warm.count, warm.us);
            let kind = RoundKind::WarmUp;
            let in_place = !options.placements().0;
            let round = Round { kind, in_place, bytes, count, iterations, aggregated: 1, us, from_s: 0.0 };
            push(&mut now, round);
        }
        let mut ends = Vec::with_capacity(self.rows.len());
        let filling = |bytes| if options.check { filling_s(bytes) } else { 0.0 };
        for row in &self.rows {
            let (is_out, is_in) = options.placements();
            let out = is_out.then_some((false, row.out_us));
            for (in_place, us) in out.into_iter().chain(is_in.then_some((true, row.in_us))) {
                let (bytes, count) = (row.bytes, row.count);
                let once = |kind| Round {
                    kind,
                    in_place,
                    bytes,
                    count,
                    iterations: 1,
                    aggregated: 1,
                    us,
                    from_s: 0.0,
                };
                now += filling(bytes);
                push(&mut now, once(RoundKind::Meet));
                now += BARRIER_S;
                let timed = Round {
                    iterations: options.iterations * options.graph_launches.max(1),
                    aggregated: options.aggregated,
                    us: us * f64::from(options.aggregated),
                    ..once(RoundKind::Timed)
                };
                push(&mut now, timed);
                if options.check {
                    now += filling(bytes);
                    push(&mut now, once(RoundKind::Checked));
                    now += filling(bytes);
                }
            }
            now += ROW_S;
            ends.push(now);
        }
        (rounds, ends)
    }
}
