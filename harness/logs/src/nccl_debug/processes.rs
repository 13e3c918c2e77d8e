//! The processes that write a log, each under a small number, with what must be remembered of each. Bounded: a log of
//! more processes than `MOST` is read without telling the rest apart.

use std::collections::HashMap;

pub(super) const MOST: usize = 1 << 16;
/// Longer names are none.
const LONGEST_HOST: usize = 255;

#[derive(Debug, Default)]
pub(super) struct Process {
    pub host: String,
    pub pid: u64,
    /// Whether a call of it could not be read: its sequence has a hole.
    pub has_hole: bool,
    /// Calls and lines of communicators of it that torn lines may have lost.
    pub lost: u64,
    /// The last time stamp as digits, to see a clock that goes back.
    pub clock: u64,
    pub lines: u64,
    /// Those that may be calls, or of the life of communicators.
    pub counted: u64,
    /// Whether it logged that it began a communicator.
    pub has_begun: bool,
    pub has_warned: bool,
    /// Whether its host is none.
    is_torn: bool,
}

#[derive(Debug, Default)]
pub(super) struct Processes {
    all: Vec<Process>,
    /// Process ids are few on a host: the inner list is short.
    hosts: HashMap<String, HashMap<u64, u32>>,
    last: Option<u32>,
    /// Lines of processes that are one too many.
    pub beyond: u64,
}

impl Processes {
    pub(super) fn id_of(&mut self, host: &str, pid: u64) -> Option<u32> {
        if let Some(last) = self.last
            && let Some(process) = self.get(last)
            && process.pid == pid
            && process.host == host
        {
            return self.last;
        }
        if let Some(id) = self.hosts.get(host).and_then(|pids| pids.get(&pid)) {
            self.last = Some(*id);
            return self.last;
        }
        if self.all.len() >= MOST || host.len() > LONGEST_HOST {
            self.beyond += 1;
            return None;
        }
        let id = u32::try_from(self.all.len()).ok()?;
        self.all.push(Process { host: host.to_owned(), pid, has_hole: false, ..Process::default() });
        self.hosts.entry(host.to_owned()).or_default().insert(pid, id);
        self.last = Some(id);
        self.last
    }

    pub(super) fn get(&self, id: u32) -> Option<&Process> {
        self.all.get(id as usize)
    }

    pub(super) fn get_mut(&mut self, id: u32) -> Option<&mut Process> {
        self.all.get_mut(id as usize)
    }

    pub(super) fn host(&self, id: u32) -> &str {
        self.get(id).map_or("", |process| process.host.as_str())
    }

    pub(super) fn hosts(&self) -> Vec<String> {
        self.hosts.keys().cloned().collect()
    }

    /// The longest known host that a word ends with.
    pub(super) fn host_at_end<'a>(&self, word: &'a str) -> Option<&'a str> {
        let ends = word.char_indices().take(LONGEST_HOST).filter_map(|(at, _)| word.get(at..));
        ends.into_iter().find(|end| self.hosts.contains_key(*end))
    }

    /// Those of hosts that exist.
    pub(super) fn count(&self) -> usize {
        self.all.iter().filter(|process| !process.is_torn).count()
    }

    pub(super) fn all(&self) -> &[Process] {
        &self.all
    }

    /// Counts the lines of a process under a torn name as lost by each that may have written them: one with its id, on a
    /// host that the name may be torn from. False where there is none.
    pub(super) fn lose(&mut self, torn: &str, pid: u64, lines: u64, may_be: impl Fn(&str) -> bool) -> bool {
        let mut any = false;
        for process in self.all.iter_mut().filter(|it| it.pid == pid) {
            let is_real = may_be(&process.host);
            if is_real || process.host == torn {
                process.lost = process.lost.saturating_add(lines);
                any |= is_real;
            }
        }
        any
    }

    /// Gives processes the hosts that they are of; none where the host is unknown.
    pub(super) fn rename(&mut self, rename: &impl Fn(&str) -> Option<String>) {
        for process in &mut self.all {
            let host = rename(&process.host);
            process.is_torn = host.as_ref() != Some(&process.host);
            process.host = host.unwrap_or_default();
        }
        self.hosts.retain(|host, _| rename(host).as_ref() == Some(host));
        self.last = None;
    }
}
