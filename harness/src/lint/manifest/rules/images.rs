//! The rule about images whose content changes under their name.

use super::{Findings, Rule, Weight};
use crate::lint::manifest::objects::{Manifests, is_placeholder};
use crate::lint::manifest::yaml::Node;
use crate::lint::script::base;

pub(super) const TAG: Rule = Rule {
    code: "image-tag",
    weight: Weight::Warning,
    what: "an image without a tag, or with `latest`",
    harm: "nodes pull different programs under one name, and results cannot be compared",
};

pub(super) fn check(manifests: &Manifests, findings: &mut Findings) {
    for document in &manifests.documents {
        let of_pods = document
            .pods
            .iter()
            .flat_map(|pod| pod.all_containers())
            .filter_map(|container| container.get("image"));
        let trainer = document.root.at(&["spec", "trainer", "image"]);
        let tools = document.root.get("devtoolBinariesImage").filter(|_| document.is_values);
        of_pods.chain(trainer).chain(tools).for_each(|image| tag(image, findings));
    }
}

fn tag(image: &Node, findings: &mut Findings) {
    let Some(text) = image.text().filter(|text| !text.is_empty() && !is_placeholder(text)) else { return };
    let name = base(text);
    if name.contains('@') || name.split_once(':').is_some_and(|(_, tag)| !tag.is_empty() && tag != "latest") {
        return;
    }
    let message = match name.contains(':') {
        true => format!("image `{text}`"),
        false => format!("image `{text}` without a tag"),
    };
    findings.add(&TAG, image.place, message, "write the tag of a release, or a digest");
}
