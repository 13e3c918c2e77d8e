//! What grows from window to window of a soak below every limit of a window: memory that is not given back, errors that come
//! more and more often. Named only where chance does not explain it and peers do not show it.

use super::chance;
use metric::{Dim, Metric, MetricSpec, Names};
use recipes::recipe;
use recipes::recipe::growing::{GROWING, Growing};
use std::collections::{BTreeMap, BTreeSet};

/// The chance, at most, that a soak names any growth where there is none: over all nodes, parts, numbers and windows.
pub const FALSE_ALARM: f64 = 0.01;

/// The numbers of a soak that are followed, window by window.
#[derive(Debug, Default)]
pub struct Windows {
    /// By metric, node and part, the number of each window that has one.
    series: BTreeMap<(usize, String, Option<String>), BTreeMap<u32, f64>>,
}

/// A growth of one part.
#[derive(Debug, Clone, PartialEq)]
pub struct Growth {
    /// The part's node.
    pub node: String,
    /// `gpu3`, or `node`.
    pub part: String,
    /// The code of its culprit.
    pub code: &'static str,
    /// What grew, for people.
    pub evidence: String,
    /// Whether peers of the same soak do not show it; without, no node is blamed.
    pub is_own: bool,
}

impl Windows {
    /// The numbers of this window, of the nodes that it measured.
    pub fn add(&mut self, window: u32, rows: &[Metric], is_measured: &dyn Fn(&str) -> bool) {
        for (at, followed) in GROWING.iter().enumerate() {
            let from = rows.partition_point(|row| *row.name < *followed.metric);
            let of_metric = rows[from..].iter().take_while(|row| *row.name == *followed.metric);
            for row in of_metric.filter(|row| row.value.is_finite()) {
                let Some(node) = row.dims.word(Dim::Node).filter(|node| is_measured(node)) else { continue };
                let part = row.dims.number(Dim::Gpu).map(|gpu| format!("gpu{gpu}"));
                self.series.entry((at, node.to_owned(), part)).or_default().insert(window, row.value);
            }
        }
    }

    /// How unlikely a rise must be by itself in a soak of so many windows.
    fn chance_of_one(&self, windows: u32) -> f64 {
        FALSE_ALARM / (self.series.len().max(1) as f64 * f64::from(windows.max(1)))
    }

    /// The fewest windows in which a growth can be named.
    pub fn fewest(&self, windows: u32) -> u32 {
        chance::fewest(self.chance_of_one(windows))
    }

    /// Numbers that no window of these nodes has: nothing shows whether they grow.
    pub fn unread(&self, nodes: &[String]) -> Vec<(&'static str, Vec<String>)> {
        let lacks = |at: usize, node: &String| !self.series.keys().any(|(of, on, _)| *of == at && on == node);
        let unread = GROWING.iter().enumerate().map(|(at, followed)| {
            (followed.metric, nodes.iter().filter(|node| lacks(at, node)).cloned().collect::<Vec<_>>())
        });
        unread.filter(|(_, nodes)| !nodes.is_empty()).collect()
    }

    /// What has grown on these nodes by now, in a soak that has so many windows in all.
    pub fn grown(&self, nodes: &[String], windows: u32) -> Vec<Growth> {
        let chance = self.chance_of_one(windows);
        let of_nodes = self.series.iter().filter(|((_, node, _), _)| nodes.contains(node));
        let mut found = Vec::new();
        for ((at, node, part), series) in of_nodes {
            let followed = &GROWING[*at];
            let values = &series.values().copied().collect::<Vec<f64>>();
            let Some(rise) = Rise::worth_naming(values, followed) else { continue };
            if chance::rising_by_chance(values) > chance {
                continue;
            }
            let Some(code) = recipe::built_in(followed.metric).and_then(code) else { continue };
            found.push(Growth {
                node: node.clone(),
                part: part.clone().unwrap_or_else(|| "node".to_owned()),
                code,
                evidence: evidence(followed, &rise, values.len()),
                is_own: self.is_own(*at, node, series),
            });
        }
        found
    }

