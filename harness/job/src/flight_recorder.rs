//! PyTorch's flight recorder in a job: the variables that must be set when its ranks start, and the files that come of them.

/// What the file of a rank's dump begins with; PyTorch adds the rank.
pub const DUMP: &str = "fr_trace.";
/// What the pipe of a rank begins with; PyTorch adds the rank and `.pipe`. Any byte written into it asks for a dump.
pub const PIPE: &str = "fr_pipe.";
/// How the name of a pipe ends.
pub const PIPE_ENDS: &str = ".pipe";
/// A dump that is larger is not fetched: one of 2000 collectives with their stacks has a few MiB.
pub const DUMP_LIMIT: u64 = 16 << 20;

/// Where the dumps are to lie, under its names of all versions.
pub const DUMP_PREFIX: [&str; 2] = ["TORCH_NCCL_DEBUG_INFO_TEMP_FILE", "TORCH_FR_DUMP_TEMP_FILE"];
/// Where the pipes are to lie: 2.3 and later.
pub const PIPE_PREFIX: &str = "TORCH_NCCL_DEBUG_INFO_PIPE_FILE";
/// How many collectives are recorded, under its names of all versions: before 2.7 none, unless it is set.
pub const BUFFER: [&str; 2] = ["TORCH_NCCL_TRACE_BUFFER_SIZE", "TORCH_FR_BUFFER_SIZE"];
/// Whether ranks that give up leave a dump, under its names of all versions.
pub const ON_TIMEOUT: [&str; 2] = ["TORCH_NCCL_DUMP_ON_TIMEOUT", "TORCH_FR_DUMP_ON_TIMEOUT"];
/// What later versions record without being asked.
pub const COLLECTIVES: &str = "2000";

/// What must be set for ranks that see the job's folder under this path.
pub fn variables(folder: &str) -> Vec<(&'static str, String)> {
    let mut all: Vec<(&'static str, String)> = Vec::new();
    all.extend(BUFFER.map(|name| (name, COLLECTIVES.to_owned())));
    all.extend(ON_TIMEOUT.map(|name| (name, "1".to_owned())));
    all.extend(DUMP_PREFIX.map(|name| (name, format!("{folder}/{DUMP}"))));
    all.push((PIPE_PREFIX, format!("{folder}/{PIPE}")));
    all
}

/// The dump of a rank.
pub fn dump(rank: u32) -> String {
    format!("{DUMP}{rank}")
}

/// What became of the request for dumps on one node.
pub fn request(node: &str) -> String {
    format!("fr_request.{node}.txt")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_version_finds_its_own_names() {
        let all = variables("/fsx/run/case/job");
        let value =
            |name: &str| all.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str());
        assert_eq!(value("TORCH_NCCL_TRACE_BUFFER_SIZE"), Some("2000"));
        assert_eq!(value("TORCH_FR_BUFFER_SIZE"), Some("2000"));
        assert_eq!(value("TORCH_NCCL_DUMP_ON_TIMEOUT"), Some("1"));
        assert_eq!(value("TORCH_NCCL_DEBUG_INFO_TEMP_FILE"), Some("/fsx/run/case/job/fr_trace."));
        assert_eq!(value("TORCH_FR_DUMP_TEMP_FILE"), Some("/fsx/run/case/job/fr_trace."));
        assert_eq!(value("TORCH_NCCL_DEBUG_INFO_PIPE_FILE"), Some("/fsx/run/case/job/fr_pipe."));
        assert_eq!((dump(11), request("p5-002")), ("fr_trace.11".into(), "fr_request.p5-002.txt".into()));
    }
}
