//! Pods of the harness that no run's folder here knows: of probes, field kits and analyses whose harness was killed, and of
//! runs of other projects. They are known by their labels and their names, and deleted only where the process that made
//! them is known to have ended: others' pods have the same labels where users share an account.

use super::kubectl::Kubectl;
use super::life::{LIST_LIMIT, Life, PodLeft};
use super::maker::{self, Maker};
use super::manifest::{MANAGED_BY, OWNER, PodOwner, RUN, label};
use super::state::{self, PodState};
use super::tasks::analysis_of;
use config::inventory::KubernetesReach;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Orphan {
    /// As the server lists it.
    pub pod: PodLeft,
    /// The run, probe or analysis that its label names.
    pub run: String,
    /// Since it was made, where that is known.
    pub age_s: Option<u64>,
    /// What it does, in the server's own words.
    pub state: String,
    /// Whether it is in use.
    pub maker: Maker,
    waits: bool,
}

/// The pods of a user in one namespace, by the user's own kubectl.
pub struct Orphans {
    kubectl: Kubectl,
    person: String,
}

impl Orphans {
    /// Asks nothing yet.
    pub fn new(reach: &KubernetesReach, person: &str) -> Orphans {
        Orphans { kubectl: Kubectl::from_reach(reach), person: person.to_owned() }
    }

    /// Those of no run of these ids; first those that wait, which take their devices as soon as these are free.
    pub async fn find(&self, runs: &[String]) -> Result<Vec<Orphan>, String> {
        let (key, value) = MANAGED_BY;
        let selector = format!("--selector={key}={value},{OWNER}={}", label(&self.person));
        let words = ["get", "pods", &selector, "--output=json"].map(str::to_owned);
        let failed = |why: String| format!("`kubectl get pods`: {why}");
        let answer = self.kubectl.ask(&words, b"", LIST_LIMIT).await.map_err(|error| error.to_string())?;
        match answer.succeeded {
            true => read(&answer.stdout, &self.person, runs).map_err(failed),
            false => Err(failed(answer.complaint())),
        }
    }

    /// As a person would delete it.
    pub fn command(&self, orphan: &Orphan) -> String {
        self.kubectl.command(&["delete", "pod", &orphan.pod.name])
    }

    /// Deletes these, each where it is still the same. Gives those that stay, with the reason.
    pub async fn delete(&self, orphans: &[Orphan]) -> Result<Vec<(PodLeft, String)>, String> {
        let mut of_runs: BTreeMap<&str, Vec<PodLeft>> = BTreeMap::new();
        for orphan in orphans {
            of_runs.entry(&orphan.run).or_default().push(orphan.pod.clone());
        }
        let mut stay = Vec::new();
        for (run, pods) in of_runs {
            let life = Life { kubectl: &self.kubectl, owner: &owner(run) };
            stay.extend(life.delete(&pods).await.map_err(|error| error.to_string())?);
        }
        Ok(stay)
    }
}

fn owner(run: &str) -> PodOwner {
    PodOwner { run: run.to_owned(), person: String::new(), process: None }
}

