//! Asks the nodes on which jobs run over ssh, each by itself: a node that answers late, or a harness that is busy with
//! something else, lets no heartbeat run out on the others.

use super::ssh::{AT_ONCE, Ssh};
use super::ssh_node::{self as node, State};
use super::ssh_watch::PATIENCE;
use crate::reach::{Reach, ReachError};
use futures::stream::{FuturesUnordered, StreamExt};
use std::time::Duration;
use tokio::time::{Instant, sleep_until, timeout};

/// Where nothing is to be asked.
const LONG: Duration = Duration::from_secs(3600);

/// A question to a node of a job: by handle and place. A signal is sent, or it is looked how the job is.
struct Question {
    handle: String,
    at: usize,
    launch: Vec<String>,
    node: String,
    signal: Option<&'static str>,
}

type Answer = (Question, Result<State, ReachError>);

impl Ssh {
    /// Asks for as long as it is polled.
    pub(super) async fn beat(&self, reach: &dyn Reach) {
        self.beats.set(true);
        self.ask_all(reach).await;
    }

    async fn ask_all(&self, reach: &dyn Reach) {
        // Whoever asked before is gone, and its answers with it.
        for node in self.watched.borrow_mut().values_mut().flat_map(|watch| &mut watch.nodes) {
            (node.asked, node.signalling) = (None, false);
        }
        let mut open = FuturesUnordered::new();
        loop {
            let (questions, next) = self.due(Instant::now());
            open.extend(questions.into_iter().map(|question| put(reach, question)));
            tokio::select! {
                biased;
                Some(answer) = open.next(), if !open.is_empty() => self.take_in(answer),
                () = self.wanted.notified() => {}
                () = sleep_until(next) => {}
            }
        }
    }

    /// What is to be asked now, and when there is something more. Nodes that have not answered for long take no room.
    fn due(&self, now: Instant) -> (Vec<Question>, Instant) {
        let mut watched = self.watched.borrow_mut();
        let waits = |asked: Option<Instant>| asked.is_some_and(|asked| now - asked < PATIENCE);
        let busy = watched.values().flat_map(|watch| &watch.nodes).filter(|node| waits(node.asked)).count();
        let (mut questions, mut due, mut next) = (Vec::new(), Vec::new(), now + LONG);
        for (handle, watch) in watched.iter_mut() {
            for at in watch.open().collect::<Vec<_>>() {
                let launch = watch.launch.clone();
                let one = &mut watch.nodes[at];
                let question =
                    |signal| Question { handle: handle.clone(), at, launch, node: one.name.clone(), signal };
                if one.signal.is_some() && !one.signalling {
                    questions.push(question(one.signal));
                    (one.signal, one.signalling) = (None, true);
                } else if one.asked.is_none() && one.due <= now {
                    due.push((one.heard, question(None)));
                } else if one.asked.is_none() {
                    next = next.min(one.due);
                }
            }
        }
        due.sort_by_key(|(heard, _)| *heard);
        for (_, question) in due.into_iter().take(AT_ONCE.saturating_sub(busy)) {
            if let Some(one) =
                watched.get_mut(&question.handle).and_then(|watch| watch.nodes.get_mut(question.at))
            {
                one.asked = Some(now);
            }
            questions.push(question);
        }
        // Where there was no room an answer makes some, or time does.
        (questions, next.min(now + PATIENCE))
    }

    fn take_in(&self, (question, answer): Answer) {
        if let Some(watch) = self.watched.borrow_mut().get_mut(&question.handle) {
            match question.signal {
                Some(_) => {
                    if let Some(one) = watch.nodes.get_mut(question.at) {
                        one.signalling = false;
                    }
                }
                None => watch.take_in(question.at, answer, Instant::now()),
            }
        }
        self.answered.notify_waiters();
    }

    /// Looks at nodes of jobs, by handle and place. Beside a heartbeat no node is waited for that answers late.
    pub(super) async fn ask(&self, reach: &dyn Reach, nodes: &[(String, usize)]) {
        let now = Instant::now();
        let mut before = Vec::with_capacity(nodes.len());
        for (handle, at) in nodes {
            let mut watched = self.watched.borrow_mut();
            let Some(one) = watched.get_mut(handle).and_then(|watch| watch.nodes.get_mut(*at)) else {
                continue;
            };
            one.due = now;
            before.push((handle.as_str(), *at, one.answers));
        }
        self.wanted.notify_one();
        let all_answered = async {
            loop {
                let answered = self.answered.notified();
                if before.iter().all(|one| self.has_answered(*one)) {
                    return;
                }
                answered.await;
            }
        };
        if self.beats.get() {
            // What is late is seen by a later look.
            let _ = timeout(PATIENCE, all_answered).await;
            return;
        }
        tokio::select! {
            biased;
            () = all_answered => {}
            () = self.ask_all(reach) => {}
        }
    }

    fn has_answered(&self, (handle, at, before): (&str, usize, u64)) -> bool {
        let watched = self.watched.borrow();
        let one = watched.get(handle).and_then(|watch| watch.nodes.get(at));
        one.is_none_or(|one| one.answers > before)
    }
}

async fn put(reach: &dyn Reach, question: Question) -> Answer {
    let Question { launch, node: name, .. } = &question;
    let answer = match question.signal {
        Some(signal) => node::end(reach, launch, name, signal).await,
        None => node::look(reach, launch, name).await,
    };
    (question, answer)
}
