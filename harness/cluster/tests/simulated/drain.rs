//! Nodes of a simulated cluster drained, held and put back, with a concurrent client at each moment.

use cluster::drain::*;
use cluster::launch::QUERY_LIMIT;
use cluster::reach::{Answer, Command, Host, Reach, ReachError, Wait};
use config::inventory::{Instances, Inventory};
use sim::SimulatedReach;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::Future;

const OURS: &str = "[harness] HRN-NIC-SLOW rdmap79s0: 50 % of its peers, run 7";

/// The simulated Slurm, with reservations, and with another client that acts at a given moment.
struct Slurm {
    simulated: SimulatedReach,
    reservations: RefCell<BTreeMap<String, String>>,
    /// What was asked that changes something.
    asked: RefCell<Vec<String>>,
    /// Before the command that begins so, somebody else's.
    before: RefCell<Option<(&'static str, Vec<&'static str>)>>,
    /// After it.
    after: RefCell<Option<(&'static str, Vec<&'static str>)>>,
    fails: Option<&'static str>,
    /// Whose reservations are, and what runs in them.
    user: &'static str,
    jobs: &'static str,
}

impl Slurm {
    fn new() -> Slurm {
        let home = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
        let instances = Instances::load(home).expect("sound instances");
        let text = std::fs::read_to_string(home.join("inventory/default.toml")).expect("an inventory");
        let inventory = Inventory::read(&text, "inventory/default.toml", &instances);
        let inventory = inventory.expect("an inventory");
        Slurm {
            simulated: SimulatedReach::new(&inventory, 1, Vec::new(), BTreeMap::new()).expect("a cluster"),
            reservations: RefCell::default(),
            asked: RefCell::default(),
            before: RefCell::default(),
            after: RefCell::default(),
            fails: None,
            user: "ops",
            jobs: "",
        }
    }

    async fn other(&self, moment: &RefCell<Option<(&'static str, Vec<&'static str>)>>, line: &str) {
        let due = moment.borrow().as_ref().is_some_and(|(start, _)| line.starts_with(start));
        let words = if due { moment.borrow_mut().take() } else { None };
        if let Some((_, words)) = words {
            let answer = self.simulated.exec(&Host::Here, &Command::new(words, QUERY_LIMIT)).await;
            assert!(answer.expect("an answer").succeeded());
        }
    }

    fn own(&self, words: &[&str]) -> Option<Answer> {
        let mut reservations = self.reservations.borrow_mut();
        Some(match words {
            ["id", "-un"] => Answer::ok("ops\n"),
            ["scontrol", "--oneliner", "show", "reservation", name] => match reservations.get(*name) {
                Some(nodes) => {
                    let user = self.user;
                    Answer::ok(format!("ReservationName={name} Nodes={nodes} Users={user} State=ACTIVE\n"))
                }
                None => Answer::failed(1, format!("Reservation {name} not found\n")),
            },
            ["squeue", "--noheader", "--all", "--reservation=harness_recheck_p5-002", "--format=%i"] => {
                Answer::ok(self.jobs)
            }
            ["scontrol", "create", "reservation", name, _, _, nodes, "Users=ops", _] => {
                let name = name.trim_start_matches("ReservationName=").to_owned();
                reservations.insert(name, nodes.trim_start_matches("Nodes=").to_owned());
                Answer::ok("")
            }
            ["scontrol", "delete", name] => {
                let gone = reservations.remove(name.trim_start_matches("ReservationName="));
                if gone.is_some() { Answer::ok("") } else { Answer::failed(1, "not found\n") }
            }
            _ => return None,
        })
    }

    fn asked(&self) -> Vec<String> {
        self.asked.borrow_mut().drain(..).collect()
    }

    async fn said(&self, words: &[&str]) {
        let answer =
            self.simulated.exec(&Host::Here, &Command::new(words.iter().copied(), QUERY_LIMIT)).await;
        assert!(answer.expect("an answer").succeeded(), "{words:?}");
    }
}

impl Reach for Slurm {
    fn exec<'a>(&'a self, host: &'a Host, command: &'a Command) -> Wait<'a, Result<Answer, ReachError>> {
        Box::pin(async move {
            let words: Vec<&str> = command.argv.iter().map(String::as_str).collect();
            let line = words.join(" ");
            self.other(&self.before, &line).await;
            if self.fails.is_some_and(|start| line.starts_with(start)) {
                return Ok(Answer::failed(1, "slurm_update error: Access/permission denied\n"));
            }
            if !line.contains(" show ") && words[0] == "scontrol" {
                self.asked.borrow_mut().push(line.clone());
            }
            let answer = match self.own(&words) {
                Some(answer) => Ok(answer),
                None => self.simulated.exec(host, command).await,
            };
            self.other(&self.after, &line).await;
            answer
        })
    }
    fn put<'a>(&'a self, host: &'a Host, path: &'a str, bytes: &'a [u8]) -> Wait<'a, Result<(), ReachError>> {
        self.simulated.put(host, path, bytes)
    }
    fn get<'a>(&'a self, host: &'a Host, path: &'a str) -> Wait<'a, Result<Vec<u8>, ReachError>> {
        self.simulated.get(host, path)
    }
}