fn read(list: &[u8], person: &str, runs: &[String]) -> Result<Vec<Orphan>, String> {
    let facts = state::read(list)?;
    let known: BTreeSet<String> =
        runs.iter().flat_map(|run| [label(run), label(&analysis_of(run))]).collect();
    let list: Value = serde_json::from_slice(list).map_err(|error| error.to_string())?;
    let items = list["items"].as_array().map_or(&[][..], Vec::as_slice);
    let one = |item: &Value| {
        let labels = &item["metadata"]["labels"];
        let is_ours = labels[MANAGED_BY.0] == MANAGED_BY.1 && labels[OWNER] == label(person).as_str();
        let run =
            labels[RUN].as_str().filter(|run| is_ours && label(run) == *run && !known.contains(*run))?;
        // A copy that somebody made of a pod has its labels, and another name.
        let name = item["metadata"]["name"].as_str().filter(|name| owner(run).is_own(name))?;
        let facts = facts.get(name)?;
        let state = match &facts.state {
            PodState::Running => "runs".to_owned(),
            PodState::Waiting(why) => format!("waits: {why}"),
            PodState::Over(why) => format!("is over: {why}"),
            PodState::NodeSilent(why) => format!("is on a silent node: {why}"),
        };
        Some(Orphan {
            pod: PodLeft::new(name, facts),
            run: run.to_owned(),
            age_s: item["metadata"]["creationTimestamp"].as_str().and_then(age_s),
            state,
            maker: maker::find(
                item["metadata"]["annotations"][maker::ANNOTATION].as_str().unwrap_or_default(),
            ),
            waits: matches!(facts.state, PodState::Waiting(_)),
        })
    };
    let mut found: Vec<Orphan> = items.iter().filter_map(one).collect();
    found.sort_by(|a, b| (!a.waits, &a.run, &a.pod).cmp(&(!b.waits, &b.run, &b.pod)));
    Ok(found)
}

fn age_s(made: &str) -> Option<u64> {
    let made = OffsetDateTime::parse(made, &Rfc3339).ok()?;
    let now = store::wall_clock_s() as u64;
    Some(now.saturating_sub(u64::try_from(made.unix_timestamp()).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const PROBE: &str = "20260101T000001Z-probe-0001";

    fn pod(run: &str, name: &str, owner: &str, status: &Value) -> Value {
        json!({
            "metadata": {
                "name": name, "uid": "u1", "creationTimestamp": "2026-01-01T00:00:00Z",
                "labels": { "app.kubernetes.io/managed-by": "harness", "harness/owner": owner, "harness/run": run },
                "annotations": { "harness/process": "elsewhere 1 2" },
            },
            "spec": { "nodeName": "n1" },
            "status": status,
        })
    }

    #[test]
    fn pods_of_known_runs_of_others_and_copies_are_no_orphans_and_those_that_wait_come_first() {
        let running = json!({ "phase": "Running", "containerStatuses": [{ "name": "work", "ready": true, "state": { "running": {} } }] });
        let waiting = json!({ "phase": "Pending", "conditions": [
            { "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/2 nodes" }] });
        let own = |run: &str, node: &str| owner(run).pod(node);
        let analysis = format!("analysis-{PROBE}");
        let items = json!({ "items": [
            pod(PROBE, &own(PROBE, "n1"), "jo", &running),
            pod(PROBE, &own(PROBE, "n2"), "jo", &waiting),
            pod("known", &own("known", "n1"), "jo", &running),
            pod("analysis-known", &own("analysis-known", "x 1"), "jo", &running),
            pod(&analysis, &own(&analysis, "x 1"), "jo", &running),
            pod(PROBE, "harness-copy-1", "jo", &running),
            pod(PROBE, &own(PROBE, "n3"), "kim", &running),
            pod("a b", &own("a b", "n1"), "jo", &running),
            json!({ "metadata": { "name": "x", "uid": "1" } }),
        ] });
        let found = read(items.to_string().as_bytes(), "jo", &["known".to_owned()]).expect("a list");
        let short: Vec<(&str, &str, Maker)> =
            found.iter().map(|one| (one.run.as_str(), one.state.as_str(), one.maker)).collect();
        assert_eq!(
            short,
            [
                (PROBE, "waits: Unschedulable: 0/2 nodes", Maker::Unknown),
                (PROBE, "runs", Maker::Unknown),
                (analysis.as_str(), "runs", Maker::Unknown),
            ]
        );
        assert_eq!(found[0].pod.name, own(PROBE, "n2"));
        assert!(read(b"{}", "jo", &[]).is_err() && read(b"no list", "jo", &[]).is_err());
    }

    #[test]
    fn an_age_is_known_or_not() {
        assert!(age_s("2020-01-01T00:00:00Z").is_some_and(|age| age > 365 * 86_400));
        assert_eq!(age_s("2999-01-01T00:00:00Z"), Some(0));
        assert_eq!((age_s(""), age_s("yesterday")), (None, None));
    }
}
