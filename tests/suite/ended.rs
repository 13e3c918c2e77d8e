//! How `harness recipe all` may end for a recipe.

use serde_json::Value;

/// Each recipe gave tables, or says why it gives none.
#[track_caller]
pub(crate) fn assert_ended(summary: &Value) {
    for line in summary["recipes"].as_array().expect("a list") {
        let is_reported = match line["outcome"].as_str() {
            Some("ok") => line["folder"].is_string(),
            Some("found none") => line["looked_at"].as_u64() > Some(0) || line["notes"][0].is_string(),
            Some("no data") => line["absent"][0].is_string(),
            _ => false,
        };
        assert!(is_reported, "{}: {line}", summary["reports"]);
    }
}
