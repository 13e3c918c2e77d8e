//! What the pods of a manifest recorded: what it was rendered from, where each of them was, and how its part of each job
//! ended. All of it is read with a bound, and anything odd is an error by the name of its file.

use super::folder::AttachedFolder;
use crate::manifest::{ManifestRecord, SlotPlan, check_name, jobs};
use base::text::show;
use cluster::reach::{Host, Reach, ReachError};
use job::script::files;
use model::artefact::{Blamed, Ended, JobRecord, PlannedCase, PlannedJob};
use std::collections::{BTreeMap, BTreeSet};

/// Of one record. Most have less than a line.
const LONGEST: usize = 16 << 10;
/// Moments before 2020 are no moments of a run.
const FIRST: u64 = 1_577_836_800;
/// So far the clock of a node may be ahead of the one here.
const AHEAD_S: f64 = 3600.0;

/// Where a pod was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PodPlace {
    pub(super) node: String,
    pod: String,
    number: usize,
}

/// How a pod's part of a job ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PartEnd {
    code: i32,
    reason: Reason,
    began: u64,
    ended: u64,
}

/// What ended it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reason {
    Itself,
    Limit,
    Peer,
    Asked,
}

/// All that the pods recorded.
#[derive(Debug)]
pub(super) struct Recorded {
    /// In the order of the ranks, which is that of the names of the nodes.
    pub(super) places: Vec<PodPlace>,
    /// By the names of jobs, then as `places`.
    pub(super) ends: BTreeMap<String, Vec<PartEnd>>,
}

/// What the manifest of a folder was rendered from, as the folder says.
pub(super) async fn read_manifest(here: &str, case: &str) -> Result<ManifestRecord, String> {
    let is_name = !case.is_empty() && !case.contains('/') && case != "..";
    if !is_name {
        return Err(format!("no case of this name: `{}`", show(case)));
    }
    let reach = AttachedFolder::new("/attached".to_owned(), here.to_owned());
    let text = get(&reach, &format!("/attached/{case}/_pods/record")).await.map_err(|error| match error {
        ReadError::Absent => format!(
            "it has no `{case}/_pods/record`, which pods of the case write once all of them are there; \
             it may be another folder, or of another case"
        ),
        ReadError::Odd(why) => why,
    })?;
    let found: ManifestRecord = serde_json::from_str(&text)
        .map_err(|error| format!("`{case}/_pods/record` is no record of a manifest: {error}"))?;
    check_name(&found.name).map_err(|why| format!("`{case}/_pods/record`: {why}"))?;
    Ok(found)
}

/// What each of the pods recorded, of all that were planned.
pub(super) async fn read(reach: &dyn Reach, planned: &SlotPlan) -> Result<Recorded, String> {
    let latest = (store::wall_clock_s() + AHEAD_S) as u64;
    let state = format!("{}/{}/_pods", planned.folder(), planned.record.case);
    let pods = planned.record.pods as usize;
    let mut places: Vec<PodPlace> = Vec::new();
    let mut taken = BTreeSet::new();
    for at in 0..pods {
        let name = format!("place.{at}");
        let text = get(reach, &format!("{state}/{name}")).await.map_err(|error| match error {
            ReadError::Absent => {
                format!("incomplete: pod {at} of {pods} left no `_pods/{name}`, it never ran")
            }
            ReadError::Odd(why) => why,
        })?;
        let place = place(&text, at)
            .ok_or_else(|| format!("`_pods/{name}` names no node: `{}`", show(text.trim())))?;
        if !planned.candidates.contains(&place.node) {
            let file = &planned.inventory.file;
            return Err(format!(
                "pod {at} was on {}, which is no node of {file} that was asked for",
                place.node
            ));
        }
        if !taken.insert(place.node.clone()) {
            return Err(format!("two pods were on {}, and the case has one on each node", place.node));
        }
        places.push(place);
    }
    places.sort_by(|a, b| a.node.cmp(&b.node));
    let mut ends = BTreeMap::new();
    for job in jobs(planned.case()) {
        let mut of_job = Vec::new();
        for PodPlace { node, pod, number } in &places {
            let name = format!("ended.{}.{number}", job.name);
            let text = get(reach, &format!("{state}/{name}")).await.map_err(|error| match error {
                ReadError::Absent => {
                    format!(
                        "not ended: no `_pods/{name}` by pod {} on {node}; it runs still, or was killed",
                        show(pod)
                    )
                }
                ReadError::Odd(why) => why,
            })?;
            let end = end(&text, latest)
                .ok_or_else(|| format!("`_pods/{name}` is no end of a job: `{}`", show(text.trim())))?;
            of_job.push(end);
        }
        ends.insert(job.name.clone(), of_job);
    }
    Ok(Recorded { places, ends })
}

