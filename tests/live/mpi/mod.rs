//! The programs of nccl-tests over a real Open MPI, built here from `nccl_tests.c`: real ranks that exchange, check and
//! time real data. What a CPU has none of is stood in for.

use crate::bed::StandIns;
use std::env;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

const PROGRAMS: [&str; 10] = [
    "all_reduce_perf",
    "all_gather_perf",
    "reduce_scatter_perf",
    "alltoall_perf",
    "broadcast_perf",
    "reduce_perf",
    "gather_perf",
    "scatter_perf",
    "sendrecv_perf",
    "hypercube_perf",
];

/// Why there is none on this machine.
pub(crate) fn absent() -> Option<&'static str> {
    let path = env::var_os("PATH").unwrap_or_default();
    let is_there = |program: &str| env::split_paths(&path).any(|folder| folder.join(program).is_file());
    (!is_there("mpicc") || !is_there("mpirun"))
        .then_some("no Open MPI here: apt-get install libopenmpi-dev openmpi-bin")
}

/// Builds the programs into a folder, each under its name. In a case whose name begins with `kernels`, which a profiler
/// looks at, the stand-in leaves after each what GPUs would have: MPI has none.
pub(crate) fn build(folder: &Path, stand_ins: &StandIns) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/live/mpi/nccl_tests.c");
    let real = folder.join("real");
    fs::create_dir_all(&real).expect("made");
    let program = real.join("nccl_tests");
    let built = Command::new("mpicc")
        .args(["-O1", "-Wall", "-Wextra", "-Werror", "-o"])
        .arg(&program)
        .arg(source)
        .stdin(Stdio::null())
        .output()
        .expect("mpicc starts");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    for name in PROGRAMS {
        symlink(&program, real.join(name)).expect("linked");
        let (real, stand_in) = (real.join(name), stand_ins.programs().join(name));
        let text = format!(
            "#!/bin/bash\n\"{}\" \"$@\" || exit\n[[ $PWD != */kernels* ]] || exec \"{}\" \"$@\" >/dev/null\n",
            real.display(),
            stand_in.display()
        );
        fs::write(folder.join(name), text).expect("written");
        fs::set_permissions(folder.join(name), fs::Permissions::from_mode(0o755)).expect("made executable");
    }
}
