//! The writer's lines against the published samples, key by key. Its reader is another crate's, and shares no code with it.

use super::record::{self, Call, Member};
use crate::inspector_wanted::Plugin;
use metric::op::Op;
use serde_json::Value;
use std::collections::BTreeMap;

fn lines() -> Vec<Value> {
    let member = Member {
        id: 0x007f_8c49_6ae9_f661,
        rank: 2,
        ranks: 8,
        nodes: 1,
        host: "example-hostname",
        pid: 1_639_453,
    };
    let mut text = String::new();
    record::marker(&mut text, &member, 1_748_030_377_748_202, 1, (4096, 512));
    let call = Call { coll: "AllReduce", op: Op::AllReduce, number: 1407, bytes: 17_179_869_184, us: 61_974 };
    record::call(&mut text, &member, 1_748_030_377_748_202, &call);
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// As NVIDIA's documentation of v4.1 and v4.2 has them, with their values.
#[test]
fn lines_have_the_keys_and_values_of_the_published_samples() {
    let lines = lines();
    let published: Value = serde_json::from_str(
        r#"{"coll": "AllReduce", "coll_algo": "RING", "coll_sn": 1407, "coll_msg_size_bytes": 17179869184,
            "coll_exec_time_us": 61974, "coll_timing_source": "kernel_gpu",
            "coll_algobw_gbs": 277.210914, "coll_busbw_gbs": 485.119099}"#,
    )
    .expect("JSON");
    for (key, value) in published.as_object().expect("an object") {
        match (value.as_f64(), lines[1]["coll_perf"][key].as_f64()) {
            (Some(published), Some(own)) => {
                assert!((published - own).abs() < 1e-4, "{key}: {published} {own}")
            }
            _ => assert_eq!(&lines[1]["coll_perf"][key], value, "{key}"),
        }
    }
    let stats: Value = serde_json::from_str(
        r#"{"coll_records": 1, "coll_dropped_total": 4096, "coll_dropped_since_last_dump": 512,
            "p2p_records": 0, "p2p_dropped_total": 0, "p2p_dropped_since_last_dump": 0}"#,
    )
    .expect("JSON");
    assert_eq!(lines[0]["dump_stats"], stats);
    for line in &lines {
        let header = &line["header"];
        assert_eq!((header["id"].as_str(), header["rank"].as_u64()), (Some("0x7f8c496ae9f661"), Some(2)));
        assert_eq!((header["n_ranks"].as_u64(), header["nnodes"].as_u64()), (Some(8), Some(1)));
        let metadata: Vec<&String> = line["metadata"].as_object().expect("an object").keys().collect();
        for key in [
            "inspector_output_format_version",
            "git_rev",
            "rec_mechanism",
            "dump_timestamp_us",
            "hostname",
            "pid",
        ] {
            assert!(metadata.iter().any(|known| *known == key), "{key}");
        }
    }
}

#[test]
fn with_its_own_defaults_the_plugin_writes_nothing() {
    let of = |more: &[(&str, &str)]| {
        let usual = [
            ("NCCL_PROFILER_PLUGIN", "inspector"),
            ("NCCL_INSPECTOR_ENABLE", "1"),
            ("NCCL_INSPECTOR_DUMP_DIR", "/fsx/r/c/j/inspector"),
        ];
        let all: BTreeMap<String, String> =
            usual.iter().chain(more).map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Plugin::from_variables(&all)
    };
    let interval = ("NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS", "100000");
    assert_eq!(of(&[]).interval_s, None);
    let on = of(&[interval]);
    assert_eq!((on.interval_s, on.min_bytes, on.ring), (Some(0.1), 8192, 1024));
    assert_eq!(of(&[interval, ("NCCL_INSPECTOR_DUMP_COLL_RING_SIZE", "0")]).ring, 1);
    for off in [
        ("NCCL_INSPECTOR_PROM_DUMP", "1"),
        ("NCCL_INSPECTOR_DUMP_DIR", "/tmp"),
        ("NCCL_INSPECTOR_ENABLE", "0"),
    ] {
        assert_eq!(of(&[interval, off]).interval_s, None, "{off:?}");
    }
}
