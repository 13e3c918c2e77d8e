//! The archive that a `.deb` is: a few members one after the other, each with a header of sixty letters.

use std::io::{self, Read};

pub(super) const MAGIC: &[u8; 8] = b"!<arch>\n";
const HEADER: usize = 60;

/// Hands each member on by its name; what `take` does not read of it is passed over.
pub(super) fn members(
    mut from: impl Read,
    take: &mut dyn FnMut(&str, &mut dyn Read) -> Result<(), String>,
) -> Result<(), String> {
    let cut = |error: io::Error| format!("it is truncated or damaged ({error})");
    let mut magic = [0u8; MAGIC.len()];
    from.read_exact(&mut magic).map_err(cut)?;
    if &magic != MAGIC {
        return Err("it is not a .deb".to_owned());
    }
    loop {
        let mut header = Vec::with_capacity(HEADER);
        (&mut from).take(HEADER as u64).read_to_end(&mut header).map_err(cut)?;
        match header.len() {
            0 => return Ok(()),
            HEADER if header.ends_with(b"`\n") => {}
            _ => return Err("it is truncated or damaged (a header of a member)".to_owned()),
        }
        let text = |range: std::ops::Range<usize>| {
            String::from_utf8_lossy(header.get(range).unwrap_or_default()).trim().to_owned()
        };
        let size: u64 = text(48..58).parse().map_err(|_| "it is damaged (the size of a member)")?;
        let name = text(0..16);
        let mut member = (&mut from).take(size);
        take(name.trim_end_matches('/'), &mut member)?;
        io::copy(&mut member, &mut io::sink()).map_err(cut)?;
        if member.limit() > 0 {
            return Err(format!("it is truncated (in `{}`)", name.escape_debug()));
        }
        // Members begin at even places.
        if size % 2 == 1 {
            io::copy(&mut (&mut from).take(1), &mut io::sink()).map_err(cut)?;
        }
    }
}
