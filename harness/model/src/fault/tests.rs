//! Every written form of a fault is read and written back, and what is none is refused.

use super::*;

#[test]
fn every_written_form_is_read_and_written_back() {
    for form in Fault::FORMS {
        let text = format!(
            "p5-002:{}",
            form.replace("=F", "=0.4")
                .replace("=MS", "=2.5")
                .replace("=MIN", "=40")
                .replace("=MB", "=200")
                .replace("=STEP", "=7")
                .replace("=PPM", "=-20")
                .replace("DEV", "rdmap113s0")
                .replace("@RANK", "@3")
                .replace("@N", "@3")
        );
        assert_eq!(NodeFault::parse(&text).map(|fault| fault.to_string()), Ok(text));
    }
}

const REFUSED: [(&str, &str); 20] = [
    ("p5-002:throttles-after=-1@3", "between 0 and 10080"),
    ("p5-002:nic-flaps=5", "NODE:nic-flaps=MIN@DEV"),
    ("p5-002:driver-leaks=0", "above 0"),
    ("hang", "NODE:FAULT"),
    (":hang", "no node before the colon"),
    ("p5-002:hnag", "did you mean `hang`?"),
    ("p5-002:nic-slow@rdmap113s0", "NODE:nic-slow=F@DEV"),
    ("p5-002:nic-slow=1.5@rdmap113s0", "between 0 and 1"),
    ("p5-002:nic-slow=NaN@rdmap113s0", "between 0 and 1"),
    ("p5-002:nic-dead", "NODE:nic-dead@DEV"),
    ("p5-002:hang@3", "NODE:hang"),
    ("p5-002:corrupt@x", "a GPU is a number"),
    ("p5-002:straggler=5", "NODE:straggler=MS@RANK"),
    ("p5-002:straggler=-5@1", "above 0"),
    ("p5-002:straggler=5@x", "a rank of a node is a number"),
    ("p5-002:nan-loss=-1@0", "a step is a number"),
    ("p5-002:nan-loss@0", "NODE:nan-loss=STEP@RANK"),
    ("p5-002:desync", "NODE:desync@RANK"),
    ("p5-002:clock-offset=inf", "at most an hour"),
    ("p5-002:clock-drift=0", "not 0"),
];

#[test]
fn messages() {
    let lines: Vec<String> =
        REFUSED.iter().map(|(text, _)| NodeFault::parse(text).expect_err(text)).collect();
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn a_name_like_no_fault_is_answered_with_three_and_the_command_that_lists_all() {
    let message = NodeFault::parse("p5-002:qqqq").expect_err("no such fault");
    assert!(message.starts_with("unknown fault `qqqq`; the nearest: `"), "{message}");
    assert!(message.ends_with("`; `harness list --print sim-faults` lists all"), "{message}");
    assert_eq!(message.matches("`, `").count(), 2, "{message}");
    let long = NodeFault::parse(&format!("p5-002:{}", "q".repeat(100_000))).expect_err("no such fault");
    assert_eq!(long.matches("`, `").count(), 2);
}

#[test]
fn a_diagnostic_names_the_right_form() {
    for (text, expected) in REFUSED {
        let message = NodeFault::parse(text).expect_err(text);
        assert!(message.contains(expected), "{text}: {message}");
    }
}
