//! What a program of nccl-tests prints, in the form of its newer versions: head, one line per rank, rows, foot. Rows that
//! were not reached are not there, and then neither is the foot. Reading it is the business of the recipes.

use super::cluster::Cluster;
use super::noise::Noise;
use super::options::{Options, Step};
use super::work::{Row, Table};
use super::{pci, software};
use metric::op::Op;
use std::fmt::Write;

/// The text of a table after so many of its rows; with all of them also its foot.
pub fn text(cluster: &Cluster, table: &Table, nodes: &[String], rows: usize, noise: &mut Noise) -> String {
    let mut text = head(cluster, table, nodes, noise);
    for row in table.rows.iter().take(rows) {
        text.push_str(&row_line(table, row));
    }
    if rows >= table.rows.len() {
        text.push_str(&foot(table));
    }
    text
}

/// As above, with the next row broken off in its middle.
pub fn broken_off(
    cluster: &Cluster,
    table: &Table,
    nodes: &[String],
    rows: usize,
    noise: &mut Noise,
) -> String {
    let rows = rows.min(table.rows.len().saturating_sub(1));
    let mut text = text(cluster, table, nodes, rows, noise);
    if let Some(row) = table.rows.get(rows) {
        let line = row_line(table, row);
        text.push_str(&line[..line.len() / 3]);
    }
    text
}

fn head(cluster: &Cluster, table: &Table, nodes: &[String], noise: &mut Noise) -> String {
    let options = &table.options;
    let program = options.op.program();
    let step = match options.step {
        Step::Bytes(bytes) => format!("{bytes}(bytes)"),
        Step::Factor(factor) => format!("{factor}(factor)"),
    };
    let (version, code) = (software::NCCL, software::NCCL_CODE);
    let program_line = match options.by_torch {
        true => format!("# torch-collective PyTorch 2.9.1+cu129 NCCL {version} backend nccl"),
        false => format!("# nccl-tests version 2.17.6 nccl-headers={code} nccl-library={code}"),
    };
    let mut text = format!(
        "{program_line}\n\
         # Collective test starting: {program}\n\
         # nThread 1 nGpus {} minBytes {} maxBytes {} step: {step} warmup iters: {} iters: {} agg iters: {} \
         validation: {} graph: {}\n#\n# Using devices\n",
        options.gpus,
        options.min_bytes,
        options.max_bytes,
        options.warmup,
        options.iterations,
        options.aggregated,
        u8::from(options.check),
        options.graph_launches,
    );
    let hosts = nodes.get(table.world.nodes.clone()).unwrap_or_default();
    let per_node = (table.ranks as usize / hosts.len().max(1)).max(1);
    let first_pid = first_pid(noise);
    for rank in 0..table.ranks as usize {
        let host = hosts.get(rank / per_node).map_or("", String::as_str);
        let local = rank % per_node;
        let gpu = table.world.gpu.map_or(local, |gpu| gpu as usize + local);
        // One process may drive several GPUs.
        let pid = first_pid + (rank / options.gpus.max(1) as usize) as u64;
        // Infallible: writing to a string.
        let _ = writeln!(
            text,
            "#  Rank {rank:2} Group {:2} Pid {pid:6} on {host:>10} device {local:2} [0000:{:02x}:00] {}",
            group_of(table, rank),
            pci::bus(cluster.gpus, gpu),
            cluster.gpu_name
        );
    }
    text.push_str(
        "#\n\
         #                                                              out-of-place                       in-place          \n\
         #       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong \n\
         #        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)         \n",
    );
    text
}

/// The number of the first rank's process.
pub fn first_pid(noise: &mut Noise) -> u64 {
    20_000 + noise.whole() % 200_000
}

/// Which of the groups side by side a rank is in.
pub fn group_of(table: &Table, rank: usize) -> usize {
    match table.world.group.side_by_side {
        0 | 1 => 0,
        groups => rank % groups as usize,
    }
}

fn row_line(table: &Table, row: &Row) -> String {
    let options = &table.options;
    let (redop, root) = redop_and_root(options);
    let (is_out, is_in) = options.placements();
    let out = half(table, row.bytes, row.out_us, options.check.then_some(row.wrong), is_out);
    let inside = half(table, row.bytes, row.in_us, checks_in_place(options).then_some(row.wrong), is_in);
    format!("{:12}  {:12}  {:>8}  {redop:>6}  {root:>6}{out}{inside}\n", row.bytes, row.count, options.dtype)
}

/// alltoall and sendrecv do not check what they do in place, and print N/A there.
pub fn checks_in_place(options: &Options) -> bool {
    options.check && !matches!(options.op, Op::AllToAll | Op::SendRecv)
}

