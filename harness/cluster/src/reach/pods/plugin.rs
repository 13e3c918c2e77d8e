//! The plugin that gets kubectl's credentials, such as `aws eks get-token`: kubectl waits for it without a limit, and
//! `--request-timeout` begins behind it.

use crate::reach::ReachError;
use std::fs::{File, read_dir};
use std::io::Read;
use std::time::Duration;

/// How long it may take: those that print a token take a second or two, and none can ask a person here.
pub(super) const PLUGIN_LIMIT: Duration = Duration::from_secs(30);
/// Of what a process was called with.
const ARGUMENTS_LIMIT: u64 = 4 << 10;

/// Ends when the plugin of a kubectl has run too long; never where it has ended, or there is none.
pub(super) async fn hangs(plugin: Option<&str>, group: Option<u32>) {
    if let (Some(plugin), Some(group)) = (plugin, group) {
        tokio::time::sleep(PLUGIN_LIMIT).await;
        if runs(plugin, group) {
            return;
        }
    }
    std::future::pending().await
}

/// What is reported then. Its words are those of kubectl: no node is at fault.
pub(super) fn error(plugin: Option<&str>) -> ReachError {
    let plugin = base::text::show(plugin.unwrap_or_default());
    let why = format!(
        "getting credentials: the plugin `{plugin}` (`users[].user.exec` of the kubeconfig) has not ended within {} s; log \
         in again, then try `kubectl version`",
        PLUGIN_LIMIT.as_secs()
    );
    ReachError::Failed { what: "`kubectl`".to_owned(), why }
}

/// Whether a process of a group, but for its first, is that program.
fn runs(plugin: &str, group: u32) -> bool {
    let Ok(all) = read_dir("/proc") else { return false };
    let ids = all.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    ids.filter(|id| *id != group && group_of(*id) == Some(group)).any(|id| is_called(id, plugin))
}

fn group_of(id: u32) -> Option<u32> {
    let stat = read(&format!("/proc/{id}/stat"));
    // Behind its name: its state, its parent, its group.
    stat.rsplit(") ").next()?.split(' ').nth(2)?.parse().ok()
}

fn is_called(id: u32, plugin: &str) -> bool {
    let name = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
    let text = read(&format!("/proc/{id}/cmdline"));
    // A script has its interpreter before it; behind a wrapper kubectl itself is such a process.
    let is_kubectl = text.split('\0').any(|word| word.starts_with("--namespace="));
    !is_kubectl && text.split('\0').take(2).any(|word| name(word) == name(plugin))
}

fn read(path: &str) -> String {
    let mut bytes = Vec::new();
    // It may have ended.
    let _ = File::open(path).and_then(|file| file.take(ARGUMENTS_LIMIT).read_to_end(&mut bytes));
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::CommandExt;
    use std::process::{Command, Stdio};

    #[test]
    fn a_plugin_that_has_not_ended_is_found_in_the_group_of_its_kubectl_and_named() {
        let mut child = Command::new("bash")
            .args(["-c", "sleep 60 & echo; wait"])
            .process_group(0)
            .stdout(Stdio::piped())
            .spawn()
            .expect("bash");
        let group = child.id();
        let until = std::iter::repeat_with(|| {
            std::thread::yield_now();
            runs("/usr/bin/sleep", group)
        });
        let has_begun = until.take(4000).any(|runs| runs);
        let others = [runs("aws", group), runs("bash", group), runs("sleep", std::process::id())];
        let id = i32::try_from(group).expect("an id");
        nix::sys::signal::killpg(nix::unistd::Pid::from_raw(id), nix::sys::signal::Signal::SIGKILL)
            .expect("ended");
        child.wait().expect("ended");
        assert!(has_begun);
        assert_eq!(others, [false; 3]);
        let why = error(Some("aws")).to_string();
        assert!(why.contains("the plugin `aws`") && why.contains("within 30 s"), "{why}");
        assert!(super::super::kubectl::is_refusal(&why), "no node is at fault: {why}");
    }
}
