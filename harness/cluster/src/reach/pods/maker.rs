//! The process that made pods which are of no run's folder: whether they are in use is known by whether it goes on.

use base::digest::sha256;
use nix::unistd::geteuid;
use std::fs;
use std::io;

/// Of pods that no run's folder knows.
pub(super) const ANNOTATION: &str = "harness/process";

/// What is known here of the process that made a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Maker {
    /// It goes on, and uses its pods.
    Alive,
    /// It ended without deleting them.
    Ended,
    /// Of another machine, another user of this one, or of a run: nothing is known.
    Unknown,
}

/// This process, as only processes of the same user on this machine, since its last start, can find it.
pub fn this_process() -> Option<String> {
    let id = std::process::id();
    Some(format!("{} {id} {}", place()?, began(id).ok()??))
}

pub(super) fn find(annotation: &str) -> Maker {
    let words: Vec<&str> = annotation.split(' ').collect();
    let [at, id, since] = words[..] else { return Maker::Unknown };
    let Ok(id) = id.parse() else { return Maker::Unknown };
    if since.is_empty() || place().is_none_or(|here| here != at) {
        return Maker::Unknown;
    }
    match began(id) {
        Ok(Some(now)) if now == since => Maker::Alive,
        Ok(_) => Maker::Ended,
        Err(_) => Maker::Unknown,
    }
}

/// Where ids of processes mean the same, without a name that could be read.
fn place() -> Option<String> {
    let host = fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let ids = fs::read_link("/proc/self/ns/pid").ok()?;
    let text = format!("{host}{boot}{} {}", ids.display(), geteuid());
    Some(sha256(text.as_bytes()).chars().take(16).collect())
}

/// When a process that goes on began, in ticks since the start of the machine; its id may be another's later on. None where
/// there is no such process, an error where that is not known.
fn began(id: u32) -> io::Result<Option<String>> {
    let stat = match fs::read_to_string(format!("/proc/{id}/stat")) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        stat => stat?,
    };
    // The name of the program, in brackets, may hold any character.
    let rest: Vec<&str> = stat.rsplit_once(") ").map_or("", |(_, rest)| rest).split(' ').collect();
    match (rest.first(), rest.get(19)) {
        // Its parent has not looked yet how it ended.
        (Some(&("Z" | "X")), _) => Ok(None),
        (_, Some(since)) => Ok(Some((*since).to_owned())),
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_process_of_this_machine_is_known_to_go_on_or_to_have_ended() {
        let (own, here) = (this_process().expect("known"), place().expect("known"));
        assert_eq!(find(&own), Maker::Alive);
        let mut other = Command::new("sleep").arg("60").spawn().expect("it starts");
        let text = format!("{here} {} {}", other.id(), began(other.id()).expect("read").expect("its start"));
        assert_eq!(find(&text), Maker::Alive);
        other.kill().expect("killed");
        while find(&text) == Maker::Alive {
            std::thread::yield_now();
        }
        assert_eq!(find(&text), Maker::Ended, "not waited for yet");
        other.wait().expect("ended");
        assert_eq!(find(&text), Maker::Ended);
        // Another process may have its id by now.
        let (rest, _) = own.rsplit_once(' ').expect("words");
        assert_eq!(find(&format!("{rest} 1")), Maker::Ended);
    }

    #[test]
    fn nothing_is_known_of_processes_elsewhere() {
        let (own, here) = (this_process().expect("known"), place().expect("known"));
        let (_, rest) = own.split_once(' ').expect("words");
        for odd in [
            "",
            "a b c",
            &format!("0123456789abcdef {rest}"),
            &format!("{here} x 1"),
            &format!("{here} 1 "),
            &format!("{own} 1"),
        ] {
            assert_eq!(find(odd), Maker::Unknown, "{odd}");
        }
    }
}
