//! The cluster of Kubernetes that the pods of a run are in, as its folder records it. kubectl's context may lead to another
//! one by now, where nodes have the same names: nothing of the run is looked for, ended, drained or put back there.

use cluster::reach::pods::{cluster_of_context, current_cluster};
use config::inventory::{Inventory, ReachBy};
use model::artefact::{Format, RunCluster, kubectl_command};
use std::path::Path;
use store::{Store, Stored, cluster_of};

/// Before anything is asked without a run: whether kubectl leads to the cluster that the inventory names, if it names one.
pub(crate) async fn check_named(inventory: &Inventory) -> Result<(), String> {
    match &inventory.reach {
        ReachBy::Kubernetes(reach) if reach.cluster.is_some() => {
            current_cluster(reach, &reach.namespace).await.map(|_| ())
        }
        _ => Ok(()),
    }
}

/// Before pods of a run are made or looked for. A new run records where they will be; one that is resumed is refused
/// where kubectl leads elsewhere by now.
pub(crate) async fn settle(store: &Store, inventory: &Inventory, is_new: bool) -> Result<(), String> {
    let ReachBy::Kubernetes(reach) = &inventory.reach else { return Ok(()) };
    let now = current_cluster(reach, &reach.namespace);
    match recorded(&store.folder())? {
        Some(then) => compare(&then, &now.await?, &format!("the pods of run {}", store.id())),
        None if is_new => store.is_in(&now.await?).map_err(|error| error.to_string()),
        None => {
            note(store.id());
            Ok(())
        }
    }
}

/// Whether the run in this folder has its pods where this inventory leads to now.
pub(crate) fn check(folder: &Path, inventory: &Inventory) -> Result<(), String> {
    let ReachBy::Kubernetes(reach) = &inventory.reach else { return Ok(()) };
    let Some(then) = recorded(folder)? else { return Ok(()) };
    let now = current_cluster(reach, &reach.namespace);
    compare(&then, &run(now)?, "its pods")
}

/// The same of a watch, whose state outlives its runs: the first round records where its nodes are.
pub(crate) fn keep(watched: &mut Option<RunCluster>, inventory: &Inventory) -> Result<(), String> {
    let ReachBy::Kubernetes(reach) = &inventory.reach else { return Ok(()) };
    let namespace = watched.as_ref().map_or(&reach.namespace, |then| &then.namespace);
    let now = run(current_cluster(reach, namespace))?;
    compare(watched.get_or_insert_with(|| now.clone()), &now, "the nodes of this watch")
}

/// Whether a node of this inventory is the one of that name in the run: the namespace of the pods says nothing of it.
pub(crate) fn check_nodes(folder: &Path, inventory: &Inventory) -> Result<(), String> {
    let ReachBy::Kubernetes(reach) = &inventory.reach else { return Ok(()) };
    let Some(then) = recorded(folder)? else { return Ok(()) };
    let now = current_cluster(reach, &then.namespace);
    let what = format!("the nodes of run {}", name(folder));
    compare(&then, &run(now)?, &what)
}

/// The same as `check` of the pods that read its reports.
pub(crate) fn check_analyses(stored: &Stored) -> Result<(), String> {
    let analyses = stored.analyses().map_err(|error| error.to_string())?;
    let Some(place) = analyses.and_then(|analyses| analyses.kubernetes) else { return Ok(()) };
    let Some(server) = place.server else { return Ok(()) };
    let now = run(cluster_of_context(place.context.as_deref(), &place.namespace))?;
    let then =
        RunCluster { format: Format, server, namespace: place.namespace.clone(), context: place.context };
    compare(&then, &now, "the pods of its analyses")
}

/// Of a run that an older harness made.
pub(crate) fn note_unrecorded(folder: &Path, inventory: &Inventory) {
    let is_in_pods = matches!(inventory.reach, ReachBy::Kubernetes(_));
    if is_in_pods && matches!(recorded(folder), Ok(None)) {
        note(&name(folder));
    }
}

fn name(folder: &Path) -> String {
    folder.file_name().unwrap_or_default().display().to_string()
}

fn note(id: &str) {
    eprintln!("note: run {id} does not record its cluster; kubectl's context is taken for it");
}

fn recorded(folder: &Path) -> Result<Option<RunCluster>, String> {
    cluster_of(folder).map_err(|error| error.to_string())
}

fn run<T>(question: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| error.to_string())?.block_on(question)
}

fn compare(then: &RunCluster, now: &RunCluster, what: &str) -> Result<(), String> {
    if (&then.server, &then.namespace) == (&now.server, &now.namespace) {
        return Ok(());
    }
    let place = |one: &RunCluster| {
        let (server, namespace) = (base::text::show(&one.server), base::text::show(&one.namespace));
        format!("{server} (namespace {namespace})")
    };
    let next = match &then.context {
        Some(context) if now.context.as_ref() != Some(context) => {
            format!("`{}`, or set KUBECONFIG", kubectl_command(None, &["config", "use-context", context]))
        }
        _ => "set KUBECONFIG to the file that leads there".to_owned(),
    };
    let (there, here) = (place(then), place(now));
    Err(format!("{what} are in {there}, but kubectl leads to {here}; nothing was touched; first {next}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(server: &str, context: Option<&str>) -> RunCluster {
        let (server, context) = (server.to_owned(), context.map(str::to_owned));
        RunCluster { format: Format, server, namespace: "bench".to_owned(), context }
    }

    #[test]
    fn another_server_or_namespace_is_refused_with_the_next_step() {
        let a = place("https://a.example", Some("prod"));
        assert_eq!(compare(&a, &place("https://a.example", Some("renamed")), "the pods"), Ok(()));
        let why = |then: &RunCluster, now: &RunCluster| compare(then, now, "the pods of run 1").unwrap_err();
        let b = place("https://b.example", Some("dev"));
        assert_eq!(
            why(&a, &b),
            "the pods of run 1 are in https://a.example (namespace bench), but kubectl leads to https://b.example \
             (namespace bench); nothing was touched; first `kubectl config use-context prod`, or set KUBECONFIG"
        );
        let same = place("https://b.example", Some("prod"));
        assert!(why(&a, &same).ends_with("first set KUBECONFIG to the file that leads there"));
        assert!(why(&place("https://a.example", None), &b).ends_with("the file that leads there"));
        let other = RunCluster { namespace: "train".to_owned(), ..a.clone() };
        assert!(why(&a, &other).contains("but kubectl leads to https://a.example (namespace train)"));
        let odd = why(&place("https://a", Some("$(reboot) \u{1b}'")), &b);
        assert!(odd.contains(r"`kubectl config use-context '$(reboot) \x1b'\'''`"), "{odd}");
    }
}
