//! From the sampler's text to a capture, in one pass. A line that is not understood refuses the whole text: half of a
//! capture would pass for all of it. Only a line that was cut off by the sampler's death is left out.

use super::escapes::{decimal, fixed, unescape};
use super::{BadReading, Capture, Clock, Device, End, MissingCounter, NotUnderstood, Phase, Reading, Reason};
use std::collections::{HashMap, HashSet};
use std::io::{BufRead, Read};

/// Longer lines are none of the sampler's: it has a few dozen columns.
const LONGEST: u64 = 1 << 20;

/// The same of bytes that are there.
pub fn read(text: &[u8], file: &str) -> Result<Capture, NotUnderstood> {
    read_stream(text, file)
}

/// Reads line by line: what is held are the readings.
pub fn read_stream(mut from: impl BufRead, file: &str) -> Result<Capture, NotUnderstood> {
    let mut reader = Reader::new(file);
    let mut number = 0;
    let mut piece = Vec::new();
    let wrong = |line, why| NotUnderstood { file: file.to_owned(), line, why };
    loop {
        piece.clear();
        let length = from.by_ref().take(LONGEST).read_until(b'\n', &mut piece);
        let length = length.map_err(|error| wrong(number + 1, format!("cannot be read: {error}")))?;
        if length == 0 {
            break;
        }
        number += 1;
        let read = match piece.strip_suffix(b"\n").map(std::str::from_utf8) {
            Some(Ok(line)) => reader.line(line),
            Some(Err(_)) => Err("line is not text".to_owned()),
            None if length as u64 == LONGEST => Err(format!("line is longer than {LONGEST} bytes")),
            // Every line is written whole, so one without its end is where the sampler was killed.
            None => break,
        };
        read.map_err(|why| wrong(number, why))?;
    }
    reader.finish().map_err(|why| wrong(number.max(1), why))
}

struct Reader {
    capture: Capture,
    index: HashMap<String, usize>,
    /// The encoded names of the devices, so that a reading's device is found without decoding its name.
    names: Vec<String>,
    next: usize,
    head: usize,
}

const HEAD: [&str; 6] = ["harness-counters", "node", "root", "interval_s", "columns", "begin"];

impl Reader {
    fn new(file: &str) -> Reader {
        let nothing = Clock { wall_us: 0, uptime_cs: 0 };
        let capture = Capture {
            file: file.to_owned(),
            node: String::new(),
            root: String::new(),
            interval_cs: 0,
            columns: Vec::new(),
            begin: nothing,
            devices: Vec::new(),
            unreadable: Vec::new(),
            missing: Vec::new(),
            bad: Vec::new(),
            not_quiet: Vec::new(),
            readings: Vec::new(),
            end: None,
        };
        Reader { capture, index: HashMap::new(), names: Vec::new(), next: 0, head: 0 }
    }

    fn line(&mut self, line: &str) -> Result<(), String> {
        if self.capture.end.is_some() {
            return Err("nothing may follow `end`".to_owned());
        }
        let (keyword, rest) = line.split_once(' ').unwrap_or((line, ""));
        if let Some(expected) = HEAD.get(self.head) {
            if keyword != *expected {
                return Err(format!("expected `{expected}`, found `{}`", shortened(keyword)));
            }
            self.head += 1;
            return self.head_line(keyword, rest);
        }
        match keyword {
            "before" => self.reading(Phase::Before, rest),
            "during" => self.reading(Phase::During, rest),
            "after" => self.reading(Phase::After, rest),
            _ => self.note(keyword, rest),
        }
    }

