//! Steps of runs with known truth: jitter, warm-up, missing steps, nested ranges, logs every so many steps, and noise
//! without a period.

use super::*;

/// A generator of numbers that look drawn, the same everywhere.
struct Drawn(u64);

impl Drawn {
    fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % most
    }
}

const LABELS: [&str; 8] = ["embed", "gemm", "attention", "norm", "loss", "adam", "log", "warm"];

fn labels() -> Vec<String> {
    LABELS.iter().map(|label| (*label).to_owned()).collect()
}

/// What one step runs: an embedding, 12 layers forth and back, a loss, an optimizer.
fn step_kernels() -> Vec<u32> {
    let mut names = vec![0];
    for _ in 0..12 {
        names.extend([3, 1, 1, 2, 1, 3, 1, 1]);
    }
    names.push(4);
    for _ in 0..12 {
        names.extend([1, 1, 2, 3, 1, 1]);
    }
    names.extend([5, 5, 5]);
    names
}

struct Stream {
    ran: Vec<Ran>,
    now: i64,
    drawn: Drawn,
}

impl Stream {
    fn new(seed: u64) -> Stream {
        Stream { ran: Vec::new(), now: 1_000_000, drawn: Drawn(seed * 2 + 1) }
    }

    fn run(&mut self, name: u32) {
        let ns = if name == 5 { 60_000 } else { 20_000 } + self.drawn.below(4000) as i64;
        self.ran.push(Ran { name, start: self.now, end: self.now + ns });
        self.now += ns + 500 + self.drawn.below(300) as i64;
    }

    fn step(&mut self) -> i64 {
        let begun = self.now;
        for name in step_kernels() {
            self.run(name);
        }
        self.now += 400_000 + self.drawn.below(50_000) as i64;
        begun
    }
}

fn starts(found: &Found) -> Vec<i64> {
    found.steps.iter().map(|step| step.start).collect()
}

#[test]
fn steps_of_kernels_begin_where_they_began_whatever_the_jitter() {
    for seed in 0..40 {
        let mut stream = Stream::new(seed);
        let truth: Vec<i64> = (0..6 + seed % 9).map(|_| stream.step()).collect();
        let found = find_by_kernels(&stream.ran, &labels()).expect("steps");
        assert_eq!(starts(&found), truth, "seed {seed}");
        assert_eq!((found.by.as_str(), found.confidence), ("embed", 1.0));
        let ends: Vec<i64> = found.steps.iter().filter(|step| step.has_end).map(|step| step.end).collect();
        assert_eq!(ends, truth[1..], "of the last one only its kernels are known");
        assert!(found.notes.is_empty(), "{:?}", found.notes);
    }
}

#[test]
fn what_repeats_without_a_pause_may_be_layers_and_has_half_the_confidence() {
    let mut stream = Stream::new(11);
    for _ in 0..15 {
        step_kernels().into_iter().for_each(|name| stream.run(name));
    }
    let found = find_by_kernels(&stream.ran, &labels()).expect("a period");
    assert_eq!(found.confidence, 0.5);
    assert!(found.notes.iter().any(|note| note.starts_with("no pause marks")), "{:?}", found.notes);
}

#[test]
fn a_capture_that_begins_within_a_step_leaves_its_rest_out() {
    let mut stream = Stream::new(3);
    let truth: Vec<i64> = (0..8).map(|_| stream.step()).collect();
    let cut = stream.ran.split_off(70);
    let found = find_by_kernels(&cut[..cut.len() - 20], &labels()).expect("steps");
    assert_eq!(starts(&found), truth[1..7], "the first lacks its beginning, the last its end");
    let rest = step_kernels().len();
    assert_eq!(
        found.notes,
        [format!("kernels before the first or after the last complete step: {}", 2 * rest - 90)]
    );
}

