//! What goes on beside all that a run waits for: launches, and the heartbeat of the jobs that run.

use crate::reach::Wait;
use futures::stream::{FuturesUnordered, StreamExt};
use std::cell::RefCell;
use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

pub(super) struct Background<'a> {
    /// Never ends.
    heartbeat: RefCell<Wait<'a, ()>>,
    launches: RefCell<FuturesUnordered<Wait<'a, ()>>>,
}

impl<'a> Background<'a> {
    pub(super) fn new(heartbeat: Wait<'a, ()>) -> Self {
        Background { heartbeat: RefCell::new(heartbeat), launches: RefCell::default() }
    }

    /// Goes on whenever something is waited for by `meanwhile`.
    pub(super) fn begin(&self, launch: Wait<'a, ()>) {
        self.launches.borrow_mut().push(launch);
    }

    /// Does some work to its end, and everything else beside it. What the work begins is begun at once.
    pub(super) async fn meanwhile<T>(&self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        poll_fn(|context| {
            let done = work.as_mut().poll(context);
            if done.is_pending() {
                let _ = self.heartbeat.borrow_mut().as_mut().poll(context);
                while let Poll::Ready(Some(())) = self.launches.borrow_mut().poll_next_unpin(context) {}
            }
            done
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::rc::Rc;
    use std::time::Duration;
    use tokio::time::{Instant, sleep};

    #[tokio::test(start_paused = true)]
    async fn launches_and_the_heartbeat_go_on_while_something_else_is_waited_for() {
        let (beats, launched) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
        let counted = beats.clone();
        let background = Background::new(Box::pin(async move {
            loop {
                counted.set(counted.get() + 1);
                sleep(Duration::from_secs(1)).await;
            }
        }));
        let begun = Instant::now();
        background
            .meanwhile(async {
                for _ in 0..3 {
                    let launched = launched.clone();
                    background.begin(Box::pin(async move {
                        sleep(Duration::from_secs(4)).await;
                        launched.set(launched.get() + 1);
                    }));
                }
                sleep(Duration::from_secs(5)).await;
            })
            .await;
        assert_eq!((launched.get(), begun.elapsed()), (3, Duration::from_secs(5)), "side by side");
        assert!((5..=6).contains(&beats.get()), "{}", beats.get());
    }
}