    /// At least two other nodes were read in most of the same windows, and in these most of them grew by less than half
    /// as much. Who left early shows nothing of what came later.
    fn is_own(&self, at: usize, node: &str, own: &BTreeMap<u32, f64>) -> bool {
        let others = self.series.iter().filter(|((of, on, _), _)| *of == at && on != node);
        let (mut read, mut alike) = (BTreeSet::new(), BTreeSet::new());
        for ((_, on, _), values) in others {
            let both = own.iter().filter_map(|(window, own)| Some((*own, *values.get(window)?)));
            let (of_own, of_other): (Vec<f64>, Vec<f64>) = both.unzip();
            if of_own.len() * 4 < own.len() * 3 {
                continue;
            }
            let measured = |values: &[f64]| Rise::measured(values, &GROWING[at]);
            let Some((rise, other)) = measured(&of_own).zip(measured(&of_other)) else { continue };
            read.insert(on);
            if other.size >= rise.size / 2.0 {
                alike.insert(on);
            }
        }
        read.len() >= 2 && alike.len() * 2 < read.len()
    }
}

fn code(metric: &MetricSpec) -> Option<&'static str> {
    match metric.names {
        Names::Coded(_, code) => Some(code),
        _ => None,
    }
}

/// By the medians of the three thirds of a series.
struct Rise {
    thirds: [f64; 3],
    /// Of a count the sum of all windows, of a state how much it rose.
    size: f64,
}

impl Rise {
    fn measured(values: &[f64], followed: &Growing) -> Option<Rise> {
        let third = values.len() / 3;
        if third == 0 {
            return None;
        }
        let thirds =
            [&values[..third], &values[third..values.len() - third], &values[values.len() - third..]];
        let thirds = thirds.map(median);
        let size = if followed.is_count { values.iter().sum() } else { thirds[2] - thirds[0] };
        Some(Rise { thirds, size })
    }

    /// One that is worth naming and goes on: a single step, as by another service of the node, is none.
    fn worth_naming(values: &[f64], followed: &Growing) -> Option<Rise> {
        let rise = Rise::measured(values, followed)?;
        let [first, second, third] = rise.thirds;
        let all = third - first;
        let goes_on = all > 0.0 && second - first >= 0.2 * all && third - second >= 0.2 * all;
        (goes_on && rise.size >= followed.least).then_some(rise)
    }
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or_default()
}

fn evidence(followed: &Growing, rise: &Rise, windows: usize) -> String {
    let (metric, least) = (followed.metric, followed.least);
    let [first, _, last] = rise.thirds;
    match followed.is_count {
        true => format!(
            "{metric}: {first:.0} a window at first, {last:.0} at last, {:.0} in {windows} windows, limit {least:.0}",
            rise.size
        ),
        false => format!(
            "{metric}: grew by {} over {windows} windows, limit {}",
            mebibytes(rise.size),
            mebibytes(least)
        ),
    }
}