#[test]
fn what_runs_only_every_so_many_steps_makes_these_not_one() {
    let mut stream = Stream::new(4);
    let mut truth = Vec::new();
    for step in 0..50 {
        truth.push(stream.step());
        if step % 10 == 4 {
            stream.run(6);
        }
    }
    let found = find_by_kernels(&stream.ran, &labels()).expect("steps");
    assert_eq!(starts(&found), truth);
    assert!(found.confidence > 0.98, "{}", found.confidence);
}

#[test]
fn a_warm_up_that_runs_other_kernels_too_is_shown_and_counts_for_nothing() {
    let mut stream = Stream::new(5);
    let mut truth = vec![stream.now];
    for _ in 0..400 {
        stream.run(7);
    }
    truth.extend((0..10).map(|_| stream.step()));
    let found = find_by_kernels(&stream.ran, &labels()).expect("steps");
    assert_eq!(starts(&found), truth[1..]);
    // Within a step: its time is none of a step.
    let mut stream = Stream::new(6);
    for step in 0..12 {
        stream.step();
        if step == 4 {
            (0..500).for_each(|_| stream.run(7));
        }
    }
    let found = find_by_kernels(&stream.ran, &labels()).expect("steps");
    let odd: Vec<usize> = (0..12).filter(|at| !found.steps[*at].is_whole()).collect();
    assert_eq!(odd, [4]);
    let figures = figures(&found.steps.iter().collect::<Vec<_>>()).expect("figures");
    assert_eq!(figures.stats.count, 10, "of 12 steps one is odd and the last has no end");
    assert!(figures.cv.is_some_and(|cv| cv < 0.02), "{figures:?}");
}

#[test]
fn noise_has_no_steps() {
    for seed in 1..200u64 {
        let mut drawn = Drawn(seed * 7919);
        let names = 2 + drawn.below(40) as u32;
        let mut now = 0;
        let ran: Vec<Ran> = (0..40 + drawn.below(3000))
            .map(|_| {
                // Some names come often and some seldom.
                let name = drawn.below(u64::from(names)).min(drawn.below(u64::from(names))) as u32;
                let start = now;
                now += 10_000 + drawn.below(90_000) as i64;
                Ran { name, start, end: now - 500 }
            })
            .collect();
        let labels: Vec<String> = (0..names).map(|name| format!("k{name}")).collect();
        let found = find_by_kernels(&ran, &labels);
        assert!(found.is_err(), "seed {seed}: {found:?}");
    }
}

#[test]
fn layers_without_steps_around_them_in_random_number_are_no_steps() {
    // As a server runs requests of random lengths: all of it repeats, and nothing has a period.
    for seed in 1..100u64 {
        let mut drawn = Drawn(seed * 104_729);
        let (mut ran, mut now) = (Vec::new(), 0);
        for _ in 0..12 {
            ran.push(0);
            for _ in 0..5 + drawn.below(200) {
                ran.extend([1, 2, 3, 1]);
            }
            ran.push(4);
        }
        let ran: Vec<Ran> = ran
            .into_iter()
            .map(|name| {
                now += 10_000;
                Ran { name, start: now, end: now + 9000 }
            })
            .collect();
        if let Ok(found) = find_by_kernels(&ran, &labels()) {
            assert!(found.steps.len() > 100, "seed {seed}: what repeats is a layer: {}", found.steps.len());
        }
    }
}

#[test]
fn kernels_of_one_name_are_steps_where_they_come_evenly() {
    let even: Vec<Ran> =
        (0..20).map(|at| Ran { name: 0, start: at * 1000 + at % 3, end: at * 1000 + 900 }).collect();
    let found = find_by_kernels(&even, &labels()).expect("steps");
    assert_eq!((found.steps.len(), found.steps[19].has_end), (20, false));
    let mut drawn = Drawn(77);
    let mut now = 0;
    let uneven: Vec<Ran> = (0..50)
        .map(|_| {
            now += 1000 * (1 << drawn.below(10)) as i64;
            Ran { name: 0, start: now, end: now + 500 }
        })
        .collect();
    assert!(find_by_kernels(&uneven, &labels()).is_err());
    assert!(find_by_kernels(&even[..5], &labels()).expect_err("few").contains("too few kernels"));
}

