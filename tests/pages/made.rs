//! Pages of generated outcomes: one with every kind of chart, one with names that would like to be markup, and those of
//! a run of 256 ranks.

use harness::page::{Page, write};
use recipes::chart::{
    Along, Axis, Bar, Bars, Bins, Boxes, Chart, ChartLine, Figure, FiveNumbers, Heatmap, HeatmapRow,
    Histogram, Lines, Mark,
};
use recipes::recipe::of_reports::Outcome;
use recipes::result_table::{Column, Look, Quantity, ResultTable};
use std::fs;
use std::path::Path;

pub(super) const HOSTILE: [&str; 2] = ["</script><img src=x onerror=document.title='owned'>", "\"><b>&amp;"];

/// Numbers that look measured and are the same each time.
pub(super) struct Noise(u64);

impl Noise {
    pub(super) fn new(seed: u64) -> Noise {
        Noise(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// From 0 to 1.
    pub(super) fn next(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }
}

pub(super) fn page(folder: &Path, name: &str, title: &str, about: &str, outcome: &Outcome) -> usize {
    let page = Page {
        title,
        about,
        definition: "generated for a test",
        asked: String::new(),
        outcome,
        look: Look::default(),
        beside: &["CSV", "Parquet"],
    };
    let mut text = Vec::new();
    write(&page, &mut text).expect("written");
    fs::create_dir_all(folder).expect("made");
    fs::write(folder.join(name), &text).expect("written");
    text.len()
}

pub(super) fn outcome(charts: Vec<Chart>, tables: Vec<(&'static str, ResultTable)>) -> Outcome {
    Outcome { recipe: "generated".to_owned(), tables, charts, ..Outcome::default() }
}

fn chart(name: &'static str, title: &str, about: &str, figure: Figure) -> Chart {
    Chart { name: name.into(), title: title.to_owned(), about: about.to_owned(), figure }
}

fn time() -> Axis {
    Axis::linear("time", Quantity::Nanoseconds)
}

/// Busy GPUs; rank 2 was not measured at first, and its last GPU idles.
pub(super) fn heatmap(ranks: i64, gpus: usize, bins: usize) -> Chart {
    let mut noise = Noise::new(7);
    let mut rows = Vec::new();
    for rank in 0..ranks {
        for gpu in 0..gpus {
            let idles = rank == 2 && gpu + 1 == gpus;
            let value = |bin: usize, noise: &mut Noise| {
                let busy =
                    if idles { 4.0 } else { 88.0 } + 10.0 * noise.next() - 20.0 * f64::from(bin % 9 == 8);
                (rank != 2 || bin >= bins / 5).then_some(busy.clamp(0.0, 100.0))
            };
            let values = (0..bins).map(|bin| value(bin, &mut noise)).collect();
            rows.push(HeatmapRow { label: format!("rank {rank} GPU {gpu}"), rank: Some(rank), values });
        }
    }
    let edges = (0..=bins as i64).map(|bin| bin * 12_345_678).collect();
    let value = Axis::linear("kernels running", Quantity::Percent);
    let figure = Figure::Heatmap(Heatmap { x: time(), edges, value, most: Some(100.0), rows });
    chart("busy", "GPUs busy with kernels", "The brighter, the more of that time a kernel ran.", figure)
}

/// Durations of one kernel on each rank; rank 1 is late and breaks off for a while.
pub(super) fn lines(ranks: i64, points: usize) -> Chart {
    let mut noise = Noise::new(11);
    let lines = (0..ranks).map(|rank| {
        let mut point = |at: usize| {
            let late = if rank == 1 { 400_000.0 } else { 0.0 };
            let spike = if at == points / 2 { 1_500_000.0 } else { 0.0 };
            let took = (2_000_000.0 + late + spike + 300_000.0 * noise.next()).round();
            (at as f64, (rank != 1 || at % 50 > 4).then_some(took))
        };
        ChartLine {
            label: format!("rank {rank}"),
            rank: Some(rank),
            points: (0..points).map(&mut point).collect(),
        }
    });
    let lines = lines.collect();
    let marks = vec![Mark { label: "median of all".to_owned(), along: Along::Y, at: 2_150_000.0 }];
    let x = Axis::linear("instance", Quantity::Plain);
    let y = Axis::linear("duration", Quantity::Nanoseconds);
    let about = "Each line is a rank, each point one run of the kernel: the higher, the longer it took.";
    chart("pace", "Pace of the kernel", about, Figure::Lines(Lines { x, y, lines, marks }))
}

pub(super) fn histogram(series: usize, bins: usize, log: bool) -> Chart {
    let mut noise = Noise::new(3);
    let edge = |bin: usize| match log {
        true => 1_000.0 * 10f64.powf(4.0 * bin as f64 / bins as f64),
        false => 20_000_000.0 + 2_000_000.0 * bin as f64,
    };
    let of = |at: usize, noise: &mut Noise| {
        let hump = |bin: usize, middle: f64| {
            (-(bin as f64 / bins as f64 - middle).powi(2) * 300.0).exp() * (40.0 + 20.0 * noise.next())
        };
        let mut hump = hump;
        let counts = (0..bins).map(|bin| {
            (hump(bin, 0.15 + 0.02 * at as f64) + hump(bin, 0.5) * 0.5 + hump(bin, 0.8) * 0.2).round() as u64
        });
        let label = match (series, at) {
            (2, 0) => "in place".to_owned(),
            (2, _) => "out of place".to_owned(),
            _ => format!("rank {at}"),
        };
        Bins { label, rank: (series > 2).then_some(at as i64), counts: counts.collect() }
    };
    let series = (0..series).map(|at| of(at, &mut noise)).collect();
    let x = if log {
        Axis::log("duration", Quantity::Nanoseconds)
    } else {
        Axis::linear("duration", Quantity::Nanoseconds)
    };
    let at = if log { 120_000.0 } else { 53_361_000.0 };
    let marks = vec![Mark { label: "mean by nccl-tests".to_owned(), along: Along::X, at }];
    let figure = Figure::Histogram(Histogram { x, edges: (0..=bins).map(edge).collect(), series, marks });
    let about = "How long each call took: one hump is steady, several are not.";
    chart("spread", "all_reduce, 1 GiB: spread of its time", about, figure)
}

const KERNELS: [&str; 6] = [
    "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<(unsigned long)4096>)",
    "nvjet_tst_192x192_64x4_2x1_v_bz_coopB_bias_TNN",
    "void at::native::vectorized_elementwise_kernel<(int)4, at::native::FillFunctor<float>, std::array<char *, (unsigned long)1>>",
    "flash_fwd_kernel",
    "all others",
    "never measured",
];

pub(super) fn bars() -> Chart {
    let values =
        [Some(912_345_678.0), Some(402_000_001.0), Some(99_000_500.0), Some(41_000.0), Some(12.0), None];
    let bars =
        KERNELS.iter().zip(values).map(|(name, value)| Bar { label: (*name).to_owned(), rank: None, value });
    let value = Axis::linear("total time", Quantity::Nanoseconds);
    let marks = vec![Mark { label: "before".to_owned(), along: Along::X, at: 700_000_000.0 }];
    let figure = Figure::Bars(Bars { value, bars: bars.collect(), marks });
    chart("totals", "Most time by kernel", "The longer, the more time all runs of it took together.", figure)
}

pub(super) fn boxes() -> Chart {
    let five = |(at, name): (usize, &&str)| {
        let scale = 1_000.0 * 3f64.powi(at as i32 + 1);
        FiveNumbers {
            label: (*name).to_owned(),
            rank: None,
            count: 1_000 + at as u64,
            min: scale,
            q1: scale * 1.5,
            median: scale * 1.75,
            q3: scale * 2.5,
            max: scale * 9.0 + 1.0,
        }
    };
    let boxes = KERNELS[..5].iter().enumerate().map(five).collect();
    let value = Axis::log("duration", Quantity::Nanoseconds);
    let figure = Figure::Boxes(Boxes { value, boxes, marks: vec![] });
    chart("spreads", "Spread by kernel", "A wide box or a far whisker: its runs differ much.", figure)
}

pub(super) fn files(ranks: i64) -> ResultTable {
    let columns = vec![
        Column::integers("Rank", Quantity::Plain, 0..ranks),
        Column::texts("File", (0..ranks).map(|rank| format!("reports/rank{rank}.nsys-rep"))),
        Column::texts("Host", (0..ranks).map(|rank| format!("p5-{:03}", rank / 8 + 1))),
    ];
    ResultTable::new("generated", "Reports", columns)
}

/// Rank, total, count, mean and a name, a row per rank and kernel.
pub(super) fn result_table(rows: i64, ranks: i64) -> ResultTable {
    let mut noise = Noise::new(5);
    let total: Vec<i64> = (0..rows).map(|row| 9_000_000_000_000 / (row + 1) + row).collect();
    let columns = vec![
        Column::integers("Rank", Quantity::Plain, (0..rows).map(|row| row % ranks)),
        Column::integers("Total", Quantity::Nanoseconds, total),
        Column::maybe_integers(
            "Count",
            Quantity::Plain,
            (0..rows).map(|row| (row % 7 != 3).then_some(row * 11)),
        ),
        Column::decimals("Avg", Quantity::Nanoseconds, (0..rows).map(|_| 1e6 * noise.next())),
        Column::texts("Name", (0..rows).map(|row| format!("kernel_{:04}<float, {}>", row % 500, row % 3))),
    ];
    ResultTable::new("generated", "Kernels of each rank", columns)
}

/// Every kind of chart, small.
pub(super) fn every_kind(folder: &Path) -> usize {
    let charts = vec![heatmap(4, 2, 60), lines(4, 200), histogram(2, 100, false), bars(), boxes()];
    let mut outcome = outcome(charts, vec![("rank_stats", result_table(250, 4)), ("files", files(4))]);
    outcome.simulated = true;
    outcome.notes = vec!["reports/rank2.nsys-rep: began 0.1 s after the others".to_owned()];
    outcome.unreadable = vec![("reports/rank4.nsys-rep".to_owned(), "truncated: 3 of 70 pages".to_owned())];
    page(folder, "kinds.html", "Every Kind of Chart", "what a page can show", &outcome)
}

/// Names of kernels, hosts and files that are markup.
pub(super) fn hostile(folder: &Path) -> usize {
    let bars = HOSTILE.iter().map(|name| Bar { label: (*name).to_owned(), rank: None, value: Some(5.0) });
    let value = Axis::linear(HOSTILE[0], Quantity::Plain);
    let figure = Figure::Bars(Bars { value, bars: bars.collect(), marks: vec![] });
    let mut files = files(2);
    files.columns[2] = Column::texts("Host", HOSTILE);
    let result_table = ResultTable {
        name: "generated".into(),
        title: "Kernels".into(),
        columns: vec![Column::texts(HOSTILE[1], HOSTILE)],
    };
    let mut outcome = outcome(
        vec![chart("bars", HOSTILE[0], HOSTILE[1], figure)],
        vec![("kernels", result_table), ("files", files)],
    );
    outcome.notes = HOSTILE.map(str::to_owned).to_vec();
    page(folder, "hostile.html", HOSTILE[0], HOSTILE[1], &outcome)
}

/// A page of each kind of a run of 256 ranks, and how large each became.
pub(super) fn large(folder: &Path) -> Vec<(&'static str, usize)> {
    let ranks = 256;
    let with =
        |charts| outcome(charts, vec![("rank_stats", result_table(100_000, ranks)), ("files", files(ranks))]);
    let maps = || (0..3).map(|_| heatmap(ranks, 8, 60)).collect::<Vec<_>>();
    let pages: [(&'static str, Outcome); 3] = [
        ("maps.html", with(maps())),
        ("lines.html", with(vec![lines(ranks, 10_000)])),
        ("histogram.html", with(vec![histogram(ranks as usize, 100, true)])),
    ];
    pages
        .into_iter()
        .map(|(name, outcome)| (name, page(folder, name, "256 Ranks", "a run of 256 ranks", &outcome)))
        .collect()
}
