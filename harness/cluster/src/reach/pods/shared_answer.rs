//! An answer that is expensive, and that many ask for at the same moment: each gets one that was asked for after it came.

use tokio::sync::Mutex;
use tokio::time::Instant;

/// The last answer, and when it was asked for.
pub(super) struct SharedAnswer<T> {
    last: Mutex<Option<(Instant, T)>>,
}

impl<T: Clone> SharedAnswer<T> {
    /// Asks nothing yet.
    pub(super) fn new() -> SharedAnswer<T> {
        SharedAnswer { last: Mutex::new(None) }
    }

    /// Whoever comes while a question is on its way waits for it, and shares the next one with all who wait.
    pub(super) async fn get(&self, ask: impl AsyncFnOnce() -> T) -> T {
        let from = Instant::now();
        let mut last = self.last.lock().await;
        if let Some((_, answer)) = last.as_ref().filter(|(since, _)| *since >= from) {
            return answer.clone();
        }
        let since = Instant::now();
        let answer = ask().await;
        *last = Some((since, answer.clone()));
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::time::Duration;

    #[test]
    fn many_who_ask_at_once_share_two_answers_and_none_gets_an_old_one() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        let asked = Cell::new(0);
        let shared = SharedAnswer::new();
        let get = || {
            shared.get(async || {
                asked.set(asked.get() + 1);
                let number = asked.get();
                tokio::time::sleep(Duration::from_millis(5)).await;
                number
            })
        };
        runtime.block_on(async {
            let answers: Vec<u32> = futures::future::join_all((0..100).map(|_| get())).await;
            assert!(asked.get() <= 2 && answers.iter().all(|answer| *answer <= 2), "{answers:?}");
            let before = asked.get();
            tokio::time::sleep(Duration::from_millis(1)).await;
            assert_eq!(get().await, before + 1);
        });
    }
}
