//! What the ssh launcher makes of the answers of a job's nodes, and of nodes that give none.

use super::*;

pub fn job(nodes: &[&str]) -> PlannedJob {
    PlannedJob {
        name: "j".into(),
        nodes: nodes.iter().map(|node| (*node).to_owned()).collect(),
        round: 1,
        ranks: 16,
        folder: "/f".into(),
        files: Vec::new(),
        launch: launch_argv("/f", 300),
        expected: Vec::new(),
        estimate_s: 1,
        limit_s: 60,
        profile: None,
    }
}
