//! Reads the file that `-J` writes, whole or cut, with the misspellings of its versions.
//! The environment it holds, which may hold secrets, is never looked at.

use super::cell::{Cell, Figure, WrongColumn, figure, general, wrong};
use super::failure::{self, Depth};
use super::{
    FailureClass, Format, Half, IterStats, NcclRun, NcclTests, NotUnderstood, OutOfBounds, Parameters,
    RankLine, Row, Step, Wrong, head,
};
use metric::finding::Finding;
use serde_json::{Map, Value};
use std::borrow::Cow;

/// Of a file that is one document, which has to be held whole: thousands of sizes have less.
pub(super) const MOST_BYTES: usize = 16 << 20;

/// Text seldom begins so.
pub(super) fn looks_like_it(text: &str) -> bool {
    text.trim_start().starts_with('{')
}

pub(super) fn too_large() -> NotUnderstood {
    let most = MOST_BYTES >> 20;
    NotUnderstood { reason: format!("JSON document larger than the limit of {most} MiB") }
}

pub(super) fn read(text: &str) -> Result<NcclTests, NotUnderstood> {
    let lines = text.lines().count() as u64;
    let refuse = |reason: String| NotUnderstood { reason };
    let mended = mend(text);
    let value: Value = match serde_json::from_str(&mended.text) {
        Ok(value) => value,
        // The message of the parser gives a place and never a content.
        Err(_) if mended.cut => return Err(refuse("truncated JSON without one complete value".to_owned())),
        Err(error) => return Err(refuse(format!("broken JSON: {error}"))),
    };
    // Others write `nccl_version` too.
    let ours = |map: &&Map<String, Value>| {
        let has = |key: &str| map.contains_key(key);
        map.get("config").is_some_and(Value::is_object)
            || map.get("results").is_some_and(Value::is_array)
            || (has("args") && has("start_time"))
    };
    let Some(map) = value.as_object().filter(ours) else {
        let what = if mended.cut { "truncated JSON" } else { "JSON" };
        return Err(refuse(format!("{what} without `config` and `results`")));
    };
    let mut findings = Vec::new();
    if mended.cut {
        findings.push(Finding::new("truncated-json", "the JSON is truncated: the run was stopped early"));
    }
    let run = run(map, &mut findings);
    Ok(NcclTests { runs: vec![run], findings, lines, understood: lines })
}

fn run(map: &Map<String, Value>, findings: &mut Vec<Finding>) -> NcclRun {
    let program = map.get("args").and_then(|args| args.get(0)).and_then(Value::as_str);
    let program = program.map(|program| program.rsplit('/').next().unwrap_or(program).to_owned());
    let version = map.get("version").and_then(Value::as_u64).and_then(|version| u32::try_from(version).ok());
    let config = map.get("config").and_then(Value::as_object);
    let results = map.get("results").and_then(Value::as_array);
    let mut run = NcclRun {
        op: program.as_deref().and_then(head::op_of),
        program,
        format: Format::Json { version: version.unwrap_or(1) },
        nccl_version: map.get("nccl_version").and_then(Value::as_u64).and_then(head::version_of_code),
        parameters: config.map(parameters),
        ..NcclRun::default()
    };
    let devices = config.and_then(|config| config.get("devices")).and_then(Value::as_array);
    run.ranks = devices.into_iter().flatten().filter_map(rank).collect();
    for (index, result) in results.into_iter().flatten().enumerate() {
        run.cpu_time |= result.get("out_of_place").is_some_and(|half| half.get("cpu_time").is_some());
        match row(result) {
            Ok(row) => run.rows.push(row),
            Err((code, why)) => {
                let message = format!("`results[{index}]` is not a row: {why}");
                findings.push(Finding::new(code, message).line(1));
                run.refused_rows += 1;
            }
        }
    }
    let mut complaints = Vec::new();
    let mut hard = |class, cause: String| {
        complaints.push(failure::complaint(class, Depth::Root, true, &cause, None, 1));
    };
    if let Some(bounds) = map.get("out_of_bounds")
        && let Some(count) = bounds.get("count").and_then(Value::as_u64)
    {
        let ok = bounds.get("okay").and_then(truth).unwrap_or(count == 0);
        run.out_of_bounds = Some(OutOfBounds { count, ok });
        run.concluded = true;
        if !ok {
            hard(FailureClass::OutOfBounds, format!("values out of bounds: {count}"));
        }
    }
    // Versions 2.17.3 to 2.17.8 misspell both names.
    let average = map.get("average_bus_bandwidth").or_else(|| map.get("average_bus_bandwidith"));
    if let Some(average) = average {
        let value = average.get("bandwidth").or_else(|| average.get("bandwidith")).and_then(Value::as_f64);
        run.average_busbw_gb_s = value;
        if average.get("okay").and_then(truth) == Some(false) {
            let value = value.map_or_else(|| "nan".to_owned(), general);
            let cause = format!("average bus bandwidth below the requested minimum: {value}");
            hard(FailureClass::BelowMinimum, cause);
        }
    }
    let whole = run.concluded && !run.rows.is_empty();
    for error in map.get("errors").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str) {
        if error.trim().is_empty() {
            continue;
        }
        if whole {
            let message = format!("last NCCL error, though the run completed: {error}");
            findings.push(Finding::new("error-noted", message).line(1));
        } else {
            complaints.push(failure::complaint(
                FailureClass::NcclError,
                Depth::Symptom,
                true,
                error,
                None,
                1,
            ));
        }
    }
    run.failure = failure::first(complaints.iter(), run.concluded);
    if !run.concluded && run.failure.is_none() {
        let (code, message) = match run.rows.len() {
            0 => ("no-rows", "a run without results, closing values or a failure".to_owned()),
            rows => ("not-concluded", format!("run has no closing values; rows: {rows}")),
        };
        findings.push(Finding::new(code, message).line(1));
    }
    run
}

