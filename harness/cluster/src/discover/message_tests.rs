//! Every refusal and every reason to leave a node out, as a person reads it.

use super::tests::{LINES, NODES, OLD, found, new, request};
use super::*;
use crate::reach::Answer;

type Answers = Vec<(&'static str, Answer)>;

fn lines_of(result: Result<Discovered, Failure>) -> Vec<String> {
    match result {
        Ok(found) => {
            let left_out =
                found.left_out.into_iter().map(|left| format!("left out {}: {}", left.node, left.why));
            left_out.chain(found.notes.into_iter().map(|note| format!("note: {note}"))).collect()
        }
        Err(Failure::InvalidRequest(why) | Failure::NoAnswer(why)) => vec![format!("error: {why}")],
        Err(Failure::NoUsableNode(left)) => {
            left.into_iter().map(|left| format!("{}: {}", left.node, left.why)).collect()
        }
    }
}

#[test]
fn messages() {
    let text = |more: Answers| -> Answers {
        let sinfo = [("sinfo --version", Answer::ok(OLD)), ("sinfo --noheader --Node", Answer::ok(LINES))];
        more.into_iter().chain(sinfo).collect()
    };
    let partitions = |names: &str| {
        vec![
            ("sinfo --version", Answer::ok(OLD)),
            ("sinfo --noheader --all --format=%R", Answer::ok(names)),
            ("sinfo", Answer::ok("")),
        ]
    };
    let reservation = |answer: Answer| text(vec![("scontrol --oneliner show reservation", answer)]);
    let elsewhere = "ReservationName=accept StartTime=2026-11-21T00:00:00 Nodes=other-1 State=ACTIVE\n";
    let reserved = Request { reservation: Some("accept".into()), ..request() };
    let with = |features: &[&str]| Request {
        features: features.iter().map(|feature| (*feature).to_owned()).collect(),
        ..request()
    };
    let instance = |name: Option<&str>| Request { instance: name.map(str::to_owned), ..request() };
    let mut lines = lines_of(found(text(Vec::new()), &request()));
    for (answers, asked) in [
        (partitions("gpus\ncpu\n"), request()),
        (partitions("batch\n"), request()),
        (partitions("gpu\n"), request()),
        (vec![("sinfo --version", Answer::ok(OLD)), ("sinfo", Answer::ok("what is this\n"))], request()),
        (Vec::new(), request()),
        (reservation(Answer::failed(1, "Reservation accept not found\n")), reserved.clone()),
        (reservation(Answer::ok(elsewhere)), reserved),
        (text(Vec::new()), with(&["rack3"])),
        (text(Vec::new()), with(&["quite-another"])),
        (text(Vec::new()), with(&["rack1", "rack2"])),
        (new(NODES), instance(Some("p5x"))),
        (new(NODES), instance(Some("p5.4xlarge"))),
        (new(NODES), instance(None)),
        (
            new(&NODES.replace("p4d.24xlarge", "p9.48xlarge").replace("p5.48xlarge", "p9.48xlarge")),
            instance(None),
        ),
        (new(""), instance(None)),
    ] {
        lines.extend(lines_of(found(answers, &asked)));
    }
    insta::assert_snapshot!(lines.join("\n"));
}
