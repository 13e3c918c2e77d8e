//! The objects of a manifest: the pods as the harness itself makes them, what an operator wants around them, and the files
//! that they run.

use super::slots::{jobs, text};
use super::{ManifestKind, ManifestRequest, SlotPlan, extend};
use cluster::reach::pods::PodTemplate;
use job::script::{self, POD_SH};
use serde_json::{Map, Value, json};

/// Where the pods see the files of the manifest.
const FILES: &str = "/harness";
/// The label of the pods of a manifest.
const LABEL: &str = "harness/manifest";
/// Kubernetes takes no more in one object, names and all.
const MOST_BYTES: usize = 1_000_000;
/// What a job may take beyond its limit; `pod.sh` knows it.
const SLACK_S: u64 = 120;
/// A pod that is to end writes down that it was; `pod.sh` takes a minute more where another has failed.
const GRACE_S: u64 = 90;

/// All of them, what is applied last first: pods wait for their files.
pub(super) fn all(planned: &SlotPlan, request: &ManifestRequest) -> Result<Vec<Value>, String> {
    let case = planned.case();
    for job in jobs(case) {
        let file = job.files.iter().find(|file| file.name == script::files::JOB);
        let text = file.and_then(|file| file.text.as_deref()).unwrap_or_default();
        let script = script::read(text).map_err(|error| format!("the script of {}: {error}", job.name))?;
        request.kind.refuse(&case.name, &script)?;
    }
    let mut documents = workload(planned, request);
    documents.push(files(planned)?);
    Ok(documents)
}

/// The files of the jobs, and what `pod.sh` does with them.
fn files(planned: &SlotPlan) -> Result<Value, String> {
    let record = serde_json::to_string(&planned.record).map_err(|error| error.to_string())?;
    let mut data = Map::new();
    data.insert("pod.sh".to_owned(), POD_SH.into());
    data.insert("record".to_owned(), record.into());
    let mut list = String::new();
    for job in jobs(planned.case()) {
        list.push_str(&format!("job {} {}\n", job.name, job.limit_s));
        for file in &job.files {
            let (text, is_template) = text(file)?;
            let (word, key) = match is_template {
                true => ("template", format!("{}.{}", job.name, file.name)),
                false => ("file", file.name.clone()),
            };
            list.push_str(&format!("{word} {key} {}\n", file.name));
            data.insert(key, text.into());
        }
    }
    data.insert("jobs".to_owned(), list.into());
    let is_key = |key: &String| key.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
    if let Some(key) = data.keys().find(|key| !is_key(key)) {
        return Err(format!("Kubernetes takes no file of this name: `{}`", base::text::show(key)));
    }
    let bytes: usize = data.iter().map(|(key, text)| key.len() + text.as_str().map_or(0, str::len)).sum();
    if bytes > MOST_BYTES {
        return Err(format!("its files have {bytes} bytes, and a ConfigMap takes {MOST_BYTES}"));
    }
    Ok(json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata(planned),
        "immutable": true,
        "data": data,
    }))
}

fn metadata(planned: &SlotPlan) -> Value {
    let mut labels = Map::new();
    labels.insert("app.kubernetes.io/managed-by".to_owned(), "harness".into());
    labels.insert(LABEL.to_owned(), planned.record.name.as_str().into());
    json!({ "name": planned.record.name, "namespace": planned.reach.namespace, "labels": labels })
}

/// The same for what a queue of Kueue admits.
fn queued(planned: &SlotPlan) -> Value {
    let mut metadata = metadata(planned);
    if let Some(queue) = &planned.reach.queue {
        metadata["labels"]["kueue.x-k8s.io/queue-name"] = queue.as_str().into();
    }
    metadata
}

/// The template of the pods that measure.
fn template(planned: &SlotPlan, request: &ManifestRequest) -> Value {
    let nodes: Vec<&str> = planned.candidates.iter().map(String::as_str).collect();
    let pods = PodTemplate::new(
        &planned.reach,
        &planned.inventory.instance,
        planned.inventory.paths.shared.trim_end_matches('/'),
    );
    let mut spec = pods.spec(&nodes, &borrowed(&command(planned, request.kind.index())));
    let label = json!({ LABEL: planned.record.name });
    // Of a node all GPUs are asked for; this holds where it has more.
    spec["affinity"]["podAntiAffinity"] = json!({
        "requiredDuringSchedulingIgnoredDuringExecution": [
            { "labelSelector": { "matchLabels": label }, "topologyKey": "kubernetes.io/hostname" },
        ],
    });
    if request.host_network {
        extend(&mut spec, json!({ "hostNetwork": true, "dnsPolicy": "ClusterFirstWithHostNet" }));
    }
    complete(&mut spec, planned, request.kind.container());
    let field =
        |name: &str, path: &str| json!({ "name": name, "valueFrom": { "fieldRef": { "fieldPath": path } } });
    let mut environment = vec![
        field("HARNESS_POD_NODE", "spec.nodeName"),
        field("HARNESS_POD_NAME", "metadata.name"),
        field("HARNESS_POD_IP", "status.podIP"),
    ];
    if request.kind == ManifestKind::MpiJob {
        environment
            .push(field(request.kind.index(), "metadata.labels['training.kubeflow.org/replica-index']"));
    }
    spec["containers"][0]["env"] = environment.into();
    json!({ "metadata": { "labels": { "app.kubernetes.io/managed-by": "harness", LABEL: planned.record.name } }, "spec": spec })
}