#[test]
fn kernels_of_other_names_before_and_behind_a_long_loop_of_one_are_no_steps() {
    let mut ran: Vec<Ran> =
        (1..=500).map(|at| Ran { name: 1, start: at * 1000, end: at * 1000 + 900 }).collect();
    ran.insert(0, Ran { name: 0, start: 0, end: 500 });
    let found = find_by_kernels(&ran, &labels()).expect("steps");
    assert_eq!((found.by.as_str(), found.steps.len(), found.steps[0].start), ("gemm", 500, 1000));
    assert_eq!(found.notes, ["kernels of other names, in no step: 1"]);
}

fn span(name: &str, start: i64, ns: i64) -> Span<'_> {
    Span { thread: 7, domain: "", name, start, end: start + ns }
}

fn numbers(found: &Found) -> Vec<Option<u64>> {
    found.steps.iter().map(|step| step.number).collect()
}

#[test]
fn ranges_that_are_called_steps_are_found_among_their_parts_and_others() {
    let names: Vec<String> = (70..=75).map(|number| format!("iteration {number}")).collect();
    let mut spans = Vec::new();
    for (at, name) in names.iter().enumerate() {
        let start = at as i64 * 1000 + (at as i64 % 2) * 7;
        spans.push(span(name, start, 950));
        spans.push(span("forward", start + 10, 300));
        spans.push(span("backward", start + 320, 500));
        spans.push(span("optimizer_step", start + 830, 100));
        (0..3).for_each(|part| spans.push(span("microbatch 1", start + 20 + part * 90, 80)));
        spans.push(Span { domain: "NCCL", ..span("ncclAllReduce", start + 400, 400) });
    }
    spans.push(span("whole run", 0, 6000));
    let found = repeated(&spans).expect("steps");
    assert_eq!((found.by.as_str(), found.source), (":iteration #", Source::Ranges));
    assert_eq!(numbers(&found), [70, 71, 72, 73, 74, 75].map(Some));
    assert!(found.confidence > 0.9 && found.notes.is_empty(), "{found:?}");
    assert!(window(70, 75, &found.steps).is_as_asked());
}

#[test]
fn a_missing_number_is_noted_and_a_range_in_one_of_its_own_name_is_no_step() {
    let names: Vec<String> = [1, 2, 3, 5, 6, 9].map(|number| format!("step_{number}")).to_vec();
    let mut spans: Vec<Span> =
        names.iter().enumerate().map(|(at, name)| span(name, at as i64 * 1000, 900)).collect();
    spans.push(span("step_3", 2100, 50));
    let found = repeated(&spans).expect("steps");
    assert_eq!(found.steps.len(), 6);
    assert_eq!(
        found.notes,
        ["ranges within a range of the same name, left out: 1", "missing step numbers: 4, 7 to 8"]
    );
}

#[test]
fn threads_that_a_window_cuts_do_not_count_where_another_marks_the_same_steps() {
    let names: Vec<String> = (70..=75).map(|number| format!("step {number}")).collect();
    let of = |thread: i64, uneven: i64, cut: usize| {
        let whole = names.iter().enumerate().skip(cut);
        whole.map(move |(at, name)| {
            let start = at as i64 * 1000 + (at as i64 % 2) * uneven;
            Span { thread, ..span(name, start, 950 - uneven) }
        })
    };
    // The surest lacks its first, which began before the window opened.
    let spans: Vec<Span> = of(7, 0, 1).chain(of(8, 30, 0)).chain(of(9, 20, 0)).chain(of(10, 10, 1)).collect();
    let found = repeated(&spans).expect("steps");
    assert_eq!(numbers(&found), [70, 71, 72, 73, 74, 75].map(Some));
    assert_eq!(found.steps[1].start, 1020, "of those the surest");
    // A thread that does something more often than a window can cut is another matter.
    let often: Vec<String> = (0..20).map(|number| format!("step {number}")).collect();
    let more =
        often.iter().enumerate().map(|(at, name)| Span { thread: 3, ..span(name, at as i64 * 300, 160) });
    let spans: Vec<Span> = of(7, 0, 0).chain(more).collect();
    assert_eq!(repeated(&spans).map(|found| found.steps.len()), Some(6));
}

