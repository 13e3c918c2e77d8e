//! The time of a run.

use std::time::Duration;
use store::iso8601;
use tokio::time::Instant;

/// The time of a run: simulated or real, it moves with tokio's clock from one given moment.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    epoch_unix_s: f64,
    start: Instant,
}

impl Clock {
    /// The run begins now, at this time in seconds since 1970.
    pub fn starting_at(epoch_unix_s: f64) -> Self {
        Clock { epoch_unix_s, start: Instant::now() }
    }

    /// A run that goes on: it began `elapsed` ago.
    pub fn going_on(epoch_unix_s: f64, elapsed: Duration) -> Self {
        // Where the machine has not been up for so long, the run's limits count from now on.
        let start = Instant::now().checked_sub(elapsed).unwrap_or_else(Instant::now);
        Clock { epoch_unix_s, start }
    }

    /// Time since the run began.
    pub fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    /// Seconds since 1970.
    pub(crate) fn now_unix_s(&self) -> f64 {
        self.epoch_unix_s + self.elapsed().as_secs_f64()
    }

    /// That moment, as far back as this machine's clock goes.
    pub(crate) fn moment(&self, unix_s: f64) -> Instant {
        let ago = Duration::try_from_secs_f64(self.now_unix_s() - unix_s).unwrap_or_default();
        Instant::now().checked_sub(ago).unwrap_or_else(Instant::now)
    }

    /// When the run began.
    pub fn started(&self) -> String {
        iso8601(self.epoch_unix_s)
    }

    /// ISO 8601 in UTC, to the millisecond.
    pub fn now(&self) -> String {
        iso8601(self.now_unix_s())
    }
}
