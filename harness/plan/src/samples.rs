//! Where the scripts of published training samples lie: as `[paths]` of the inventory says, else as their authors lay
//! them out.

use config::inventory::{Inventory, SamplePaths};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sample {
    Fsdp,
    Nemo1,
    Megatron,
    Ddp,
}

/// The FSDP sample of awsome-distributed-training, cloned onto the shared file system as its README says.
const FSDP: &str = "/fsx/awsome-distributed-training/3.test_cases/pytorch/FSDP";
/// The same in the image that its Dockerfile builds.
const FSDP_IN_IMAGE: &str = "/fsdp/train.py";
/// In NVIDIA's NeMo images.
const NEMO: &str = "/opt/NeMo/examples/nlp/language_modeling/megatron_gpt_pretraining.py";
/// In the Megatron image of awsome-distributed-training.
const MEGATRON: &str = "/workspace/Megatron-LM/pretrain_gpt.py";
/// A clone of Hugging Face's transformers.
const DDP: &str = "/fsx/transformers/examples/pytorch/language-modeling/run_clm.py";

impl Sample {
    /// The script, from a path to it or to the sample's folder.
    pub(crate) fn script(self, paths: &SamplePaths, in_image: bool) -> String {
        let (given, within) = match self {
            Sample::Fsdp => (&paths.fsdp, "src/train.py"),
            Sample::Nemo1 => (&paths.nemo, "examples/nlp/language_modeling/megatron_gpt_pretraining.py"),
            Sample::Megatron => (&paths.megatron, "pretrain_gpt.py"),
            Sample::Ddp => (&paths.ddp, "examples/pytorch/language-modeling/run_clm.py"),
        };
        match (given, self) {
            (Some(script), _) if script.ends_with(".py") => script.clone(),
            (Some(folder), _) => format!("{}/{within}", folder.trim_end_matches('/')),
            (None, Sample::Fsdp) if in_image => FSDP_IN_IMAGE.to_owned(),
            (None, Sample::Fsdp) => format!("{FSDP}/{within}"),
            (None, Sample::Nemo1) => NEMO.to_owned(),
            (None, Sample::Megatron) => MEGATRON.to_owned(),
            (None, Sample::Ddp) => DDP.to_owned(),
        }
    }
}

/// torchrun: as the inventory says; on the host the one of the environment that the FSDP sample's `create_venv.sh` makes
/// beside it, for a sample that lies where it is published; else the first on PATH.
pub(crate) fn torchrun(sample: Option<Sample>, paths: &SamplePaths, in_image: bool) -> String {
    if let Some(given) = &paths.torchrun {
        return given.clone();
    }
    let folder = paths.fsdp.as_deref().unwrap_or(FSDP).trim_end_matches('/');
    match sample {
        Some(Sample::Fsdp) if !in_image && !folder.ends_with(".py") => {
            format!("{folder}/slurm/env/bin/torchrun")
        }
        _ => "torchrun".to_owned(),
    }
}

/// The script of the FSDP sample, as trainings of an inventory would start it.
pub fn fsdp_script(inventory: &Inventory) -> String {
    Sample::Fsdp.script(&inventory.paths.samples, inventory.container.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_lie_where_their_authors_publish_them() {
        let none = SamplePaths::default();
        let host = |sample: Sample| sample.script(&none, false);
        assert_eq!(host(Sample::Fsdp), format!("{FSDP}/src/train.py"));
        assert_eq!(Sample::Fsdp.script(&none, true), "/fsdp/train.py");
        assert_eq!(host(Sample::Nemo1), NEMO);
        assert_eq!(host(Sample::Megatron), MEGATRON);
        assert_eq!(host(Sample::Ddp), DDP);
        assert_eq!(torchrun(Some(Sample::Fsdp), &none, false), format!("{FSDP}/slurm/env/bin/torchrun"));
        assert_eq!(torchrun(Some(Sample::Fsdp), &none, true), "torchrun");
        assert_eq!(torchrun(None, &none, false), "torchrun");
    }

    #[test]
    fn a_path_of_the_inventory_is_a_folder_or_the_script_itself() {
        let paths = SamplePaths {
            fsdp: Some("/lab/FSDP/".to_owned()),
            nemo: Some("/lab/pretrain.py".to_owned()),
            ddp: Some("/lab/transformers".to_owned()),
            ..SamplePaths::default()
        };
        assert_eq!(Sample::Fsdp.script(&paths, true), "/lab/FSDP/src/train.py");
        assert_eq!(torchrun(Some(Sample::Fsdp), &paths, false), "/lab/FSDP/slurm/env/bin/torchrun");
        assert_eq!(Sample::Nemo1.script(&paths, true), "/lab/pretrain.py");
        assert_eq!(
            Sample::Ddp.script(&paths, false),
            "/lab/transformers/examples/pytorch/language-modeling/run_clm.py"
        );
        let given = SamplePaths { torchrun: Some("/opt/torch/bin/torchrun".to_owned()), ..paths };
        assert_eq!(torchrun(Some(Sample::Fsdp), &given, false), "/opt/torch/bin/torchrun");
        let script = SamplePaths { fsdp: Some("/lab/train.py".to_owned()), ..SamplePaths::default() };
        assert_eq!(torchrun(Some(Sample::Fsdp), &script, false), "torchrun");
    }
}
