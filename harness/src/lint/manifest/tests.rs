//! The rules over small manifests; a good and a bad file of each are in `tests/lint/manifests`.

use super::*;

fn found(files: &[(&str, &str)]) -> Vec<String> {
    let source = |&(name, text): &(&str, &str)| Source { name: name.to_owned(), text: text.to_owned() };
    let Linted { diagnostics, warnings, notes } = manifests(&files.iter().map(source).collect::<Vec<_>>());
    diagnostics.iter().chain(&warnings).chain(&notes).map(Diagnostic::to_string).collect()
}

/// Whether each of these pieces is in exactly one line, and there are no other lines.
fn assert_found(files: &[(&str, &str)], pieces: &[&str]) {
    let lines = found(files);
    for piece in pieces {
        assert_eq!(lines.iter().filter(|line| line.contains(piece)).count(), 1, "{piece}: {lines:#?}");
    }
    assert_eq!(lines.len(), pieces.len(), "{lines:#?}");
}

#[test]
fn codes_are_unique_and_each_rule_says_what_would_go_wrong() {
    let mut codes: Vec<&str> = RULES.iter().map(|rule| rule.code).collect();
    codes.sort_unstable();
    codes.dedup();
    assert_eq!(codes.len(), RULES.len());
    assert!(RULES.iter().all(|rule| rule.harm.len() > 15 && !rule.what.is_empty()));
}

#[test]
fn an_instance_whose_launch_template_says_how_many_nics_it_has_may_ask_for_any_number() {
    // The instance, EFA devices, and whether the number is reported.
    let table = [
        ("p6e-gb200.36xlarge", 4, false),
        ("p6e-gb200.36xlarge", 8, false),
        ("ml.p6e-gb200.36xlarge", 17, false),
        ("p6-b200.48xlarge", 17, true),
        ("p5.48xlarge", 8, true),
        ("g5.48xlarge", 17, true),
    ];
    for (instance, number, expected) in table {
        let selector = format!("nodeSelector: {{node.kubernetes.io/instance-type: {instance}}}");
        let resources = format!("resources: {{limits: {{vpc.amazonaws.com/efa: {number}}}}}");
        let text = POD.replace("spec:\n", &format!("spec:\n  {selector}\n"));
        let text = text.replace("app:1\n", &format!("app:1\n      {resources}\n"));
        let lines = found(&[("a.yaml", &text)]);
        let is_reported = lines.iter().any(|line| line.contains("[efa-count]"));
        assert_eq!(is_reported, expected, "{instance} {number}: {lines:#?}");
    }
}

