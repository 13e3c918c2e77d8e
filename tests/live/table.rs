//! What failures came to, as a table: a row for each failure that a test has brought about, made of what was seen. A row
//! that is not as it must be fails its test; all of them are printed once the tests have run.

use crate::project::{Project, Ran};
use std::collections::BTreeMap;
use std::sync::Mutex;

/// What is in the columns behind the failure: the verdicts that are no pass, who is blamed, the verdicts that pass, and
/// what still runs or waits in a queue.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Row {
    pub verdict: String,
    pub culprit: String,
    pub others: String,
    pub left: String,
}

static ROWS: Mutex<BTreeMap<&'static str, Row>> = Mutex::new(BTreeMap::new());

impl Row {
    pub(crate) fn new(verdict: &str, culprit: &str, others: &str) -> Row {
        let [verdict, culprit, others] = [verdict, culprit, others].map(str::to_owned);
        Row { verdict, culprit, others, left: "nothing".to_owned() }
    }

    /// Of the newest run. Every assertion of every case must have its one verdict.
    #[track_caller]
    pub(crate) fn seen(project: &Project, ran: &Ran, left: &str) -> Row {
        let plan = project.json("plan.json");
        let mut odd: BTreeMap<String, usize> = BTreeMap::new();
        let mut passed = 0;
        for planned in plan["cases"].as_array().expect("cases") {
            let case = planned["name"].as_str().expect("a name");
            let file = project.json(&format!("cases/{case}/verdict.json"));
            let judged = file["verdicts"].as_array().expect("verdicts");
            assert_eq!(judged.len(), planned["assertions"].as_array().expect("assertions").len(), "{case}");
            for verdict in judged {
                let word = |key: &str| verdict[key].as_str().unwrap_or_default();
                match word("status") {
                    "pass" => passed += 1,
                    status => {
                        *odd.entry(format!("{status} {}", word("cause")).trim_end().to_owned())
                            .or_default() += 1
                    }
                }
            }
        }
        let verdict: Vec<String> = odd.iter().map(|(what, many)| format!("{many} {what}")).collect();
        let or = |text: String, nothing: &str| if text.is_empty() { nothing.to_owned() } else { text };
        Row {
            verdict: or(verdict.join(", "), "pass"),
            culprit: or(ran.blamed().join(", "), "none"),
            others: format!("{passed} pass"),
            left: or(left.trim().replace('\n', "; "), "nothing"),
        }
    }
}

/// Takes down what was seen of a failure, which must be what is wanted.
#[track_caller]
pub(crate) fn note(failure: &'static str, seen: Row, wanted: &Row, ran: &Ran) {
    let rows = ROWS.lock();
    rows.unwrap_or_else(|poisoned| poisoned.into_inner()).insert(failure, seen.clone());
    assert_eq!(&seen, wanted, "{failure}: {}", ran.all());
}

/// Of all that was taken down.
pub(crate) fn print() {
    let rows = ROWS.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if rows.is_empty() {
        return;
    }
    println!("failure | verdict | culprit | others | left");
    for (failure, Row { verdict, culprit, others, left }) in rows.iter() {
        println!("{failure} | {verdict} | {culprit} | {others} | {left}");
    }
}
