//! Which hardware is the same under an old name, and which is not.

use super::*;

fn hardware(machine: &str, gpus: &[&str]) -> Hardware {
    let mut facts = BTreeMap::new();
    if !machine.is_empty() {
        facts.insert("machine".to_owned(), Value::Text(machine.to_owned()));
    }
    let row = |(at, id): (usize, &&str)| format!("gpu{at} GPU-{id} 165{at}");
    if !gpus.is_empty() {
        facts.insert("gpu_ids".to_owned(), Value::Names(gpus.iter().enumerate().map(row).collect()));
    }
    Hardware::from_facts(&facts).expect("known")
}

#[test]
fn a_node_is_another_where_most_of_its_gpus_are_and_by_its_id_where_no_gpu_is_known() {
    let then = hardware("i-1", &["a", "b", "c", "d"]);
    for (now, is_other) in [
        (hardware("i-1", &["a", "b", "c", "d"]), false),
        // An instance that was stopped and started keeps its id.
        (hardware("i-1", &["e", "f", "g", "h"]), true),
        // One that was made again on the same machine has another.
        (hardware("i-2", &["d", "c", "b", "a"]), false),
        (hardware("i-1", &["a", "b", "c", "x"]), false),
        (hardware("i-1", &["a", "x", "y", "z"]), true),
        // Two are missing: nothing was replaced.
        (hardware("i-1", &["a", "d"]), false),
        (hardware("i-1", &[]), false),
        (hardware("i-2", &[]), true),
    ] {
        assert_eq!(then.is_other(&now), is_other, "{now:?}");
    }
    assert!(!hardware("", &["a"]).is_other(&hardware("i-1", &[])), "unknown is not other");
    assert_eq!(Hardware::from_facts(&BTreeMap::new()), None);
}

#[test]
fn a_part_is_gone_with_its_node_or_where_another_gpu_is_in_its_place() {
    let then = hardware("i-1", &["a", "b", "c", "d"]);
    let replaced = hardware("i-1", &["a", "x", "c", "d"]);
    assert!(then.is_gone("gpu1", &replaced));
    assert!(!then.is_gone("gpu0", &replaced) && !then.is_gone("node", &replaced));
    assert!(!then.is_gone("rdmap79s0", &replaced));
    // The driver lost one, and gives the others new numbers.
    assert!(!then.is_gone("gpu1", &hardware("i-1", &["a", "c", "d"])));
    let other = hardware("i-1", &["e", "f", "g", "h"]);
    assert!(
        then.is_gone("node", &other) && then.is_gone("gpu1", &other) && then.is_gone("rdmap79s0", &other)
    );
}

#[test]
fn rows_that_name_no_gpu_are_left_out() {
    let rows = ["gpu0 GPU-a 1", "gpux GPU-b 1", "gpu1", "gpu2 MIG-c", "", "gpu3 GPU-d"];
    let facts = BTreeMap::from([(
        "gpu_ids".to_owned(),
        Value::Names(rows.iter().map(|row| (*row).to_owned()).collect()),
    )]);
    let known = Hardware::from_facts(&facts).expect("some");
    assert_eq!(known.gpus.keys().map(String::as_str).collect::<Vec<_>>(), ["gpu0", "gpu3"]);
}

#[test]
fn evidence_is_not_used_where_anything_that_it_may_be_about_was_replaced() {
    let then = hardware("i-1", &["a", "b", "c", "d"]);
    let replaced = hardware("i-1", &["a", "x", "c", "d"]);
    assert!(then.may_be_gone("node", &replaced) && then.may_be_gone("gpu1", &replaced));
    assert!(!then.may_be_gone("gpu0", &replaced));
    assert!(!then.may_be_gone("node", &then) && !then.may_be_gone("rdmap79s0", &then));
    let with = |guid: &str| {
        let rows = vec![format!("rdmap79s0 {guid} 0000:4f:00.0"), "rdmap80s0 0000:50:00.0".to_owned()];
        Hardware::from_facts(&BTreeMap::from([("nic_ids".to_owned(), Value::Names(rows))])).expect("known")
    };
    let (one, other) = (with("0000000000000001"), with("0000000000000002"));
    assert!(one.may_be_gone("rdmap79s0", &other) && !one.may_be_gone("rdmap79s0", &one));
    assert!(!one.may_be_gone("rdmap80s0", &other), "without a GUID");
    let rows = vec!["rdmap79s0 0000:0000:0000:0000 0000:4f:00.0".to_owned()];
    assert_eq!(Hardware::from_facts(&BTreeMap::from([("nic_ids".to_owned(), Value::Names(rows))])), None);
}
