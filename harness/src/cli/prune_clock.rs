//! Whether the times with which the ids of runs begin decide which of them are old: a clock can be set wrong, then or now.

use base::text::{count, show};

/// By how much a clock that is kept may differ from that of another machine, whose runs lie here as well.
const MOST_AHEAD_S: f64 = 300.0;

/// `20261121T031000Z`
const TIME: &[u8] = b"ddddddddTddddddZ";

/// Why no run may be taken for an old one. `ids` are of all runs; `is_number_kept` is whether `--keep` was given.
pub(super) fn refused(
    ids: &[String],
    now_s: f64,
    older_than_s: Option<u64>,
    is_number_kept: bool,
) -> Option<String> {
    let newest = newest(ids)?;
    let now = store::run_time(now_s);
    if newest > store::run_time(now_s + MOST_AHEAD_S).as_str() {
        return Some(format!(
            "run {} began later than this machine's clock, {now}: one of the two is wrong; set the clock, or name what goes: \
             `harness runs prune --run ID`",
            show(newest)
        ));
    }
    let before = store::run_time(now_s - older_than_s? as f64);
    (newest < before.as_str() && !is_number_kept).then(|| {
        format!(
            "--older-than leaves none of {}: the newest is {}, and the clock is at {now}; if the clock is right, add `--keep 1`",
            count(ids.len(), "run"),
            show(newest)
        )
    })
}

/// Of the runs whose ids begin with a time, the one that began last by its clock.
pub(super) fn newest(ids: &[String]) -> Option<&str> {
    ids.iter().map(String::as_str).filter(|id| begins_with_time(id)).max()
}

fn begins_with_time(id: &str) -> bool {
    let fits = |(byte, form): (&u8, &u8)| match form {
        b'd' => byte.is_ascii_digit(),
        _ => byte == form,
    };
    id.len() >= TIME.len() && id.as_bytes().iter().zip(TIME).all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: f64 = 86400.0;
    /// 2026-03-20T10:26:40Z
    const NOW: f64 = 1_774_002_400.0;

    fn runs(days_ago: &[f64]) -> Vec<String> {
        days_ago.iter().map(|days| format!("{}-nccl-p5-0001", store::run_time(NOW - days * DAY))).collect()
    }

    #[test]
    fn a_run_that_began_later_than_the_clock_lets_no_run_count_as_old() {
        let why = refused(&runs(&[3.0, 0.0, -2.0]), NOW, None, true).expect("refused");
        assert!(why.contains("began later than this machine's clock") && why.contains("--run ID"), "{why}");
        assert!(refused(&runs(&[-0.1]), NOW, Some(1), true).is_some());
        let of_other_machine = 60.0 / DAY;
        assert_eq!(refused(&runs(&[3.0, -of_other_machine]), NOW, None, true), None);
    }

    #[test]
    fn a_clock_by_which_every_run_is_old_removes_none_unless_a_number_of_runs_is_kept() {
        let all_old = runs(&[400.0, 200.0]);
        let why = refused(&all_old, NOW, Some(90 * 86400), false).expect("refused");
        assert!(why.contains("leaves none of 2 runs") && why.contains("`--keep 1`"), "{why}");
        assert_eq!(refused(&all_old, NOW, Some(90 * 86400), true), None);
        assert_eq!(refused(&runs(&[400.0, 1.0]), NOW, Some(90 * 86400), false), None);
        assert_eq!(refused(&all_old, NOW, Some(u64::MAX), false), None);
        assert_eq!(refused(&all_old, NOW, None, false), None);
    }

    #[test]
    fn ids_that_begin_with_no_time_are_not_compared_with_the_clock() {
        let mut ids = runs(&[1.0]);
        ids.extend(["nightly".to_owned(), "99999999-nccl".to_owned(), String::new()]);
        assert_eq!(newest(&ids), Some(ids[0].as_str()));
        assert_eq!(refused(&ids, NOW, None, true), None);
        assert_eq!(refused(&["nightly".to_owned()], NOW, Some(1), false), None);
    }
}