/// Booleans are written as strings; `unchecked` is neither.
fn truth(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(truth) => Some(*truth),
        Value::String(text) if text == "true" => Some(true),
        Value::String(text) if text == "false" => Some(false),
        _ => None,
    }
}

fn parameters(config: &Map<String, Value>) -> Parameters {
    let number = |key: &str| config.get(key).and_then(Value::as_u64);
    Parameters {
        threads: number("nthreads"),
        gpus_per_thread: number("ngpus"),
        min_bytes: number("minimum_bytes"),
        max_bytes: number("maximum_bytes"),
        step: number("step_factor").map(Step::Factor).or_else(|| number("step_bytes").map(Step::Bytes)),
        warmup: number("warmup_iters"),
        iterations: number("iterations"),
        agg_iterations: number("aggregated_iterations"),
        validation: number("validation"),
        graph: number("graph"),
    }
}

fn rank(device: &Value) -> Option<RankLine> {
    let number = |key: &str| device.get(key).and_then(Value::as_u64).and_then(|n| u32::try_from(n).ok());
    let text = |key: &str| device.get(key).and_then(Value::as_str).unwrap_or_default().trim().to_owned();
    Some(RankLine {
        rank: number("rank")?,
        group: number("group"),
        pid: device.get("pid").and_then(Value::as_u64).unwrap_or_default(),
        host: text("hostname"),
        device: number("device")?,
        bus_id: text("device_hex"),
        name: text("device_info"),
    })
}

type NoRow = (&'static str, &'static str);

fn row(result: &Value) -> Result<Row, NoRow> {
    let whole = |key: &str| -> Result<u64, NoRow> {
        match result.get(key) {
            // Sizes of 2 GiB and more wrap around in 2.17.3.
            Some(value) if value.as_i64().is_some_and(|n| n < 0) => {
                Err(("size-overflowed", "its size or count overflowed the type it was written with"))
            }
            value => value.and_then(Value::as_u64).ok_or(("row-cut", "it has no size or count")),
        }
    };
    let text = |key: &str| result.get(key).and_then(Value::as_str).map(str::trim);
    let size_bytes = whole("size")?;
    let root = match result.get("root") {
        // A string, padded for the table.
        Some(Value::String(root)) => root.trim().parse::<i64>().ok(),
        Some(root) => root.as_i64(),
        None => None,
    };
    let row = Row {
        size_bytes,
        count: whole("count")?,
        dtype: text("type").ok_or(("row-cut", "it has no type"))?.to_owned(),
        redop: text("redop").filter(|redop| !redop.is_empty() && *redop != "none").map(str::to_owned),
        root: root.filter(|root| *root >= 0),
        out_of_place: half(result, "out_of_place")?,
        in_place: half(result, "in_place")?,
        timestamp: None,
        line: 1,
    };
    let moved = [&row.out_of_place, &row.in_place].into_iter().flatten().any(|half| half.algbw_gb_s > 0.0);
    if size_bytes == 0 && moved {
        return Err(("size-overflowed", "its size is 0 and its bandwidth is not"));
    }
    Ok(row)
}

