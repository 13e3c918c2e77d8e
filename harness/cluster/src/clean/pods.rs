//! The pods of a run: they are ended first, and with them what runs in them; then its folders are looked at by pods that
//! take no device. A pod that is gone from the API server proves nothing about a node that does not answer.

use super::{Cleaned, Leftover, LeftoverKind, Recorded};
use crate::reach::Reach;
use crate::reach::pods::{PodLeft, Pods};
use model::artefact::Plan;

/// `reach` is that of the pods, without secrets.
pub async fn clean(plan: &Plan, recorded: &Recorded, pods: &Pods, reach: &dyn Reach, ends: bool) -> Cleaned {
    let mut cleaned = Cleaned::default();
    let found = match pods.left().await {
        Ok(found) => found,
        Err(error) => {
            cleaned.unasked.insert("API server".to_owned(), error.to_string());
            return cleaned;
        }
    };
    cleaned.found.extend(found.iter().map(leftover));
    if ends {
        delete(pods, &found, &mut cleaned).await;
    } else {
        cleaned.left = cleaned.found.clone();
    }
    if !cleaned.unasked.is_empty() || (ends && !cleaned.left.is_empty()) {
        // Its own pods would stand in the way of further ones.
        return cleaned;
    }
    let of_folders = super::clean(plan, recorded, reach, ends).await;
    cleaned = cleaned.and(of_folders);
    if ends {
        match pods.left().await {
            Ok(own) => delete(pods, &own, &mut cleaned).await,
            Err(error) => {
                cleaned.unasked.insert("API server".to_owned(), error.to_string());
            }
        }
    }
    cleaned
}

async fn delete(pods: &Pods, found: &[PodLeft], cleaned: &mut Cleaned) {
    cleaned.unclear.extend(found.iter().filter_map(what_may_run));
    match pods.delete(found).await {
        Ok(left) => cleaned.left.extend(left.iter().map(|(pod, _)| leftover(pod))),
        Err(error) => {
            // None of them was seen to be gone.
            cleaned.left.extend(found.iter().map(leftover));
            cleaned.unasked.insert("API server".to_owned(), error.to_string());
        }
    }
}

/// Of a pod on a node that does not answer.
pub(super) fn what_may_run(pod: &PodLeft) -> Option<String> {
    let why = pod.silent.as_ref()?;
    let node = pod.node.as_deref().unwrap_or("its node");
    Some(format!(
        "what ran in pod {} may still run: {node} does not answer ({why}), and deleting the pod proves nothing",
        pod.name
    ))
}

pub(super) fn leftover(pod: &PodLeft) -> Leftover {
    Leftover {
        at: pod.node.clone().unwrap_or_else(|| "unplaced".to_owned()),
        what: LeftoverKind::Pod,
        which: pod.name.clone(),
        job: String::new(),
    }
}
