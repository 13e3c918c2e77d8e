//! The roles that the harness prints are the least: without any of their verbs something that they are for is forbidden.
//! A server of 1.20 does not ask for `get` of `pods/exec`: its exec goes over SPDY, which is a `create`.

use super::bench::{Bench, RUN, case, until};
use crate::fact::Fact;
use crate::project::{Ran, ran};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::process::{Command, Stdio};

pub(super) const FACTS: &[Fact] = &[("each_verb_of_the_printed_roles_is_needed", minimal)];

const USER: &str = "least";
/// Printed with one flag each.
const CLUSTER_ROLES: [&str; 3] = ["harness-read-nodes", "harness-read-pods", "harness-drain-nodes"];
/// What this server cannot show.
const NOT_ASKED_FOR: (&str, &str, &str) = ("harness", "pods/exec", "get");

/// A rule of a printed role, and what is asked for without one of its verbs.
struct Rule {
    role: &'static str,
    resources: &'static str,
    verbs: &'static str,
    ask: Ask,
}

#[derive(Clone, Copy)]
enum Ask {
    Run,
    Discover,
    Probe,
    Recheck,
}

const RULES: [Rule; 6] = [
    Rule { role: "harness", resources: "pods", verbs: "create, get, list, delete", ask: Ask::Run },
    Rule { role: "harness", resources: "pods/exec", verbs: "create, get", ask: Ask::Run },
    Rule { role: "harness", resources: "limitranges, resourcequotas", verbs: "list", ask: Ask::Discover },
    Rule { role: "harness-read-nodes", resources: "nodes", verbs: "list", ask: Ask::Discover },
    Rule { role: "harness-read-pods", resources: "pods", verbs: "list", ask: Ask::Probe },
    Rule { role: "harness-drain-nodes", resources: "nodes", verbs: "get, list, patch", ask: Ask::Recheck },
];

impl Ask {
    /// By which the role is printed that allows it.
    fn flags(self) -> &'static [&'static str] {
        match self {
            Ask::Run => &[],
            Ask::Discover => &["--nodes"],
            Ask::Probe => &["--nodes", "--device-pods"],
            Ask::Recheck => &["--drain"],
        }
    }

    /// Where a verb is missing it is named, and without it something is.
    #[track_caller]
    fn check(self, roles: &Roles<'_>, rule: &Rule, without: Option<&str>) {
        let namespace = roles.bench.namespace.to_string();
        let place = ["--namespace", namespace.as_str(), "--image", "localhost/node:1", "--claim", "shared"];
        let found = ["--output", "found", "--force"];
        let discover = [&["inventory", "discover", "--via", "kubernetes"][..], &place, &found].concat();
        match (self, without) {
            (Ask::Run, None) => drop(roles.assert_passes(&RUN, "")),
            (Ask::Run, Some(verb)) => {
                assert_forbidden(&roles.run(&RUN), verb, rule);
                roles.bench.kubectl(&["delete", "pods", "--all", "--wait=true"]);
            }
            (Ask::Discover, None) => {
                let ran = roles.assert_passes(&discover, "written: inventory/found.toml");
                assert!(!ran.all().contains("unknown"), "{}", ran.all());
            }
            (Ask::Discover, Some(verb)) => {
                let ran = roles.run(&discover);
                assert_forbidden(&ran, verb, rule);
                assert!(ran.all().contains("`harness inventory role --nodes` prints it"), "{}", ran.all());
            }
            (Ask::Probe, without) => {
                let probe =
                    ["inventory", "probe", "--inventory", "live", "--nodes", "n1", "--format", "json"];
                let ran = roles.run(&probe);
                let probed: Value = serde_json::from_str(&ran.stdout).expect("a probe");
                let node = &probed["nodes"][0];
                for fact in ["device_pods", "device_pods_bad"] {
                    let why = node["unknown"][fact].as_str().unwrap_or_default();
                    let is_forbidden = why.contains("cannot list resource \"pods\"")
                        && why.contains("`harness inventory role --device-pods` prints it");
                    let is_known = node["facts"][fact].is_array();
                    assert_eq!(
                        (is_forbidden, is_known),
                        (without.is_some(), without.is_none()),
                        "{}",
                        ran.all()
                    );
                }
                assert_eq!(node["facts"]["node_ready"], "True", "{}", ran.all());
            }
            (Ask::Recheck, None) => drop(roles.assert_passes(&RECHECK, "resumed n2: ")),
            (Ask::Recheck, Some(verb)) => assert_forbidden(&roles.run(&RECHECK), verb, rule),
        }
    }
}

const RECHECK: [&str; 6] = ["isolate", "--suite", "live", "--inventory", "live", "--resume-drained"];

struct Roles<'a> {
    bench: &'a Bench,
    text: String,
}

