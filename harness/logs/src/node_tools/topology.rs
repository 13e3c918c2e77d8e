//! The matrix of `nvidia-smi topo -m`: by what each pair of GPUs is joined, and the GPUs whose NVLinks are not those of the others.

use super::NoResult;
use super::output::{NodeOutput, Row};
use std::collections::BTreeMap;

/// No machine has more GPUs.
const MOST_GPUS: usize = 64;
/// Machines with so many have the same links between all of them, where they have any between most. Other counts may have
/// a GPU that is no part of the fabric, such as one for displays.
const FULL: [usize; 3] = [4, 8, 16];

/// Whether a line is the head of the matrix.
pub(super) fn is_head(line: &str) -> bool {
    line.split_whitespace().next() == Some("GPU0") && line.contains("CPU Affinity")
}

/// What joins each two GPUs, by their places in the matrix: the first is smaller.
type Pairs<'a> = BTreeMap<(usize, usize), &'a str>;

/// A GPU is a failure whose links to all others differ from those of most pairs; a pair that differs alone is a finding.
pub(super) fn read(text: &str) -> Result<NodeOutput, NoResult> {
    let (gpus, pairs) = matrix(text)?;
    let mut by_link: BTreeMap<&str, usize> = BTreeMap::new();
    for link in pairs.values() {
        *by_link.entry(link).or_default() += 1;
    }
    let mut output = NodeOutput { program: "nvidia-smi topo", ..NodeOutput::default() };
    let row = |(link, count): (&&str, &usize)| Row {
        what: format!("joined by {link}"),
        value: Some(*count as f64),
        unit: "pairs",
        ..Row::default()
    };
    output.rows.extend(by_link.iter().map(row));
    let Some((usual, count)) = by_link.iter().max_by_key(|(_, count)| **count) else { return Ok(output) };
    // Where most pairs have no NVLink, or links in different numbers, nothing says what the others should have.
    if !is_nvlink(usual) || 2 * count <= pairs.len() {
        return Ok(output);
    }
    let odd: Vec<(&(usize, usize), &&str)> = pairs.iter().filter(|(_, link)| *link != usual).collect();
    let of = |gpu: usize| odd.iter().filter(move |((one, other), _)| *one == gpu || *other == gpu);
    let strays: Vec<usize> = (0..gpus.len()).filter(|gpu| of(*gpu).count() + 1 == gpus.len()).collect();
    for gpu in &strays {
        let Some((_, link)) = of(*gpu).next() else { continue };
        let why =
            format!("GPU {} is joined to the others by {link}, where most pairs have {usual}", gpus[*gpu]);
        match FULL.contains(&gpus.len()) {
            true => output.failures.push(why),
            false => output.findings.push(why),
        }
    }
    for ((one, other), link) in &odd {
        if !strays.contains(one) && !strays.contains(other) {
            let (one, other) = (gpus[*one], gpus[*other]);
            output
                .findings
                .push(format!("GPU {one} and GPU {other} are joined by {link}, most pairs by {usual}"));
        }
    }
    Ok(output)
}

/// `NV18`.
fn is_nvlink(link: &str) -> bool {
    link.strip_prefix("NV").is_some_and(|links| links.parse::<u32>().is_ok())
}