    fn head_line(&mut self, keyword: &str, rest: &str) -> Result<(), String> {
        match keyword {
            "harness-counters" if rest != "1" => {
                return Err(format!("unknown capture format, expected 1: `{}`", shortened(rest)));
            }
            "node" => self.capture.node = name(rest)?,
            "root" => self.capture.root = name(rest)?,
            "interval_s" => self.capture.interval_cs = time(rest, 2)?,
            "columns" if !rest.is_empty() => {
                self.capture.columns = rest.split(' ').map(name).collect::<Result<_, _>>()?;
                let mut named = HashSet::new();
                if let Some(counter) = self.capture.columns.iter().find(|counter| !named.insert(*counter)) {
                    return Err(format!("duplicate counter: `{}`", shortened(counter)));
                }
            }
            "begin" => {
                let [wall, uptime] = split_words(rest)?;
                self.capture.begin = clock(wall, uptime)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn reading(&mut self, phase: Phase, rest: &str) -> Result<(), String> {
        let mut words = rest.split(' ');
        let uptime_cs = time(words.next().unwrap_or_default(), 2)?;
        let device = self.device(words.next().unwrap_or_default())?;
        let mut values = Vec::with_capacity(self.capture.columns.len());
        for word in words {
            let value = decimal(word.as_bytes());
            if value.is_none() && word != "-" {
                return Err(format!("value is not a counter: `{}`", shortened(word)));
            }
            values.push(value);
        }
        let (has, needs) = (values.len(), self.capture.columns.len());
        if has != needs {
            return Err(format!("reading has {has} values, expected {needs}"));
        }
        self.capture.readings.push(Reading { phase, uptime_cs, device, values });
        Ok(())
    }

    /// Readings go round the devices in their order, so the next device is nearly always the one that is named.
    fn device(&mut self, word: &str) -> Result<usize, String> {
        let at = if self.names.get(self.next).is_some_and(|next| next == word) {
            self.next
        } else {
            *self.index.get(word).ok_or_else(|| format!("device not listed before: `{}`", shortened(word)))?
        };
        self.next = if at + 1 < self.names.len() { at + 1 } else { 0 };
        Ok(at)
    }

    fn note(&mut self, keyword: &str, rest: &str) -> Result<(), String> {
        match keyword {
            "device" => {
                let [word, lifespan] = split_words(rest)?;
                let lifespan_ms = match valued(lifespan, "lifespan_ms")? {
                    "-" => None,
                    ms => Some(
                        decimal(ms.as_bytes()).ok_or_else(|| format!("lifespan is not a number: `{ms}`"))?,
                    ),
                };
                if self.index.insert(word.to_owned(), self.names.len()).is_some() {
                    return Err(format!("device is listed twice: `{}`", shortened(word)));
                }
                self.names.push(word.to_owned());
                self.capture.devices.push(Device { name: name(word)?, lifespan_ms });
            }
            "unreadable" => self.capture.unreadable.push(name(rest)?),
            "missing" => {
                let [device, counter] = split_words(rest)?;
                self.capture.missing.push(MissingCounter { device: name(device)?, counter: name(counter)? });
            }
            "bad" => {
                let [device, counter, text] = split_words(rest)?;
                let (device, counter, text) = (name(device)?, name(counter)?, name(text)?);
                self.capture.bad.push(BadReading { device, counter, text });
            }
            "not-quiet" => {
                let phase = Phase::ALL.into_iter().find(|phase| phase.name() == rest);
                let phase = phase.ok_or_else(|| format!("unknown phase: `{}`", shortened(rest)))?;
                self.capture.not_quiet.push(phase);
            }
            "end" => {
                let [wall, uptime, cost, reason] = split_words(rest)?;
                let word = valued(reason, "reason")?;
                let reason = Reason::ALL.into_iter().find(|reason| reason.name() == word);
                let reason = reason.ok_or_else(|| format!("unknown reason: `{}`", shortened(word)))?;
                let cost_ms = time(valued(cost, "cost_s")?, 3)?;
                self.capture.end = Some(End { clock: clock(wall, uptime)?, cost_ms, reason });
            }
            _ => return Err(format!("unknown first word: `{}`", shortened(keyword))),
        }
        Ok(())
    }

    fn finish(self) -> Result<Capture, String> {
        match HEAD.get(self.head) {
            Some(expected) => Err(format!("capture ends within its header, before `{expected}`")),
            None => Ok(self.capture),
        }
    }
}

fn name(word: &str) -> Result<String, String> {
    unescape(word).ok_or_else(|| format!("`%` without two digits: `{}`", shortened(word)))
}

fn time(word: &str, places: usize) -> Result<u64, String> {
    fixed(word, places).ok_or_else(|| format!("time is not a number: `{}`", shortened(word)))
}

fn clock(wall: &str, uptime: &str) -> Result<Clock, String> {
    Ok(Clock { wall_us: time(valued(wall, "wall")?, 6)?, uptime_cs: time(valued(uptime, "uptime")?, 2)? })
}

fn valued<'a>(word: &'a str, name: &str) -> Result<&'a str, String> {
    let value = word.strip_prefix(name).and_then(|rest| rest.strip_prefix('='));
    value.ok_or_else(|| format!("expected `{name}=`, found `{}`", shortened(word)))
}

fn split_words<const N: usize>(rest: &str) -> Result<[&str; N], String> {
    let mut words = rest.split(' ');
    let mut found = [""; N];
    for place in &mut found {
        *place = words.next().ok_or_else(|| format!("too few words, expected {N} after the first"))?;
    }
    match words.next() {
        Some(_) => Err(format!("too many words, expected {N} after the first")),
        None => Ok(found),
    }
}

/// A torn file can hold a line of any length, and a message must not.
fn shortened(word: &str) -> String {
    word.chars().take(40).map(|c| if c.is_control() { '?' } else { c }).collect()
}
