//! How far a secret goes, once it is known to have begun: byte by byte, so that one of any length needs no memory.
//! Where one begins is told in `shapes.rs`.

#[derive(Debug, Clone, Copy)]
pub enum Body {
    /// All characters of a kind.
    Of(fn(u8) -> bool),
    /// To the quotation mark behind as many backslashes as the one that opened it.
    Quoted { mark: u8, slashes: usize },
    /// To the end of the line.
    Line,
    /// A word of a line; in a list or a table what follows it stays.
    Plain { in_list: bool },
    /// The lines of a private key, to the one that ends it.
    Key { ending: bool },
}

const KEY_END: &[u8] = b"-----END ";

impl Body {
    /// How many of the next bytes belong to it; none where it has ended. `rest` is long enough to see that.
    pub fn eats(&mut self, rest: &[u8]) -> usize {
        let Some(first) = rest.first().copied() else { return 0 };
        let has_ended = match self {
            Body::Key { .. } => return self.eats_key(rest),
            _ if first.is_ascii_control() && first != b'\t' => true,
            Body::Of(class) => !class(first),
            Body::Quoted { mark, slashes } => return quoted(rest, *mark, *slashes),
            Body::Line => false,
            Body::Plain { in_list } => {
                first.is_ascii_whitespace()
                    || b"\"'`\\<>&".contains(&first)
                    || (*in_list && b",;)]}".contains(&first))
            }
        };
        usize::from(!has_ended)
    }

    /// What belongs to it of the next bytes, as far as `most`.
    pub fn seen<'a>(&self, rest: &'a [u8], most: usize) -> &'a [u8] {
        let mut body = *self;
        let mut end = 0;
        while end < most {
            match body.eats(&rest[end..]) {
                0 => break,
                more => end += more,
            }
        }
        &rest[..end]
    }

    fn eats_key(&mut self, rest: &[u8]) -> usize {
        let Body::Key { ending } = self else { return 0 };
        let in_line = |byte: u8| byte.is_ascii_uppercase() || byte == b' ';
        match (*ending, rest) {
            (true, [b'-', b'-', b'-', b'-', b'-', ..]) => {
                // Only these five are left of it.
                *self = Body::Of(|byte| byte == b'-');
                5
            }
            (true, [first, ..]) => usize::from(in_line(*first)),
            (false, _) if rest.starts_with(KEY_END) => {
                *ending = true;
                KEY_END.len()
            }
            // A line's end in an escaped text.
            (false, [b'\\', b'n' | b'r' | b't' | b'\\', ..]) => 2,
            (false, [first, ..]) => {
                usize::from(first.is_ascii_alphanumeric() || b"+/=:,- \n\r\t".contains(first))
            }
            (_, []) => 0,
        }
    }
}

/// Each level of quotation doubles what stands before a mark, so that the number of backslashes tells to which a mark
/// belongs.
fn quoted(rest: &[u8], mark: u8, slashes: usize) -> usize {
    const MOST: usize = 64;
    let run = rest.iter().take(MOST).take_while(|byte| **byte == b'\\').count();
    if run == MOST {
        return MOST / 2;
    }
    if rest.get(run) != Some(&mark) {
        return run.max(1);
    }
    let inner = run.saturating_sub(slashes);
    let closes = run >= slashes && inner.is_multiple_of(2 * (slashes + 1));
    // A shell goes on where a mark by itself stands between two texts.
    let again = rest[run + 1..].iter().take(MOST).take_while(|byte| **byte == b'\\').count();
    let goes_on = mark == b'\'' && again > 0 && rest[run + 1 + again..].starts_with(b"\'\'");
    match (closes, goes_on) {
        (true, true) => run + 1 + again + 2,
        (true, false) => inner,
        (false, _) => run + usize::from(run > slashes),
    }
}
