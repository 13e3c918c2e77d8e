//! `harness logs steps`: the time, throughput and loss of training steps from logs. Crate `logs` reads them.

use super::{open, visible, write_finding, write_json};
use base::text::count;
use clap::{ArgAction, Args};
use logs::training_log::{
    self as source, Dialect, Figures, ITERATIONS, Series, StepLine, TrainingLog, figures,
};
use model::exit_code;
use serde::Serialize;
use std::io::{self, Write};
use std::path::PathBuf;

/// Arguments of `harness logs steps`.
#[derive(Debug, Args)]
pub(crate) struct StepsArgs {
    /// Logs, also packed by gzip; `-` is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Only these steps, both ends included
    #[arg(long, value_name = "A..B", value_parser = range)]
    steps: Option<(u64, u64)>,
    /// Print the means of iterations 45 to 49, or of --steps, as `avg_step_timing_tflops.awk` does
    #[arg(long, conflicts_with_all = ["json", "each"])]
    compat: bool,
    /// Also print each step on a line of its own
    #[arg(long)]
    each: bool,
    /// `text`, or `json`: one object per file
    #[arg(long = "format", value_name = "FORMAT", default_value = "text", value_parser = crate::logs::is_json, action = ArgAction::Set)]
    json: bool,
    /// Exit with 1 if there are findings
    #[arg(long)]
    fail_on_findings: bool,
}

/// `70..75`, or one step.
pub(super) fn range(text: &str) -> Result<(u64, u64), String> {
    let (first, last) = text.split_once("..").unwrap_or((text, text));
    let number = |text: &str| text.trim().trim_start_matches('=').parse::<u64>().ok();
    match (number(first), number(last)) {
        (Some(first), Some(last)) if first <= last => Ok((first, last)),
        _ => Err("expected FIRST..LAST, such as `70..75`".to_owned()),
    }
}

/// Prints the steps of each file. The exit code is that of the worst: 2 where one cannot be opened, then 1 where
/// findings are to fail, then 3 where one has no step.
pub(crate) fn run(args: &StepsArgs, out: &mut dyn Write, err: &mut dyn Write) -> i32 {
    let (mut unopened, mut found, mut without) = (false, false, false);
    for path in &args.files {
        let file = path.display().to_string();
        let opened = open(path);
        let written = if args.compat {
            opened.and_then(|from| source::mean_of_steps(from, args.steps.unwrap_or(ITERATIONS))).map(
                |text| {
                    without |= text.starts_with("No ");
                    out.write_all(text.as_bytes())
                },
            )
        } else {
            opened.and_then(source::read).map(|mut log| {
                if let Some((first, last)) = args.steps {
                    log.series.iter_mut().for_each(|series| {
                        series.steps.retain(|step| (first..=last).contains(&step.iteration));
                    });
                    log.series.retain(|series| !series.steps.is_empty());
                }
                found |= !log.findings.is_empty();
                if let Some(why) = why_empty(args, &log) {
                    without = true;
                    // A closed stderr is no error of the verb.
                    let _ = writeln!(err, "{}: {why}", visible(&file));
                }
                if args.json {
                    write_json(out, &file, &JsonReport::from_log(&log))
                } else {
                    write(out, &file, &log, args.each)
                }
            })
        };
        match written {
            Ok(Ok(())) => {}
            Ok(Err(_)) => break,
            Err(error) => {
                unopened = true;
                let _ = writeln!(err, "{}: cannot be read: {error}", visible(&file));
            }
        }
    }
    match () {
        () if unopened => exit_code::USAGE,
        () if args.fail_on_findings && found => exit_code::FAILED,
        () if without => exit_code::INCONCLUSIVE,
        () => exit_code::PASSED,
    }
}

