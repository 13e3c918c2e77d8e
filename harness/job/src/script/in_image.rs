//! The arguments that run a command of a script in a container, by `container.sh` on the node itself.

use super::{Container, Runtime, files};

/// The home folder, among mounts.
const HOME: &str = "~";
/// No variables.
const NONE: &str = "-";

/// What stands before the command.
pub(super) fn arguments(container: Option<&Container>) -> Vec<String> {
    let Some((container, runtime)) = container.and_then(|container| Some((container, container.runtime?)))
    else {
        return Vec::new();
    };
    let variables = if container.env.is_empty() { NONE.to_owned() } else { container.env.join(",") };
    let workdir = container.workdir.clone().unwrap_or_default();
    let mut words = vec![
        "bash".to_owned(),
        files::CONTAINER.to_owned(),
        "run".to_owned(),
        runtime.name().to_owned(),
        container.image.clone(),
        workdir,
        variables,
    ];
    words.extend(container.mount_home.then(|| HOME.to_owned()));
    words.extend(container.mounts.iter().cloned());
    words.push("--".to_owned());
    words
}

/// Splits them off the front; the rest is the command.
pub(super) fn read(words: &[String]) -> Option<(Option<Container>, &[String])> {
    let [_bash, script, run, runtime, image, workdir, variables, rest @ ..] = words else {
        return Some((None, words));
    };
    if script != files::CONTAINER || run != "run" {
        return Some((None, words));
    }
    let runtime = Runtime::ALL.into_iter().find(|known| known.name() == runtime)?;
    let end = rest.iter().position(|word| word == "--")?;
    let (mounts, command) = (rest.get(..end)?, rest.get(end + 1..)?);
    let mount_home = mounts.first().is_some_and(|mount| mount == HOME);
    let container = Container {
        runtime: Some(runtime),
        image: image.clone(),
        mounts: mounts.iter().filter(|mount| *mount != HOME).cloned().collect(),
        mount_home,
        remap_root: false,
        workdir: (!workdir.is_empty()).then(|| workdir.clone()),
        env: match variables.as_str() {
            NONE => Vec::new(),
            names => names.split(',').map(str::to_owned).collect(),
        },
        name: None,
    };
    Some((Some(container), command))
}