/// The numbers of the GPUs, and what joins them.
fn matrix(text: &str) -> Result<(Vec<u32>, Pairs<'_>), NoResult> {
    let mut heads = text.lines().filter(|line| is_head(line));
    let head = heads.next().ok_or("no head of the matrix of nvidia-smi")?;
    if heads.next().is_some() {
        return Err("nvidia-smi printed more than one matrix".to_owned());
    }
    // GPUs stand before NICs.
    let number = |word: &str| word.strip_prefix("GPU").and_then(|number| number.parse::<u32>().ok());
    let gpus: Vec<u32> = head.split_whitespace().map_while(number).collect();
    if gpus.len() < 2 {
        return Err("the matrix of nvidia-smi has one GPU: not read; it has no pair".to_owned());
    }
    if gpus.len() > MOST_GPUS {
        return Err(format!("the matrix of nvidia-smi has {} GPUs, more than {MOST_GPUS}", gpus.len()));
    }
    let mut pairs = Pairs::new();
    let mut rows = 0;
    for line in text.lines().filter(|line| !is_head(line)) {
        let mut words = line.split_whitespace();
        let Some(row) = words.next().and_then(number) else { continue };
        let Some(place) = gpus.iter().position(|gpu| *gpu == row) else { continue };
        let cells: Vec<&str> = words.take(gpus.len()).collect();
        if cells.len() < gpus.len() || cells[place] != "X" {
            return Err(format!("the row of GPU {row} in the matrix of nvidia-smi is incomplete"));
        }
        rows += 1;
        for (other, link) in cells.into_iter().enumerate().filter(|(other, _)| *other != place) {
            let pair = (place.min(other), place.max(other));
            let before = pairs.insert(pair, link);
            if before.is_some_and(|before| before != link) {
                let (one, other) = (gpus[pair.0], gpus[pair.1]);
                return Err(format!(
                    "the matrix of nvidia-smi has two different links of GPU {one} and GPU {other}"
                ));
            }
        }
    }
    match rows == gpus.len() {
        true => Ok((gpus, pairs)),
        false => {
            Err(format!("the matrix of nvidia-smi has {rows} rows of {} GPUs: it may be cut", gpus.len()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::output::{NodeOutput, read};

    /// Of GPUs and one NIC, as drivers from 535 print it; `link` is what joins two of them.
    fn printed(gpus: usize, link: fn(usize, usize) -> &'static str) -> String {
        let names: String = (0..gpus).map(|gpu| format!("\tGPU{gpu}")).collect();
        let row = |gpu: usize| {
            let cells: String = (0..gpus)
                .map(|other| {
                    if other == gpu {
                        "\t X ".to_owned()
                    } else {
                        format!("\t{}", link(gpu.min(other), gpu.max(other)))
                    }
                })
                .collect();
            format!("GPU{gpu}{cells}\tSYS\t0-55,112-167\t0\t\tN/A\n")
        };
        let rows: String = (0..gpus).map(row).collect();
        format!(
            "{names}\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n{rows}NIC0\tSYS\t X \n\nLegend:\n\n  X    = Self\n"
        )
    }

    fn only(text: &str) -> NodeOutput {
        let outputs = read(text).expect("read");
        assert_eq!(outputs.len(), 1, "{outputs:?}");
        outputs.into_iter().next().expect("one")
    }

    #[test]
    fn a_gpu_outside_the_fabric_of_the_others_is_a_failure() {
        let good = only(&printed(8, |_, _| "NV18"));
        assert_eq!((good.rows.len(), good.failures.len(), good.findings.len()), (1, 0, 0));
        assert_eq!((good.rows[0].what.as_str(), good.rows[0].value), ("joined by NV18", Some(28.0)));
        let bad = only(&printed(8, |one, other| if one == 3 || other == 3 { "SYS" } else { "NV18" }));
        assert_eq!(bad.failures, ["GPU 3 is joined to the others by SYS, where most pairs have NV18"]);
        let links = only(&printed(8, |one, _| if one == 0 { "NV17" } else { "NV18" }));
        assert_eq!(links.failures, ["GPU 0 is joined to the others by NV17, where most pairs have NV18"]);
    }

    #[test]
    fn what_may_be_built_so_names_no_gpu() {
        // Bridges between two and two, no NVLink at all, and a fifth GPU for displays.
        let bridged = only(&printed(4, |one, other| if one / 2 == other / 2 { "NV4" } else { "PHB" }));
        assert_eq!((bridged.failures.len(), bridged.findings.len()), (0, 0));
        let none = only(&printed(8, |_, other| if other == 7 { "SYS" } else { "NODE" }));
        assert_eq!((none.failures.len(), none.findings.len()), (0, 0));
        let station = only(&printed(5, |_, other| if other == 4 { "SYS" } else { "NV4" }));
        assert_eq!((station.failures.len(), station.findings.len()), (0, 1));
        let pair = only(&printed(8, |one, other| if (one, other) == (2, 5) { "NV17" } else { "NV18" }));
        assert_eq!(pair.findings, ["GPU 2 and GPU 5 are joined by NV17, most pairs by NV18"]);
        assert!(pair.failures.is_empty());
    }

    #[test]
    fn a_matrix_that_is_cut_or_contradicts_itself_is_refused() {
        let text = printed(4, |_, _| "NV12");
        let cut = text.split("GPU3\tNV12").next().expect("before the last row");
        assert_eq!(read(cut), Err("the matrix of nvidia-smi has 3 rows of 4 GPUs: it may be cut".to_owned()));
        let torn = text.replacen("GPU2\tNV12", "GPU2\tSYS", 1);
        let why = "the matrix of nvidia-smi has two different links of GPU 0 and GPU 2";
        assert_eq!(read(&torn), Err(why.to_owned()));
    }

    #[test]
    fn matrices_of_several_nodes_are_kept_apart() {
        let of = |node: &str, text: String| {
            text.lines().map(|line| format!("{node}: {line}\n")).collect::<String>()
        };
        let text = of("n-1", printed(4, |_, _| "NV12"))
            + &of("n-2", printed(4, |one, _| if one == 0 { "PHB" } else { "NV12" }));
        let outputs = read(&text).expect("read");
        let failures: Vec<(&str, usize)> =
            outputs.iter().map(|output| (output.who.as_str(), output.failures.len())).collect();
        assert_eq!(failures, [("n-1", 0), ("n-2", 0)], "half of the pairs are no more than half");
    }
}
