//! nvbandwidth: what each GPU copies from and to the host and the other GPUs.

use super::{ToolFinding, about, read_text};
use crate::recipe::shared_findings::FileFinding;
use crate::recipe::{JobInput, Output, RecipeSpec};
use logs::node_tools::nvbandwidth::{self as source, Matrix};
use metric::unit::{Better, Unit};
use metric::{Blames, Covers, Dim, Files, MetricSpec, Names};

const fn rate(name: &'static str, about: &'static str, code: &'static str) -> MetricSpec {
    MetricSpec::new(name, about, Unit::GigabytesPerSecond, Better::Higher, Files::Output)
        .per(&[Dim::Node, Dim::Gpu])
        .blaming(Blames::Part)
        .naming(Names::Coded(None, code))
        .covering(Covers::NoNics)
}

const PCIE: &str = "HRN-GPU-PCIE-SLOW";
const FROM_HOST: MetricSpec = rate("nvbandwidth.from_host", "what the GPU copies from the host's memory", PCIE)
    .next("look at link speed and width of the GPU with `nvidia-smi -q` on {nodes}: a link that came up narrower is slow");
const TO_HOST: MetricSpec = rate("nvbandwidth.to_host", "what the GPU copies to the host's memory", PCIE)
    .next("look at link speed and width of the GPU with `nvidia-smi -q` on {nodes}: a link that came up narrower is slow");
const BETWEEN: MetricSpec = rate(
    "nvbandwidth.between",
    "bandwidth between the GPU and the others: the median of its pairs, in the slower direction",
    "HRN-NVLINK-SLOW",
)
.next("look at the links of the GPU with `nvidia-smi nvlink -s` on {nodes}");
const SLOWEST_PAIR: MetricSpec = MetricSpec::new(
    "nvbandwidth.slowest_pair",
    "what the slowest pair of GPUs of the node copies",
    Unit::GigabytesPerSecond,
    Better::Higher,
    Files::Output,
)
.per(&[Dim::Node])
.blaming(Blames::Node)
.covering(Covers::NoNics)
.next("look at the links of {nodes} with `nvidia-smi nvlink -s` and `nvidia-smi nvlink -e`");

pub(crate) const SPEC: RecipeSpec<'static> = RecipeSpec {
    name: "nvbandwidth",
    about: "what each GPU copies from and to the host and the other GPUs, by nvbandwidth",
    metrics: &[FROM_HOST, TO_HOST, BETWEEN, SLOWEST_PAIR],
    tables: &[],
    findings: &[ToolFinding::ALL, FileFinding::ALL],
    reads_nccl_log: false,
    compares_clocks: false,
    reads_inspector: false,
    run: &run,
};

fn run(job: &JobInput) -> Output {
    let mut output = Output::default();
    let Some((file, dims, read)) = read_text(job, &mut output, source::read) else { return output };
    for test in &read.tests {
        let matrix = match &test.rates {
            Ok(matrix) => matrix,
            Err(why) => {
                let message = format!("no rate of {}: {why}", test.name);
                output.findings.push(about(job, file, ToolFinding::NotMeasured.code(), None, message));
                continue;
            }
        };
        let metric = match test.name.as_str() {
            "host_to_device_memcpy_ce" => FROM_HOST,
            "device_to_host_memcpy_ce" => TO_HOST,
            "device_to_device_memcpy_read_ce" => BETWEEN,
            _ => continue,
        };
        let is_pairs = metric.name == BETWEEN.name;
        let rates = if is_pairs { by_gpu(matrix) } else { lowest(matrix) };
        for (gpu, rate) in (0u32..).zip(&rates) {
            match rate {
                Some(rate) => output.metrics.push(metric.of(dims.clone().with(Dim::Gpu, gpu), *rate)),
                None => {
                    let message =
                        format!("{} has no rate for a pair: the two do not reach each other", test.name);
                    output.findings.push(about(
                        job,
                        file,
                        ToolFinding::NotMeasured.code(),
                        Some(gpu),
                        message,
                    ));
                }
            }
        }
        if is_pairs && rates.iter().all(Option::is_some) {
            let slowest = matrix.iter().flatten().flatten().copied().reduce(f64::min);
            output.metrics.extend(slowest.map(|rate| SLOWEST_PAIR.of(dims.clone(), rate)));
        }
    }
    for error in &read.errors {
        let message = format!("nvbandwidth ended badly: {error}");
        output.findings.push(about(job, file, ToolFinding::NotMeasured.code(), None, message));
    }
    for (name, version) in [("nvbandwidth", read.version), ("driver", read.driver)] {
        output.versions.extend(version.map(|version| (name.to_owned(), [version].into())));
    }
    output
}

/// By column, over all rows: the host may have several. Nothing where one is missing.
fn lowest(matrix: &Matrix) -> Vec<Option<f64>> {
    let columns = matrix.iter().map(Vec::len).max().unwrap_or_default();
    let column = |at: usize| {
        let rates: Option<Vec<f64>> = matrix.iter().map(|row| row.get(at).copied().flatten()).collect();
        rates?.into_iter().reduce(f64::min)
    };
    (0..columns).map(column).collect()
}

/// By GPU, the lower of the medians of its row and of its column: one slow GPU makes a single pair of each other one slow.
/// Nothing where a pair with another GPU is missing.
fn by_gpu(matrix: &Matrix) -> Vec<Option<f64>> {
    let median = |rates: Option<Vec<f64>>| -> Option<f64> {
        let mut rates = rates?;
        rates.sort_unstable_by(f64::total_cmp);
        rates.get(rates.len() / 2).copied()
    };
    let gpu = |gpu: usize| {
        let others = || (0..matrix.len()).filter(move |other| *other != gpu);
        let pair = |one: usize, other: usize| matrix.get(one)?.get(other).copied().flatten();
        let row = median(others().map(|other| pair(gpu, other)).collect())?;
        let column = median(others().map(|other| pair(other, gpu)).collect())?;
        Some(row.min(column))
    };
    (0..matrix.len()).map(gpu).collect()
}
