//! python3 with a training program of the simulated cluster, each of whose ranks is a task; with anything else it is the
//! machine's own python, as if no stand-in stood before it.

use super::state::State;
use super::torchrun;
use sim::training::is_script;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

pub(crate) const NAME: &str = "python3";

pub(crate) async fn answer(state: &State, arguments: &[String]) -> Result<i32, String> {
    // Whatever stands behind `-c` or `-m` is no path of a script.
    let script = arguments.iter().take_while(|word| !["-c", "-m"].contains(&word.as_str()));
    match script.into_iter().find(|word| !word.starts_with('-')) {
        Some(script) if is_script(script) => torchrun::answer(state, NAME, arguments).await,
        _ => Err(format!("`{NAME}`: {}", Command::new(own()?).args(arguments).exec())),
    }
}

/// The first on the path that is no stand-in.
fn own() -> Result<PathBuf, String> {
    let standin = std::env::current_exe().and_then(|path| path.canonicalize());
    let standin = standin.map_err(|error| format!("cannot find the path of this executable: {error}"))?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut found = std::env::split_paths(&path).map(|folder| folder.join(NAME));
    let other = |program: &PathBuf| program.canonicalize().is_ok_and(|program| program != standin);
    found.find(other).ok_or_else(|| format!("no other {NAME} on the PATH of this machine"))
}
