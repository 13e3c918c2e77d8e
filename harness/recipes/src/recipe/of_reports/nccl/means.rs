//! The mean times that calls are compared with: those given as arguments, else those that nccl-tests printed in the
//! runs of the reports.

use super::buckets::bytes;
use super::printed;
use nsys::nccl::Function;
use nsys::nccl::sequence::Placement;

#[derive(Debug, Default)]
pub(super) struct Means {
    given: Vec<(u64, Option<Placement>, f64)>,
    /// Outputs, each once.
    outputs: Vec<printed::Printed>,
}

/// A mean, and of what.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Printed {
    pub whose: String,
    pub ns: f64,
}

impl Means {
    /// `1G@53361` or `1G@53361/52998`: a size and microseconds, of all calls or out of place and in place; several with
    /// `+` between them.
    pub(super) fn read<'a>(
        given: &str,
        all: impl Iterator<Item = &'a printed::Printed>,
    ) -> Result<Means, String> {
        let mut means = Means::default();
        for word in given.split('+').filter(|_| !given.is_empty()) {
            let bad = || {
                format!(
                    "`mean`: `{word}` is not a size with microseconds, such as `1G@53361` or `1G@53361/52998`"
                )
            };
            let (size, times) = word.split_once('@').ok_or_else(bad)?;
            let size = bytes(size).ok_or_else(bad)?;
            let ns = |text: &str| {
                let us: f64 = text.parse().ok().filter(|us: &f64| us.is_finite() && *us > 0.0)?;
                Some(us * 1000.0)
            };
            match times.split_once('/') {
                None => means.given.push((size, None, ns(times).ok_or_else(bad)?)),
                Some((out, into)) => {
                    means.given.push((size, Some(Placement::OutOfPlace), ns(out).ok_or_else(bad)?));
                    means.given.push((size, Some(Placement::InPlace), ns(into).ok_or_else(bad)?));
                }
            }
        }
        for one in all {
            if !means.outputs.contains(one) {
                means.outputs.push(one.clone());
            }
        }
        Ok(means)
    }

    /// For calls of this size; for calls without a placement, those of both.
    pub(super) fn matching(
        &self,
        function: Function,
        size: u64,
        placement: Option<Placement>,
    ) -> Vec<Printed> {
        let suits = |of: Option<Placement>| of.is_none() || placement.is_none() || of == placement;
        let of_size = self.given.iter().filter(|(of, place, _)| *of == size && suits(*place));
        let given: Vec<Printed> =
            of_size.map(|(_, place, ns)| Printed { whose: whose(*place), ns: *ns }).collect();
        if !given.is_empty() {
            return given;
        }
        let mut found = Vec::new();
        for output in self.outputs.iter().filter(|one| one.op.is_none() || one.op == function.op()) {
            let means = output.means.iter().filter(|mean| mean.size == size && suits(Some(mean.placement)));
            found.extend(means.map(|mean| {
                let mut whose = whose(Some(mean.placement));
                if self.outputs.len() > 1 {
                    whose.push_str(&format!(", {}", output.file));
                }
                Printed { whose, ns: mean.ns }
            }));
        }
        found
    }
}

fn whose(placement: Option<Placement>) -> String {
    placement.map_or("mean", Placement::name).to_owned()
}
