//! The roles that the harness prints are the least: without any of their verbs something that they are for is forbidden.
//! A server of 1.20 does not ask for `get` of `pods/exec`: its exec goes over SPDY, which is a `create`.

use super::bench::{Bench, RUN, case, until};
use crate::fact::Fact;
use crate::project::{Ran, ran};
use std::fs;
use std::process::{Command, Stdio};

pub(super) const FACTS: &[Fact] = &[("each_verb_of_the_printed_roles_is_needed", minimal)];

const USER: &str = "least";
const RUN_VERBS: [(&str, &str); 5] =
    [("pods", "create"), ("pods", "get"), ("pods", "list"), ("pods", "delete"), ("pods/exec", "create")];

struct Roles<'a> {
    bench: &'a Bench,
    text: String,
}

impl Roles<'_> {
    fn new(bench: &Bench) -> Roles<'_> {
        let namespace = bench.namespace.to_string();
        let line = ["inventory", "role", "--namespace", &namespace, "--nodes", "--drain", "--user", USER];
        let printed = bench.harness(&line);
        assert_eq!(printed.code, Some(0), "{}", printed.all());
        Roles { bench, text: printed.stdout }
    }

    /// The printed roles, but for one verb of one rule, or whole.
    fn apply(&self, rule: &str, verb: Option<&str>) {
        let (resource, verbs) = rule.split_once(": ").expect("a rule");
        let head = format!("    resources: [{resource}]\n    verbs: ");
        let whole = format!("{head}[{verbs}]\n");
        assert_eq!(self.text.matches(&whole).count(), 1, "{rule}: {}", self.text);
        let left: Vec<&str> = verbs.split(", ").filter(|one| Some(*one) != verb).collect();
        let text = self.text.replace(&whole, &format!("{head}[{}]\n", left.join(", ")));
        let file = self.bench.project.path().join("roles.yaml");
        fs::write(&file, text).expect("written");
        self.bench.cluster.kubectl(&["apply", "--filename", &file.display().to_string()]);
        // The server's authorizer sees them a moment later.
        for one in verbs.split(", ") {
            until(30, &format!("{rule}, without {verb:?}"), || {
                self.can(one, resource) == (verb != Some(one))
            });
        }
    }

    fn can(&self, verb: &str, resource: &str) -> bool {
        let (what, sub) = resource.split_once('/').unwrap_or((resource, ""));
        let mut asked = Command::new("env");
        asked.args(["kubectl", "auth", "can-i", verb, what, &format!("--subresource={sub}")]);
        asked.arg(format!("--namespace={}", self.bench.namespace)).arg(format!("--as={USER}"));
        asked.envs(self.bench.cluster.variables()).stdout(Stdio::null()).stderr(Stdio::null());
        asked.status().expect("kubectl").success()
    }

    fn run(&self, args: &[&str]) -> Ran {
        let own = self.bench.cluster.variables();
        let own = own.iter().find(|(name, _)| *name == "KUBECONFIG").expect("one").1.clone();
        let text = fs::read_to_string(own).expect("a kubeconfig");
        let file = self.bench.project.path().join("least.kubeconfig");
        fs::write(&file, text.replace("{token:", &format!("{{as: {USER}, token:"))).expect("written");
        let mut command = self.bench.command(args);
        ran(command.env("KUBECONFIG", file).output().expect("the harness starts"))
    }
}

#[track_caller]
fn assert_forbidden(ran: &Ran, verb: &str, resource: &str) {
    let why = format!("cannot {verb} resource \"{resource}\"");
    assert!(ran.all().contains(&why), "{why}: {}", ran.all());
}

fn minimal() {
    const PODS: &str = "pods: create, get, list, delete";
    const EXEC: &str = "pods/exec: create, get";
    const DRAIN: &str = "nodes: get, list, patch";
    let bench = Bench::new("n[1-2]", &case("each", "\"each\"", "echo here", ""));
    let roles = Roles::new(&bench);
    roles.apply(PODS, None);
    let whole = roles.run(&RUN);
    assert_eq!(whole.code, Some(0), "{}", whole.all());
    bench.suite("live", &case("each", "\"each\"", "[ $HARNESS_NODE != n2 ]", ""));
    let red = roles.run(&RUN);
    assert!(red.code != Some(0), "{}", red.all());
    let blaming = fs::read_link(bench.project.latest()).expect("the newest run");
    let blaming = blaming.file_name().and_then(|id| id.to_str()).expect("an id");
    bench.suite("live", &case("each", "\"each\"", "echo here", ""));
    for (resource, verb) in RUN_VERBS {
        roles.apply(if resource == "pods" { PODS } else { EXEC }, Some(verb));
        assert_forbidden(&roles.run(&RUN), verb, resource);
        bench.kubectl(&["delete", "pods", "--all", "--wait=true"]);
        roles.apply(PODS, None);
    }
    // As `isolate --drain` left it.
    let cordon = r#"{"metadata":{"annotations":{"harness/drained":"[harness] HRN-NODE-BROKEN node: x, run RUN"}},"spec":{"unschedulable":true}}"#;
    let cordon = cordon.replace("RUN", blaming);
    bench.cluster.kubectl(&["patch", "node", "n2", "--type=merge", "--patch", &cordon]);
    let recheck = ["isolate", "--suite", "live", "--inventory", "live", "--resume-drained"];
    for verb in ["get", "patch"] {
        roles.apply(DRAIN, Some(verb));
        assert_forbidden(&roles.run(&recheck), verb, "nodes");
        roles.apply(DRAIN, None);
    }
    let back = roles.run(&recheck);
    assert!(back.code == Some(0) && back.stdout.contains("resumed n2: "), "{}", back.all());
    bench.assert_nothing_is_left();
}