/// The reduction and the root, where the operation has them.
pub fn redop_and_root(options: &Options) -> (&str, &'static str) {
    match options.op {
        Op::AllReduce | Op::ReduceScatter => (&options.redop, "-1"),
        Op::Reduce => (&options.redop, "0"),
        Op::Broadcast | Op::Gather | Op::Scatter => ("none", "0"),
        Op::AllGather | Op::AllToAll | Op::SendRecv | Op::Hypercube => ("none", "-1"),
    }
}

fn half(table: &Table, bytes: u64, time_us: f64, wrong: Option<u64>, is_there: bool) -> String {
    if !is_there {
        return format!("  {:>7}  {:>6}  {:>6}  {:>6}", "N/A", "N/A", "N/A", "N/A");
    }
    let (algbw, busbw) = bandwidth(table, bytes, time_us);
    let wrong = wrong.map_or("N/A".to_owned(), general);
    format!("  {:>7}  {:>6}  {:>6}  {wrong:>6}", fitted(time_us, 7), fitted(algbw, 6), fitted(busbw, 6))
}

/// Of the operation, and of the bus.
pub fn bandwidth(table: &Table, bytes: u64, time_us: f64) -> (f64, f64) {
    let op = table.options.op;
    let algbw = op.algbw_gb_s(bytes, table.world.group.ranks, time_us);
    (algbw, algbw * op.bus_factor(table.world.group.ranks))
}

/// Values that came out wrong, in all checked places together, and the mean bandwidth of all rows.
pub fn closing(table: &Table) -> (u64, f64) {
    let (is_out, is_in) = table.options.placements();
    let checked = u64::from(is_out) + u64::from(is_in && checks_in_place(&table.options));
    let wrong: u64 = table.rows.iter().map(|row| row.wrong * checked).sum();
    let rate = |is_there: bool, row: &Row, us: f64| match is_there {
        true => bandwidth(table, row.bytes, us).1,
        false => 0.0,
    };
    let both = |row: &Row| rate(is_out, row, row.out_us) + rate(is_in, row, row.in_us);
    let cells = (usize::from(is_out) + usize::from(is_in)) * table.rows.len().max(1);
    let mean = table.rows.iter().map(both).sum::<f64>() / cells as f64;
    (wrong, mean)
}

fn foot(table: &Table) -> String {
    let (wrong, mean) = closing(table);
    let word = if wrong == 0 { "OK" } else { "FAILED" };
    format!(
        "# Out of bounds values : {wrong} {word}\n# Avg bus bandwidth    : {} \n#\n# Collective test concluded: {}\n#\n\n",
        significant(mean),
        table.options.op.program()
    )
}

/// Two decimals, fewer where they do not fit, an exponent where not even the whole number does.
fn fitted(value: f64, width: usize) -> String {
    for places in [2, 1, 0] {
        let text = format!("{value:.places$}");
        if text.len() <= width {
            return text;
        }
    }
    let exponent = value.abs().log10().floor() as i32;
    format!("{:.1}e{exponent:+03}", value / 10f64.powi(exponent))
}

/// As C's `%g` writes a whole number.
fn general(value: u64) -> String {
    if value < 1_000_000 {
        return value.to_string();
    }
    let text = format!("{:.5e}", value as f64);
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let digits = digits.trim_end_matches('0').trim_end_matches('.');
    format!("{digits}e{:+03}", exponent.parse::<i32>().unwrap_or_default())
}

/// As C's `%g` writes a bandwidth: six digits that count.
fn significant(value: f64) -> String {
    let whole = if value >= 1.0 { value.log10().floor() as usize + 1 } else { 1 };
    let text = format!("{value:.*}", 6usize.saturating_sub(whole));
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_the_program_fits_them_into_its_columns() {
        for (value, width, text) in [
            (69.124, 7, "69.12"),
            (9999.991, 7, "9999.99"),
            (66132.4, 7, "66132.4"),
            (1234567.8, 7, "1234568"),
            (123456789.0, 7, "1.2e+08"),
            (1299.6, 6, "1299.6"),
            (0.0, 6, "0.00"),
        ] {
            assert_eq!(fitted(value, width), text);
        }
        assert_eq!(
            (general(0), general(12), general(33_554_432)),
            ("0".into(), "12".into(), "3.35544e+07".into())
        );
        assert_eq!(
            (significant(156.7421), significant(0.0), significant(84.06)),
            ("156.742".into(), "0".into(), "84.06".into())
        );
    }
}
