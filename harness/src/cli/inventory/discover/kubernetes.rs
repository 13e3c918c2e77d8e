//! `harness inventory discover --via kubernetes`

use super::{Ask, DiscoverArgs, Summary};
use crate::cli::usage;
use cluster::discover::kubernetes::{Discovered, Request, discover as ask_nodes, render};
use model::exit_code;
use store::{iso8601, wall_clock_s};

#[derive(Debug, Default, clap::Args)]
pub(super) struct PodArgs {
    /// Kubernetes: the image of every pod, with bash, coreutils, and what jobs run
    #[arg(long, value_name = "IMAGE", required_if_eq("via", "kubernetes"))]
    image: Option<String>,
    /// Kubernetes: the ReadWriteMany claim that every pod mounts at --shared
    #[arg(long, value_name = "NAME", required_if_eq("via", "kubernetes"))]
    claim: Option<String>,
    /// Kubernetes: where pods are made; by default `default`
    #[arg(long, value_name = "NAME")]
    namespace: Option<String>,
    /// Kubernetes: the context of the kubeconfig; by default its current one
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    /// Kubernetes: only nodes with these labels, as `kubectl get --selector` takes them
    #[arg(long, value_name = "LABELS")]
    selector: Option<String>,
    /// Kubernetes: a taint's key that pods bear, beside those of GPUs and EFA; may be repeated
    #[arg(long = "toleration", value_name = "KEY")]
    tolerations: Vec<String>,
    /// Kubernetes: the priority class of the pods
    #[arg(long, value_name = "NAME")]
    priority_class: Option<String>,
}

impl PodArgs {
    /// The first of its flags that was given.
    pub(super) fn first_given(&self) -> Option<&'static str> {
        let flags = [
            ("--image", self.image.is_some()),
            ("--claim", self.claim.is_some()),
            ("--namespace", self.namespace.is_some()),
            ("--context", self.context.is_some()),
            ("--selector", self.selector.is_some()),
            ("--toleration", !self.tolerations.is_empty()),
            ("--priority-class", self.priority_class.is_some()),
        ];
        flags.into_iter().find(|(_, given)| *given).map(|(flag, _)| flag)
    }
}

pub(super) fn discover(ask: &Ask<'_>) -> i32 {
    let DiscoverArgs { partition, features, reservation, pods, instance, shared, .. } = ask.args;
    let only_slurm = [
        ("--partition", partition.is_some()),
        ("--feature", !features.is_empty()),
        ("--reservation", reservation.is_some()),
    ];
    if let Some((flag, _)) = only_slurm.into_iter().find(|(_, given)| *given) {
        return usage(&format!("{flag}: Kubernetes has none; choose nodes with --selector"));
    }
    let request = Request {
        context: pods.context.clone(),
        namespace: pods.namespace.clone().unwrap_or_else(|| "default".to_owned()),
        image: pods.image.clone().unwrap_or_default(),
        claim: pods.claim.clone().unwrap_or_default(),
        selector: pods.selector.clone(),
        tolerations: pods.tolerations.clone(),
        priority_class: pods.priority_class.clone(),
        instance: instance.clone(),
    };
    let found = match ask.runtime.block_on(ask_nodes(&request, ask.instances)) {
        Ok(found) => found,
        Err(failure) => return ask.refused(failure),
    };
    if let Err(why) = ask.write(&render(&found, &request, shared, &iso8601(wall_clock_s()))) {
        return usage(&why);
    }
    let Discovered { instance, nodes, left_out, notes, .. } = &found;
    ask.summary(&Summary { instance, nodes, left_out, notes });
    println!("assumed: pods mount the claim at `{shared}`; change it with --shared");
    exit_code::PASSED
}
