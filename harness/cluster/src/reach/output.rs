//! What a command prints, with a bound on memory: a node can make one print for ever.

use super::ReachError;
use std::io;
use tokio::io::{AsyncRead, AsyncReadExt};

/// The error of a command that printed more than so many bytes.
pub(super) fn too_long(what: String, limit: usize) -> ReachError {
    let why = format!("its output exceeds {} MiB; larger output must go to a file", limit >> 20);
    ReachError::Failed { what, why }
}

/// All of a stream, or nothing where it is longer than the limit.
pub(super) async fn head(mut stream: impl AsyncRead + Unpin, limit: usize) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    let mut chunk = vec![0; 16 << 10];
    loop {
        match stream.read(&mut chunk).await? {
            0 => return Ok(Some(bytes)),
            n if bytes.len() + n > limit => return Ok(None),
            n => bytes.extend_from_slice(&chunk[..n]),
        }
    }
}

/// The end of a stream, which says at its head how much it leaves out. One that breaks off has been what it was.
pub(super) async fn tail(mut stream: impl AsyncRead + Unpin, limit: usize) -> Vec<u8> {
    let mut bytes: Vec<u8> = Vec::new();
    let mut chunk = vec![0; 16 << 10];
    let mut left_out = 0;
    while let Ok(n @ 1..) = stream.read(&mut chunk).await {
        bytes.extend_from_slice(&chunk[..n]);
        if bytes.len() > 2 * limit {
            let over = bytes.len() - limit;
            bytes.drain(..over);
            left_out += over;
        }
    }
    if bytes.len() > limit {
        let over = bytes.len() - limit;
        bytes.drain(..over);
        left_out += over;
    }
    match left_out {
        0 => bytes,
        n => [format!("[{n} bytes before this are left out]\n").as_bytes(), &bytes].concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STDERR_LIMIT: usize = 64 << 10;

    #[tokio::test]
    async fn output_beyond_its_limit_is_no_output_and_never_a_part_of_it() {
        assert_eq!(head(&b"12345"[..], 5).await.expect("read"), Some(b"12345".to_vec()));
        assert_eq!(head(&b"123456"[..], 5).await.expect("read"), None);
    }

    #[tokio::test]
    async fn the_end_of_stderr_is_kept_and_says_what_it_leaves_out() {
        let short = vec![b'x'; STDERR_LIMIT];
        assert_eq!(tail(&short[..], STDERR_LIMIT).await, short);
        let long: Vec<u8> = (0..STDERR_LIMIT * 5 + 3).map(|n| b'a' + (n % 26) as u8).collect();
        let kept = tail(&long[..], STDERR_LIMIT).await;
        let (first, rest) = kept.split_at(kept.iter().position(|byte| *byte == b'\n').expect("a line") + 1);
        assert_eq!(
            first,
            format!("[{} bytes before this are left out]\n", long.len() - STDERR_LIMIT).as_bytes()
        );
        assert_eq!(rest, &long[long.len() - STDERR_LIMIT..]);
    }
}
