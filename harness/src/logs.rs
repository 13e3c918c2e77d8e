//! stand-in
use std::io::Write;
use std::path::PathBuf;
pub fn nccl_tests(
    _files: &[PathBuf],
    _json: bool,
    _f: bool,
    _out: &mut dyn Write,
    _err: &mut dyn Write,
) -> i32 {
    3
}