fn wait<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.expect("a runtime").block_on(future)
}

fn wanted() -> Wanted {
    Wanted { node: "p5-002".into(), reason: OURS.into() }
}

fn others() -> Vec<&'static str> {
    vec!["scontrol", "update", "NodeName=p5-002", "State=DRAIN", "Reason=a fan is loud"]
}

async fn reason(slurm: &Slurm) -> (bool, Option<String>) {
    let shown = show(slurm, "p5-002").await.expect("shown");
    (shown.is_draining(), shown.reason)
}

#[test]
fn a_node_is_drained_for_our_reason_by_an_argument_list_and_only_once() {
    wait(async {
        let slurm = Slurm::new();
        assert_eq!(drain(&slurm, &wanted()).await, Drained::Done);
        assert_eq!(reason(&slurm).await, (true, Some(OURS.to_owned())));
        let update = format!("scontrol update NodeName=p5-002 State=DRAIN Reason={OURS}");
        assert_eq!(slurm.asked(), [update]);
        let sinfo = ["sinfo", "--noheader", "--Node", "--all", "--format=%N|%T|%E"];
        let listed = slurm.simulated.exec(&Host::Here, &Command::new(sinfo, QUERY_LIMIT)).await;
        let listed = listed.expect("an answer").stdout_text();
        assert!(listed.contains(&format!("p5-002|drained|{OURS}\np5-003|idle|none\n")), "{listed}");
        let all = show_all(&slurm).await.expect("shown");
        assert_eq!(all.iter().filter(|(_, shown)| shown.is_idle()).count(), 3);
        let again = Wanted { reason: "[harness] another".into(), ..wanted() };
        assert_eq!(drain(&slurm, &again).await, Drained::Already { reason: OURS.into() });
        assert_eq!(slurm.asked(), Vec::<String>::new());
        assert_eq!(slurm.simulated.violations(), Vec::<String>::new());
    });
}

#[test]
fn what_somebody_else_said_of_a_node_is_left_as_it_is() {
    wait(async {
        let slurm = Slurm::new();
        slurm.said(&others()).await;
        let Drained::Others { state } = drain(&slurm, &wanted()).await else { panic!("another outcome") };
        assert!(state.starts_with("IDLE+DRAIN: a fan is loud [root@"), "{state}");
        assert_eq!(slurm.asked(), Vec::<String>::new());
        assert_eq!(reason(&slurm).await, (true, Some("a fan is loud".to_owned())));
    });
}

#[test]
fn a_reason_given_at_the_same_moment_is_seen_by_reading_back() {
    wait(async {
        let slurm = Slurm::new();
        *slurm.after.borrow_mut() = Some(("scontrol update", others()));
        let Drained::Others { state } = drain(&slurm, &wanted()).await else { panic!("another outcome") };
        assert!(state.contains("a fan is loud"), "{state}");
        // And who puts the node back in that moment leaves nothing that is called drained.
        let slurm = Slurm::new();
        let back = vec!["scontrol", "update", "NodeName=p5-002", "State=RESUME"];
        *slurm.after.borrow_mut() = Some(("scontrol update", back));
        let Drained::Failed { why } = drain(&slurm, &wanted()).await else { panic!("another outcome") };
        assert!(why.contains("Slurm reports it as IDLE"), "{why}");
    });
}

#[test]
fn failures_of_slurm_are_reported_and_never_taken_for_drained() {
    wait(async {
        let slurm = Slurm { fails: Some("scontrol update"), ..Slurm::new() };
        let Drained::Failed { why } = drain(&slurm, &wanted()).await else { panic!("another outcome") };
        assert_eq!(
            why,
            "`scontrol update NodeName=p5-002` ended with exit code 1: slurm_update error: Access/permission denied"
        );
        let unknown = Wanted { node: "p5-099".into(), ..wanted() };
        let Drained::Failed { why } = drain(&Slurm::new(), &unknown).await else { panic!("another outcome") };
        assert!(why.contains("Node p5-099 not found"), "{why}");
    });
}

#[test]
fn a_node_is_put_back_for_us_alone_and_stays_only_where_it_has_passed() {
    wait(async {
        for has_passed in [true, false] {
            let slurm = Slurm::new();
            drain(&slurm, &wanted()).await;
            slurm.asked();
            let held = hold(&slurm, "p5-002", "p5-001").await.expect("held");
            assert_eq!(reason(&slurm).await, (false, None));
            let asked = slurm.asked();
            assert_eq!(
                asked,
                [
                    "scontrol create reservation ReservationName=harness_recheck_p5-002 StartTime=now \
                     Duration=infinite Nodes=p5-002,p5-001 Users=ops Flags=IGNORE_JOBS",
                    "scontrol update NodeName=p5-002 State=RESUME"
                ]
            );
            release(&slurm, &held, has_passed).await.expect("released");
            let expected = if has_passed { (false, None) } else { (true, Some(OURS.to_owned())) };
            assert_eq!(reason(&slurm).await, expected);
            assert!(slurm.reservations.borrow().is_empty());
            // No other job had it in between.
            let asked = slurm.asked();
            assert_eq!(
                asked.last().map(String::as_str),
                Some("scontrol delete ReservationName=harness_recheck_p5-002")
            );
        }
    });
}

