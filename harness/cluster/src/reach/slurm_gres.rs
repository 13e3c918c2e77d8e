//! How many GPUs Slurm's GRES of a node names.

/// `gpu:h100:8(S:0-1),nvme:2` names 8; nothing where it names no GPU, as `(null)`.
pub(crate) fn gpus(gres: &str) -> Option<u32> {
    let mut depth = 0;
    let plain: String = gres
        .chars()
        .filter(|c| {
            match c {
                '(' => depth += 1,
                ')' => {
                    depth -= 1;
                    return false;
                }
                _ => {}
            }
            depth <= 0
        })
        .collect();
    let count = |entry: &str| -> Option<u32> {
        let mut parts = entry.trim().split(':');
        (parts.next()? == "gpu").then_some(())?;
        // A GRES without a number is one.
        Some(parts.next_back().map_or(1, |last| last.parse().unwrap_or(1)))
    };
    let counts: Vec<u32> = plain.split(',').filter_map(count).collect();
    (!counts.is_empty()).then(|| counts.iter().fold(0u32, |sum, count| sum.saturating_add(*count)))
}

#[cfg(test)]
mod tests {
    use super::gpus;

    #[test]
    fn gpus_are_counted_in_every_way_that_gres_are_written() {
        for (gres, wanted) in [
            ("gpu:h100:8", Some(8)),
            ("gpu:8", Some(8)),
            ("gpu", Some(1)),
            ("gpu:0", Some(0)),
            ("gpu:h100:8(S:0-1)", Some(8)),
            ("nvme:4,gpu:a100:4(S:0,2),gpu:h100:4", Some(8)),
            ("gpu:4294967295,gpu:4294967295", Some(u32::MAX)),
            ("(null)", None),
            ("", None),
            ("nvme:4", None),
            ("shard:8", None),
            ("mps:400", None),
            ("gpu:h100:8(S:0-1),shard:h100:64(S:0-1)", Some(8)),
            ("gpu:h100:8,mps:h100:800", Some(8)),
            ("gpu:8(IDX:0-7)", Some(8)),
            ("gpu:(null):8(IDX:0-7)", Some(8)),
            ("gpu:1g.10gb:7(S:0-1)", Some(7)),
            ("gpu:no_consume:8", Some(8)),
        ] {
            assert_eq!(gpus(gres), wanted, "{gres}");
        }
    }
}
