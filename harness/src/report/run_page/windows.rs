//! The failing window of each failed case with reports: what each rank did, the one to look at first, and what the NICs
//! carried, on one axis. The whole excerpt is a file beside it.

#[cfg(test)]
mod tests;

use super::Context;
use base::text::{count, shorten, show, thousands};
use recipes::excerpt::{ReadProcess, ReadSlice, ReadTrace};
use recipes::result_table::escaped;
use std::io::{self, Write};

/// Cases with a window on the page, ranks of each, NICs of each.
const MOST_CASES: usize = 4;
const MOST_RANKS: usize = 8;
const MOST_NICS: usize = 6;
/// Bars of one lane; what lies closer is one bar to the eye.
const MOST_BARS: usize = 60;
/// Of the axis.
const WIDTH: f64 = 1_000.0;
/// Letters of a title.
const MOST_TITLE: usize = 80;

/// Kinds of slices, each with a lane: its class, how high it begins, and its categories.
const LANES: [(&str, u32, &[&str]); 4] = [
    ("r", 0, &["nvtx"]),
    ("n", 5, &["nccl"]),
    ("c", 10, &["communication"]),
    ("v", 15, &["compute", "memory"]),
];

pub(super) fn section(context: &Context, out: &mut dyn Write) -> io::Result<()> {
    let traces = context.report.traces;
    if traces.is_empty() {
        return Ok(());
    }
    writeln!(out, "<section class=\"card\" id=\"windows\">\n<h2>Failing windows</h2>")?;
    writeln!(
        out,
        "<p class=\"legend\"><span class=\"key\"><span class=\"lane r\"></span> NVTX ranges</span> <span class=\"key\"><span \
         class=\"lane n\"></span> calls of NCCL</span> <span class=\"key\"><span class=\"lane c\"></span> communication on \
         GPUs</span> <span class=\"key\"><span class=\"lane v\"></span> computing and copies</span></p>"
    )?;
    for (case, read) in traces.iter().take(MOST_CASES) {
        let file = format!("cases/{case}/trace.json");
        writeln!(out, "<h3>{}</h3>", escaped(case))?;
        match read {
            Ok(trace) => window(context, trace, &file, out)?,
            Err(why) => {
                writeln!(
                    out,
                    "<p>{}: {}</p>",
                    context.link(&file, &file),
                    escaped(&shorten(&show(why), 300))
                )?;
            }
        }
    }
    if let more @ 1.. = traces.len().saturating_sub(MOST_CASES) {
        writeln!(
            out,
            "<p class=\"drawn\">{} with a trace.json in its folder.</p>",
            count(more, "more failed case")
        )?;
    }
    writeln!(out, "</section>")
}

fn window(context: &Context, trace: &ReadTrace, file: &str, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "<p><strong>Look at</strong> {}</p>", escaped(&shorten(&show(&trace.look), 300)))?;
    // Without a collective the window is all that there is to look at, and was named above.
    let name = match trace.look.starts_with(&trace.window) {
        true => String::new(),
        false => format!("{}; ", escaped(&shorten(&show(&trace.window), 200))),
    };
    writeln!(
        out,
        "<p class=\"of\">{name}clocks: {}. {} of {} slices; open {} in <code>ui.perfetto.dev</code>.</p>",
        escaped(&shorten(&show(&trace.clocks), 200)),
        thousands(usize::try_from(trace.kept).unwrap_or(usize::MAX)),
        thousands(usize::try_from(trace.kept.saturating_add(trace.merged)).unwrap_or(usize::MAX)),
        context.link(file, "trace.json")
    )?;
    let (ranks, nics): (Vec<&ReadProcess>, Vec<&ReadProcess>) =
        trace.processes.iter().partition(|process| process.counters.is_empty());
    writeln!(out, "<table class=\"gantt window\">\n<tbody>")?;
    for rank in ranks.iter().take(MOST_RANKS) {
        let axis = Axis::for_rank(trace, rank);
        lanes(rank, &axis, out)?;
    }
    counters(trace, &ranks, &nics, out)?;
    let length = trace.ns as f64 / 1e6;
    write!(out, "<tr class=\"ticks\"><th></th><td><p class=\"axis\">")?;
    for quarter in 0..=4 {
        write!(out, "<span>{:.1} ms</span>", length * f64::from(quarter) / 4.0)?;
    }
    writeln!(out, "</p></td></tr>\n</tbody>\n</table>")?;
    if let more @ 1.. = ranks.len().saturating_sub(MOST_RANKS) {
        writeln!(out, "<p class=\"drawn\">{} in the file.</p>", count(more, "more rank"))?;
    }
    Ok(())
}

