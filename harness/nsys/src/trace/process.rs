//! Splits the 64-bit thread ids of a report into process and thread.

const TID_BITS: u32 = 24;

/// The process that a thread belongs to, as tables of GPUs name it.
pub fn process_of(global_tid: i64) -> i64 {
    global_tid & !((1 << TID_BITS) - 1)
}

/// Process id of the operating system.
pub fn pid_of(global_tid: i64) -> i64 {
    (global_tid >> TID_BITS) & ((1 << TID_BITS) - 1)
}

/// Thread id of the operating system.
pub fn tid_of(global_tid: i64) -> i64 {
    global_tid & ((1 << TID_BITS) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_and_thread_are_split() {
        let global = (1i64 << 48) | (4001 << 24) | 4007;
        assert_eq!(
            (process_of(global), pid_of(global), tid_of(global)),
            ((1 << 48) | (4001 << 24), 4001, 4007)
        );
        // The hardware's number may fill the sign.
        assert_eq!((pid_of(-1), tid_of(-1)), (0xff_ffff, 0xff_ffff));
    }
}
