//! Jobs with known truth, and the verdicts on them.

use super::made::{Draw, Job, Ran};
use super::*;
use rayon::prelude::*;

const MS: i64 = 1_000_000;

fn judged(ran: &Ran) -> Judgement {
    judge(&ran.evidence(&ran.computes()), &Limits::default())
}

/// Who is named: ranks by their numbers, nodes by their names.
fn named(judgement: &Judgement) -> Vec<String> {
    match &judgement.verdict {
        Verdict::Named(culprits) => culprits
            .iter()
            .map(|culprit| match &culprit.who {
                Who::Node { node, .. } => node.clone(),
                Who::Rank { rank, .. } => rank.to_string(),
            })
            .collect(),
        Verdict::NoCulprit(_) => Vec::new(),
        Verdict::Inconclusive(why) => panic!("inconclusive: {why}"),
    }
}

#[track_caller]
fn inconclusive(judgement: &Judgement) -> &str {
    match &judgement.verdict {
        Verdict::Inconclusive(why) => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_straggler_of_a_millisecond_is_named_in_every_seed_and_healthy_jobs_have_no_culprit() {
    named_in_each(0..40);
}

#[test]
#[ignore = "the first 40 of the 100 seeds are always run"]
fn a_straggler_of_a_millisecond_is_named_in_every_seed_and_healthy_jobs_have_no_culprit_full_set() {
    named_in_each(40..100);
}

fn named_in_each(seeds: std::ops::Range<u64>) {
    seeds.into_par_iter().for_each(|seed| {
        let healthy = Job::seeded(seed);
        assert_eq!(named(&judged(&healthy.run())), [] as [&str; 0], "seed {seed}");
        for late in [1, 5, 20] {
            let who = Draw(seed ^ (late as u64) << 32).below(64);
            let judgement = judged(&healthy.clone().late(who, late * MS).run());
            assert_eq!(named(&judgement), [who.to_string()], "seed {seed}, {late} ms");
            let Verdict::Named(culprits) = &judgement.verdict else { unreachable!() };
            let off = (culprits[0].late_ns - late * MS).abs();
            assert!(off < 250_000, "seed {seed}, {late} ms: {}", culprits[0].late_ns);
        }
    });
}

#[test]
fn clocks_are_found_as_they_are_with_their_signs() {
    let ran = Job::seeded(7).run();
    let judgement = judged(&ran);
    let truth = |host: usize| ran.ranks[host * 8].clock;
    for (host, clock) in judgement.clocks.iter().enumerate() {
        let rate = clock.rate_ppm.expect("connected");
        let expected = (truth(host).1 - truth(0).1) as f64 / 1000.0;
        assert!((rate - expected).abs() < 0.05, "{}: {rate} of {expected}", clock.name);
        // In the middle of the minute.
        let middle = 5000 * MS + 31_000 * MS;
        let drifted = (i128::from(middle) * i128::from(truth(host).1 - truth(0).1) / 1_000_000_000) as i64;
        let (ahead, expected) = (clock.ahead_ns.expect("connected"), truth(host).0 - truth(0).0 + drifted);
        assert!((ahead - expected).abs() < 200_000, "{}: {ahead} of {expected}", clock.name);
        assert!(clock.residual_ns.is_some_and(|ns| ns < 20_000), "{clock:?}");
    }
    assert!(judgement.apart.is_empty() && judgement.flaws.is_empty());
}

/// By how much the rate of a clock is off at most, in millionths.
fn rate_off(ran: &Ran) -> f64 {
    let of_host = |host: usize| ran.ranks.iter().find(|own| own.host == host).expect("a rank").clock.1;
    let off = judged(ran).clocks.into_iter().enumerate().map(|(host, clock)| {
        let expected = (of_host(host) - of_host(0)) as f64 / 1000.0;
        (clock.rate_ppm.expect("connected") - expected).abs()
    });
    off.fold(0.0, f64::max)
}

#[test]
fn wild_ends_do_not_move_the_clocks() {
    let clean = judged(&Job::seeded(3).run());
    let mut ran = Job::seeded(3).run();
    let mut draw = Draw(9);
    for own in &mut ran.ranks {
        for work in &mut own.work {
            if draw.below(10) == 0 {
                work.end += 40 * MS;
            }
        }
    }
    let wild = judged(&ran);
    for (a, b) in clean.clocks.iter().zip(&wild.clocks) {
        let (a, b) = (a.rate_ppm.expect("rate"), b.rate_ppm.expect("rate"));
        assert!((a - b).abs() < 0.2, "{a} {b}");
    }
    assert_eq!(named(&wild), [] as [&str; 0]);
    // All that one host records in the last quarter, as much as would make a rate.
    for (hosts, seed) in [(8, 3), (2, 3), (2, 4), (2, 5)] {
        let mut ran = Job { hosts, per_host: 1, across: false, ..Job::seeded(seed) }.run();
        let last = &mut ran.ranks[hosts - 1].work;
        let from = last.len() * 3 / 4;
        last[from..].iter_mut().for_each(|work| work.end += 2 * MS);
        let off = rate_off(&ran);
        assert!(off < 0.5, "{hosts} hosts, seed {seed}: {off}");
    }
    // A quarter of what single ranks record, and by little.
    let mut ran = Job { per_host: 1, across: false, ..Job::seeded(3) }.run();
    for work in ran.ranks.iter_mut().flat_map(|own| &mut own.work) {
        if draw.below(4) == 0 {
            work.end += 2 * MS;
        }
    }
    let off = rate_off(&ran);
    assert!(off < 0.5, "{off}");
}

#[test]
fn who_waits_is_not_blamed_where_its_whole_node_comes_late_for_it() {
    // The node of rank 12 waits for it within the node, and comes to everybody else late.
    let judgement = judged(&Job::seeded(11).late(12, 20 * MS).run());
    assert_eq!(named(&judgement), ["12"]);
    for rank in (8..16).filter(|rank| *rank != 12) {
        let result = &judgement.ranks[rank];
        let rounds = result.rounds.expect("compared");
        assert!(rounds.late_ns.abs() < 200_000, "{rank}: {rounds:?}");
        assert!(result.arrived.expect("arrived").wait_ns > 0);
    }
    let (own, other) =
        (judgement.ranks[12].arrived.expect("own"), judgement.ranks[13].arrived.expect("other"));
    assert!(own.last_in >= 54 && own.wait_total_ns * 5 < other.wait_total_ns, "{own:?} {other:?}");
}

#[test]
fn a_slow_node_is_named_as_one() {
    let mut job = Job::seeded(5);
    job.late = (24..32).map(|rank| (rank, 5 * MS)).collect();
    let judgement = judged(&job.run());
    assert_eq!(named(&judgement), ["node-3"]);
    let node = judgement.nodes.iter().find(|node| node.name == "node-3").expect("there");
    assert!(node.late_ns.is_some_and(|ns| (ns - 5 * MS).abs() < 250_000), "{node:?}");
    // Two of its ranks are two ranks.
    let two = Job::seeded(5).late(24, 5 * MS).late(25, 7 * MS).run();
    assert_eq!(named(&judged(&two)), ["25", "24"]);
}

#[test]
fn all_ranks_late_together_have_no_culprit() {
    let mut job = Job::seeded(6);
    job.late = (0..64).map(|rank| (rank, 20 * MS)).collect();
    assert_eq!(named(&judged(&job.run())), [] as [&str; 0]);
}

#[test]
fn a_slow_gpu_differs_from_a_host_that_comes_late() {
    let cause = |by_kernels: bool| {
        let mut job = Job::seeded(8).late(40, 5 * MS);
        job.by_kernels = by_kernels;
        let judgement = judged(&job.run());
        let Verdict::Named(culprits) = judgement.verdict else { panic!("{:?}", judgement.verdict) };
        (culprits[0].cause, judgement.ranks[40].compute_ratio.expect("kernels"))
    };
    let (slow, ratio) = cause(true);
    assert!(slow == Cause::Kernels && (ratio - 725.0 / 720.0).abs() < 1e-3, "{slow:?} {ratio}");
    let (late, ratio) = cause(false);
    assert!(late == Cause::Between && (ratio - 1.0).abs() < 1e-9, "{late:?} {ratio}");
    let ran = Job::seeded(8).late(40, 5 * MS).run();
    let Verdict::Named(culprits) = judge(&ran.evidence(&[]), &Limits::default()).verdict else { panic!() };
    assert_eq!(culprits[0].cause, Cause::NotRecorded);
}

#[test]
fn hosts_that_no_collective_connects_are_said_so_and_compared_within_themselves() {
    let mut job = Job::seeded(2).late(20, 20 * MS);
    (job.global, job.across) = (false, false);
    let judgement = judged(&job.run());
    assert_eq!(judgement.apart.len(), 8);
    assert!(judgement.clocks.iter().all(|clock| clock.ahead_ns.is_none() && clock.rate_ppm.is_none()));
    assert_eq!(named(&judgement), ["20"], "against the others of its node");
    job.late = (16..24).map(|rank| (rank, 20 * MS)).collect();
    assert_eq!(named(&judged(&job.run())), [] as [&str; 0], "a node is against no other one");
    // Connected over others, by communicators that no two hosts far apart share.
    let mut ran = Job { global: false, ..Job::seeded(2) }.run();
    for own in &mut ran.ranks {
        // What crosses hosts becomes a chain of pairs: 0 with 1, 1 with 2, and so on by the place of the GPU.
        let host = own.host;
        own.work.retain_mut(|work| match (work.kind, work.communicator) {
            (Collective::ReduceScatter, Some(id)) => {
                let place = (id - 200) as usize;
                host == place || host == place + 1
            }
            _ => true,
        });
    }
    for place in 0..7 {
        ran.sizes.insert(200 + place, 2);
    }
    ran.sizes.remove(&207);
    let judgement = judged(&ran);
    assert!(judgement.apart.is_empty(), "{:?}", judgement.apart);
    let truth = |host: usize| ran.ranks[host * 8].clock.1 as f64 / 1000.0;
    let rate = judgement.clocks[7].rate_ppm.expect("connected");
    assert!((rate - (truth(7) - truth(0))).abs() < 0.2, "{rate}");
}

#[test]
fn few_steps_are_reported_and_nothing_else() {
    let judgement = judged(&Job { steps: 3, ..Job::seeded(1) }.late(5, 20 * MS).run());
    assert_eq!(inconclusive(&judgement), "2 rounds, at least 16 needed");
    assert!(
        judgement.residual_ns.is_some() && judgement.ranks[5].arrived.is_some(),
        "what there is is reported"
    );
    let judgement = judged(&Job { steps: 0, ..Job::seeded(1) }.run());
    assert_eq!(
        inconclusive(&judgement),
        "no collective was recorded by all its ranks the same number of times"
    );
    let nothing = judge(&Evidence::default(), &Limits::default());
    assert!(nothing.residual_ns.is_none() && nothing.clocks.is_empty());
}

#[test]
fn unequal_counts_are_reported_and_not_used() {
    let mut ran = Job::seeded(4).late(9, 5 * MS).run();
    let last = ran.ranks[17].work.iter().rposition(|work| work.kind == Collective::AllReduce).expect("some");
    ran.ranks[17].work.remove(last);
    let judgement = judged(&ran);
    let expected = Flaw::UnequalCounts {
        communicator: 1,
        kind: Collective::AllReduce,
        fewest: (17, 53),
        most: (63, 54),
    };
    assert_eq!(judgement.flaws, [expected]);
    assert_eq!(named(&judgement), ["9"], "by what is left");
    // A rank that recorded none of it has the fewest.
    ran.ranks[17].work.retain(|work| work.kind != Collective::AllReduce);
    ran.ranks[17].work.insert(
        0,
        Work { communicator: Some(1), stream: 0, kind: Collective::Other, start: 0, end: 0, busy_ns: 0 },
    );
    let flaws = judged(&ran).flaws;
    assert!(matches!(flaws[..], [Flaw::UnequalCounts { fewest: (17, 0), .. }]), "{flaws:?}");
}

#[test]
fn a_communicator_of_which_a_rank_left_no_record_is_not_used() {
    let mut ran = Job::seeded(4).late(9, 5 * MS).run();
    ran.ranks.remove(63);
    let judgement = judged(&ran);
    let missing: Vec<(u64, usize, usize)> = judgement
        .flaws
        .iter()
        .map(|flaw| match flaw {
            Flaw::NotRecorded { communicator, recorded, of } => (*communicator, *recorded, *of),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(missing, [(1, 63, 64), (107, 7, 8), (207, 7, 8)]);
    assert!(judgement.instances.iter().all(|one| ![1, 107, 207].contains(&one.communicator)));
    assert_eq!(named(&judgement), ["9"], "by what the others share");
}

#[test]
fn two_ranks_alone_are_enough() {
    let job = Job { hosts: 2, per_host: 1, across: false, ..Job::seeded(12) };
    assert_eq!(named(&judged(&job.run())), [] as [&str; 0]);
    for who in [0, 1] {
        let judgement = judged(&job.clone().late(who, 5 * MS).run());
        assert_eq!(named(&judgement), [who.to_string()]);
    }
}

#[test]
fn reports_of_one_host_that_begin_at_other_zeros_than_they_say_are_still_aligned() {
    let mut ran = Job::seeded(13).late(9, 5 * MS).run();
    ran.ranks[30].zero += 3 * MS;
    let judgement = judged(&ran);
    assert_eq!(named(&judgement), ["9"]);
    assert!(judgement.residual_ns.is_some_and(|ns| ns < 20_000), "{:?}", judgement.residual_ns);
    assert!(judgement.ranks[30].arrived.is_some_and(|arrived| arrived.late_ns.abs() < MS));
}

#[test]
fn no_rank_is_named_for_less_than_three_residuals() {
    let mut ran = Job { steps: 300, ..Job::seeded(14) }.late(9, 2 * MS).run();
    let mut draw = Draw(1);
    for own in &mut ran.ranks {
        for work in &mut own.work {
            work.end += draw.within(3 * MS).abs();
        }
    }
    let judgement = judged(&ran);
    assert!(judgement.residual_ns.is_some_and(|ns| ns > 700_000), "{:?}", judgement.residual_ns);
    assert_eq!(named(&judgement), [] as [&str; 0]);
}

#[test]
fn times_at_the_edges_of_64_bits_neither_overflow_nor_blame() {
    for (zero, moment) in [(i64::MAX, i64::MAX), (i64::MIN, i64::MIN), (i64::MAX, i64::MIN)] {
        let mut ran = Job { steps: 20, ..Job::seeded(15) }.run();
        for own in &mut ran.ranks {
            own.zero = zero;
            let first = own.work[0].start;
            let last = own.work.last().expect("some").end;
            let by = if moment == i64::MAX { moment - last } else { moment.wrapping_sub(first) };
            for work in &mut own.work {
                work.start = work.start.wrapping_add(by);
                work.end = work.end.wrapping_add(by);
            }
        }
        let judgement = judged(&ran);
        assert!(judgement.residual_ns.is_some());
        assert_eq!(named(&judgement), [] as [&str; 0]);
    }
    let wild = |start, end| {
        vec![
            Work { communicator: Some(1), stream: 0, kind: Collective::AllReduce, start, end, busy_ns: 0 };
            20
        ]
    };
    let (one, other) = (wild(i64::MIN, i64::MAX), wild(i64::MAX, i64::MAX));
    let rank = |rank, node, zero, work| Rank {
        rank,
        node,
        gpu: None,
        clock: node,
        zero,
        lead_ns: None,
        work,
        compute: &[],
    };
    let ranks = vec![rank(0, "a", i64::MIN, &one[..]), rank(1, "b", i64::MAX, &other[..])];
    let judgement = judge(&Evidence { ranks, ..Evidence::default() }, &Limits::default());
    assert!(!matches!(judgement.verdict, Verdict::Named(_)));
}

#[test]
fn streams_stand_for_communicators_where_none_is_recorded() {
    let mut ran = Job { across: false, ..Job::seeded(16) }.late(33, 5 * MS).run();
    for own in &mut ran.ranks {
        own.work.retain(|work| work.kind == Collective::AllReduce);
        own.work.iter_mut().for_each(|work| work.communicator = None);
    }
    let computes = ran.computes();
    let mut evidence = ran.evidence(&computes);
    assert!(inconclusive(&judge(&evidence, &Limits::default())).starts_with("no collective"));
    evidence.by_order = true;
    let judgement = judge(&evidence, &Limits::default());
    assert_eq!(judgement.instances.len(), 1);
    // Who within the node was late is not to be seen by what all ranks share: all of the node waited there.
    assert_eq!(named(&judgement), ["node-4"]);
}

#[test]
fn a_clock_that_goes_faster_makes_no_rank_late() {
    let job = Job { drift_ppb: 900_000, ..Job::seeded(17) };
    let judgement = judged(&job.run());
    assert!(
        judgement.clocks.iter().any(|clock| clock.rate_ppm.is_some_and(|rate| rate.abs() > 300.0)),
        "{:?}",
        judgement.clocks
    );
    assert_eq!(named(&judgement), [] as [&str; 0]);
}

#[test]
fn who_computes_while_others_wait_for_it_is_not_blamed_for_what_it_inherited() {
    // What crosses hosts runs beside compute, so that lateness within a node goes on through it.
    for seed in 0..5 {
        let job = Job { overlap: true, ..Job::seeded(seed) };
        assert_eq!(named(&judged(&job.run())), [] as [&str; 0], "seed {seed}");
        for late in [1, 5, 20] {
            let judgement = judged(&job.clone().late(35, late * MS).run());
            assert_eq!(named(&judgement), ["35"], "seed {seed}, {late} ms");
        }
    }
}

#[test]
fn ranks_that_vary_much_are_not_blamed_for_chance() {
    for seed in 0..10 {
        let judgement = judged(&Job { jitter: 5e6, ..Job::seeded(seed) }.run());
        assert_eq!(named(&judgement), [] as [&str; 0], "seed {seed}");
        let most = judgement.ranks.iter().filter_map(|rank| Some(rank.rounds?.late_ns)).max();
        assert!(most.is_some_and(|ns| ns > 200_000), "the limit alone would name a culprit: {most:?}");
    }
}

#[test]
fn collectives_that_come_only_at_the_beginning_part_no_rounds() {
    let mut ran = Job::seeded(18).late(9, 5 * MS).run();
    ran.sizes.insert(50, 64);
    for own in &mut ran.ranks {
        let first = own.work[0].start;
        for n in 0..20 {
            let start = first - 400 * MS + n * MS;
            let (communicator, end) = (Some(50), start + 1000);
            let work = Work { communicator, stream: 0, kind: Collective::AllGather, start, end, busy_ns: 0 };
            own.work.insert(n as usize, work);
        }
    }
    let judgement = judged(&ran);
    assert_eq!(named(&judgement), ["9"]);
    let rounds = |judgement: &Judgement| judgement.ranks[9].rounds.expect("compared").rounds;
    assert_eq!(rounds(&judgement), 53);
    // One more of them at the end does not make them come evenly.
    for own in &mut ran.ranks {
        let end = own.work.last().expect("some").end + MS;
        own.work.push(Work { end: end + 1000, start: end, ..own.work[0] });
    }
    let judgement = judged(&ran);
    assert_eq!((named(&judgement), rounds(&judgement)), (vec!["9".to_owned()], 53));
}

#[test]
fn who_is_late_by_less_than_the_limit_is_not_named() {
    let ran = Job { steps: 300, ..Job::seeded(19) }.late(30, 150_000).run();
    assert_eq!(named(&judged(&ran)), [] as [&str; 0]);
    let computes = ran.computes();
    let lower = Limits { least_ns: 60_000, ..Limits::default() };
    assert_eq!(named(&judge(&ran.evidence(&computes), &lower)), ["30"]);
}

#[test]
fn ranks_with_another_part_in_the_work_are_not_compared_with_each_other() {
    // Half of the ranks take part in one more communicator, and need longer for what they do.
    let mut job = Job::seeded(20);
    job.late = (0..8).map(|rank| (rank, 50 * MS)).collect();
    let mut ran = job.run();
    ran.sizes.insert(60, 8);
    for own in &mut ran.ranks[..8] {
        let more: Vec<Work> = own
            .work
            .iter()
            .filter(|work| work.kind == Collective::AllReduce)
            .map(|work| Work { communicator: Some(60), start: work.end, end: work.end + 1000, ..*work })
            .collect();
        own.work.extend(more);
        own.work.sort_by_key(|work| work.start);
    }
    assert_eq!(named(&judged(&ran)), [] as [&str; 0]);
}

#[test]
fn no_rank_of_those_that_come_together_is_last() {
    let work: Vec<Work> = (0..20)
        .map(|n| Work {
            communicator: Some(1),
            stream: 0,
            kind: Collective::AllReduce,
            start: n * 100,
            end: n * 100 + 10,
            busy_ns: 0,
        })
        .collect();
    let rank = |rank, node| Rank {
        rank,
        node,
        gpu: None,
        clock: node,
        zero: 0,
        lead_ns: None,
        work: &work,
        compute: &[],
    };
    let evidence = Evidence { ranks: vec![rank(0, "a"), rank(1, "b")], ..Evidence::default() };
    let judgement = judge(&evidence, &Limits::default());
    assert!(judgement.ranks.iter().all(|rank| rank.arrived.is_some_and(|arrived| arrived.last_in == 0)));
}

#[test]
fn a_rate_is_not_made_up_from_few_ends_close_together() {
    let noise = [0, 9000, -7000, 8000];
    let work = |noisy: bool| -> Vec<Work> {
        let ends = noise.iter().enumerate().map(|(n, noise)| {
            let end = n as i64 * MS + if noisy { *noise } else { 0 };
            let (communicator, kind) = (Some(1), Collective::AllReduce);
            Work { communicator, stream: 0, kind, start: end - 50_000, end, busy_ns: 0 }
        });
        ends.collect()
    };
    let (even, noisy) = (work(false), work(true));
    let rank = |rank, node, work| Rank {
        rank,
        node,
        gpu: None,
        clock: node,
        zero: 0,
        lead_ns: None,
        work,
        compute: &[],
    };
    let ranks = vec![rank(0, "a", &even[..]), rank(1, "b", &noisy[..])];
    let judgement = judge(&Evidence { ranks, ..Evidence::default() }, &Limits::default());
    let clock = &judgement.clocks[1];
    assert!(clock.rate_ppm.is_some_and(|rate| rate.abs() < 150.0), "{clock:?}");
}

/// What each verdict says, for a rank, for a node, without a culprit and where it cannot be said.
#[test]
fn messages() {
    let mut slow_gpu = Job::seeded(8).late(40, 5 * MS);
    slow_gpu.by_kernels = true;
    let mut slow_node = Job::seeded(8);
    slow_node.late = (16..24).map(|rank| (rank, 20 * MS)).collect();
    let jobs = [
        slow_gpu,
        Job::seeded(8).late(40, 5 * MS),
        slow_node,
        Job::seeded(8),
        Job { steps: 3, ..Job::seeded(1) },
        Job { steps: 0, ..Job::seeded(1) },
    ];
    let messages = jobs.map(|job| match judged(&job.run()).verdict {
        Verdict::Named(culprits) => {
            let lines =
                culprits.iter().map(|it| format!("{:?}: {}; {}", it.who, it.cause.name(), it.evidence));
            lines.collect::<Vec<_>>().join("\n")
        }
        Verdict::NoCulprit(why) => format!("no culprit: {why}"),
        Verdict::Inconclusive(why) => format!("inconclusive: {why}"),
    });
    insta::assert_snapshot!(messages.join("\n"));
}
