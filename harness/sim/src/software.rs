//! Versions of the software on simulated nodes. The probe, the logs, the tables and the RAS of a node name the same ones.

/// As `libnccl.so` and NCCL's own log name it.
pub(crate) const NCCL: &str = "2.30.7";
/// The same as nccl-tests prints it: two digits for each number behind the first.
pub const NCCL_CODE: u32 = 23007;
/// Of aws-ofi-nccl.
pub(crate) const OFI_NCCL: &str = "1.16.2";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_the_version_of_nccl_are_one_number() {
        let numbers: Vec<u32> = NCCL.split('.').map(|part| part.parse().expect("a number")).collect();
        assert_eq!(numbers.iter().fold(0, |code, number| code * 100 + number), NCCL_CODE);
    }
}