#[test]
fn a_drain_of_somebody_else_is_never_put_back() {
    wait(async {
        let slurm = Slurm::new();
        slurm.said(&others()).await;
        let why = hold(&slurm, "p5-002", "p5-001").await.expect_err("held");
        assert!(why.contains("it is no longer drained by the harness: IDLE+DRAIN: a fan is loud"), "{why}");
        assert_eq!(slurm.asked(), Vec::<String>::new());
        // Somebody takes it over after it was looked at.
        let slurm = Slurm::new();
        drain(&slurm, &wanted()).await;
        *slurm.before.borrow_mut() = Some(("scontrol create", others()));
        let why = hold(&slurm, "p5-002", "p5-001").await.expect_err("held");
        assert!(why.contains("somebody else changed its reason meanwhile"), "{why}");
        assert_eq!(reason(&slurm).await, (true, Some("a fan is loud".to_owned())));
        assert!(slurm.reservations.borrow().is_empty());
    });
}

#[test]
fn a_harness_that_was_ended_in_the_middle_of_a_re_check_has_left_nothing_to_others() {
    wait(async {
        let slurm = Slurm::new();
        drain(&slurm, &wanted()).await;
        hold(&slurm, "p5-002", "p5-001").await.expect("held");
        // Another one finds it so.
        assert_eq!(take_up(&slurm, "p5-002").await, Ok(Leftover::Ended));
        assert_eq!(
            reason(&slurm).await,
            (true, Some("[harness] a re-check was interrupted before it passed".to_owned()))
        );
        assert!(slurm.reservations.borrow().is_empty());
        assert_eq!(take_up(&slurm, "p5-002").await, Ok(Leftover::Absent));
    });
}

#[test]
fn a_re_check_that_goes_on_is_left_alone() {
    for (user, jobs, why) in [
        (
            "alice",
            "",
            "reservation `harness_recheck_p5-002` is of user alice: a re-check may be going on; left as it is",
        ),
        (
            "ops",
            "71\n72\n",
            "a re-check is going on in reservation `harness_recheck_p5-002`, jobs 71 72; left as it is",
        ),
    ] {
        wait(async {
            let slurm = Slurm { user, jobs, ..Slurm::new() };
            drain(&slurm, &wanted()).await;
            hold(&slurm, "p5-002", "p5-001").await.expect("held");
            slurm.asked();
            assert_eq!(take_up(&slurm, "p5-002").await, Ok(Leftover::InUse(why.to_owned())));
            assert_eq!(hold(&slurm, "p5-002", "p5-001").await, Err(why.to_owned()));
            assert_eq!(slurm.asked(), Vec::<String>::new());
            assert_eq!(reason(&slurm).await, (false, None));
            assert_eq!(slurm.reservations.borrow().len(), 1);
        });
    }
}

/// Another call drains at the same moment: both have counted before either drained.
#[test]
fn nodes_that_another_call_drains_meanwhile_count_before_each_node_and_behind_it() {
    use cluster::drain::limits::Limits;
    let other =
        || vec!["scontrol", "update", "NodeName=p5-004", "State=DRAIN", "Reason=[harness] HRN-NIC-DEAD x"];
    let of = |node: &str| Wanted { node: node.into(), reason: OURS.into() };
    let wanted = [of("p5-002"), of("p5-003")];
    let limits = Limits::new(4, Some(2));
    let drained = |slurm: &Slurm| wait(drain_all(&SlurmQueue(slurm), &wanted, &limits));
    assert_eq!(drained(&Slurm::new()), (vec![Drained::Done, Drained::Done], None));
    let by_now = |n: usize| {
        Some(format!("{n} nodes now drained by the harness, limit 2: another harness drains nodes, too"))
    };
    let slurm = Slurm::new();
    *slurm.after.borrow_mut() = Some(("scontrol update NodeName=p5-002", other()));
    assert_eq!(drained(&slurm), (vec![Drained::Done], by_now(2)));
    assert!(!slurm.asked().iter().any(|line| line.contains("p5-003")));
    let slurm = Slurm::new();
    *slurm.before.borrow_mut() = Some(("scontrol update NodeName=p5-003", other()));
    assert_eq!(drained(&slurm), (vec![Drained::Done, Drained::Done], by_now(3)));
    // Slurm that does not say how many are drained has not said that few are.
    let slurm = Slurm { fails: Some("scontrol --all --oneliner show node"), ..Slurm::new() };
    let (done, stopped) = drained(&slurm);
    assert!(
        done.is_empty() && stopped.is_some_and(|why| why.contains("the number of drained nodes is unknown"))
    );
}
