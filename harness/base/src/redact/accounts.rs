//! Numbers of accounts of AWS in what others read: an ARN has one, as a context of kubectl for EKS does, and so has an image of
//! ECR. They are no secrets. Artefacts of a run and commands on a terminal keep them, or these would not work; reports have a word
//! instead, and what leaves the site as a file has asterisks, so that nothing in it moves.

use super::stream::INSTEAD;
use std::io::{self, Read, Seek, SeekFrom};

/// Digits of such a number.
const DIGITS: usize = 12;
/// What stands for a digit in a file.
const MASK: u8 = b'*';
/// Before the number in an ARN: `arn:aws-us-gov:elasticfilesystem:us-gov-west-1:`, each colon as `%3A` at most.
const LONGEST_BEGIN: usize = 96;
/// Behind the number in an image: `.dkr.ecr`.
const LONGEST_END: usize = 8;
/// What is kept of a file before the bytes that are looked at.
const CONTEXT: usize = 128;
/// So many bytes at the end of a piece are decided with the next one.
const UNDECIDED: usize = DIGITS + LONGEST_END;
const CHUNK: usize = 64 << 10;

/// The text with `[redacted]` for each number of an account, and for each that is masked already.
pub fn mask_accounts(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some((from, to)) = next_number(bytes, at) {
        out.extend_from_slice(&bytes[at..from]);
        out.extend_from_slice(if is_account(bytes, from, to) { INSTEAD } else { &bytes[from..to] });
        at = to;
    }
    out.extend_from_slice(&bytes[at..]);
    String::from_utf8_lossy(&out).into_owned()
}

/// The bytes of a reader, with asterisks for each number of an account.
pub struct WithoutAccounts<R> {
    inner: R,
    window: Vec<u8>,
    given: usize,
    ready: usize,
    is_end: bool,
}

impl<R: Read> WithoutAccounts<R> {
    /// At the beginning of a file.
    pub fn new(inner: R) -> WithoutAccounts<R> {
        WithoutAccounts { inner, window: Vec::new(), given: 0, ready: 0, is_end: false }
    }

    fn refill(&mut self) -> io::Result<()> {
        self.window.drain(..self.ready.saturating_sub(CONTEXT));
        let from = self.ready.min(CONTEXT);
        (self.given, self.ready) = (from, from);
        let length = self.window.len();
        self.window.resize(length + CHUNK, 0);
        let read = self.inner.read(&mut self.window[length..]);
        self.window.truncate(length + read.as_ref().copied().unwrap_or_default());
        self.is_end = read? == 0;
        mask_in_place(&mut self.window, from, self.is_end);
        let decided =
            if self.is_end { self.window.len() } else { self.window.len().saturating_sub(UNDECIDED) };
        self.ready = from.max(decided);
        Ok(())
    }
}

impl<R: Read> Read for WithoutAccounts<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.given == self.ready && !self.is_end {
            self.refill()?;
        }
        let count = buffer.len().min(self.ready - self.given);
        buffer[..count].copy_from_slice(&self.window[self.given..self.given + count]);
        self.given += count;
        Ok(count)
    }
}

/// A part of a file as `WithoutAccounts` reads it: so many bytes from there, or fewer where it ends before.
pub fn part_without_accounts<R: Read + Seek>(file: &mut R, from: u64, most: u64) -> io::Result<Vec<u8>> {
    let before = from.min(CONTEXT as u64);
    file.seek(SeekFrom::Start(from - before))?;
    let wanted = before + most + UNDECIDED as u64;
    let mut window = Vec::new();
    file.by_ref().take(wanted).read_to_end(&mut window)?;
    let is_end = (window.len() as u64) < wanted;
    mask_in_place(&mut window, usize::from(from > before), is_end);
    window.truncate(usize::try_from(before + most).unwrap_or(usize::MAX));
    window.drain(..(before as usize).min(window.len()));
    Ok(window)
}

/// Masks the accounts from there on; what follows the last bytes is known where they are the end.
fn mask_in_place(bytes: &mut [u8], from: usize, is_end: bool) {
    let mut at = from.min(bytes.len());
    while let Some((begin, end)) = next_number(bytes, at) {
        let is_cut = begin > 0 && bytes[begin - 1].is_ascii_digit();
        let is_complete = is_end || end + LONGEST_END <= bytes.len();
        if !is_cut && is_complete && is_account(bytes, begin, end) {
            bytes[begin..end].fill(MASK);
        }
        at = end;
    }
}

/// Where the next digits, or what stands for them, begin and end.
fn next_number(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    let from = at + bytes[at..].iter().position(|byte| byte.is_ascii_digit() || *byte == MASK)?;
    let is_masked = bytes[from] == MASK;
    let goes_on = |byte: &&u8| if is_masked { **byte == MASK } else { byte.is_ascii_digit() };
    Some((from, from + bytes[from..].iter().take_while(goes_on).count()))
}

fn is_account(bytes: &[u8], from: usize, to: usize) -> bool {
    to - from == DIGITS && (ends_arn(&bytes[..from]) || begins_registry(&bytes[to..]))
}

