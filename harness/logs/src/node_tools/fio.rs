//! Reads the JSON of fio (`--output-format=json`): rates, operations and latencies of reads and writes, and errors.

use super::{NoResult, agree, document};
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::collections::BTreeMap;

/// What one call of fio measured, over all its jobs.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Measured {
    /// Where it read anything.
    pub read: Option<Side>,
    /// Where it wrote anything.
    pub write: Option<Side>,
    /// Jobs that had an error of the disk.
    pub errors: u32,
    /// Of fio itself: `fio-3.16`.
    pub version: Option<String>,
}

/// Reads, or writes.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Side {
    /// In GB/s, of 10^9 bytes.
    pub rate_gb_s: f64,
    /// Operations per second.
    pub operations: f64,
    /// The 99th percentile of the latency in microseconds, of the slowest job; nothing where fio counted none.
    pub p99_us: Option<f64>,
}

#[derive(Deserialize)]
struct Document {
    #[serde(rename = "fio version")]
    version: Option<String>,
    jobs: Option<Vec<JobJson>>,
    client_stats: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct JobJson {
    #[serde(default)]
    jobname: String,
    #[serde(default)]
    groupid: u64,
    #[serde(default)]
    error: i64,
    /// With `continue_on_error`: how many errors it went on after, and the first of them.
    #[serde(default)]
    total_err: u64,
    #[serde(default)]
    first_error: i64,
    read: Option<SideJson>,
    write: Option<SideJson>,
    /// With `unified_rw_reporting`, in the place of both.
    mixed: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct SideJson {
    io_bytes: f64,
    /// From 3.2 on.
    bw_bytes: Option<f64>,
    /// In KiB per second.
    #[serde(default)]
    bw: f64,
    iops: f64,
    runtime: f64,
    total_ios: f64,
    clat_ns: Option<Latency>,
    lat_ns: Option<Latency>,
}

#[derive(Deserialize)]
struct Latency {
    percentile: Option<BTreeMap<String, f64>>,
}

/// EIO, ENODATA, ETIME, EBADMSG, EUCLEAN, EREMOTEIO.
const OF_DISKS: [i64; 6] = [5, 61, 62, 74, 117, 121];

fn meaning(error: i64) -> &'static str {
    match error {
        2 => "no such folder",
        11 => "too many requests, see `fs.aio-max-nr`",
        13 => "no permission",
        22 => "an argument is refused, such as direct access on this file system",
        28 => "no space left",
        30 => "a file system that is read-only",
        122 => "the quota is used up",
        _ => "see `errno`",
    }
}

/// The measurement in a text; an error where it has none, or more than one.
pub fn read(text: &str) -> Result<Measured, NoResult> {
    let mut groups = read_groups(text)?;
    match (groups.pop(), groups.len()) {
        (Some((_, measured)), 0) => Ok(measured),
        (_, others) => Err(format!(
            "fio ran jobs of {} groups, whose rates do not add up: run it once for each",
            others + 1
        )),
    }
}

/// The measurement of each group of jobs, with the name of its first: groups run one after the other (`stonewall`).
pub(super) fn read_groups(text: &str) -> Result<Vec<(String, Measured)>, NoResult> {
    let document: Document = document(text, "fio")?;
    let Some(jobs) = document.jobs else {
        return Err(match document.client_stats {
            Some(_) => "fio ran on several hosts (`--client`): run it on each by itself".to_owned(),
            None => "the JSON of fio has no jobs".to_owned(),
        });
    };
    let mut groups: BTreeMap<u64, (String, Measured)> = BTreeMap::new();
    for job in &jobs {
        let (_, measured) = groups.entry(job.groupid).or_insert_with(|| {
            let name = job.jobname.chars().take(LONGEST_NAME).collect();
            (name, Measured { version: document.version.clone(), ..Measured::default() })
        });
        let error = match (job.error, job.total_err) {
            (0, 1..) => job.first_error,
            (error, _) => error,
        };
        match error {
            0 if job.total_err > 0 => return Err(format!("fio went on after {} errors", job.total_err)),
            0 => {}
            error if OF_DISKS.contains(&error) => measured.errors += 1,
            error => {
                return Err(format!(
                    "fio ended with error {error}, which is none of a disk: {}",
                    meaning(error)
                ));
            }
        }
        if job.mixed.is_some() {
            return Err("fio added reads and writes up (`unified_rw_reporting`): run it without".to_owned());
        }
        add(&mut measured.read, job.read.as_ref(), "reads")?;
        add(&mut measured.write, job.write.as_ref(), "writes")?;
    }
    groups.retain(|_, (_, it)| it.read.is_some() || it.write.is_some() || it.errors > 0);
    match groups.is_empty() {
        true => Err("fio moved no byte".to_owned()),
        false => Ok(groups.into_values().collect()),
    }
}

/// Of a job, in letters.
const LONGEST_NAME: usize = 60;

fn add(into: &mut Option<Side>, side: Option<&SideJson>, what: &str) -> Result<(), NoResult> {
    let Some(side) = side.filter(|side| side.total_ios > 0.0) else { return Ok(()) };
    let rate = side.bw_bytes.unwrap_or(side.bw * 1024.0);
    let figures = [side.io_bytes, rate, side.iops, side.runtime];
    if figures.iter().any(|figure| !figure.is_finite() || *figure < 0.0) {
        return Err(format!("a figure of {what} is below 0"));
    }
    let recomputed = side.io_bytes * 1000.0 / side.runtime.max(1.0);
    if side.runtime > 100.0 && !agree(rate / 1e6, recomputed / 1e6) {
        return Err(format!(
            "its rate of {what} is {:.1} MB/s, its bytes over its time {:.1} MB/s",
            rate / 1e6,
            recomputed / 1e6
        ));
    }
    let latency =
        |latency: &Option<Latency>| latency.as_ref()?.percentile.as_ref()?.get("99.000000").copied();
    let p99_us = latency(&side.clat_ns).or_else(|| latency(&side.lat_ns)).map(|ns| ns / 1000.0);
    let sum = into.get_or_insert_default();
    sum.rate_gb_s += rate / 1e9;
    sum.operations += side.iops;
    sum.p99_us = sum.p99_us.into_iter().chain(p99_us).reduce(f64::max);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As fio 3 prints a job; the side that is not asked for has zeros.
    fn job(name: &str, group: u64, more: &str) -> String {
        let side = |bytes: u64, ios: u64| {
            format!(
                "{{\"io_bytes\": {bytes}, \"bw_bytes\": {0}, \"bw\": {1}, \"iops\": {ios}.0, \"runtime\": 10000, \
                 \"total_ios\": {2}}}",
                bytes / 10,
                bytes / 10240,
                ios * 10
            )
        };
        format!(
            "{{\"jobname\": \"{name}\", \"groupid\": {group}, \"error\": 0, {more}\"read\": {}, \"write\": {}}}",
            side(30_720_000_000, 3000),
            side(0, 0)
        )
    }

    fn printed(jobs: &[String]) -> String {
        format!("{{\"fio version\": \"fio-3.36\", \"jobs\": [{}]}}", jobs.join(", "))
    }

    #[test]
    fn rates_of_jobs_that_ran_one_after_the_other_are_not_added_up() {
        let at_once = printed(&[job("a", 0, ""), job("b", 0, "")]);
        let rate = |it: &Measured| it.read.map(|side| side.rate_gb_s);
        assert_eq!(read(&at_once).as_ref().map(rate), Ok(Some(6.144)));
        let in_turn = printed(&[job("seq", 0, ""), job("rand", 1, "")]);
        let why = read(&in_turn).expect_err("two groups");
        assert_eq!(why, "fio ran jobs of 2 groups, whose rates do not add up: run it once for each");
        let groups = read_groups(&in_turn).expect("read");
        let rows: Vec<_> = groups.iter().map(|(name, it)| (name.as_str(), rate(it))).collect();
        assert_eq!(rows, [("seq", Some(3.072)), ("rand", Some(3.072))]);
    }

    #[test]
    fn errors_that_fio_went_on_after_count() {
        let of =
            |first: i64| printed(&[job("a", 0, &format!("\"total_err\": 12, \"first_error\": {first}, "))]);
        assert_eq!(read(&of(5)).map(|it| it.errors), Ok(1));
        assert!(read(&of(28)).expect_err("full").contains("no space left"));
        assert_eq!(read(&of(0)).expect_err("unknown"), "fio went on after 12 errors");
        let none = printed(&[job("a", 0, "\"total_err\": 0, \"first_error\": 0, ")]);
        assert_eq!(read(&none).map(|it| it.errors), Ok(0));
    }

    #[test]
    fn older_and_other_forms_are_read_or_refused_by_name() {
        let old = printed(&[job("a", 0, "")]).replace("\"bw_bytes\": 3072000000, ", "");
        let read_old = read(&old.replace("\"bw_bytes\": 0, ", "")).expect("fio 3.1");
        assert_eq!(read_old.read.map(|side| side.rate_gb_s), Some(3.072));
        let mixed = printed(&[job("a", 0, "\"mixed\": {\"io_bytes\": 1}, ")]);
        assert!(read(&mixed).expect_err("mixed").contains("unified_rw_reporting"));
        let clients = "{\"fio version\": \"fio-3.36\", \"client_stats\": []}";
        assert!(read(clients).expect_err("clients").contains("--client"));
        assert_eq!(read("{\"fio version\": \"fio-3.36\"}").expect_err("none"), "the JSON of fio has no jobs");
    }
}
