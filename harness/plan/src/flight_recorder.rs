//! PyTorch's flight recorder in the plan of a training: what is set when its ranks start, so that a training that hangs can be
//! asked for dumps, and the files that it leaves then.

use super::container_path::path_inside;
use job::flight_recorder::{self, BUFFER, DUMP_PREFIX, ON_TIMEOUT, PIPE_PREFIX};
use job::script::{Run, Step};
use model::artefact::{ExpectedFile, FileKind};
use std::collections::BTreeMap;

/// Adds what is missing; what a person set stands. Whether dumps will lie in the job's folder.
pub(crate) fn ask(variables: &mut BTreeMap<String, String>, step: &Step, folder: &str) -> bool {
    let Step::Run(Run { container, .. }) = step else { return false };
    let seen = match container {
        Some(container) => path_inside(container, folder),
        None => Some(folder.to_owned()),
    };
    // Ranks that do not see the folder cannot write into it.
    let Some(seen) = seen else { return false };
    let is_set = |name: &&str| variables.contains_key(*name);
    let is_off = |name: &&str| variables.get(*name).is_some_and(|value| value.trim() == "0");
    // Dumps that somebody wants elsewhere are theirs.
    if DUMP_PREFIX.iter().any(&is_set) || is_set(&PIPE_PREFIX) || BUFFER.iter().any(is_off) {
        return false;
    }
    let one_of: [&[&str]; 2] = [&BUFFER, &ON_TIMEOUT];
    let own: Vec<&str> =
        one_of.into_iter().filter(|names| names.iter().any(&is_set)).flatten().copied().collect();
    for (name, value) in flight_recorder::variables(&seen) {
        if !own.contains(&name) {
            variables.insert(name.to_owned(), value);
        }
    }
    true
}

/// A dump of each rank, and what each node reports of the request for them.
pub(crate) fn expected(nodes: &[String], ranks: u32) -> Vec<ExpectedFile> {
    let file = |name, kind, node| ExpectedFile { name, kind, node, part: None, rank: None };
    let requests = nodes
        .iter()
        .map(|node| file(flight_recorder::request(node), FileKind::FlightRequest, Some(node.clone())));
    let dumps = (0..ranks).map(|rank| file(flight_recorder::dump(rank), FileKind::FlightDump, None));
    requests.chain(dumps).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use job::script::Container;

    fn step(mounts: Option<&[&str]>) -> Step {
        let container = mounts.map(|mounts| Container {
            runtime: None,
            image: "image".to_owned(),
            mounts: mounts.iter().map(|mount| (*mount).to_owned()).collect(),
            mount_home: false,
            remap_root: false,
            workdir: None,
            env: Vec::new(),
            name: None,
        });
        Step::Run(Run {
            argv: vec!["torchrun".to_owned()],
            tasks_per_node: 1,
            mpi: None,
            container,
            profile: None,
        })
    }

    fn asked(own: &[(&str, &str)], mounts: Option<&[&str]>) -> (bool, BTreeMap<String, String>) {
        let mut variables =
            own.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        (ask(&mut variables, &step(mounts), "/fsx/r/c/j"), variables)
    }

    #[test]
    fn dumps_are_asked_for_where_the_ranks_see_the_jobs_folder() {
        let prefix = |all: &BTreeMap<String, String>| all.get("TORCH_FR_DUMP_TEMP_FILE").cloned();
        let (is_asked, all) = asked(&[], None);
        assert_eq!((is_asked, prefix(&all).as_deref(), all.len()), (true, Some("/fsx/r/c/j/fr_trace."), 7));
        let (is_asked, all) = asked(&[], Some(&["/fsx:/data"]));
        assert_eq!((is_asked, prefix(&all).as_deref()), (true, Some("/data/r/c/j/fr_trace.")));
        assert_eq!(asked(&[], Some(&["/home:/home"])), (false, BTreeMap::new()));
    }

    #[test]
    fn what_a_person_set_stands() {
        let (is_asked, all) = asked(&[("TORCH_FR_BUFFER_SIZE", "9000")], None);
        assert!(is_asked && !all.contains_key("TORCH_NCCL_TRACE_BUFFER_SIZE"));
        assert_eq!(all["TORCH_FR_BUFFER_SIZE"], "9000");
        let elsewhere = [
            ("TORCH_NCCL_TRACE_BUFFER_SIZE", "0"),
            ("TORCH_NCCL_DEBUG_INFO_TEMP_FILE", "/tmp/own_"),
            ("TORCH_NCCL_DEBUG_INFO_PIPE_FILE", "/tmp/own_"),
        ];
        for own in elsewhere {
            let (is_asked, all) = asked(&[own], None);
            assert_eq!((is_asked, all.len()), (false, 1), "{own:?}");
        }
    }
}
