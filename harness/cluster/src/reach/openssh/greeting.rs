//! What a host says first where sftp should begin: the protocol, or the output of a forced command or a login shell.

use crate::reach::shell_text::first_line;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, ReadBuf};

/// The first bytes that came.
pub(super) struct Greeting(Arc<Mutex<Vec<u8>>>);

/// Remembers them, and hands everything on as it is.
pub(super) struct Greeted<R> {
    of: R,
    first: Arc<Mutex<Vec<u8>>>,
}

/// So much is remembered.
const FIRST: usize = 1024;
/// The longest answer that the protocol begins with: longer is text, taken for a length.
const LONGEST: u32 = 1 << 20;

impl Greeting {
    pub(super) fn new<R>(stream: R) -> (Greeted<R>, Greeting) {
        let first = Arc::new(Mutex::new(Vec::new()));
        (Greeted { of: stream, first: first.clone() }, Greeting(first))
    }

    /// The first line of what came, where that is not the protocol.
    pub(super) fn line(&self) -> Option<String> {
        let first = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (!is_protocol(&first)).then(|| first_line(&first)).flatten()
    }
}

/// It begins with the length of its first packet.
fn is_protocol(first: &[u8]) -> bool {
    match first.first_chunk() {
        Some(length) => u32::from_be_bytes(*length) <= LONGEST,
        None => false,
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Greeted<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.of).poll_read(context, buffer))?;
        let mut first = self.first.lock().unwrap_or_else(PoisonError::into_inner);
        let room = FIRST.saturating_sub(first.len());
        if room > 0 {
            let came = &buffer.filled()[before..];
            first.extend_from_slice(&came[..came.len().min(room)]);
            // What is no protocol is not waited for until it has the length that its first letters spell.
            if first.len() >= 4 && !is_protocol(&first) {
                buffer.set_filled(before);
                return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, "this is not sftp")));
            }
        }
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncReadExt;

    async fn read(bytes: &[u8]) -> (io::Result<Vec<u8>>, Option<String>) {
        let (mut stream, greeting) = Greeting::new(bytes);
        let mut all = Vec::new();
        let result = stream.read_to_end(&mut all).await.map(|_| all);
        (result, greeting.line())
    }

    #[tokio::test]
    async fn the_words_of_a_forced_command_are_not_the_protocol() {
        let (result, line) = read(b"only sftp here\r\nbye\n").await;
        assert!(result.is_err());
        assert_eq!(line.as_deref(), Some("only sftp here"));
        assert_eq!(read(b"no").await.1.as_deref(), Some("no"));
        assert_eq!(read(b"").await.1, None);
    }

    #[tokio::test]
    async fn the_protocol_is_handed_on_as_it_is() {
        let version = [&[0, 0, 0, 5, 2, 0, 0, 0, 3][..], &[b'x'; 5000]].concat();
        let (result, line) = read(&version).await;
        assert_eq!((result.expect("read"), line), (version, None));
    }
}
