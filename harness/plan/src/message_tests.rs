//! Why settings of a command line are refused: every message.

use super::apply_settings;
use config::suite::Suite;
use std::collections::BTreeMap;

#[test]
fn messages_of_settings() {
    let set = |key: &str, value: &str| {
        let text = "instance = \"p5\"\nabout = \"a test\"\n[[case]]\nname = \"one\"\nrecipes = [\"nic_flows\"]\nlimit_s = 60\n\
                    placement = \"pairs\"\nworkload = { kind = \"nic-pairs\" }\n\
                    assert = [{ metric = \"nic.rate\", per = \"nic\", at_least = \"11 GB/s\" }]\n";
        let suite = Suite::read(text, "suites/x.toml").map_err(|why| why.to_string()).expect("good");
        let settings = BTreeMap::from([(key.to_owned(), value.to_owned())]);
        apply_settings(&mut [suite], &settings).err().unwrap_or_default().join("; ")
    };
    let lines = [
        set("limit_z", "1"),
        set("quux", "1"),
        set("two.limit_s", "1"),
        set("iterations", "1"),
        set("limit_s", "0"),
        set("interval_s", "0.1"),
    ];
    insta::assert_snapshot!(lines.join("\n"));
}