/// The time that is drawn, in microseconds.
struct Axis {
    from: f64,
    length: f64,
}

impl Axis {
    /// Where clocks are not aligned, each rank has an axis of its own, which begins with its first slice.
    fn for_rank(trace: &ReadTrace, rank: &ReadProcess) -> Axis {
        let begins = rank.tracks.iter().flat_map(|track| &track.slices).map(|slice| slice.start);
        let from = if trace.is_aligned { 0.0 } else { begins.fold(f64::INFINITY, f64::min) };
        Axis { from, length: (trace.ns as f64 / 1e3).max(0.001) }
    }

    /// NICs are drawn on the axis of the ranks of their node; without one it begins with their first sample.
    fn for_nic(trace: &ReadTrace, ranks: &[&ReadProcess], node: &str, points: &[(f64, f64)]) -> Axis {
        let of_node = ranks.iter().filter(|rank| rank.name.split(" · ").any(|part| part == node));
        let begins = of_node.map(|rank| Axis::for_rank(trace, rank).from).fold(f64::INFINITY, f64::min);
        let from = match (trace.is_aligned, begins.is_finite()) {
            (true, _) => 0.0,
            (false, true) => begins,
            (false, false) => points.first().map_or(0.0, |(start, _)| *start),
        };
        Axis { from, length: (trace.ns as f64 / 1e3).max(0.001) }
    }

    fn place(&self, at: f64) -> f64 {
        ((at - self.from) / self.length * WIDTH).clamp(0.0, WIDTH)
    }
}

fn svg_row(title: &str, out: &mut dyn Write) -> io::Result<()> {
    write!(
        out,
        "<tr><th scope=\"row\">{}</th><td><svg viewBox=\"0 0 {WIDTH} 20\" preserveAspectRatio=\"none\" role=\"img\" \
         aria-label=\"{}\">",
        escaped(title),
        escaped(title)
    )
}

fn lanes(rank: &ReadProcess, axis: &Axis, out: &mut dyn Write) -> io::Result<()> {
    svg_row(&shorten(&show(&rank.name), MOST_TITLE), out)?;
    for (class, y, categories) in LANES {
        let all = rank.tracks.iter().flat_map(|track| &track.slices);
        let mut slices: Vec<&ReadSlice> =
            all.filter(|slice| categories.contains(&slice.category.as_str())).collect();
        slices.sort_by(|a, b| a.start.total_cmp(&b.start).then(b.length.total_cmp(&a.length)));
        for bar in bars(&slices, axis) {
            let name = match bar.slices {
                1 => format!("{}, {:.1} us", shorten(&show(&bar.first.name), MOST_TITLE), bar.first.length),
                more => format!("{more} slices"),
            };
            write!(
                out,
                "<rect class={class} x=\"{:.1}\" width=\"{:.1}\" y=\"{y}\" height=\"4\"><title>{}</title></rect>",
                bar.from,
                (bar.to - bar.from).max(0.5),
                escaped(&name)
            )?;
        }
    }
    writeln!(out, "</svg></td></tr>")
}

/// Slices that would lie upon each other, or closer than can be drawn, are one.
struct Bar<'a> {
    from: f64,
    to: f64,
    slices: usize,
    first: &'a ReadSlice,
}

