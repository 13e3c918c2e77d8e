//! Reads the JSON of fio (`--output-format=json`): rates, operations and latencies of reads and writes, and errors.

use super::{NoResult, agree, document};
use serde::Deserialize;
use std::collections::BTreeMap;

/// What one call of fio measured, over all its jobs.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Measured {
    /// Where it read anything.
    pub read: Option<Side>,
    /// Where it wrote anything.
    pub write: Option<Side>,
    /// Jobs that ended with an error of the disk.
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
    jobs: Vec<JobJson>,
}

#[derive(Deserialize)]
struct JobJson {
    #[serde(default)]
    error: i64,
    read: Option<SideJson>,
    write: Option<SideJson>,
}

#[derive(Deserialize)]
struct SideJson {
    io_bytes: f64,
    bw_bytes: f64,
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

/// The measurement in a text; an error where it has none.
pub fn read(text: &str) -> Result<Measured, NoResult> {
    let document: Document = document(text, "fio")?;
    let mut measured = Measured { version: document.version, ..Measured::default() };
    for job in &document.jobs {
        match job.error {
            0 => {}
            error if OF_DISKS.contains(&error) => measured.errors += 1,
            error => {
                return Err(format!(
                    "fio ended with error {error}, which is none of a disk: {}",
                    meaning(error)
                ));
            }
        }
        add(&mut measured.read, job.read.as_ref(), "reads")?;
        add(&mut measured.write, job.write.as_ref(), "writes")?;
    }
    match measured.read.is_none() && measured.write.is_none() && measured.errors == 0 {
        true => Err("fio moved no byte".to_owned()),
        false => Ok(measured),
    }
}

fn add(into: &mut Option<Side>, side: Option<&SideJson>, what: &str) -> Result<(), NoResult> {
    let Some(side) = side.filter(|side| side.total_ios > 0.0) else { return Ok(()) };
    let figures = [side.io_bytes, side.bw_bytes, side.iops, side.runtime];
    if figures.iter().any(|figure| !figure.is_finite() || *figure < 0.0) {
        return Err(format!("a figure of {what} is below 0"));
    }
    let recomputed = side.io_bytes * 1000.0 / side.runtime.max(1.0);
    if side.runtime > 100.0 && !agree(side.bw_bytes / 1e6, recomputed / 1e6) {
        return Err(format!(
            "its rate of {what} is {:.1} MB/s, its bytes over its time {:.1} MB/s",
            side.bw_bytes / 1e6,
            recomputed / 1e6
        ));
    }
    let latency =
        |latency: &Option<Latency>| latency.as_ref()?.percentile.as_ref()?.get("99.000000").copied();
    let p99_us = latency(&side.clat_ns).or_else(|| latency(&side.lat_ns)).map(|ns| ns / 1000.0);
    let sum = into.get_or_insert_default();
    sum.rate_gb_s += side.bw_bytes / 1e9;
    sum.operations += side.iops;
    sum.p99_us = sum.p99_us.into_iter().chain(p99_us).reduce(f64::max);
    Ok(())
}
