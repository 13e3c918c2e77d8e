//! How many GPUs Slurm's GRES of a node names, and whether these are whole GPUs.

/// `gpu:h100:8(S:0-1),nvme:2` names 8; nothing where it names no GPU, as `(null)`.
pub(crate) fn gpus(gres: &str) -> Option<u32> {
    let plain = without_brackets(gres);
    let counts: Vec<u32> = plain
        .split(',')
        // A GRES without a number is one.
        .filter_map(|entry| Some(fields_of_gpu(entry)?.last().and_then(|last| number(last)).unwrap_or(1)))
        .collect();
    (!counts.is_empty()).then(|| counts.iter().fold(0u32, |sum, count| sum.saturating_add(*count)))
}

/// The profile of MIG instances, where these stand for GPUs: `1g.10gb` of `gpu:h100_1g.10gb:7`.
pub(crate) fn mig(gres: &str) -> Option<String> {
    let plain = without_brackets(gres);
    let mut kinds = plain.split(',').filter_map(|entry| fields_of_gpu(entry)?.first().copied());
    kinds.find_map(mig_profile).map(str::to_owned)
}

/// The last part of a type, as NVML names instances: slices and memory, and what they have beside.
fn mig_profile(kind: &str) -> Option<&str> {
    let profile = kind.rsplit('_').next()?;
    let (slices, rest) = profile.split_once("g.")?;
    let memory = rest.split(['+', '.']).next()?.strip_suffix("gb")?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    (is_number(slices) && is_number(memory)).then_some(profile)
}

/// What stands behind `gpu` in an entry; nothing where it is another GRES.
fn fields_of_gpu(entry: &str) -> Option<Vec<&str>> {
    let mut fields = entry.trim().split(':');
    (fields.next()? == "gpu").then(|| fields.collect())
}

/// Slurm writes multiples of 1024 with a suffix: `8K`.
fn number(text: &str) -> Option<u32> {
    let suffixes = "KMGTP";
    let (digits, power) = match text.chars().next_back().and_then(|c| suffixes.find(c.to_ascii_uppercase())) {
        Some(at) => (text.get(..text.len() - 1)?, at as u32 + 1),
        None => (text, 0),
    };
    let count = digits.parse::<u64>().ok()?.saturating_mul(1024u64.pow(power));
    Some(u32::try_from(count).unwrap_or(u32::MAX))
}

fn without_brackets(gres: &str) -> String {
    let mut depth = 0;
    gres.chars()
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
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{gpus, mig};

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
            ("N/A", None),
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
            ("gpu:h100:8,shard:64K", Some(8)),
            ("gpu:8K", Some(8192)),
            ("gpu:h100:1m(S:0)", Some(1 << 20)),
            ("gpu:9T", Some(u32::MAX)),
            ("gpu:h100:", Some(1)),
            ("gpu:k", Some(1)),
            ("gpu:h100:8:é", Some(1)),
        ] {
            assert_eq!(gpus(gres), wanted, "{gres}");
        }
    }

    #[test]
    fn instances_of_mig_are_known_by_their_profile() {
        for (gres, wanted) in [
            ("gpu:1g.10gb:7(S:0-1)", Some("1g.10gb")),
            ("gpu:nvidia_h100_80gb_hbm3_7g.80gb:8", Some("7g.80gb")),
            ("gpu:h100:4,gpu:a100_1g.5gb+me:28", Some("1g.5gb+me")),
            ("gpu:h100:8(S:0-1)", None),
            ("gpu:nvidia_h100_80gb_hbm3:8", None),
            ("gpu:8", None),
            ("gpu", None),
            ("shard:1g.10gb:8", None),
            ("(null)", None),
        ] {
            assert_eq!(mig(gres).as_deref(), wanted, "{gres}");
        }
    }
}