enum ReadError {
    Absent,
    Odd(String),
}

/// A short file of the pods.
async fn get(reach: &dyn Reach, path: &str) -> Result<String, ReadError> {
    match reach.get(&Host::Here, path).await {
        Ok(bytes) if bytes.len() > LONGEST => {
            Err(ReadError::Odd(format!("`{path}` has {} bytes, the limit is {LONGEST}", bytes.len())))
        }
        Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Err(ReachError::NotFound { .. }) => Err(ReadError::Absent),
        Err(error) => Err(ReadError::Odd(error.to_string())),
    }
}

fn place(text: &str, number: usize) -> Option<PodPlace> {
    let value = |key: &str| text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' '));
    let node = value("node")?;
    let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.".contains(c);
    let ends = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let is_name =
        node.len() <= 253 && node.starts_with(ends) && node.ends_with(ends) && node.chars().all(inner);
    is_name.then(|| PodPlace {
        node: node.to_owned(),
        pod: value("pod").unwrap_or_default().to_owned(),
        number,
    })
}

/// Nothing has ended later than the latest moment.
fn end(text: &str, latest: u64) -> Option<PartEnd> {
    let line = text.strip_suffix('\n')?;
    let [code, reason, began, ended] = line.split(' ').collect::<Vec<_>>()[..] else { return None };
    let reason = match reason {
        "itself" => Reason::Itself,
        "limit" => Reason::Limit,
        "peer" => Reason::Peer,
        "asked" => Reason::Asked,
        _ => return None,
    };
    let (code, began, ended) = (code.parse().ok()?, began.parse().ok()?, ended.parse().ok()?);
    let is_sound = (0..256).contains(&code) && FIRST <= began && began <= ended && ended <= latest;
    is_sound.then_some(PartEnd { code, reason, began, ended })
}

impl Recorded {
    /// When the first part began, in seconds since 1970.
    pub(super) fn began(&self) -> u64 {
        self.ends.values().flatten().map(|end| end.began).min().unwrap_or_default()
    }

    /// When the last part ended.
    pub(super) fn ended(&self) -> u64 {
        self.ends.values().flatten().map(|end| end.ended).max().unwrap_or_default()
    }

    /// How each job went.
    pub(super) fn jobs(&self, case: &PlannedCase) -> Vec<JobRecord> {
        let record = |job: &PlannedJob| {
            let parts = self.ends.get(&job.name).map_or(&[][..], Vec::as_slice);
            let (end, blamed) = outcome(job, parts);
            let began = parts.iter().map(|part| part.began).min();
            let ended = parts.iter().map(|part| part.ended).max();
            JobRecord {
                name: job.name.clone(),
                handle: Some(job.folder.clone()),
                submitted: None,
                started: began.map(|moment| store::iso8601(moment as f64)),
                ended: ended.map(|moment| store::iso8601(moment as f64)),
                seconds: began.zip(ended).map(|(began, ended)| (ended - began) as f64),
                end,
                blamed,
                findings: Vec::new(),
            }
        };
        jobs(case).map(record).collect()
    }
}

