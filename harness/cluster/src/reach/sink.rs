//! Where a fetched file goes, chunk by chunk, so that a file of any size needs little memory.

use super::ReachError;
use std::io::{self, Read};

/// How much of a file is held at once.
pub(crate) const CHUNK: usize = 256 << 10;

/// Receives one file at a time.
pub trait Sink {
    /// Drops what came: the file comes from its beginning. Called before the first chunk, too.
    fn restart(&mut self) -> io::Result<()>;

    /// Takes what follows in the file.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;
}

/// A file that is known to be small.
impl Sink for Vec<u8> {
    fn restart(&mut self) -> io::Result<()> {
        self.clear();
        Ok(())
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.extend_from_slice(bytes);
        Ok(())
    }
}

/// A sink that fails says nothing about the host.
pub(crate) fn unwritten(error: io::Error) -> ReachError {
    ReachError::Unwritten { why: error.to_string() }
}

/// All of a file of this machine.
pub(crate) fn pour(
    from: &mut dyn Read,
    sink: &mut dyn Sink,
    failed: impl Fn(io::Error) -> ReachError,
) -> Result<u64, ReachError> {
    let mut chunk = vec![0; CHUNK];
    let mut bytes = 0;
    sink.restart().map_err(unwritten)?;
    loop {
        match from.read(&mut chunk) {
            Ok(0) => return Ok(bytes),
            Ok(read) => {
                sink.append(&chunk[..read]).map_err(unwritten)?;
                bytes += read as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(failed(error)),
        }
    }
}
