//! Where GPUs are on the PCI buses of a node.

/// The bus on which a GPU is.
pub fn bus(gpus: u32, gpu: usize) -> usize {
    // As such nodes number them: far apart, in the order of the GPUs.
    0x53 + 0x11 * gpu % (0x11 * gpus.max(1) as usize)
}
