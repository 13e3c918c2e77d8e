//! The tags of `mpirun --tag-output` and `--timestamp-output`. Open MPI writes its tag before each piece that it reads,
//! and programs that flush within a line get it in the middle of their lines, even within a number.

use super::stamps;
use std::borrow::Cow;

const ENDS: [&str; 3] = ["<stdout>:", "<stderr>:", "<stddiag>:"];
/// Longer names of jobs are none.
const LONGEST: usize = 128;

/// A tag in a text.
pub(super) struct Tag<'a> {
    pub from: usize,
    pub to: usize,
    /// `1,0`, or with the name of the job; empty where mpirun writes the time alone.
    pub who: &'a str,
    /// Its rank; empty where there is none.
    pub rank: &'a str,
}

/// The first tag at or behind a place.
pub(super) fn find(text: &str, from: usize) -> Option<Tag<'_>> {
    let found = text.get(from..)?.match_indices("<std");
    found.map(|(at, _)| from + at).find_map(|at| tag(text, at))
}

fn tag(text: &str, at: usize) -> Option<Tag<'_>> {
    let (front, rest) = text.split_at_checked(at)?;
    let end = ENDS.iter().find(|end| rest.starts_with(**end))?;
    let who = front.strip_suffix(']').and_then(|front| {
        // No further back than a tag is long: a line may have thousands of ends of tags.
        let begin = front.as_bytes().iter().rev().take(LONGEST + 1).position(|byte| *byte == b'[')?;
        front.get(front.len() - begin..)
    });
    let who =
        who.filter(|who| rank(who).is_some() && who.len() <= LONGEST && !who.contains(char::is_whitespace));
    let bare = who.map_or(front, |who| &front[..front.len() - who.len() - 2]);
    let stamped = stamps::without_ctime(bare);
    (who.is_some() || stamped.is_some()).then_some(Tag {
        from: stamped.unwrap_or(bare).len(),
        to: at + end.len(),
        who: who.unwrap_or(""),
        rank: who.and_then(rank).unwrap_or(""),
    })
}

/// Of `1,3` the last number; SageMaker's mpirun writes `1,mpirank:3,algo-2`, and Horovod's launcher `3`
/// (<https://github.com/horovod/horovod/issues/2907>).
fn rank(who: &str) -> Option<&str> {
    let is_number = |text: &&str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let last = who.rsplit_once(',').map_or(who, |(_, last)| last);
    let named = who.split(',').find_map(|part| part.strip_prefix("mpirank:"));
    named.or(Some(last)).filter(is_number)
}

pub(in super::super) fn without_tags(text: &str) -> Cow<'_, str> {
    let Some(mut next) = find(text, 0) else { return Cow::Borrowed(text) };
    let mut clean = String::with_capacity(text.len());
    let mut from = 0;
    loop {
        clean.push_str(text.get(from..next.from).unwrap_or(""));
        from = next.to;
        match find(text, from) {
            Some(tag) => next = tag,
            None => break,
        }
    }
    clean.push_str(text.get(from..).unwrap_or(""));
    Cow::Owned(clean)
}
