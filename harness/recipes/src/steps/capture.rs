//! Steps as a program marks them for its profiler: from each call that starts the collection to the one that stops it.

use super::{Found, Source, Step};

/// Calls by moment, in the order of time: where collection starts, and where it stops. Nothing where none is whole.
pub(crate) fn find_by_capture(starts: &[i64], stops: &[i64]) -> Option<Found> {
    let mut moments: Vec<(i64, bool)> = starts.iter().map(|at| (*at, true)).collect();
    moments.extend(stops.iter().map(|at| (*at, false)));
    // Of one moment a stop comes first: it ends what was there before.
    moments.sort_unstable();
    let (mut steps, mut open, mut alone) = (Vec::new(), None, 0);
    for (at, is_start) in moments {
        match (is_start, open) {
            (true, None) => open = Some(at),
            // A program that starts twice goes on with the first.
            (true, Some(_)) | (false, None) => alone += 1,
            (false, Some(start)) => {
                steps.push(Step { number: None, start, end: at, alike: None, has_end: true });
                open = None;
            }
        }
    }
    alone += usize::from(open.is_some());
    let notes = match alone {
        0 => Vec::new(),
        _ => vec![format!("unpaired calls to start or stop the profiler, left out: {alone}")],
    };
    let by = "cudaProfilerStart".to_owned();
    (!steps.is_empty()).then_some(Found { source: Source::Capture, by, steps, confidence: 1.0, notes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_start_with_its_stop_is_a_step() {
        let found = find_by_capture(&[0, 20, 40], &[10, 30]).expect("two");
        let spans: Vec<(i64, i64)> = found.steps.iter().map(|step| (step.start, step.end)).collect();
        assert_eq!(spans, [(0, 10), (20, 30)]);
        assert_eq!(found.notes.len(), 1, "the last one was never stopped");
        assert_eq!(find_by_capture(&[0], &[]), None);
        assert_eq!(find_by_capture(&[], &[5]), None);
        let found = find_by_capture(&[0, 5], &[10]).expect("one");
        assert_eq!((found.steps[0].start, found.notes.len()), (0, 1));
    }
}
