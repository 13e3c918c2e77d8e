//! How soon a host is tried again: pauses that grow and differ from host to host, and a rest after a host gave no
//! answer. Whether it is tried again at all is decided where it is tried.

use crate::reach::ReachError;
use base::digest::sha256;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::time::Duration;
use tokio::time::Instant;

/// Pauses that double, each with a random part: hosts that were refused together do not come back together.
pub(super) struct Pauses {
    random: ChaCha8Rng,
    next: Duration,
    most: Duration,
}

impl Pauses {
    /// From the run's seed and the host's name, so that a run can be replayed.
    pub(super) fn new(seed: u64, host: &str, first: Duration, most: Duration) -> Pauses {
        let mut start = [0; 32];
        for (to, from) in start.iter_mut().zip(sha256(format!("{seed} {host}").as_bytes()).bytes()) {
            *to = from;
        }
        Pauses { random: ChaCha8Rng::from_seed(start), next: first, most }
    }

    /// Between a half and one and a half of what it has grown to.
    pub(super) fn draw(&mut self) -> Duration {
        let pause = self.next;
        self.next = (self.next * 2).min(self.most);
        let share = f64::from(self.random.next_u32()) / f64::from(u32::MAX);
        pause.mul_f64(0.5 + share)
    }
}

/// What is known of a host that gave no answer: further callers do not wait for it again.
#[derive(Default)]
pub(super) struct Rest {
    failures: u32,
    error: Option<(Instant, ReachError)>,
}

impl Rest {
    /// The answer while it rests.
    pub(super) fn error(&self, now: Instant) -> Option<ReachError> {
        self.error.as_ref().filter(|(until, _)| now < *until).map(|(_, error)| error.clone())
    }

    /// Shorter than the pauses of those who ask again, so that each of these is a real attempt.
    pub(super) fn begin(&mut self, now: Instant, error: ReachError) {
        let rest = (FIRST_REST * 2_u32.saturating_pow(self.failures)).min(LONGEST_REST);
        self.failures += 1;
        self.error = Some((now + rest, error));
    }

    pub(super) fn end(&mut self) {
        *self = Rest::default();
    }
}

const FIRST_REST: Duration = Duration::from_secs(4);
const LONGEST_REST: Duration = Duration::from_secs(16);

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(seed: u64, host: &str) -> Vec<Duration> {
        let mut pauses = Pauses::new(seed, host, Duration::from_millis(500), Duration::from_secs(4));
        (0..6).map(|_| pauses.draw()).collect()
    }

    #[test]
    fn pauses_grow_to_a_limit_and_differ_between_hosts_but_not_between_runs_of_one_seed() {
        let pauses = drawn(1, "n1");
        for (pause, base_ms) in pauses.iter().zip([500, 1000, 2000, 4000, 4000, 4000]) {
            let ms = pause.as_millis();
            assert!((base_ms / 2..=base_ms * 3 / 2).contains(&ms), "{ms} ms around {base_ms} ms");
        }
        assert_eq!(pauses, drawn(1, "n1"));
        assert_ne!(pauses, drawn(1, "n2"));
        assert_ne!(pauses, drawn(2, "n1"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_host_that_gave_no_answer_rests_longer_each_time_until_it_answers() {
        let error = ReachError::Unreachable { host: "n1".into(), why: "no route".into() };
        let mut rest = Rest::default();
        let now = Instant::now();
        assert_eq!(rest.error(now), None);
        for seconds in [4, 8, 16, 16] {
            rest.begin(now, error.clone());
            let at = now + Duration::from_secs(seconds);
            assert_eq!(rest.error(at - Duration::from_millis(1)), Some(error.clone()));
            assert_eq!(rest.error(at), None);
        }
        rest.end();
        assert_eq!(rest.error(now), None);
        rest.begin(now, error);
        assert_eq!(rest.error(now + Duration::from_secs(4)), None);
    }
}
