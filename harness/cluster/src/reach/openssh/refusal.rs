//! Why ssh did not connect, from what it printed: what the host does, what a person has to settle first, and what goes
//! away by waiting. It changes nothing: the line that makes a key known is told, not run.

use super::master::{Way, who};
use crate::reach::ReachError;
use std::process::Stdio;
use std::time::Duration;
use tokio::process::Command;
use tokio::time::timeout;

#[derive(Debug, PartialEq)]
pub(super) enum NotConnected {
    /// Too many connect at once, here or at a jump host: it goes away by waiting.
    ForNow(ReachError),
    For(ReachError),
}

/// How long ssh may take to say what its configuration means.
const CONFIG_LIMIT: Duration = Duration::from_secs(5);

pub(super) async fn explain(said: &str, way: &Way, host: &str) -> NotConnected {
    match read(said) {
        Refusal::Busy(line) => NotConnected::ForNow(unreachable(host, line)),
        Refusal::Other(line) => NotConnected::For(unreachable(host, line)),
        Refusal::Unknown { name } => {
            let file = known_hosts(way, host).await;
            let asked = keyscan(&name);
            NotConnected::For(failed(
                host,
                format!(
                    "its host key is not known; once you trust the network between, add it: `{asked} >> {file}`"
                ),
            ))
        }
        Refusal::Changed { line } => NotConnected::For(failed(
            host,
            format!(
                "its host key is another than the one that is known, so it was set up anew or somebody stands between; \
                 once you know which, remove the old one and add the new: {line}"
            ),
        )),
        Refusal::Denied(line) => NotConnected::For(failed(
            host,
            format!(
                "it takes no key that ssh offers without asking; `{}` must work first: {line}",
                ["ssh".to_owned()]
                    .into_iter()
                    .chain(who(way))
                    .chain([host.to_owned()])
                    .collect::<Vec<_>>()
                    .join(" ")
            ),
        )),
    }
}

#[derive(Debug, PartialEq)]
enum Refusal {
    Busy(String),
    /// As ssh names it: `host` or `[host]:port`.
    Unknown {
        name: String,
    },
    Changed {
        line: String,
    },
    Denied(String),
    Other(String),
}

fn read(said: &str) -> Refusal {
    let lines: Vec<&str> = said.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let with = |part: &str| lines.iter().find(|line| line.contains(part)).copied();
    let Some(last) = lines.last().map(|line| (*line).to_owned()) else {
        // As far as is known it was ended from outside, which says nothing of the host.
        return Refusal::Busy("ssh ended without a word".to_owned());
    };
    if with("REMOTE HOST IDENTIFICATION HAS CHANGED").is_some() {
        let line = with("Offending").unwrap_or("ssh does not say where it stands");
        return Refusal::Changed { line: line.to_owned() };
    }
    let unknown = with(" host key is known for ");
    if let Some((_, rest)) = unknown.and_then(|line| line.split_once(" host key is known for ")) {
        let name = rest.split(' ').next().unwrap_or_default();
        return Refusal::Unknown { name: name.to_owned() };
    }
    if let Some(line) = with("Permission denied (").or_else(|| with("Too many authentication failures")) {
        return Refusal::Denied(line.to_owned());
    }
    let crowded = ["kex_exchange_identification: ", "Connection reset by ", "Connection closed by "];
    // A write to a connection that was just refused ends so, where a read would say "closed".
    let refused =
        lines.iter().find(|line| line.starts_with("banner exchange: ") && line.ends_with(": Broken pipe"));
    // A host that says nothing at all is not crowded.
    if with("timed out").is_none()
        && let Some(line) = crowded.iter().find_map(|part| with(part)).or(refused.copied())
    {
        return Refusal::Busy(line.to_owned());
    }
    Refusal::Other(last)
}

fn unreachable(host: &str, why: String) -> ReachError {
    ReachError::Unreachable { host: host.to_owned(), why }
}

/// Not the host's fault: nothing of it was seen.
fn failed(host: &str, why: String) -> ReachError {
    ReachError::NoAccess { host: host.to_owned(), why }
}

/// The command that prints the key of a host by the name that ssh gave it.
fn keyscan(name: &str) -> String {
    match name.strip_prefix('[').and_then(|rest| rest.split_once("]:")) {
        Some((host, port)) => format!("ssh-keyscan -p {port} {host}"),
        None => format!("ssh-keyscan {name}"),
    }
}

/// The file in which ssh looks first for the keys of this host.
async fn known_hosts(way: &Way, host: &str) -> String {
    let asked = Command::new("ssh")
        .arg("-G")
        .args(who(way))
        .args(["--", host])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .output();
    let printed = match timeout(CONFIG_LIMIT, asked).await {
        Ok(Ok(output)) => String::from_utf8_lossy(&output.stdout).into_owned(),
        _ => String::new(),
    };
    let files = printed.lines().find_map(|line| line.strip_prefix("userknownhostsfile "));
    files.and_then(|files| files.split(' ').next()).unwrap_or("~/.ssh/known_hosts").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ssh_prints_is_told_apart() {
        let unknown = |name: &str| Refusal::Unknown { name: name.into() };
        let busy = |line: &str| Refusal::Busy(line.into());
        let other = |line: &str| Refusal::Other(line.into());
        for (said, wanted) in [
            (
                "No ED25519 host key is known for [127.0.11.1]:2222 and you have requested strict checking.\r\n\
                 Host key verification failed.\r\n",
                unknown("[127.0.11.1]:2222"),
            ),
            (
                "No RSA host key is known for n1 and you have requested strict checking.\nHost key verification failed.",
                unknown("n1"),
            ),
            (
                "@@@\n@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\nOffending ED25519 key in /h/known_hosts:3\n\
                 Host key for n1 has changed and you have requested strict checking.\nHost key verification failed.",
                Refusal::Changed { line: "Offending ED25519 key in /h/known_hosts:3".into() },
            ),
            (
                "u@n1: Permission denied (publickey,password).",
                Refusal::Denied("u@n1: Permission denied (publickey,password).".into()),
            ),
            (
                "kex_exchange_identification: Connection closed by remote host\nConnection closed by 127.0.0.1 port 22",
                busy("kex_exchange_identification: Connection closed by remote host"),
            ),
            ("Connection reset by 10.0.0.1 port 22", busy("Connection reset by 10.0.0.1 port 22")),
            (
                "Connection timed out during banner exchange\nConnection to 10.0.0.1 port 22 timed out",
                other("Connection to 10.0.0.1 port 22 timed out"),
            ),
            (
                "ssh: connect to host n1 port 22: Connection refused",
                other("ssh: connect to host n1 port 22: Connection refused"),
            ),
            ("Connection closed by UNKNOWN port 65535\r\n", busy("Connection closed by UNKNOWN port 65535")),
            (
                "banner exchange: Connection to UNKNOWN port 65535: Broken pipe\r\n",
                busy("banner exchange: Connection to UNKNOWN port 65535: Broken pipe"),
            ),
            (
                "banner exchange: Connection to 10.0.0.1 port 80: invalid format",
                other("banner exchange: Connection to 10.0.0.1 port 80: invalid format"),
            ),
            ("", busy("ssh ended without a word")),
        ] {
            assert_eq!(read(said), wanted, "{said}");
        }
    }

    #[test]
    fn the_line_that_makes_a_key_known_names_host_and_port() {
        assert_eq!(keyscan("[127.0.11.1]:2222"), "ssh-keyscan -p 2222 127.0.11.1");
        assert_eq!(keyscan("n1"), "ssh-keyscan n1");
    }
}
