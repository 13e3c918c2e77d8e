//! A copy of the project beside a namespace of its own: suites run in pods, and what they came to is asked for. What must
//! come of them stands in the tests.

use crate::kubernetes_cluster::{self, Cluster};
use crate::project::{Project, Ran, ran};
use crate::table::{self, Row};
use std::fmt;
use std::fs;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

pub(crate) struct Bench {
    pub cluster: &'static Cluster,
    // It is dropped first, while the folder of its volume is there.
    pub namespace: Namespace,
    pub project: Project,
}

/// It goes with the test, and all that is in it.
pub(crate) struct Namespace(String, &'static Cluster);

impl fmt::Display for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

pub(crate) const RUN: [&str; 5] = ["--suite", "live", "--inventory", "live", "--no-probe"];

static NAMESPACES: AtomicUsize = AtomicUsize::new(0);

impl Bench {
    /// The suite `live` of these cases on these nodes.
    pub(crate) fn new(nodes: &str, cases: &str) -> Bench {
        let bench = Bench::with_project(Project::new(), nodes);
        bench.suite("live", cases);
        bench
    }

    pub(crate) fn with_project(project: Project, nodes: &str) -> Bench {
        let nth = NAMESPACES.fetch_add(1, Ordering::SeqCst);
        let bench = Bench::named(project, &format!("t{}-{nth}", std::process::id()), "shared");
        bench.inventory("live", nodes);
        bench
    }

    /// A namespace of this name, with a claim, and no inventory.
    pub(crate) fn named(project: Project, namespace: &str, claim: &str) -> Bench {
        let cluster = kubernetes_cluster::running();
        let bench = Bench { cluster, project, namespace: Namespace(namespace.to_owned(), cluster) };
        bench.cluster.kubectl(&["create", "namespace", namespace]);
        bench.claim(claim);
        bench
    }

    /// A claim of a folder of this machine, which is every node's.
    fn claim(&self, claim: &str) {
        let (namespace, folder) = (&self.namespace, self.shared());
        let volume = namespace;
        fs::create_dir_all(&folder).expect("made");
        self.cluster.create(&format!(
            "apiVersion: v1\nkind: PersistentVolume\nmetadata: {{name: {volume}}}\nspec:\n  capacity: {{storage: 1Gi}}\n  \
             accessModes: [ReadWriteMany]\n  persistentVolumeReclaimPolicy: Retain\n  hostPath: {{path: {folder}}}\n  \
             claimRef: {{namespace: {namespace}, name: {claim}}}\n---\napiVersion: v1\nkind: PersistentVolumeClaim\n\
             metadata: {{name: {claim}, namespace: {namespace}}}\nspec:\n  accessModes: [ReadWriteMany]\n  \
             storageClassName: \"\"\n  volumeName: {volume}\n  resources: {{requests: {{storage: 1Gi}}}}\n"
        ));
    }

    pub(crate) fn inventory(&self, name: &str, nodes: &str) {
        let (namespace, shared) = (&self.namespace, self.shared());
        self.project.write(
            &format!("inventory/{name}.toml"),
            &format!(
                "kind = \"real\"\ninstance = \"p5\"\nnodes = \"{nodes}\"\n[reach]\nvia = \"kubernetes\"\n\
                 image = \"localhost/node:1\"\nnamespace = \"{namespace}\"\nshared = \"shared\"\nhugepages = false\n\
                 start_limit_s = 60\nheartbeat_timeout_s = 30\n[paths]\nshared = \"{shared}\"\n"
            ),
        );
    }

    pub(crate) fn suite(&self, name: &str, cases: &str) {
        let cases = cases.replace("BENCH", &self.shared());
        let text = format!("instance = \"p5\"\nabout = \"live\"\n{cases}");
        self.project.write(&format!("suites/{name}.toml"), &text);
    }

    pub(crate) fn into_project(self) -> Project {
        self.project
    }

    /// The folder that pods share with this machine, by the same name.
    pub(crate) fn shared(&self) -> String {
        self.project.path().join("shared").display().to_string()
    }

    /// What a job wrote into the shared folder.
    pub(crate) fn text(&self, file: &str) -> String {
        fs::read_to_string(self.project.path().join("shared").join(file)).unwrap_or_default()
    }

    pub(crate) fn go(&self) {
        self.project.write("shared/go", "");
    }

    #[track_caller]
    pub(crate) fn wait_for(&self, files: &[&str]) {
        let has = |file: &&str| self.project.path().join("shared").join(file).exists();
        until(120, &format!("{files:?}"), || files.iter().all(has));
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = self.project.command(args);
        command.envs(self.cluster.variables());
        command
    }

    pub(crate) fn harness(&self, args: &[&str]) -> Ran {
        ran(self.command(args).output().expect("the harness starts"))
    }

    pub(crate) fn run(&self) -> Ran {
        self.harness(&RUN)
    }

    /// A run that goes on while the test does something to it.
    pub(crate) fn start(&self) -> Running {
        self.start_with(&RUN)
    }

    pub(crate) fn start_with(&self, args: &[&str]) -> Running {
        let mut command = self.command(args);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        Running(Some(child.expect("the harness starts")))
    }

    pub(crate) fn kubectl(&self, arguments: &[&str]) -> String {
        let namespace = format!("--namespace={}", self.namespace);
        self.cluster.kubectl(&[&[namespace.as_str()], arguments].concat())
    }

    /// The names of the pods here, one to a line, with their nodes.
    pub(crate) fn pods(&self) -> String {
        let columns = "--output=custom-columns=A:.metadata.name,B:.spec.nodeName";
        self.kubectl(&["get", "pods", "--no-headers", columns])
    }

    /// The pod of the harness on a node.
    #[track_caller]
    pub(crate) fn pod(&self, node: &str) -> String {
        let pods = self.pods();
        let on = |line: &&str| line.starts_with("harness-") && line.ends_with(&format!(" {node}"));
        let line = pods.lines().find(on).unwrap_or_else(|| panic!("no pod on {node}: {pods}"));
        line.split(' ').next().unwrap_or_default().to_owned()
    }

    /// Pods of the harness, and what its jobs left running on nodes, one to a line. Asked until nothing is.
    pub(crate) fn what_is_left(&self) -> String {
        let from = Instant::now();
        loop {
            let pods = self.pods();
            let on = |line: &str| line.rsplit(' ').next().map(|node| format!("pod of {node}"));
            let pods = pods.lines().filter(|line| line.starts_with("harness-")).filter_map(on);
            let processes = self.cluster.script("left", &[]);
            let shared = self.shared();
            let own = processes.lines().filter(|line| line.contains(&shared)).map(str::to_owned);
            let left: Vec<String> = pods.chain(own).collect();
            if left.is_empty() || from.elapsed() > Duration::from_secs(30) {
                return left.join("\n");
            }
            std::thread::sleep(Duration::from_millis(500));
        }
    }

    #[track_caller]
    pub(crate) fn assert_nothing_is_left(&self) {
        let left = self.what_is_left();
        assert!(left.is_empty(), "left:\n{left}");
    }

    /// Takes down what the newest run has come to after a failure, and its leftovers.
    #[track_caller]
    pub(crate) fn came_to(&self, failure: &'static str, ran: &Ran, wanted: [&str; 4]) {
        let seen = Row::seen(&self.project, ran, &self.what_is_left());
        let [verdict, culprit, others, left] = wanted.map(str::to_owned);
        table::note(failure, seen, &Row { verdict, culprit, others, left }, ran);
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let mut command = Command::new("env");
        command.args(["kubectl", "delete", "--wait=false", "namespace", &self.0]);
        command.envs(self.1.variables()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let _ = command.status();
    }
}

/// A harness that runs. It ends with the test, should that fail before.
pub(crate) struct Running(Option<Child>);

impl Running {
    pub(crate) fn id(&self) -> i32 {
        i32::try_from(self.0.as_ref().expect("a child").id()).expect("a process id")
    }

    pub(crate) fn is_over(&mut self) -> bool {
        self.0.as_mut().expect("a child").try_wait().expect("a child").is_some()
    }

    /// By force, as a machine that is switched off does.
    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.0.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

/// What a run that was started has come to.
pub(crate) fn ended(mut run: Running) -> Ran {
    ran(run.0.take().expect("a child").wait_with_output().expect("the harness ends"))
}

#[track_caller]
pub(crate) fn until(seconds: u64, what: &str, mut holds: impl FnMut() -> bool) {
    let from = Instant::now();
    while !holds() {
        assert!(from.elapsed() < Duration::from_secs(seconds), "not within {seconds} s: {what}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// A case of a text for bash, which must end with 0. `BENCH` is the shared folder.
pub(crate) fn case(name: &str, placement: &str, program: &str, more: &str) -> String {
    format!(
        "[[case]]\nname = \"{name}\"\nplacement = {placement}\nlimit_s = 300\n\
         workload = {{ kind = \"command\", program = \"bash\", args = [\"-c\", '''{program}'''] }}\n\
         recipes = [\"command\"]\n{more}\n[[case.assert]]\nmetric = \"command.exit_code\"\nequals = 0\n"
    )
}

/// Reports that it runs, and waits for a word of the test.
pub(crate) const WAITS: &str =
    "echo $$ >> BENCH/began.$HARNESS_NODE; until [ -e BENCH/go ]; do sleep 0.1; done; echo went on";