/// What a job has come to. Where a part was to end, having seen no failure, or was over its limit, its peers may have failed
/// for its sake: no node is blamed. A part that failed by itself is blamed where it is the only one: the clocks of nodes say
/// too little about which of several was first. What it printed may clear it: see `lost_peer`.
fn outcome(job: &PlannedJob, parts: &[PartEnd]) -> (Ended, Option<Blamed>) {
    let any = |reason: Reason| parts.iter().any(|part| part.reason == reason);
    if any(Reason::Asked) {
        return (Ended::Cancelled, None);
    }
    if any(Reason::Limit) {
        return (Ended::TimeLimit { limit_s: job.limit_s }, None);
    }
    let failed = |part: &&PartEnd| part.reason == Reason::Itself && part.code != 0;
    if let Some(worst) = parts.iter().filter(failed).max_by_key(|part| part.code) {
        let code = worst.code;
        // The one mpirun of a job speaks for the ranks of all its nodes.
        let speaks_for_all = job.files.iter().any(|file| file.name == files::HOSTFILE);
        let alone = parts.iter().filter(failed).count() == 1 && !speaks_for_all;
        let at = parts.iter().position(|part| failed(&part));
        let node = at.and_then(|at| job.nodes.get(at)).filter(|_| alone);
        let evidence = || format!("its pod was the only one to fail by itself, with exit code {code}");
        let blamed = node.map(|node| Blamed { node: node.clone(), evidence: evidence() });
        return (Ended::Exited { code }, blamed);
    }
    let end = match () {
        () if parts.is_empty() => Ended::Lost { why: "no pod recorded an end".to_owned() },
        () if any(Reason::Peer) => Ended::Lost {
            why: "a pod ended its part since another had failed, and none recorded that".to_owned(),
        },
        () => Ended::Exited { code: 0 },
    };
    (end, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_records_are_read() {
        let read = |text: &str| end(text, 1_800_000_000).map(|end| (end.code, end.reason));
        assert_eq!(read("0 itself 1790000000 1790000009\n"), Some((0, Reason::Itself)));
        assert_eq!(read("143 asked 1790000000 1790000009\n"), Some((143, Reason::Asked)));
        for odd in [
            "",
            "0 itself 1790000000 1790000009",
            "0 itself 1790000009 1790000000\n",
            "0 itself 1 2\n",
            "0 itself 1790000000 99999999999999999999\n",
            "0 itself 1790000000 1800000001\n",
            "256 itself 1790000000 1790000009\n",
            "-1 itself 1790000000 1790000009\n",
            "0 somehow 1790000000 1790000009\n",
            "0 itself 1790000000 1790000009 more\n",
        ] {
            assert_eq!(read(odd), None, "{odd}");
        }
    }

    #[test]
    fn a_place_has_a_name_that_a_node_can_have() {
        let node = |text: &str| place(text, 0).map(|place| place.node);
        assert_eq!(
            node("node ip-10-0-1-2.ec2.internal\npod a\nip 1.2.3.4\n").as_deref(),
            Some("ip-10-0-1-2.ec2.internal")
        );
        for odd in [
            "",
            "node \n",
            "node a b\n",
            "node ../x\n",
            "node N1\n",
            "node -a\n",
            "nodes n1\n",
            "node a\"b\n",
        ] {
            assert_eq!(node(odd), None, "{odd}");
        }
    }

    #[test]
    fn one_part_that_fails_by_itself_is_blamed_and_those_that_ended_for_it_are_not() {
        let part =
            |code: i32, reason: Reason| PartEnd { code, reason, began: 1_790_000_000, ended: 1_790_000_009 };
        let mut job = fixture::plan().cases[0].jobs[0].clone();
        job.nodes = vec!["n1".to_owned(), "n2".to_owned()];
        job.files.retain(|file| file.name != files::HOSTFILE);
        let ended = |parts: &[PartEnd]| {
            let (end, blamed) = outcome(&job, parts);
            (end, blamed.map(|blamed| blamed.node))
        };
        let (fine, bad) = (part(0, Reason::Itself), part(1, Reason::Itself));
        let blamed = (Ended::Exited { code: 1 }, Some("n2".to_owned()));
        assert_eq!(ended(&[fine, fine]), (Ended::Exited { code: 0 }, None));
        assert_eq!(ended(&[fine, bad]), blamed);
        assert_eq!(ended(&[part(143, Reason::Peer), bad]), blamed);
        assert_eq!(ended(&[bad, bad]), (Ended::Exited { code: 1 }, None));
        let over = Ended::TimeLimit { limit_s: job.limit_s };
        assert_eq!(ended(&[part(143, Reason::Limit), fine]), (over.clone(), None));
        assert_eq!(ended(&[part(0, Reason::Asked), fine]), (Ended::Cancelled, None));
        assert!(matches!(ended(&[part(143, Reason::Peer), fine]), (Ended::Lost { .. }, None)));
        assert!(matches!(ended(&[]), (Ended::Lost { .. }, None)));
        // These had ended before they saw that another failed: it may have failed for their sake.
        assert_eq!(ended(&[part(143, Reason::Asked), bad]), (Ended::Cancelled, None));
        assert_eq!(ended(&[part(143, Reason::Limit), bad]), (over.clone(), None));
        assert_eq!(ended(&[part(143, Reason::Limit), part(143, Reason::Peer), bad]), (over.clone(), None));
        assert_eq!(
            ended(&[part(143, Reason::Limit), part(143, Reason::Asked), bad]),
            (Ended::Cancelled, None)
        );
    }
}