/// `arn:PARTITION:SERVICE:REGION:`; colons may be those of a URL.
fn ends_arn(before: &[u8]) -> bool {
    let begin = &before[before.len().saturating_sub(LONGEST_BEGIN)..];
    let begin = String::from_utf8_lossy(begin).to_ascii_lowercase().replace("%3a", ":");
    let mut parts = begin.rsplit(':');
    let mut next = || parts.next().unwrap_or_default();
    let [last, region, service, partition, arn] = [next(), next(), next(), next(), next()];
    let is_name = |part: &str| part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    last.is_empty()
        && is_name(region)
        && is_name(service)
        && partition.starts_with("aws")
        && is_name(partition)
        && arn.ends_with("arn")
}

/// `.dkr.ecr.REGION.amazonaws.com`, or the newer name of the same.
fn begins_registry(rest: &[u8]) -> bool {
    rest.starts_with(b".dkr.ecr") || rest.starts_with(b".dkr-ecr")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_is_masked_in_arns_and_images_and_the_rest_stays() {
        for (text, masked) in [
            (
                "kubectl --context=arn:aws:eks:us-west-2:123456789012:cluster/train --namespace=bench get pods",
                "kubectl --context=arn:aws:eks:us-west-2:[redacted]:cluster/train --namespace=bench get pods",
            ),
            (
                "User \"arn:aws:sts::123456789012:assumed-role/ops/jo\" cannot list",
                "User \"arn:aws:sts::[redacted]:assumed-role/ops/jo\" cannot list",
            ),
            ("arn:aws-us-gov:iam::123456789012:role/x", "arn:aws-us-gov:iam::[redacted]:role/x"),
            (
                "ARN%3Aaws%3Aeks%3Aus-east-1%3A123456789012%3Acluster",
                "ARN%3Aaws%3Aeks%3Aus-east-1%3A[redacted]%3Acluster",
            ),
            (
                "é 123456789012.dkr.ecr.us-west-2.amazonaws.com/nccl:1, 123456789012.dkr-ecr.us-west-2.on.aws/a",
                "é [redacted].dkr.ecr.us-west-2.amazonaws.com/nccl:1, [redacted].dkr-ecr.us-west-2.on.aws/a",
            ),
        ] {
            assert_eq!(mask_accounts(text), masked);
            assert_eq!(mask_accounts(masked), masked);
        }
    }

    #[test]
    fn other_numbers_of_twelve_digits_stay() {
        for text in [
            "",
            "123456789012 bytes of 123456789012",
            "arn:aws:s3:::acme/123456789012",
            "arn:aws:eks:us-west-2:1234567890123:cluster/x",
            "barn:awe:eks:us-west-2:123456789012",
            "warm:aws:1:2:123456789012",
            "10:20:30:123456789012.dkr",
        ] {
            assert_eq!(mask_accounts(text), text);
        }
    }

    const TEXT: &str = "x\n\"arn:aws:eks:us-west-2:123456789012:cluster/a\" 123456789012 arn:aws:eks:us-west-2:1234567890123:cluster/x \
                        é123456789012.dkr.ecr.us-west-2.amazonaws.com/nccl:1 arn:aws:iam::999999999999";
    const MASKED: &str = "x\n\"arn:aws:eks:us-west-2:************:cluster/a\" 123456789012 arn:aws:eks:us-west-2:1234567890123:cluster/x \
                          é************.dkr.ecr.us-west-2.amazonaws.com/nccl:1 arn:aws:iam::************";

    /// Gives so many bytes at a time.
    struct Pieces<'a>(&'a [u8], usize);

    impl Read for Pieces<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let most = self.1.min(buffer.len());
            self.0.read(&mut buffer[..most])
        }
    }

    #[test]
    fn a_file_keeps_its_length_however_it_is_read() {
        for piece in [1, 2, 7, 19, 1000] {
            let mut masked = String::new();
            WithoutAccounts::new(Pieces(TEXT.as_bytes(), piece)).read_to_string(&mut masked).expect("read");
            assert_eq!(masked, MASKED, "{piece}");
        }
        let mut file = io::Cursor::new(TEXT.as_bytes());
        for most in [1, 5, 64, 1000] {
            let mut all = Vec::new();
            loop {
                let part = part_without_accounts(&mut file, all.len() as u64, most).expect("read");
                if part.is_empty() {
                    break;
                }
                all.extend_from_slice(&part);
            }
            assert_eq!(String::from_utf8_lossy(&all), MASKED, "{most}");
        }
        assert_eq!(mask_accounts(MASKED), mask_accounts(TEXT), "a page of a bundle is that of its run");
        let large = [vec![b'1'; 3 * CHUNK], MASKED.as_bytes().to_vec(), vec![b'*'; CHUNK]].concat();
        let mut same = Vec::new();
        WithoutAccounts::new(large.as_slice()).read_to_end(&mut same).expect("read");
        assert!(same == large);
    }

    #[test]
    fn a_text_of_numbers_alone_costs_no_more_than_its_length() {
        let text = "123456789012:".repeat(100_000);
        assert_eq!(mask_accounts(&text), text);
    }
}
