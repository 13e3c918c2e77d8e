//! The files of a folder as they grow, without touching them: opened for reading, no link followed, nothing waited for.
//! A file is known by its inode and its first bytes, so that renaming, replacing and truncating lose nothing.

use base::digest::sha256;
use logs::inspector::lines::{FileLines, Line, ParsedLine};
use nix::libc;
use observe::{Event, Observer};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// A longer line is damaged.
const LONGEST: u64 = 64 << 10;
/// First bytes by which a file is known.
const HEAD: u64 = 256;
/// What is beyond these is left out, and counted.
const MOST_FILES: usize = 65_536;
const MOST_ENTRIES: usize = 262_144;
/// A file whose next line is so far ahead of the others' may have a clock that is.
const SKEW_US: u64 = 30_000_000;
/// Lines that are looked at to find that out.
const MOST_PEEKED: usize = 16;
/// So much of a line that is too long is passed over at a time: the other files go on.
const MOST_SKIPPED: u64 = 64 << 20;
/// All files are read up to the same time, then up to the next: their records belong together.
const STEP_US: u64 = 60_000_000;

/// Where the reading of one file stands.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Followed {
    device: u64,
    inode: u64,
    head: String,
    head_bytes: u64,
    /// Behind the last whole line.
    offset: u64,
    lines: FileLines,
    /// Within a line that is too long.
    is_skipping: bool,
    /// By how much its clock is ahead of most others, as their calls show.
    ahead_us: u64,
    /// The time of the last line, by most clocks.
    last_us: u64,
}

impl Followed {
    /// The time of a line by most clocks.
    fn time_us(&self, at_us: u64) -> u64 {
        // Where the clock was set right, it would be behind its own last line.
        let set = at_us.checked_sub(self.ahead_us);
        set.filter(|set| set.saturating_add(SKEW_US) >= self.last_us).unwrap_or(at_us)
    }
}

/// What was odd in the files, since the beginning.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Oddities {
    /// Lines that are damaged, too long, or of which it is unknown whose they are.
    pub damaged: u64,
    /// Files that became shorter, or are others by the same name.
    pub restarted: u64,
}

/// What the last look at the folder met.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Looked {
    pub files: u64,
    /// With the first of them, and why.
    pub unreadable: Option<(u64, String)>,
    /// Links, pipes and the like, by the names of records.
    pub no_files: u64,
    pub left_out: u64,
    /// Why the folder could not be read.
    pub folder: Option<String>,
    /// Files by a clock that is ahead, which was set right.
    pub ahead: u64,
    /// Calls that came after their time was judged, since the look before.
    pub too_late: u64,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Follower {
    files: Vec<Followed>,
    pub odd: Oddities,
}

/// A file that has more to read.
struct Unread {
    at: usize,
    path: PathBuf,
    /// Its length when the folder was looked at: what comes later is read the next time.
    length: u64,
    /// When its next line was written.
    next_us: u64,
}

#[derive(Debug, Clone)]
struct Listed {
    path: PathBuf,
    device: u64,
    inode: u64,
    length: u64,
    is_named: bool,
}

/// The first bytes of a file.
struct Head(Vec<u8>);

impl Head {
    fn read(file: File) -> io::Result<Head> {
        let mut bytes = Vec::new();
        file.take(HEAD).read_to_end(&mut bytes)?;
        Ok(Head(bytes))
    }

    fn bytes(&self) -> u64 {
        self.0.len() as u64
    }

    fn digest(&self, bytes: u64) -> String {
        sha256(self.0.get(..bytes as usize).unwrap_or(&self.0))
    }

    /// Whether it is that of the same file, with what came since.
    fn continues(&self, known: &Followed, length: u64) -> bool {
        length >= known.offset
            && self.bytes() >= known.head_bytes
            && self.digest(known.head_bytes) == known.head
    }
}

impl Follower {
    /// Reads all that is new, and gives what it shows.
    pub(super) fn poll(
        &mut self,
        folder: &Path,
        observer: &mut Observer,
        events: &mut Vec<Event>,
    ) -> io::Result<Looked> {
        let mut looked = Looked::default();
        let listed = list(folder, &mut looked)?;
        let mut unread = self.find(listed, &mut looked);
        looked.files = self.files.len() as u64;
        let mut limit_us: u64 = 0;
        while !unread.is_empty() {
            unread.retain_mut(|file| {
                if file.next_us > limit_us {
                    return true;
                }
                self.read_on(file, (limit_us, 0), observer, &mut looked)
            });
            // The others wait for calls of these: their clocks are ahead, or a line has a wrong time.
            unread.retain_mut(|file| {
                if file.next_us <= limit_us.saturating_add(SKEW_US) {
                    return true;
                }
                // What cannot be read now is reported when it is its turn.
                let Ok(Some((ahead_us, until))) = self.peek(file, observer) else { return true };
                if let Some(known) = self.files.get_mut(file.at) {
                    (known.ahead_us, known.last_us) = (ahead_us, 0);
                }
                self.read_on(file, (limit_us, until), observer, &mut looked)
            });
            events.extend(observer.advance());
            let next_us = unread.iter().map(|file| file.next_us).min().unwrap_or_default();
            limit_us = limit_us.max(next_us).saturating_add(STEP_US);
        }
        looked.ahead = self.files.iter().filter(|file| file.ahead_us > 0).count() as u64;
        Ok(looked)
    }