#[test]
fn every_planted_error_of_one_manifest_is_reported() {
    let text = "\
apiVersion: kubeflow.org/v2beta1
kind: MPIJobs
metadata: {name: x, labels: {nvidia-devtools-sidecar-injector: enabled, last-check: \"10:20:30\"}}
spec:
  slotsPerWorkr: 8
  mpiReplicaSpecs:
    Worker:
      replicas: 2
      template:
        spec:
          restartPolicy: OnFailure
          containers:
          - name: w
            image: nccl
            resources: {limits: {nvidia.com/gpus: 8, vpc.amazonaws.com/efa: 3}}
            volumeMounts: [{name: ib, mountPath: /dev/infiniband}]
          volumes: [{name: ib, hostPath: {path: /dev/infiniband}}]
";
    let pieces = [
        "b.yaml:2:7: unknown kind: `MPIJobs`: the API server has no such resource [kind]; did you mean `MPIJob`?",
        "b.yaml:3:30: label `nvidia-devtools-sidecar-injector` on the MPIJob",
        "b.yaml:3:30: label `nvidia-devtools-sidecar-injector`: nothing reads it",
        "b.yaml:3:85: `:` in the value `10:20:30` of a label",
        "b.yaml:5:3: unknown field: `slotsPerWorkr` of MPIJob.spec",
        "b.yaml:6:3: `mpiReplicaSpecs` of MPIJob has no `Launcher`",
        "b.yaml:11:26: `restartPolicy: OnFailure` around a measurement",
        "b.yaml:14:20: image `nccl` without a tag",
        "b.yaml:15:34: unknown resource: `nvidia.com/gpus`",
        "b.yaml:15:54: `vpc.amazonaws.com/efa` without `hugepages-2Mi`",
        "b.yaml:15:77: `vpc.amazonaws.com/efa: 3`, which no instance has",
        "b.yaml:17:49: hostPath /dev/infiniband",
        "`backoffLimit` is 6 by default",
        "no `activeDeadlineSeconds`",
    ];
    assert_found(&[("b.yaml", text)], &pieces);
}

const POD: &str = "\
apiVersion: v1
kind: Pod
metadata: {name: a}
spec:
  containers:
    - name: a
      image: app:1
";

#[test]
fn every_document_is_read_and_lists_are_what_they_hold() {
    let two = format!("{POD}---\n{}", POD.replace("app:1", "app"));
    assert_found(&[("a.yaml", &two)], &["a.yaml:15:14: image `app` without a tag"]);
    let list = "apiVersion: v1\nkind: List\nitems:\n  - apiVersion: v1\n    kind: Pod\n    metadata: {name: a}\n    spec: {containers: [{name: a, image: app}]}\n";
    assert_found(&[("a.yaml", list)], &["a.yaml:7:42: image `app` without a tag"]);
    assert_found(
        &[("a.yaml", ""), ("b.yaml", "# none\n"), ("c.yaml", "---\n---\n")],
        &["a.yaml: no object of Kubernetes and no Helm values in it"],
    );
}

#[test]
fn what_is_to_be_filled_in_is_reported_once_and_has_no_wrong_type() {
    let text = "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: \"${NAME}\"}\nspec:\n  pytorchReplicaSpecs:\n    Worker:\n      replicas: $NODES\n      template:\n        spec:\n          containers:\n            - {name: \"${NAME}\", image: \"<account>.dkr.ecr/<image>\"}\n";
    let pieces = [
        "a.yaml:3:18: `${NAME}` is not filled in, in 2 places",
        "a.yaml:7:17: `$NODES` is not filled in",
        "a.yaml:11:40: `<account>` is not filled in",
    ];
    assert_found(&[("a.yaml", text)], &pieces);
}

#[test]
fn kinds_of_other_operators_have_their_pods_checked() {
    let text = "apiVersion: example.org/v1\nkind: Trainingjob\nmetadata: {name: a}\nspec:\n  own: 1\n  template:\n    spec:\n      imagePullPolicy: Always\n      containers: [{name: a, image: app:1}]\n";
    assert_found(
        &[("a.yaml", text)],
        &[
            "unknown kind: `Trainingjob`, of which only pods are checked",
            "unknown field: `imagePullPolicy` of spec",
        ],
    );
}

#[test]
fn values_of_charts_are_recognised_by_name_or_keys() {
    let values = "image:\n  tag: 1\nenv:\n  DB_PASSWORD: ${SECRET}\n";
    assert_found(&[("my-values.yaml", values)], &["`${SECRET}` is not filled in"]);
    assert_found(
        &[("a.yaml", "profile:\n  injectionMatch: \"(\"\n")],
        &["a.yaml:2:19: `(` is no regular expression"],
    );
    assert_found(&[("a.yaml", "image: 1\n")], &["a.yaml:1:1: `kind` is missing"]);
    let template = "{{- if .Values.on }}\nkind: Pod\n{{- end }}\n";
    assert_found(&[("a.yaml", template)], &["a Helm template: nothing in it is checked"]);
}

#[test]
fn shell_scripts_in_arguments_have_their_lines() {
    let job = "      command:\n        - bash\n        - -c\n        - |\n          set -e\n          export NCCL_DEBG=INFO\n          echo ${HOSTNAME} $HOME\n";
    assert_found(&[("a.yaml", &format!("{POD}{job}"))], &["a.yaml:13:18: `NCCL_DEBG` is misspelt"]);
}

#[test]
fn what_a_file_lacks_may_be_in_another() {
    let pod =
        POD.replace("spec:\n", "spec:\n  volumes: [{name: d, persistentVolumeClaim: {claimName: fsx}}]\n");
    let claim = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: fsx}\nspec: {}\n";
    assert_found(&[("a.yaml", &pod)], &["no claim `fsx` in the files"]);
    assert_found(&[("a.yaml", &pod), ("b.yaml", claim)], &[]);
}

#[test]
fn a_label_that_the_chart_of_the_values_does_not_read_is_reported() {
    let pod = POD.replace("{name: a}", "{name: a, labels: {nvidia-nsight-profile: enabled}}")
        + "      command: [/usr/bin/prog]\n";
    let message = "a.yaml:3:30: label `nvidia-nsight-profile` with values of the older chart: nothing reads it, and the run \
                   ends without reports [injector-label]; write `nvidia-devtools-sidecar-injector: enabled`, or install the \
                   Nsight Operator";
    assert_found(&[("values.yaml", "injectionMatch: .*prog.*\n"), ("a.yaml", &pod)], &[message]);
    assert_found(&[("values.yaml", "injectionIncludePatterns: [.*prog.*]\n"), ("a.yaml", &pod)], &[]);
}

#[test]
fn hostile_files_have_one_error_and_others_are_still_checked() {
    let bomb = "a: &a [x, x, x, x, x, x, x, x]\n".to_owned()
        + &(1..9)
            .map(|at| {
                format!(
                    "b{at}: &b{at} [{}]\n",
                    vec![if at == 1 { "*a".to_owned() } else { format!("*b{}", at - 1) }; 8].join(", ")
                )
            })
            .collect::<String>();
    let bad = POD.replace("app:1", "app");
    for hostile in [bomb.as_str(), &"[".repeat(5000), &"- ".repeat(5000), "a: \"\u{7}\"\n", "kind: [\n"] {
        let lines = found(&[("h.yaml", hostile), ("a.yaml", &bad)]);
        assert_eq!(lines.len(), 2, "{lines:#?}");
        assert!(lines.iter().all(|line| !line.contains(char::is_control)));
    }
    // One rule does not flood the terminal.
    let many = format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: a}}\nspec:\n{}  containers: [{{name: a, image: app:1}}]\n",
        (0..500).map(|at| format!("  x{at}: 1\n")).collect::<String>()
    );
    assert_eq!(found(&[("a.yaml", &many)]).len(), 50);
}

