//! Files that are text to a person and bytes to a reader: packed, or in an encoding of 16 bits. They are refused by
//! name, with what to do.

const NAMES: [(&[u8], &str); 6] = [
    (b"\x28\xb5\x2f\xfd", "a zstd file; unpack it first"),
    (b"\xfd7zXZ\0", "an xz file; unpack it first"),
    (b"BZh", "a bzip2 file; unpack it first"),
    (b"\xff\xfe", "UTF-16 text; convert it first, with `iconv -f UTF-16 -t UTF-8`"),
    (b"\xfe\xff", "UTF-16 text; convert it first, with `iconv -f UTF-16 -t UTF-8`"),
    (
        b"version https://git-lfs.github.com/",
        "a pointer of Git LFS; fetch the file itself, with `git lfs pull`",
    ),
];

/// Why a file that begins so is not read.
pub fn refusal(head: &[u8]) -> Option<&'static str> {
    NAMES.iter().find(|(magic, _)| head.starts_with(magic)).map(|(_, why)| *why)
}