/// Why a log has no step to show.
fn why_empty(args: &StepsArgs, log: &TrainingLog) -> Option<String> {
    if !log.series.is_empty() {
        return None;
    }
    Some(match (log.lines, log.of_steps, args.steps) {
        (0, _, _) => "the file is empty".to_owned(),
        (lines, 0, _) => format!(
            "no step line in {}; known: those of Megatron-LM, Megatron-Bridge, GPT-NeoX, NeMo, NeMo Automodel, Lightning, the FSDP samples, torchtitan, \
             torchtune, nanotron, picotron, nanoGPT, nanochat, llm.c, MaxText, Composer, timm, DeepSpeed, the Trainer and LlamaFactory{}",
            count(lines, "line"),
            match (log.refused.iter().next(), log.of_pax, log.of_epochs) {
                (Some((reason, lines)), ..) => format!("; {reason}, in {}", count(*lines, "line")),
                (None, 0, 0) => String::new(),
                (None, pax @ 1.., _) =>
                    format!("; times of PAX, which numbers no step, in {}", count(pax, "line")),
                (None, 0, epochs) =>
                    format!("; whole epochs without their steps in {}", count(epochs, "line")),
            }
        ),
        (_, of_steps, _) if of_steps == log.garbled => {
            format!("{} not readable", count(of_steps, "step line"))
        }
        (_, _, Some((first, last))) => format!("no step from {first} to {last}"),
        (_, of_steps, None) => format!("no value in {}", count(of_steps, "step line")),
    })
}

/// One quantity of the steps of a series.
struct Quantity {
    name: &'static str,
    of: fn(&StepLine) -> Option<f64>,
}

const SECONDS: Quantity = Quantity { name: "s per step", of: |step| step.seconds };
const OTHERS: &[Quantity] = &[
    Quantity { name: "samples/s", of: |step| step.samples_per_s },
    Quantity { name: "tokens/s per GPU", of: |step| step.tokens_per_gpu_s },
    Quantity { name: "TFLOP/s per GPU", of: |step| step.tflops_per_gpu },
    Quantity { name: "MFU %", of: |step| step.mfu_percent },
    Quantity { name: "grad norm", of: |step| step.grad_norm },
];

fn points(series: &Series, quantity: &Quantity) -> Vec<(u64, f64)> {
    series.steps.iter().filter_map(|step| Some((step.iteration, (quantity.of)(step)?))).collect()
}

/// Figures of steps' times, and of all else behind the same warm-up: a step that was slow was so in every unit.
fn all_figures(series: &Series) -> Vec<(&'static str, Figures)> {
    let seconds = points(series, &SECONDS);
    let speed = points(series, &OTHERS[0]);
    // Where the log has no time, it follows from the speed.
    let inverse: Vec<(u64, f64)> = speed.iter().map(|(step, speed)| (*step, 1.0 / speed)).collect();
    let by = if seconds.is_empty() { &inverse } else { &seconds };
    let warm_up = figures(by, true).map_or(0, |figures| figures.warm_up);
    let behind = by.get(warm_up).map(|(step, _)| *step);
    let others = OTHERS.iter().filter_map(|quantity| {
        let mut points = points(series, quantity);
        points.retain(|(step, _)| behind.is_none_or(|behind| *step >= behind));
        Some((quantity.name, figures(&points, false)?))
    });
    figures(&seconds, true).map(|figures| (SECONDS.name, figures)).into_iter().chain(others).collect()
}

/// The steps and figures as JSON.
#[derive(Serialize)]
struct JsonReport<'a> {
    #[serde(flatten)]
    log: &'a TrainingLog,
    figures: Vec<SeriesFigures>,
}

