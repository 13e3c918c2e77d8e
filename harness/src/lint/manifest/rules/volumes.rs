//! Rules about volumes: what is mounted, and what should be.

use super::resources::GPU;
use super::{Findings, Rule, Weight};
use crate::lint::manifest::objects::{Manifests, Pod, count, is_placeholder};
use crate::lint::manifest::yaml::Node;
use std::collections::BTreeSet;

pub(super) const SHM: Rule = Rule {
    code: "shm",
    weight: Weight::Warning,
    what: "several GPUs in a container without a volume at /dev/shm",
    harm: "64 MiB are there by default, and NCCL or a data loader fails with `No space left on device`",
};
pub(super) const INFINIBAND: Rule = Rule {
    code: "infiniband-path",
    weight: Weight::Warning,
    what: "`/dev/infiniband` as a hostPath",
    harm: "it hides the devices of the EFA plugin: on p6-b200 EFA is off and NCCL falls back to TCP",
};
pub(super) const VOLUME: Rule = Rule {
    code: "volume",
    weight: Weight::Error,
    what: "a mount of a volume that the pod does not have",
    harm: "the API server refuses the pod",
};
pub(super) const CLAIM: Rule = Rule {
    code: "claim",
    weight: Weight::Note,
    what: "a persistent volume claim that no object of the files makes",
    harm: "the pod stays Pending where the cluster has none of this name",
};

pub(super) fn check(manifests: &Manifests, findings: &mut Findings) {
    let made: BTreeSet<&str> = manifests
        .documents
        .iter()
        .filter(|document| document.kind == "PersistentVolumeClaim")
        .filter_map(|document| document.root.at(&["metadata", "name"])?.text())
        .collect();
    for document in &manifests.documents {
        if document.is_values {
            let volumes = document.root.at(&["profile", "volumes"]);
            volumes.map_or(&[][..], Node::items).iter().for_each(|volume| claim(volume, &made, findings));
        }
        // A StatefulSet makes its claims itself.
        let own = document.root.at(&["spec", "volumeClaimTemplates"]).map_or(&[][..], Node::items);
        let own: Vec<&str> = own.iter().filter_map(|claim| claim.at(&["metadata", "name"])?.text()).collect();
        document.pods.iter().for_each(|pod| volumes(pod, &own, &made, findings));
    }
}

fn volumes(pod: &Pod, own: &[&str], made: &BTreeSet<&str>, findings: &mut Findings) {
    let volumes = pod.spec.get("volumes").map_or(&[][..], Node::items);
    for volume in volumes {
        claim(volume, made, findings);
        if let Some(path) = volume.at(&["hostPath", "path"])
            && path.text().is_some_and(|path| path.trim_end_matches('/').starts_with("/dev/infiniband"))
        {
            let advice =
                "remove the volume and request `vpc.amazonaws.com/efa`, whose plugin mounts the devices";
            findings.add(&INFINIBAND, path.place, "hostPath /dev/infiniband", advice);
        }
    }
    let known: BTreeSet<&str> =
        volumes.iter().filter_map(|volume| volume.get("name")?.text()).chain(own.iter().copied()).collect();
    for container in pod.all_containers() {
        for mount in container.get("volumeMounts").map_or(&[][..], Node::items) {
            let Some(name) = mount.get("name") else { continue };
            let Some(text) = name.text().filter(|text| !is_placeholder(text)) else { continue };
            if !known.contains(text) && findings.has_room(&VOLUME, name.place) {
                let near = base::suggest::nearest(text, known.iter().copied());
                let advice =
                    near.map_or("add it to `volumes`".to_owned(), |near| format!("did you mean `{near}`?"));
                findings.add(&VOLUME, name.place, format!("no volume `{text}` in the pod"), advice);
            }
        }
    }
    if pod.spec.get("hostIPC").is_some_and(Node::is_true) {
        return;
    }
    for container in pod.containers() {
        let mut mounts = container.get("volumeMounts").map_or(&[][..], Node::items).iter();
        let has_shm = mounts.any(|mount| {
            mount
                .get("mountPath")
                .and_then(Node::text)
                .is_some_and(|path| path.trim_end_matches('/') == "/dev/shm")
        });
        if let Some(gpus) = count(container, GPU).filter(|gpus| *gpus > 1 && !has_shm) {
            let advice = "mount an `emptyDir` with `medium: Memory` at /dev/shm";
            findings.add(&SHM, container.place, format!("{gpus} GPUs without /dev/shm"), advice);
        }
    }
}

fn claim(volume: &Node, made: &BTreeSet<&str>, findings: &mut Findings) {
    let Some(name) = volume.at(&["persistentVolumeClaim", "claimName"]) else { return };
    if let Some(text) = name.text().filter(|text| !made.contains(text) && !is_placeholder(text)) {
        let advice = "check `kubectl get pvc`, or add the claim to the files";
        findings.add(&CLAIM, name.place, format!("no claim `{text}` in the files"), advice);
    }
}