    /// Whether there is more to read of it.
    fn read_on(
        &mut self,
        file: &mut Unread,
        limit: (u64, u64),
        observer: &mut Observer,
        looked: &mut Looked,
    ) -> bool {
        match self.read(file, limit, observer) {
            Ok(next_us) => {
                file.next_us = next_us.unwrap_or_default();
                next_us.is_some()
            }
            Err(error) => {
                looked.fail(&file.path, &error);
                false
            }
        }
    }

    /// By how much the clock of a file is ahead, by a call that most other ranks wrote before, and the end of its line.
    fn peek(&self, file: &Unread, observer: &Observer) -> io::Result<Option<(u64, u64)>> {
        let Some(known) = self.files.get(file.at) else { return Ok(None) };
        let mut opened = open_regular(&file.path, (known.device, known.inode))?;
        opened.seek(SeekFrom::Start(known.offset))?;
        let mut from = BufReader::new(opened);
        let (mut lines, mut offset, mut line) = (known.lines.clone(), known.offset, Vec::new());
        for _ in 0..MOST_PEEKED {
            line.clear();
            offset += Read::take(&mut from, LONGEST).read_until(b'\n', &mut line)? as u64;
            if line.last() != Some(&b'\n') || offset > file.length {
                break;
            }
            let text = String::from_utf8_lossy(&line);
            let parsed = ParsedLine::parse(&text);
            let at_us = parsed.at_us();
            if let Line::Call(call) = lines.take(parsed)
                && let (Some(at_us), Some(others_us)) = (at_us, observer.awaits(&call))
            {
                let ahead_us = at_us.saturating_sub(others_us);
                return Ok(Some((if ahead_us > SKEW_US { ahead_us } else { 0 }, offset)));
            }
        }
        Ok(None)
    }

    /// Which files have more to read. Those that are gone are forgotten.
    fn find(&mut self, listed: Vec<Listed>, looked: &mut Looked) -> Vec<Unread> {
        let by_inode: BTreeMap<(u64, u64), usize> =
            self.files.iter().enumerate().map(|(at, it)| ((it.device, it.inode), at)).collect();
        let mut claimed: BTreeSet<usize> = BTreeSet::new();
        let mut unread = Vec::new();
        let mut others: Vec<(Listed, Head)> = Vec::new();
        let mut claim = |at: usize, file: Listed, files: &[Followed]| {
            if files.get(at).is_some_and(|it| it.offset < file.length) {
                unread.push(Unread { at, path: file.path, length: file.length, next_us: 0 });
            }
        };
        for file in listed {
            let at = by_inode.get(&(file.device, file.inode)).copied();
            if at.is_none() && !file.is_named {
                continue;
            }
            let head = match open_regular(&file.path, (file.device, file.inode)).and_then(Head::read) {
                Ok(head) => head,
                Err(error) => {
                    looked.fail(&file.path, &error);
                    // It may be readable the next time.
                    claimed.extend(at);
                    continue;
                }
            };
            let known = at.and_then(|at| self.files.get_mut(at));
            match (at, known) {
                (Some(at), Some(known)) if head.continues(known, file.length) => {
                    (known.head, known.head_bytes) = (head.digest(HEAD), head.bytes());
                    claimed.insert(at);
                    claim(at, file, &self.files);
                }
                _ => others.push((file, head)),
            }
        }
        // A copy that took the place of its original, whose inode another file may have by now.
        others.retain_mut(|(file, head)| {
            let is_copy = |(at, it): &(usize, &Followed)| {
                !claimed.contains(at) && it.head_bytes == HEAD && head.continues(it, file.length)
            };
            let Some((at, _)) = self.files.iter().enumerate().find(is_copy) else { return true };
            if let Some(known) = self.files.get_mut(at) {
                (known.device, known.inode) = (file.device, file.inode);
            }
            claimed.insert(at);
            claim(at, file.clone(), &self.files);
            false
        });
        for (file, head) in others {
            let at = by_inode.get(&(file.device, file.inode)).copied().filter(|at| !claimed.contains(at));
            let fresh = Followed {
                device: file.device,
                inode: file.inode,
                head: head.digest(HEAD),
                head_bytes: head.bytes(),
                offset: 0,
                lines: FileLines::default(),
                is_skipping: false,
                ahead_us: 0,
                last_us: 0,
            };
            let at = if let Some(at) = at
                && let Some(known) = self.files.get_mut(at)
            {
                self.odd.restarted += 1;
                *known = fresh;
                at
            } else if self.files.len() < MOST_FILES {
                self.files.push(fresh);
                self.files.len() - 1
            } else {
                looked.left_out += 1;
                continue;
            };
            claimed.insert(at);
            claim(at, file, &self.files);
        }
        // Places must stay while something is read.
        if unread.is_empty() {
            let mut at = 0..;
            self.files.retain(|_| at.next().is_some_and(|at| claimed.contains(&at)));
        }
        unread
    }