#[derive(Serialize)]
struct SeriesFigures {
    series: String,
    figures: Vec<(&'static str, Figures)>,
}

impl<'a> JsonReport<'a> {
    fn from_log(log: &'a TrainingLog) -> JsonReport<'a> {
        let of = |series: &Series| SeriesFigures { series: series.render(), figures: all_figures(series) };
        JsonReport { log, figures: log.series.iter().map(of).collect() }
    }
}

fn write(out: &mut dyn Write, file: &str, log: &TrainingLog, each: bool) -> io::Result<()> {
    let read = log.of_steps - log.garbled;
    let (file, lines) = (visible(file), count(log.lines, "line"));
    writeln!(out, "{file}: {lines}, {} of steps, {read} of them read", log.of_steps)?;
    for series in &log.series {
        write_series(out, series)?;
        if each {
            write_each(out, series)?;
        }
    }
    for finding in &log.findings {
        write_finding(out, finding)?;
    }
    Ok(())
}

fn write_series(out: &mut dyn Write, series: &Series) -> io::Result<()> {
    let (Some(first), Some(last)) = (series.steps.first(), series.steps.last()) else { return Ok(()) };
    let place = |step: &StepLine| match step.epoch {
        Some(epoch) => format!("{} of epoch {epoch}", step.iteration),
        None => step.iteration.to_string(),
    };
    let of = last.of.map_or_else(String::new, |of| format!(" of {of}"));
    let word = series.dialect.word();
    let steps = series.steps.len();
    let words = if steps == 1 { word } else { series.dialect.plural() };
    write!(out, "  {}: {steps} {words}, {}", visible(&series.render()), place(first))?;
    if steps > 1 {
        write!(out, " to {}", place(last))?;
    }
    let copies: u64 = series.steps.iter().map(|step| step.copies).sum();
    let copies = if copies > 0 {
        format!("; {} of the same {words}", count(copies, "more line"))
    } else {
        String::new()
    };
    writeln!(out, "{of}{copies}")?;
    let all = all_figures(series);
    if !all.is_empty() {
        let heads = ["n", "median", "95 % from", "to", "mean", "CV %", "min", "max"];
        write!(out, "    {:<18}", "")?;
        heads.iter().try_for_each(|head| write!(out, " {head:>10}"))?;
        writeln!(out)?;
    }
    for (name, figures) in &all {
        let (low, high) = figures.interval.unzip();
        let cv = figures.cv.map(|cv| cv * 100.0);
        write!(out, "    {name:<18} {:>10}", figures.n)?;
        for value in
            [Some(figures.median), low, high, Some(figures.mean), cv, Some(figures.min), Some(figures.max)]
        {
            write!(out, " {:>10}", value.map_or_else(|| "-".to_owned(), significant))?;
        }
        writeln!(out)?;
    }
    if series.is_of_means() {
        let words = series.dialect.plural();
        writeln!(out, "    each line is a mean of the {words} since the line before, not of a single one")?;
    }
    if let Some((_, times)) = all.iter().find(|(name, _)| *name == SECONDS.name) {
        write_times(out, series, times)?;
    }
    if series.dialect == Dialect::Fsdp && all.iter().all(|(name, _)| *name != SECONDS.name) {
        writeln!(
            out,
            "    the log has no step time; its speed is the samples of a step divided by that time"
        )?;
    }
    let losses = series.steps.iter().filter_map(|step| Some((step.iteration, step.loss?)));
    let losses: Vec<(u64, f64)> = losses.collect();
    if let ([(first, begin), ..], [.., (last, end)]) = (losses.as_slice(), losses.as_slice()) {
        write!(out, "    loss {} at {word} {first}", significant(*begin))?;
        if last > first {
            write!(out, ", {} at {last}", significant(*end))?;
        }
        writeln!(out)?;
    }
    Ok(())
}

fn write_times(out: &mut dyn Write, series: &Series, times: &Figures) -> io::Result<()> {
    let words = series.dialect.plural();
    if series.steps.iter().any(|step| step.is_running_mean) {
        writeln!(out, "    times are the program's running means, not those of single steps")?;
    }
    if times.warm_up > 0 {
        writeln!(out, "    warm-up: first {} excluded", count(times.warm_up, "line"))?;
    }
    if let Some((slope, low, high)) = times.slope {
        let sure = if low > 0.0 || high < 0.0 { "" } else { ", which may be chance" };
        let by_100 = |value: f64| significant(value * 100.0);
        writeln!(
            out,
            "    slope: {} s per 100 {words}, from {} to {}{sure}",
            by_100(slope),
            by_100(low),
            by_100(high)
        )?;
    }
    if let [(first, value), rest @ ..] = times.outliers.as_slice() {
        let mut named = format!("{first} ({} s)", significant(*value));
        for (step, value) in rest.iter().take(4) {
            named.push_str(&format!(", {step} ({} s)", significant(*value)));
        }
        let more = rest.len().saturating_sub(4);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        writeln!(out, "    outlier {words}: {named}{more}")?;
    }
    Ok(())
}

fn write_each(out: &mut dyn Write, series: &Series) -> io::Result<()> {
    let heads = [
        "line",
        "epoch",
        series.dialect.word(),
        "s",
        "samples/s",
        "tokens/s",
        "TFLOP/s",
        "loss",
        "grad norm",
        "lr",
    ];
    write!(out, "   ")?;
    heads.iter().try_for_each(|head| write!(out, " {head:>10}"))?;
    writeln!(out)?;
    for step in &series.steps {
        let epoch = step.epoch.map_or_else(|| "-".to_owned(), |epoch| epoch.to_string());
        write!(out, "    {:>10} {epoch:>10} {:>10}", step.line, step.iteration)?;
        let values = [
            step.seconds,
            step.samples_per_s,
            step.tokens_per_gpu_s,
            step.tflops_per_gpu,
            step.loss,
            step.grad_norm,
            step.learning_rate,
        ];
        for value in values {
            write!(out, " {:>10}", value.map_or_else(|| "-".to_owned(), significant))?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// With five significant digits.
fn significant(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return value.to_string();
    }
    let before = value.abs().log10().floor() as i32;
    match before {
        -3..=4 => format!("{value:.*}", (4 - before).clamp(0, 7) as usize),
        5..=9 => format!("{value:.0}"),
        _ => format!("{value:.4e}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logs::testing;

    fn show(texts: &[&[u8]], flags: &[&str]) -> (i32, String, String) {
        testing::show(run, texts, flags)
    }

    fn megatron(iterations: std::ops::RangeInclusive<u64>) -> String {
        let line = |at: u64| {
            let ms = 1000.0
                + at as f64 % 3.0
                + if at <= 2 { 4000.0 / at as f64 } else { 0.0 }
                + if at == 17 { 800.0 } else { 0.0 };
            let loss = 12.0 - at as f64 / 10.0;
            format!("0:  iteration {at}/ 40 | elapsed time per iteration (ms): {ms:.1} | lm loss: {loss} |\n")
        };
        iterations.map(line).collect()
    }

    #[test]
    fn a_log_is_shown_with_its_figures_and_what_is_odd() {
        let (code, out, err) = show(&[megatron(1..=30).as_bytes()], &[]);
        assert_eq!((code, err.as_str()), (0, ""));
        insta::assert_snapshot!(out);
    }

    #[test]
    fn each_step_and_a_range_of_steps_are_shown_where_asked_for() {
        let (code, out, _) = show(&[megatron(1..=30).as_bytes()], &["--steps", "10..12", "--each"]);
        assert_eq!(code, 0);
        insta::assert_snapshot!(out);
    }

    #[test]
    fn lines_every_so_many_steps_are_shown_as_means_where_the_program_prints_means() {
        let every = |steps: u64, of: fn(u64) -> String| (1..=6).map(|at| of(at * steps)).collect::<String>();
        let megatron = |at: u64| {
            format!("iteration {at}/ 90 | elapsed time per iteration (ms): 1000.5 | lm loss: 2.5 |\n")
        };
        let titan = |at: u64| format!("step: {at}  loss: 2.5  memory: 9.7GiB(10%)  tps: 6,423\n");
        let nanogpt = |at: u64| format!("iter {at}: loss 2.5, time 1000.5ms, mfu -100.00%\n");
        let mean = "each line is a mean of the";
        for (text, is_mean) in [
            (every(10, megatron), true),
            (every(10, titan), true),
            (every(1, megatron), false),
            (every(10, nanogpt), false),
            (every(1, megatron) + &megatron(9), false),
        ] {
            let (code, out, _) = show(&[text.as_bytes()], &[]);
            assert_eq!((code, out.contains(mean)), (0, is_mean), "{out}");
        }
    }

    #[test]
    fn a_gzipped_log_is_read_like_a_plain_one() {
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(megatron(1..=30).as_bytes()).expect("in memory");
        let packed = packed.finish().expect("in memory");
        assert_eq!(show(&[&packed], &[]), show(&[megatron(1..=30).as_bytes()], &[]));
        let (code, _, err) = show(&[&packed[..packed.len() / 2]], &[]);
        assert_eq!(code, 2, "half of a packed file is no log: {err}");
        assert!(err.starts_with("1.log: cannot be read: "), "{err}");
    }

    #[test]
    fn the_exit_code_is_that_of_the_worst_file() {
        let whole = megatron(1..=9);
        let repeated = format!("{whole}{whole}");
        assert_eq!(show(&[whole.as_bytes()], &["--fail-on-findings"]).0, 0);
        assert_eq!(show(&[repeated.as_bytes()], &[]).0, 0);
        assert_eq!(show(&[repeated.as_bytes(), b""], &["--fail-on-findings"]).0, 1);
        let (code, _, err) = show(&[whole.as_bytes(), b"prose\n", b""], &[]);
        assert_eq!(code, 3);
        assert!(
            err.starts_with("2.log: no step line in 1 line; ") && err.ends_with("3.log: the file is empty\n"),
            "{err}"
        );
        let (code, _, err) = show(&[whole.as_bytes()], &["--steps", "70..75"]);
        assert_eq!((code, err.as_str()), (3, "1.log: no step from 70 to 75\n"));
        assert_eq!(show(&[b"iteration 7/9 | lm loss: 2 |\n"], &[]).2, "1.log: 1 step line not readable\n");
        assert_eq!(show(&[whole.as_bytes()], &["/no/such/file"]).0, 2);
    }

    #[test]
    fn the_script_s_means_are_printed_alone() {
        let line = "Training epoch 0, iteration 46/99 | train_step_timing in s: 2.5 | TFLOPS_per_GPU: 400\n";
        let (code, out, err) = show(&[line.as_bytes()], &["--compat"]);
        let expected = "Steps: 1 (iterations 45-49)\nAverage train_step_timing (s): 2.500000\nAverage TFLOPS_per_GPU:        \
                        400.000000\n";
        assert_eq!((code, out.as_str(), err.as_str()), (0, expected, ""));
        let (code, out, _) = show(&[line.as_bytes()], &["--compat", "--steps", "1..2"]);
        assert_eq!((code, out.as_str()), (3, "No matching iterations found in range 1-2\n"));
    }

    #[test]
    fn json_holds_steps_figures_and_findings() {
        let (_, out, _) = show(&[megatron(1..=30).as_bytes()], &["--format", "json"]);
        let report: serde_json::Value = serde_json::from_str(&out).expect("JSON");
        assert_eq!(report["series"][0]["steps"][29]["iteration"], 30);
        assert_eq!(report["figures"][0]["figures"][0][0], "s per step");
        assert_eq!(report["figures"][0]["figures"][0][1]["warm_up"], 2);
    }

    #[test]
    fn a_range_of_steps_is_two_numbers() {
        assert_eq!((range("70..75"), range("3"), range("1..=2")), (Ok((70, 75)), Ok((3, 3)), Ok((1, 2))));
        for text in ["", "..", "5..2", "a..b", "-1..2"] {
            assert!(range(text).is_err(), "{text}");
        }
    }

    #[test]
    fn numbers_have_five_significant_digits() {
        let table = [
            (1000.94, "1000.9"),
            (0.012345678, "0.012346"),
            (12.0, "12.000"),
            (123456.7, "123457"),
            (3.8e-5, "3.8000e-5"),
            (0.0, "0"),
        ];
        for (value, expected) in table {
            assert_eq!(significant(value), expected);
        }
    }
}