#[test]
fn messages() {
    let token = format!("hf_{}", "aBcDeFgHiJkLmNoPqRsTuVwXyZ12345678");
    let with = |more: &str| format!("{POD}{more}");
    let pods = format!(
        "apiVersion: example.org/v1\nkind: Many\npods:\n{}",
        "  - spec: {containers: [{name: a, image: app:1}]}\n".repeat(2001)
    );
    for (text, message) in [
        (with("      command: [prog, --n=$NODES]\n"), "`$NODES` in an argument: "),
        (
            with("      command: [prog, --n=$NODES]\n"),
            "write `$(NODES)` of a variable that the container sets above, or the value",
        ),
        (with("      resources: {limits: {memory: 8Gb}}\n"), "`memory` is no quantity: `8Gb`"),
        (POD.replace("apiVersion: v1\n", ""), "`apiVersion` is missing"),
        (POD.replace("apiVersion: v1\n", ""), "write `apiVersion: v1`"),
        (pods, "2000 pods or more in one object: the others are not checked"),
        (
            "apiVersion: resource.k8s.io/v1alpha2\nkind: ResourceClaim\nmetadata: {name: a}\nspec: {}\n"
                .to_owned(),
            "`resource.k8s.io/v1alpha2` of ResourceClaim exists until Kubernetes 1.30",
        ),
        (
            "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nspec: {pytorchReplicaSpecs: {Workers: {}}}\n"
                .to_owned(),
            "unknown replicas: `Workers` of PyTorchJob",
        ),
        (with(&format!("      args: [--token, {token}]\n")), "a secret stands here, known by `"),
        (
            "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {password: x}\n".to_owned(),
            "the Secret's `password` stands in the file",
        ),
    ] {
        let lines = found(&[("a.yaml", &text)]);
        assert_eq!(lines.iter().filter(|line| line.contains(message)).count(), 1, "{message}: {lines:#?}");
        assert!(lines.iter().all(|line| !line.contains(&token)));
    }
}