/// The pod of an MPIJob that only waits: its operator takes the job to be over once this one is.
fn launcher(planned: &SlotPlan) -> Value {
    let nodes: Vec<&str> = planned.candidates.iter().map(String::as_str).collect();
    let shared = planned.inventory.paths.shared.trim_end_matches('/');
    let pods = PodTemplate::new(&planned.reach, &planned.inventory.instance, shared).without_devices();
    let mut spec = pods.spec(&nodes, &borrowed(&command(planned, "wait")));
    // It may run anywhere.
    if let Value::Object(spec) = &mut spec {
        spec.remove("affinity");
    }
    complete(&mut spec, planned, "launcher");
    json!({ "metadata": { "labels": { "app.kubernetes.io/managed-by": "harness" } }, "spec": spec })
}

/// What a pod of a manifest has besides: its files, and a time to end.
fn complete(spec: &mut Value, planned: &SlotPlan, container: &str) {
    let of_jobs: u64 = jobs(planned.case()).map(|job| job.limit_s + 2 * SLACK_S).sum();
    spec["activeDeadlineSeconds"] = (2 * planned.reach.start_limit_s + of_jobs).into();
    spec["terminationGracePeriodSeconds"] = GRACE_S.into();
    spec["containers"][0]["name"] = container.into();
    let name = &planned.record.name;
    if let Some(volumes) = spec["volumes"].as_array_mut() {
        volumes.push(json!({ "name": "harness", "configMap": { "name": name } }));
    }
    if let Some(mounts) = spec["containers"][0]["volumeMounts"].as_array_mut() {
        mounts.push(json!({ "name": "harness", "mountPath": FILES, "readOnly": true }));
    }
}

/// What the container of a pod runs.
fn command(planned: &SlotPlan, index: &str) -> Vec<String> {
    let folder = format!("{}/{}", planned.folder(), planned.record.case);
    let pods = planned.record.pods.to_string();
    let start_limit = planned.reach.start_limit_s.to_string();
    let script = format!("{FILES}/pod.sh");
    ["bash", &script, &folder, &pods, &start_limit, index].map(str::to_owned).to_vec()
}

fn borrowed(command: &[String]) -> Vec<&str> {
    command.iter().map(String::as_str).collect()
}

/// An indexed Job, as itself and within others.
fn indexed(pods: u32, template: &Value) -> Value {
    json!({
        "completionMode": "Indexed",
        "completions": pods,
        "parallelism": pods,
        "backoffLimit": 0,
        "template": template,
    })
}

fn workload(planned: &SlotPlan, request: &ManifestRequest) -> Vec<Value> {
    let (pods, template) = (planned.record.pods, template(planned, request));
    let gpus = planned.inventory.instance.gpus;
    let object = |api: &str, kind: &str, spec: Value| json!({ "apiVersion": api, "kind": kind, "metadata": queued(planned), "spec": spec });
    // A second attempt would be measured over the first, and pods that are deleted take their logs with them.
    let policy = json!({ "backoffLimit": 0, "cleanPodPolicy": "None" });
    let replicas = |count: u32, template: &Value| json!({ "replicas": count, "restartPolicy": "Never", "template": template });
    match request.kind {
        ManifestKind::JobSet => {
            let job =
                json!({ "name": "nodes", "replicas": 1, "template": { "spec": indexed(pods, &template) } });
            let spec = json!({ "replicatedJobs": [job], "failurePolicy": { "maxRestarts": 0 } });
            vec![object("jobset.x-k8s.io/v1alpha2", "JobSet", spec)]
        }
        ManifestKind::MpiJob => {
            let spec = json!({
                "slotsPerWorker": gpus,
                "runPolicy": policy,
                "mpiReplicaSpecs": {
                    "Launcher": replicas(1, &launcher(planned)),
                    "Worker": replicas(pods, &template),
                },
            });
            vec![object("kubeflow.org/v2beta1", "MPIJob", spec)]
        }
        ManifestKind::PyTorchJob => {
            let mut roles = json!({ "Master": replicas(1, &template) });
            if pods > 1 {
                roles["Worker"] = replicas(pods - 1, &template);
            }
            let spec = json!({ "runPolicy": policy, "pytorchReplicaSpecs": roles });
            vec![object("kubeflow.org/v1", "PyTorchJob", spec)]
        }
        ManifestKind::TrainJob => {
            let mut job = indexed(pods, &template);
            // Trainer sets how many there are.
            if let Value::Object(job) = &mut job {
                job.remove("completions");
                job.remove("parallelism");
            }
            let step = json!({ "trainer.kubeflow.org/trainjob-ancestor-step": "trainer" });
            let node = json!({ "name": "node", "template": { "metadata": { "labels": step }, "spec": job } });
            let runtime = json!({
                "apiVersion": "trainer.kubeflow.org/v1alpha1",
                "kind": "TrainingRuntime",
                "metadata": metadata(planned),
                "spec": { "mlPolicy": { "numNodes": pods }, "template": { "spec": { "replicatedJobs": [node] } } },
            });
            let used = json!({
                "apiGroup": "trainer.kubeflow.org", "kind": "TrainingRuntime", "name": planned.record.name,
            });
            let spec = json!({ "runtimeRef": used, "trainer": { "numNodes": pods } });
            vec![runtime, object("trainer.kubeflow.org/v1alpha1", "TrainJob", spec)]
        }
        ManifestKind::HyperPodPyTorchJob => {
            let spec = json!({
                "nprocPerNode": gpus.to_string(),
                "runPolicy": { "cleanPodPolicy": "None", "jobMaxRetryCount": 0 },
                "replicaSpecs": [{ "name": "pods", "replicas": pods, "template": template }],
            });
            vec![object("sagemaker.amazonaws.com/v1", "HyperPodPyTorchJob", spec)]
        }
        // Values have no objects.
        ManifestKind::Job | ManifestKind::NsightOperatorValues | ManifestKind::InjectorValues => {
            vec![object("batch/v1", "Job", indexed(pods, &template))]
        }
    }
}