impl Roles<'_> {
    /// As they are printed with these flags; those that are printed with others are gone.
    fn new<'a>(bench: &'a Bench, flags: &[&str]) -> Roles<'a> {
        let gone = [&["delete", "clusterrole,clusterrolebinding", "--ignore-not-found"][..], &CLUSTER_ROLES];
        bench.cluster.kubectl(&gone.concat());
        let namespace = bench.namespace.to_string();
        let line = ["inventory", "role", "--namespace", &namespace, "--user", USER];
        let printed = bench.harness(&[&line[..], flags].concat());
        assert_eq!(printed.code, Some(0), "{}", printed.all());
        Roles { bench, text: printed.stdout }
    }

    /// The printed roles, but for one verb of one rule, or whole.
    fn apply(&self, rule: &Rule, without: Option<&str>) {
        let Rule { resources, verbs, .. } = rule;
        let head = format!("    resources: [{resources}]\n    verbs: ");
        let whole = format!("{head}[{verbs}]\n");
        assert_eq!(self.text.matches(&whole).count(), 1, "{whole}: {}", self.text);
        let mut left: Vec<&str> = verbs.split(", ").filter(|one| Some(*one) != without).collect();
        if left.is_empty() {
            // A rule has one at least.
            left.push("watch");
        }
        let text = self.text.replace(&whole, &format!("{head}[{}]\n", left.join(", ")));
        let file = self.bench.project.path().join("roles.yaml");
        fs::write(&file, text).expect("written");
        self.bench.cluster.kubectl(&["apply", "--filename", &file.display().to_string()]);
        // The server's authorizer sees them a moment later.
        for (verb, resource) in
            verbs.split(", ").flat_map(|verb| resources.split(", ").map(move |one| (verb, one)))
        {
            until(30, &format!("{resources}, without {without:?}"), || {
                self.can(verb, resource, rule.role) == (without != Some(verb))
            });
        }
    }

    fn can(&self, verb: &str, resource: &str, role: &str) -> bool {
        let (what, sub) = resource.split_once('/').unwrap_or((resource, ""));
        let scope = match role {
            "harness" => format!("--namespace={}", self.bench.namespace),
            _ => "--all-namespaces".to_owned(),
        };
        let mut asked = Command::new("env");
        asked.args(["kubectl", "auth", "can-i", verb, what, &format!("--subresource={sub}"), &scope]);
        asked.arg(format!("--as={USER}"));
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

    #[track_caller]
    fn assert_passes(&self, args: &[&str], says: &str) -> Ran {
        let ran = self.run(args);
        assert!(ran.code == Some(0) && ran.stdout.contains(says), "{}", ran.all());
        ran
    }
}

#[track_caller]
fn assert_forbidden(ran: &Ran, verb: &str, rule: &Rule) {
    for resource in rule.resources.split(", ") {
        let why = format!("cannot {verb} resource \"{resource}\"");
        assert!(ran.all().contains(&why), "{why}: {}", ran.all());
    }
}

/// Each verb of a text that `inventory role` prints: role, resources, verb.
fn verbs_of(text: &str) -> BTreeSet<(String, String, String)> {
    let mut all = BTreeSet::new();
    let within =
        |line: &str, begin: &str| line.strip_prefix(begin).map(|rest| rest.trim_end_matches(']').to_owned());
    let (mut role, mut resources) = (String::new(), String::new());
    for line in text.lines() {
        role = within(line, "  name: ").unwrap_or(role);
        resources = within(line, "    resources: [").unwrap_or(resources);
        let verbs = within(line, "    verbs: [").unwrap_or_default();
        let verbs = verbs.split(", ").filter(|verb| !verb.is_empty());
        all.extend(verbs.map(|verb| (role.clone(), resources.clone(), verb.to_owned())));
    }
    all
}

fn minimal() {
    let passing = case("each", "\"each\"", "echo here", "");
    let bench = Bench::new("n[1-2]", &passing);
    let all = Roles::new(&bench, &["--nodes", "--device-pods", "--drain"]);
    let rows = RULES.iter().flat_map(|rule| {
        let of = |verb: &str| (rule.role.to_owned(), rule.resources.to_owned(), verb.to_owned());
        rule.verbs.split(", ").map(of).collect::<Vec<_>>()
    });
    assert_eq!(
        rows.collect::<BTreeSet<_>>(),
        verbs_of(&all.text),
        "a rule without a test, or a test without one"
    );
    for rule in &RULES {
        let roles = Roles::new(&bench, rule.ask.flags());
        roles.apply(rule, None);
        if let Ask::Recheck = rule.ask {
            drain_by_hand(&roles, &passing);
        }
        for verb in rule.verbs.split(", ") {
            if (rule.role, rule.resources, verb) != NOT_ASKED_FOR {
                roles.apply(rule, Some(verb));
                rule.ask.check(&roles, rule, Some(verb));
            }
        }
        roles.apply(rule, None);
        rule.ask.check(&roles, rule, None);
    }
    bench.assert_nothing_is_left();
}

/// As `isolate --drain` leaves a node that a run has blamed.
fn drain_by_hand(roles: &Roles<'_>, passing: &str) {
    let bench = roles.bench;
    bench.suite("live", &case("each", "\"each\"", "[ $HARNESS_NODE != n2 ]", ""));
    let red = roles.run(&RUN);
    assert!(red.code != Some(0), "{}", red.all());
    let blaming = fs::read_link(bench.project.latest()).expect("the newest run");
    let blaming = blaming.file_name().and_then(|id| id.to_str()).expect("an id");
    bench.suite("live", passing);
    let cordon = r#"{"metadata":{"annotations":{"harness/drained":"[harness] HRN-NODE-BROKEN node: x, run RUN"}},"spec":{"unschedulable":true}}"#;
    let cordon = cordon.replace("RUN", blaming);
    bench.cluster.kubectl(&["patch", "node", "n2", "--type=merge", "--patch", &cordon]);
}