#[test]
fn a_number_that_counts_calls_makes_no_steps_of_them() {
    let names: Vec<String> = (0..20).map(|at| format!("copy, op_id = {}", 1000 + 554 * at)).collect();
    let spans = |ns: i64| -> Vec<Span<'_>> {
        names.iter().enumerate().map(|(at, name)| span(name, at as i64 * 1000, ns)).collect()
    };
    assert_eq!(repeated(&spans(600)), None);
    let found = repeated(&spans(950)).expect("nearly all of the time");
    assert!(found.notes.is_empty() && found.steps.iter().all(|step| step.number.is_none()));
}

#[test]
fn ranges_that_come_by_chance_are_no_steps() {
    for seed in 1..100u64 {
        let mut drawn = Drawn(seed * 31);
        let names: Vec<String> = (0..5).map(|name| format!("work {}", b'a' as u64 + name)).collect();
        let mut now = 0;
        let spans: Vec<Span> = (0..60)
            .map(|_| {
                now += 100 * (1 << drawn.below(9)) as i64;
                span(&names[drawn.below(5) as usize], now, 1 + drawn.below(90) as i64)
            })
            .collect();
        let found = repeated(&spans);
        assert!(found.is_none(), "seed {seed}: {found:?}");
    }
}

#[test]
fn ranges_are_asked_for_by_name_with_or_without_number_and_domain() {
    let names: Vec<String> = (0..4).map(|number| format!("work {number}")).collect();
    let mut spans: Vec<Span> = names
        .iter()
        .enumerate()
        .map(|(at, name)| span(name, at as i64 * 977 * (at as i64 + 1), 100))
        .collect();
    spans.extend((0..2).map(|at| Span { thread: 9, ..span("work 1", at * 500, 20) }));
    spans.extend((0..3).map(|at| Span { domain: "D", ..span("other", at * 500, 20) }));
    for name in ["work", "work #", "work 3", ":work", ":work #"] {
        let found = asked_for(name, &spans).unwrap_or_else(|| panic!("{name}"));
        assert_eq!((found.steps.len(), found.notes.len()), (4, 1), "{name}: {:?}", found.notes);
    }
    assert_eq!(asked_for("D:other", &spans).map(|found| found.steps.len()), Some(3));
    assert_eq!(asked_for("nothing", &spans), None);
    assert_eq!(asked_for("wor", &spans), None);
}

#[test]
fn messages() {
    let kernels = |names: &[u32], gap: &dyn Fn(i64) -> i64| {
        let ran = names.iter().enumerate().map(|(at, name)| {
            let start = gap(at as i64);
            Ran { name: *name, start, end: start + 10 }
        });
        find_by_kernels(&ran.collect::<Vec<_>>(), &labels()).expect_err("no steps")
    };
    let mut drawn = Drawn(77);
    let noise: Vec<u32> = (0..4000).map(|_| drawn.below(8) as u32).collect();
    let mostly_one: Vec<u32> = (0..100).map(|at| if at % 40 == 7 { 2 } else { 1 }).collect();
    let even = |at: i64| at * 100;
    let messages = [
        kernels(&[1, 2, 1], &even),
        kernels(&noise, &even),
        kernels(&mostly_one, &even),
        kernels(&[1; 200], &|at| at * at * at * 1000),
    ];
    insta::assert_snapshot!(messages.join("\n"));
}
