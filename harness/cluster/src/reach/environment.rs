//! What the commands that the harness starts on its own machine see of its environment, and with them every job: sbatch
//! hands on all that it has. A CI keeps its secrets there, so it is a list and not everything.

use base::redact::{Redactor, is_secret_name};
use std::ffi::OsString;

/// What shells, Slurm's commands and programs of users need to find themselves.
pub const NAMES: [&str; 55] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "TZ",
    "TMPDIR",
    "TERM",
    "HOSTNAME",
    "PWD",
    "BASH_ENV",
    "XDG_RUNTIME_DIR",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "KRB5CCNAME",
    "SLURM_CONF",
    "SLURM_CONF_SERVER",
    "SLURM_SACK_SOCKET",
    // Slurm's own commands sign in with it; the job's script unsets it first.
    "SLURM_JWT",
    "SLURMD_NODENAME",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "LIBRARY_PATH",
    "CPATH",
    "MANPATH",
    "PKG_CONFIG_PATH",
    "MODULEPATH",
    "MODULESHOME",
    "MODULES_CMD",
    "LOADEDMODULES",
    "_LMFILES_",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "CONDA_DEFAULT_ENV",
    "PYTHONPATH",
    "PYTHONHOME",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONUNBUFFERED",
    "HF_HOME",
    "HF_HUB_OFFLINE",
    "HF_HUB_CACHE",
    "TRANSFORMERS_OFFLINE",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "NSYS_VENDOR_FOLDER",
    "OPAL_PREFIX",
];

/// Beginnings of names, of families that change how jobs run: jobs always inherited them, and most are written down (`RECORDS` of their scripts).
pub const FAMILIES: [&str; 33] = [
    "LC_",
    "LMOD_",
    // Functions of bash: those of environment modules. Any other may stand in for a program, such as `cat`, that scripts call.
    "BASH_FUNC_module",
    "BASH_FUNC__module_raw",
    "BASH_FUNC_ml%%",
    "BASH_FUNC_ml()",
    "BASH_FUNC_switchml",
    "BASH_FUNC_spack",
    "BASH_FUNC__spack",
    "HARNESS_",
    "NCCL_",
    "OFI_NCCL_",
    "FI_",
    "RDMAV_",
    "IBV_",
    "MLX5_",
    "OMPI_",
    "OPAL_",
    "PMIX_",
    "PRTE_",
    "UCX_",
    "MPI_",
    "I_MPI_",
    "CUDA_",
    "NVIDIA_",
    "NVSHMEM_",
    "OMP_",
    "KMP_",
    "TORCH_",
    "PYTORCH_",
    "ENROOT_",
    "APPTAINER_",
    "SINGULARITY_",
];

/// Of these variables those that are handed on: what is called or looks like a secret is not, whatever family it is of.
pub(super) fn handed_on(
    variables: impl IntoIterator<Item = (OsString, OsString)>,
) -> impl Iterator<Item = (OsString, OsString)> {
    let redactor = Redactor::default();
    variables.into_iter().filter(move |(name, value)| {
        let Some(text) = name.to_str() else { return false };
        if text == "SLURM_JWT" {
            return true;
        }
        let is_listed = NAMES.contains(&text) || FAMILIES.iter().any(|family| text.starts_with(family));
        is_listed && is_secret_name(text).is_none() && redactor.first(value.as_encoded_bytes()).is_none()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_inherit_settings_and_nothing_that_looks_like_a_secret() {
        let kept = [
            "PATH=/bin",
            "LC_ALL=C",
            "NCCL_ALGO=Ring",
            "FI_PROVIDER=efa",
            "OMPI_MCA_x=1",
            "SLURM_CONF=/c",
            "BASH_FUNC_module%%=() { eval x; }",
            "BASH_FUNC_ml()=() { module \"$@\"; }",
            "SLURM_SACK_SOCKET=/run/slurm-a/sack.socket",
        ];
        let address = format!("http://me:{}@proxy:80", "pa55");
        let dropped = [
            "CI_SECRET_TOKEN=abc",
            "EDITOR=vi",
            "BASH_FUNC_cat%%=() { echo no; }",
            "BASH_FUNC_mltool%%=() { echo no; }",
            "NCCL_MY_TOKEN=abc",
            "SLURM_JOB_ID=7",
            "SINGULARITY_DOCKER_PASSWORD=abc",
            &format!("https_proxy={address}"),
            &format!("CUDA_X=hf_{}", "x1Y2".repeat(10)),
        ];
        let variables = kept.iter().copied().chain(dropped).map(|variable| {
            let (name, value) = variable.split_once('=').expect("a variable");
            (name.into(), value.into())
        });
        let shown = |(name, value): (OsString, OsString)| format!("{}={}", name.display(), value.display());
        assert_eq!(handed_on(variables).map(shown).collect::<Vec<_>>(), kept);
    }
}