fn half(result: &Value, key: &str) -> Result<Option<Half>, NoRow> {
    let half = match result.get(key) {
        None => return Err(("row-cut", "a placement is missing")),
        Some(Value::Null) => return Ok(None),
        Some(half) => half,
    };
    let time = half.get("time").or_else(|| half.get("cpu_time"));
    let wrong = match half.get("nwrong") {
        None => return Err(("row-cut", "a placement is incomplete")),
        Some(Value::Null) => Wrong::NotChecked,
        Some(count) => match count.as_f64().map(general).and_then(|text| wrong(&text, WrongColumn::Count)) {
            Some(_) => Wrong::Count(count.as_f64().unwrap_or_default()),
            None => return Err(("not-a-number", "its count of wrong values is not a number")),
        },
    };
    let mut read =
        Half::new(decimal(time)?, decimal(half.get("alg_bw"))?, decimal(half.get("bus_bw"))?, wrong);
    let statistics = result.get(format!("{key}_per_iter").as_str());
    if let Some(statistics) = statistics {
        let number =
            |key: &str| statistics.get(key).and_then(Value::as_f64).filter(|n| n.is_finite() && *n >= 0.0);
        if let (Some(min_us), Some(max_us), Some(p99_us), Some(cv_pct)) =
            (number("min_us"), number("max_us"), number("p99_us"), number("cv_pct"))
        {
            read.iterations = Some(IterStats { min_us, max_us, p99_us, cv_pct });
        }
    }
    Ok(Some(read))
}

/// Six decimals, whatever the size.
fn decimal(value: Option<&Value>) -> Result<Figure, NoRow> {
    match value {
        None => Err(("row-cut", "a placement is incomplete")),
        Some(value) => match value.as_f64() {
            Some(value) if value.is_finite() && value >= 0.0 => Ok(Figure { value, half_width: 0.5e-6 }),
            _ => Err(("not-a-number", "a value is NaN, infinite or negative")),
        },
    }
}

/// JSON that parses as far as it goes.
struct Mended<'a> {
    text: Cow<'a, str>,
    cut: bool,
}

/// Ends a cut file after its last whole value, and quotes the infinities and NaNs that C prints bare.
fn mend(text: &str) -> Mended<'_> {
    let mut open: Vec<char> = Vec::new();
    // Where the last comma was, and what was open there: what stands before a comma is whole.
    let mut whole: Option<(usize, Vec<char>)> = None;
    let mut bare: Vec<(usize, usize)> = Vec::new();
    let (mut in_string, mut escaped, mut word) = (false, false, None);
    for (at, c) in text.char_indices() {
        if in_string {
            match c {
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                '"' => in_string = false,
                _ => (),
            }
            continue;
        }
        if c.is_ascii_alphanumeric() || matches!(c, '-' | '+' | '.') {
            word.get_or_insert(at);
            continue;
        }
        if let Some(begin) = word.take()
            && text
                .get(begin..at)
                .is_some_and(|word| figure(word) == Cell::NotANumber && word.ends_with(['n', 'f']))
        {
            bare.push((begin, at));
        }
        match c {
            '"' => in_string = true,
            '{' => open.push('}'),
            '[' => open.push(']'),
            '}' | ']' if open.pop() == Some(c) && open.is_empty() => {
                // What follows the end is for the parser to complain about.
                return Mended { text: quoted(text, &bare), cut: false };
            }
            // nccl-tests nests five deep; deeper is not its work, and copying the stack stays cheap.
            ',' if open.len() <= 16 => whole = Some((at, open.clone())),
            _ => (),
        }
    }
    let Some((end, open)) = whole else { return Mended { text: Cow::Borrowed(""), cut: true } };
    bare.retain(|(_, last)| *last <= end);
    let mut mended = quoted(text.get(..end).unwrap_or(""), &bare).into_owned();
    mended.extend(open.iter().rev());
    Mended { text: Cow::Owned(mended), cut: true }
}

fn quoted<'a>(text: &'a str, words: &[(usize, usize)]) -> Cow<'a, str> {
    if words.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut quoted = String::with_capacity(text.len() + words.len() * 2);
    let mut from = 0;
    for (begin, end) in words {
        quoted.push_str(text.get(from..*begin).unwrap_or(""));
        quoted.push('"');
        quoted.push_str(text.get(*begin..*end).unwrap_or(""));
        quoted.push('"');
        from = *end;
    }
    quoted.push_str(text.get(from..).unwrap_or(""));
    Cow::Owned(quoted)
}
