//! Sizes in bytes, written as people write them.

/// `1GiB`, `64KiB`, `12345`: the largest binary unit that divides the size.
pub fn show(bytes: u64) -> String {
    for (unit, factor) in [("GiB", 1u64 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)] {
        if bytes >= factor && bytes.is_multiple_of(factor) {
            return format!("{}{unit}", bytes / factor);
        }
    }
    bytes.to_string()
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_size_is_shown_in_the_largest_unit_that_divides_it() {
        for (bytes, shown) in
            [(0, "0"), (8, "8"), (1024, "1KiB"), (1 << 30, "1GiB"), (1536, "1536"), (3 << 20, "3MiB")]
        {
            assert_eq!(super::show(bytes), shown);
        }
    }
}