/// In the order of begins. The gaps that are closed grow until the bars are few enough.
fn bars<'a>(slices: &[&'a ReadSlice], axis: &Axis) -> Vec<Bar<'a>> {
    let mut gap = 0.0;
    loop {
        let mut bars: Vec<Bar> = Vec::new();
        for slice in slices {
            let (from, to) = (axis.place(slice.start), axis.place(slice.start + slice.length));
            match bars.last_mut() {
                Some(last) if from < last.to + gap => {
                    last.to = last.to.max(to);
                    last.slices += 1;
                }
                _ => bars.push(Bar { from, to, slices: 1, first: slice }),
            }
        }
        if bars.len() <= MOST_BARS {
            return bars;
        }
        gap = (gap * 2.0_f64).max(1.0);
    }
}

/// The counter that carries most: the NICs that carry least of it, and the one that carries most.
fn counters(
    trace: &ReadTrace,
    ranks: &[&ReadProcess],
    nodes: &[&ReadProcess],
    out: &mut dyn Write,
) -> io::Result<()> {
    let named = nodes.iter().flat_map(|node| {
        let node_name = node.name.trim_start_matches("NICs · ");
        node.counters.iter().filter_map(move |(name, points)| {
            let (device, counter) = name.split_once(' ')?;
            let per_gb = if counter.ends_with("(bytes/s)") { 1e9 } else { 1e6 };
            let mean = points.iter().map(|(_, value)| value).sum::<f64>() / points.len().max(1) as f64;
            let is_known = per_gb == 1e9 || counter.ends_with("(bytes/ms)");
            is_known.then(|| (counter, format!("{node_name} {device}"), mean / per_gb, points, node_name))
        })
    });
    let named: Vec<_> = named.collect();
    let total = |counter: &str| -> f64 { named.iter().filter(|one| one.0 == counter).map(|one| one.2).sum() };
    let counters = named.iter().map(|one| one.0);
    let is_coarse =
        nodes.iter().flat_map(|node| node.counters.keys()).any(|name| name.contains(", mean of "));
    if named.is_empty() && is_coarse {
        let why =
            "NICs were sampled over longer than this window: their counters do not say what happened in it";
        return writeln!(out, "<tr><th></th><td class=\"of\">{why}</td></tr>");
    }
    let Some(most) = counters.max_by(|a, b| total(a).total_cmp(&total(b)).then(b.cmp(a))) else {
        return Ok(());
    };
    let mut rows: Vec<_> = named.iter().filter(|one| one.0 == most).collect();
    rows.sort_by(|a, b| a.2.total_cmp(&b.2));
    let highest =
        rows.iter().flat_map(|row| row.3.iter().map(|(_, value)| *value)).fold(0.0, f64::max).max(1.0);
    let all = rows.len();
    if all > MOST_NICS {
        let last = rows[all - 1];
        rows.truncate(MOST_NICS - 1);
        rows.push(last);
    }
    for (_, nic, mean, points, node) in &rows {
        let axis = Axis::for_nic(trace, ranks, node, points);
        // A sample lasts until the next one, the last to the end of what was recorded.
        let end = points.first().map_or(WIDTH, |(start, _)| axis.place(start + axis.length));
        svg_row(&shorten(&show(&format!("{nic}: {mean:.1} GB/s")), MOST_TITLE), out)?;
        for (at, (start, value)) in points.iter().enumerate() {
            let from = axis.place(*start);
            let to = points.get(at + 1).map_or(end, |(next, _)| axis.place(*next));
            if to <= from {
                continue;
            }
            let height = (value / highest * 19.0).clamp(0.0, 19.0);
            write!(
                out,
                "<rect class=k x=\"{from:.1}\" width=\"{:.1}\" y=\"{:.1}\" height=\"{height:.1}\"/>",
                (to - from).max(0.5),
                20.0 - height
            )?;
        }
        writeln!(out, "</svg></td></tr>")?;
    }
    writeln!(
        out,
        "<tr><th></th><td class=\"of\">{}, {} of {}: those that carry least, and the one that carries most</td></tr>",
        escaped(&show(most)),
        thousands(rows.len()),
        count(all, "NIC")
    )
}