fn mebibytes(bytes: f64) -> String {
    format!("{:.0} MiB", bytes / 1_048_576.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use metric::Dims;
    use rand::{RngExt as _, SeedableRng as _};
    use rand_chacha::ChaCha8Rng;

    const GIB: f64 = 1_073_741_824.0;

    fn row(metric: &str, node: &str, gpu: Option<u64>, value: f64) -> Metric {
        let spec = recipe::built_in(metric).expect(metric);
        let dims = Dims::new().with(Dim::Node, node);
        spec.of(gpu.map_or(dims.clone(), |gpu| dims.with(Dim::Gpu, gpu)), value)
    }

    /// Sixteen nodes over so many windows, by what a node has in a window.
    fn soak(metric: &str, gpu: Option<u64>, windows: u32, value: impl Fn(usize, u32) -> f64) -> Windows {
        let mut all = Windows::default();
        for window in 0..windows {
            let rows: Vec<Metric> =
                (0..16).map(|node| row(metric, &format!("n{node:02}"), gpu, value(node, window))).collect();
            all.add(window, &rows, &|_| true);
        }
        all
    }

    fn nodes() -> Vec<String> {
        (0..16).map(|node| format!("n{node:02}")).collect()
    }

    fn noise(node: usize, window: u32) -> f64 {
        let mut draws = ChaCha8Rng::seed_from_u64((node * 1000) as u64 + u64::from(window));
        draws.random_range(-0.02..0.02) * GIB
    }

    #[test]
    fn a_leak_is_named_on_its_node_and_not_before_chance_is_ruled_out() {
        let leaks = |node: usize, window: u32| {
            6.0 * GIB + noise(node, window) + if node == 5 { 0.2 * GIB * f64::from(window) } else { 0.0 }
        };
        let found = soak("host.kernel_memory", None, 24, leaks).grown(&nodes(), 24);
        assert_eq!(found.len(), 1, "{found:?}");
        let one = &found[0];
        assert_eq!((one.node.as_str(), one.part.as_str(), one.code), ("n05", "node", "HRN-NODE-LEAK"));
        assert!(one.is_own && one.evidence.contains("24 windows"), "{one:?}");
        let early = soak("host.kernel_memory", None, 6, leaks);
        assert!(early.grown(&nodes(), 24).is_empty() && early.fewest(24) > 6);
    }

    #[test]
    fn errors_that_come_more_and_more_often_are_named_and_a_few_are_not() {
        let count = |node: usize, window: u32| match node {
            3 => f64::from(window * 2),
            7 => f64::from(u32::from(window.is_multiple_of(4))),
            _ => 0.0,
        };
        let found = soak("gpu.ecc_corrected", Some(2), 20, count).grown(&nodes(), 20);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!((found[0].node.as_str(), found[0].part.as_str()), ("n03", "gpu2"));
        assert_eq!(found[0].code, "HRN-GPU-ECC");
    }

    #[test]
    fn a_single_step_and_a_rise_too_small_to_matter_are_no_leak() {
        let step = |node: usize, window: u32| {
            6.0 * GIB + noise(node, window) + if node == 5 && window >= 12 { 4.0 * GIB } else { 0.0 }
        };
        assert!(soak("host.kernel_memory", None, 24, step).grown(&nodes(), 24).is_empty());
        let small = |node: usize, window: u32| {
            6.0 * GIB + if node == 5 { 0.02 * GIB * f64::from(window) } else { 0.0 }
        };
        assert!(soak("host.kernel_memory", None, 24, small).grown(&nodes(), 24).is_empty());
    }

    #[test]
    fn what_all_nodes_show_alike_is_no_nodes_own() {
        let all = |node: usize, window: u32| 6.0 * GIB + noise(node, window) + 0.2 * GIB * f64::from(window);
        let found = soak("host.kernel_memory", None, 24, all).grown(&nodes(), 24);
        assert_eq!(found.len(), 16);
        assert!(found.iter().all(|one| !one.is_own), "{found:?}");
        let mut alone = Windows::default();
        (0..24).for_each(|window| {
            alone.add(window, &[row("host.kernel_memory", "n00", None, all(0, window))], &|_| true)
        });
        let found = alone.grown(&nodes(), 24);
        assert!(found.len() == 1 && !found[0].is_own, "nothing to compare with: {found:?}");
    }

    #[test]
    fn nodes_that_left_early_do_not_make_a_leak_of_all_one_of_those_that_stayed() {
        let leak = |node: usize, window: u32| 6.0 * GIB + noise(node, window) + 0.2 * GIB * f64::from(window);
        let mut all = Windows::default();
        for window in 0..24 {
            let nodes = if window < 3 { 0..16 } else { 0..2 };
            let of =
                |node: usize| row("host.kernel_memory", &format!("n{node:02}"), None, leak(node, window));
            let rows: Vec<Metric> = nodes.map(of).collect();
            all.add(window, &rows, &|_| true);
        }
        let found = all.grown(&nodes(), 24);
        assert!(found.len() == 2 && found.iter().all(|one| !one.is_own), "{found:?}");
    }

    #[test]
    fn sound_nodes_are_named_in_no_more_soaks_than_stated() {
        let mut named = 0;
        for seed in 0..400u32 {
            // Noise above the size that is worth naming, so that chance alone decides.
            let value =
                |node: usize, window: u32| 60.0 * GIB + 100.0 * noise(node + 16 * seed as usize, window);
            let all = soak("host.kernel_memory", None, 24, value);
            named += usize::from(!all.grown(&nodes(), 24).is_empty());
        }
        assert!(named <= 8, "{named} of 400 soaks, stated: {FALSE_ALARM}");
    }

    #[test]
    fn numbers_that_no_window_has_are_reported() {
        let all = soak("host.kernel_memory", None, 3, |_, _| GIB);
        let unread: Vec<&str> = all.unread(&nodes()).iter().map(|(metric, _)| *metric).collect();
        assert_eq!(unread, ["gpu.memory_idle", "gpu.ecc_corrected", "gpu.nvlink_errors"]);
    }
}