    /// Reads lines up to those that were written later than `limit_us`, and gives when the next of these was; nothing at
    /// the end. Lines before `until` are read whatever their time. A line without an end stays for the next time.
    fn read(
        &mut self,
        file: &Unread,
        (limit_us, until): (u64, u64),
        observer: &mut Observer,
    ) -> io::Result<Option<u64>> {
        let Some(known) = self.files.get_mut(file.at) else { return Ok(None) };
        let mut opened = open_regular(&file.path, (known.device, known.inode))?;
        opened.seek(SeekFrom::Start(known.offset))?;
        let mut from = BufReader::with_capacity(64 << 10, opened);
        let mut line = Vec::new();
        let mut skipped = 0;
        while known.offset < file.length {
            if known.is_skipping {
                // A hole holds no line's end.
                let data = data_from(from.get_ref(), known.offset, file.length);
                from.seek(SeekFrom::Start(data))?;
                if data > known.offset {
                    known.offset = data;
                    continue;
                }
                if skipped >= MOST_SKIPPED {
                    return Ok(None);
                }
                skipped += LONGEST;
            }
            line.clear();
            let taken = Read::take(&mut from, LONGEST).read_until(b'\n', &mut line)? as u64;
            let is_ended = line.last() == Some(&b'\n');
            match (is_ended, known.is_skipping) {
                (true, true) => known.is_skipping = false,
                (true, false) => {
                    let text = String::from_utf8_lossy(&line);
                    let parsed = ParsedLine::parse(&text);
                    let at_us = parsed.at_us();
                    let time_us = at_us.map(|at_us| known.time_us(at_us));
                    let is_late = time_us.is_some_and(|time_us| time_us > limit_us);
                    if is_late && known.offset >= until {
                        return Ok(time_us);
                    }
                    if at_us.is_some() && at_us == time_us && !is_late {
                        known.ahead_us = 0;
                    }
                    if !is_late {
                        known.last_us = time_us.unwrap_or(known.last_us);
                    }
                    match known.lines.take(parsed) {
                        Line::Call(mut call) => {
                            // A time that neither the clock nor the calls explain is none.
                            let is_odd = time_us > Some(limit_us.saturating_add(SKEW_US));
                            if is_odd || time_us != at_us {
                                call.at_us = time_us.filter(|_| !is_odd);
                            }
                            observer.take(&call);
                        }
                        Line::Damaged => self.odd.damaged += 1,
                        Line::Other | Line::Foreign => {}
                    }
                }
                (false, _) if taken < LONGEST => return Ok(None),
                (false, was_skipping) => {
                    self.odd.damaged += u64::from(!was_skipping);
                    known.is_skipping = true;
                }
            }
            known.offset += taken;
        }
        Ok(None)
    }
}

impl Looked {
    fn fail(&mut self, path: &Path, error: &io::Error) {
        let (n, _) = self.unreadable.get_or_insert_with(|| (0, format!("{}: {error}", path.display())));
        *n += 1;
    }
}

fn list(folder: &Path, looked: &mut Looked) -> io::Result<Vec<Listed>> {
    let mut listed = Vec::new();
    for (n, entry) in fs::read_dir(folder)?.enumerate() {
        if n >= MOST_ENTRIES {
            looked.left_out += 1;
            break;
        }
        let entry = entry?;
        // Gone since the folder was listed: rotated away, and found by its other name.
        let Ok(data) = entry.metadata() else { continue };
        let path = entry.path();
        let extension = path.extension().and_then(|it| it.to_str());
        let is_named = matches!(extension, Some("log" | "jsonl"));
        match data.is_file() {
            true => {
                let (device, inode, length) = (data.dev(), data.ino(), data.len());
                listed.push(Listed { path, device, inode, length, is_named });
            }
            false => looked.no_files += u64::from(is_named && !data.is_dir()),
        }
    }
    // Whatever the order of the folder.
    listed.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(listed)
}

/// Where the next bytes are that were written, from an offset on, by a file whose reader is moved by it; the offset itself
/// where that is unknown, and the end of the file where there are none.
fn data_from(file: &File, offset: u64, end: u64) -> u64 {
    let from = i64::try_from(offset).unwrap_or(i64::MAX);
    match nix::unistd::lseek(file, from, nix::unistd::Whence::SeekData) {
        Ok(at) => u64::try_from(at).unwrap_or(offset).clamp(offset, end),
        Err(nix::errno::Errno::ENXIO) => end,
        Err(_) => offset,
    }
}

/// The file that was listed, and nothing that has taken its place since.
fn open_regular(path: &Path, inode: (u64, u64)) -> io::Result<File> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_CLOEXEC | libc::O_NOCTTY;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let data = file.metadata()?;
    match data.is_file() && (data.dev(), data.ino()) == inode {
        true => Ok(file),
        false => Err(io::Error::other("replaced while it was read; read the next time")),
    }
}
