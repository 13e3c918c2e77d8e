//! What may stand between a name and its value: signs, words, types, tags, and what opens a list or a group.

use super::body::Body;
use super::commands::command;
use super::labels::{below, label};
use super::names::{is_placeholder, is_variable, value_field};
use super::shapes::{Found, MOST_GAP, blank_lines, count, is_encoded, quote};

/// The length of what parts a name from its value by less than a sign: an arrow, dots, a tab behind a variable, a few words of a
/// sentence, or the rest of a question for a password. `gap` stands behind the name, and `rest` behind that.
pub(super) fn loosely(name: &str, gap: &[u8], rest: &[u8]) -> Option<usize> {
    for arrow in [b"->".as_slice(), b"\xe2\x86\x92"] {
        if rest.starts_with(arrow) {
            return Some(arrow.len());
        }
    }
    if name.ends_with('-') && rest.starts_with(b">") {
        return Some(1);
    }
    let slashes = count(rest, |byte| byte == b'\\', 8);
    let is_tab = slashes > 0 && rest.get(slashes) == Some(&b't');
    if is_variable(name) && (gap.contains(&b'\t') || is_tab) {
        return Some(if is_tab { slashes + 1 } else { 0 });
    }
    if gap.is_empty() {
        return None;
    }
    // As Megatron lists its arguments: `wandb_api_key .......... X`.
    let dots = count(rest, |byte| byte == b'.', MOST_GAP);
    if dots >= 3 && rest.get(dots) == Some(&b' ') {
        return Some(dots);
    }
    let is = |words: &&&str| {
        rest.get(..words.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(words.as_bytes()))
    };
    if let Some(words) = SENTENCES.iter().find(is) {
        return Some(words.len());
    }
    if rest.get(..4)?.eq_ignore_ascii_case(b"for ") {
        let line = count(rest, |byte| !byte.is_ascii_control() && byte != b'\\', MOST_GAP);
        return rest[..line].windows(2).position(|two| two == b": ").map(|at| at + 2);
    }
    let in_word = |byte: u8| byte.is_ascii_graphic() && !b"\"'\\,;)".contains(&byte);
    let word = &rest[quote(rest).map_or(0, |(slashes, _)| slashes + 1)..];
    is_drawn(&word[..count(word, in_word, 128)]).then_some(0)
}

/// Whether a word is drawn from letters and digits: no language has such, and no name of an object.
fn is_drawn(word: &[u8]) -> bool {
    let changes = word.windows(2).filter(|two| two[0].is_ascii_digit() != two[1].is_ascii_digit()).count();
    word.len() >= 16 && changes >= 4 && is_encoded(word)
}

const SENTENCES: [&str; 9] =
    ["is set to ", "was set to ", "is now ", "set to ", "has value ", "is: ", "is ", "was ", "will be "];

/// The length of `=` or `:` as an address within an address writes it.
pub(super) fn escaped_separator(rest: &[u8]) -> usize {
    let known = [b"%3D".as_slice(), b"%3A", b"%253D", b"%253A"];
    let is = |known: &&&[u8]| rest.get(..known.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(known));
    known.iter().find(is).map_or(0, |known| known.len())
}

/// The length of a tag or an anchor of YAML before a value.
pub(super) fn tag(rest: &[u8]) -> usize {
    let mut at = 0;
    while matches!(rest.get(at), Some(b'!' | b'&')) {
        let word = count(&rest[at..], |byte| byte.is_ascii_graphic() && !b"\"'\\".contains(&byte), 40);
        let blanks = count(&rest[at + word..], |byte| byte == b' ', 8);
        if word < 2 || blanks == 0 || at > MOST_GAP {
            break;
        }
        at += word + blanks;
    }
    at
}

/// The length of what opens a group up to the value of its one field, `{"value": `; 0 where there is none.
pub(super) fn field(rest: &[u8], is_below: bool) -> usize {
    let mut at = 0;
    while matches!(rest.get(at), Some(b'{' | b'[' | b'(')) && at < MOST_GAP {
        at += 1;
        at += blank_lines(&rest[at..]);
    }
    if at == 0 && !is_below {
        return 0;
    }
    let marks = |at: usize| quote(&rest[at..]).map_or(0, |(slashes, _)| slashes + 1);
    at += marks(at);
    let name = value_field(&rest[at..]);
    at += name;
    at += marks(at);
    at += count(&rest[at..], |byte| byte == b' ', 4);
    if name == 0 || !matches!(rest.get(at), Some(b':' | b'=')) {
        return 0;
    }
    at += 1;
    at + count(&rest[at..], |byte| byte == b' ', 8)
}

/// The length of what opens a list of quoted values; 0 where there is none.
pub(super) fn opens_list(rest: &[u8]) -> usize {
    if rest.first() != Some(&b'[') {
        return 0;
    }
    let at = 1 + blank_lines(&rest[1..]);
    if quote(&rest[at..]).is_some() { at } else { 0 }
}

/// Whether the next text is what something is called: `name: NAME`, `"name": "NAME"`, `name="NAME"`.
pub(super) fn names_pair(before: &[u8]) -> bool {
    let ends = |text: &[u8], last: &[u8]| text.iter().rev().take_while(|byte| last.contains(byte)).count();
    let before = &before[..before.len() - ends(before, b"\"'\\ ")];
    let Some((b':' | b'=', before)) = before.split_last() else { return false };
    let before = &before[..before.len() - ends(before, b"\"'\\ ")];
    [b"name".as_slice(), b"Name", b"NAME", b"key", b"Key"].iter().any(|word| before.ends_with(word))
}

/// The length of `value:` behind such a name, with what stands between both.
pub(super) fn paired(rest: &[u8]) -> Option<usize> {
    let mut at = count(rest, |byte| byte == b',', 1);
    let line = at + blank_lines(&rest[at..]);
    let is_line = rest[at..line].iter().any(|byte| matches!(byte, b'\n' | b'\\'));
    at = line + if is_line { label(&rest[line..]) } else { 0 };
    at += blank_lines(&rest[at..]);
    at += quote(&rest[at..]).map_or(0, |(slashes, _)| slashes + 1);
    let word = rest.get(at..at + VALUE.len())?;
    if !word.eq_ignore_ascii_case(VALUE) {
        return None;
    }
    at += VALUE.len();
    at += quote(&rest[at..]).map_or(0, |(slashes, _)| slashes + 1);
    at += count(&rest[at..], |byte| byte == b' ', 4);
    matches!(rest.get(at), Some(b':' | b'=')).then_some(at + 1)
}

const VALUE: &[u8] = b"value";

/// The length of the sign of an assignment that adds, or that sets what is not set: `+=`, `?=`, `||=`.
pub(super) fn compound(rest: &[u8]) -> usize {
    let signs = [b"+=".as_slice(), b"?=", b"||=", b"??="];
    signs.iter().find(|sign| rest.starts_with(sign)).map_or(0, |sign| sign.len())
}

/// Whether a name is that of an element: `environ['NAME']`, `a[NAME]`.
pub(super) fn opens_subscript(before: &[u8]) -> bool {
    let mut before = before;
    while let [head @ .., b'"' | b'\'' | b'\\'] = before {
        before = head;
    }
    before.ends_with(b"[") || before.ends_with(b"[b") || before.ends_with(b"[u")
}

/// Words of which types of texts are made.
const TYPES: [&str; 21] = [
    "str",
    "string",
    "String",
    "bytes",
    "Bytes",
    "Optional",
    "Option",
    "Union",
    "None",
    "Final",
    "ClassVar",
    "Annotated",
    "SecretStr",
    "Secret",
    "Text",
    "Any",
    "typing",
    "null",
    "undefined",
    "static",
    "pydantic",
];

/// The length of a type behind a name's colon, and of the sign before a quoted value: `: Optional[str] = 'X'`.
pub(super) fn annotation(rest: &[u8]) -> usize {
    let (mut at, mut words) = (0, 0);
    while at < MOST_GAP {
        let word = count(&rest[at..], |byte| byte.is_ascii_alphanumeric(), 16);
        if word > 0 {
            if !TYPES.iter().any(|known| known.as_bytes() == &rest[at..at + word]) {
                return 0;
            }
            words += 1;
            at += word;
        } else if rest.get(at).is_some_and(|byte| b"[]|,.&'? ".contains(byte)) {
            at += 1;
        } else {
            break;
        }
    }
    if words == 0 || rest.get(at) != Some(&b'=') {
        return 0;
    }
    at += 1;
    at += count(&rest[at..], |byte| byte == b' ', 4);
    let is_quoted = quote(&rest[at + string_prefix(&rest[at..])..]).is_some();
    if is_quoted { at } else { 0 }
}

/// Whether a text is nothing but a type: what a name is declared to be.
pub(super) fn is_type(text: &[u8]) -> bool {
    const NUMBERS: [&str; 3] = ["int", "float", "bool"];
    let mut words = text.split(|byte| b"[]|.&'?".contains(byte)).filter(|word| !word.is_empty()).peekable();
    let is_one = |word: &[u8]| TYPES.iter().chain(&NUMBERS).any(|known| known.as_bytes() == word);
    words.peek().is_some() && words.all(is_one)
}

/// The length of the letters that say of which kind the text in quotation marks behind them is: `b'X'`, `$'X'`.
pub(super) fn string_prefix(rest: &[u8]) -> usize {
    let letters = count(rest, |byte| b"bBrRuUfF$@L".contains(&byte), 3);
    if letters < 3 && quote(&rest[letters..]).is_some() { letters } else { 0 }
}

/// The length of a quotation mark, or of three that open one text, and which mark closes it.
pub(super) fn opening(rest: &[u8]) -> Option<(usize, usize, u8)> {
    let (slashes, mark) = quote(rest)?;
    let one = slashes + 1;
    let is_same = |at: usize| rest.get(at..).and_then(quote) == Some((slashes, mark));
    Some((if is_same(one) && is_same(2 * one) { 3 * one } else { one }, slashes, mark))
}

/// The length of what opens a list of a shell, or a text in brackets: `=( X )`.
pub(super) fn opens_group(rest: &[u8]) -> usize {
    if rest.first() != Some(&b'(') {
        return 0;
    }
    let at = 1 + blank_lines(&rest[1..]);
    let is_on_line = at > 1 && !rest[1..at].contains(&b'\n');
    if quote(&rest[at..]).is_some() || is_on_line { at } else { 0 }
}

/// Whether the last word before `key`, or the group that it is a field of, makes it a secret one's name: `Secret access key: X`.
pub(super) fn is_named_key(before: &[u8]) -> bool {
    const WHOSE: [&str; 5] = ["API", "ACCESS", "SECRET", "ACCOUNT", "MASTER"];
    /// Services whose group of settings may have the key as a field: `{"wandb": {"key": "X"}}`.
    const SERVICES: [&str; 6] = ["wandb", "ngc", "openai", "anthropic", "huggingface", "mlflow"];
    if let Some(before) = before.strip_suffix(b" ")
        && WHOSE.iter().any(|whose| last_word(before).eq_ignore_ascii_case(whose.as_bytes()))
    {
        return true;
    }
    let mut above = before;
    while let [head @ .., b'\\', b'n'] | [head @ .., b'"' | b'\'' | b'\\' | b'{' | b' ' | b'\n'] = above {
        above = head;
    }
    let Some(above) = above.strip_suffix(b":") else { return false };
    let quotes = above.iter().rev().take_while(|byte| b"\"'\\".contains(byte)).count();
    let word = last_word(&above[..above.len() - quotes]);
    SERVICES.iter().any(|service| word.eq_ignore_ascii_case(service.as_bytes()))
}

fn last_word(before: &[u8]) -> &[u8] {
    let letters = before.iter().rev().take(12).take_while(|byte| byte.is_ascii_alphabetic()).count();
    &before[before.len() - letters..]
}

/// The password of a pair that a program logs in with: `auth=("me", "X")`, `HTTPBasicAuth("me", "X")`, `login(me, "X")`.
pub(super) fn login_pair(rest: &[u8]) -> Option<Found> {
    const ENDS: [&[u8]; 2] = [b"auth", b"login"];
    let in_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let mut at = count(rest, in_word, 32);
    let name = &rest[..at];
    let ends =
        |end: &&[u8]| name.len() >= end.len() && name[name.len() - end.len()..].eq_ignore_ascii_case(end);
    if !ENDS.iter().any(ends) {
        return None;
    }
    at += count(&rest[at..], |byte| matches!(byte, b' ' | b'='), 4);
    if rest.get(at) != Some(&b'(') {
        return None;
    }
    at += 1;
    at += blank_lines(&rest[at..]);
    at += match quote(&rest[at..]) {
        Some((slashes, mark)) => {
            let user = Body::Quoted { mark, slashes }.seen(&rest[at + slashes + 1..], 128);
            user.len() + 2 * (slashes + 1)
        }
        None => Some(count(&rest[at..], |byte| byte.is_ascii_alphanumeric() || b"_.".contains(&byte), 64))
            .filter(|length| *length > 0)?,
    };
    at += rest.get(at..).map_or(0, blank_lines);
    if rest.get(at) != Some(&b',') {
        return None;
    }
    at += 1;
    at += blank_lines(&rest[at..]);
    at += string_prefix(&rest[at..]);
    let (slashes, mark) = quote(&rest[at..])?;
    at += slashes + 1;
    let body = Body::Quoted { mark, slashes };
    let is_value = !is_placeholder(body.seen(&rest[at..], 64));
    is_value.then(|| Found { keep: at, skip: 0, body: Some(body), what: "a login".to_owned() })
}

/// The fields of a Secret of Kubernetes: those of `stringData`, and those of `data` beside `kind: Secret`.
pub(super) fn entry_of_secret(before: &[u8], rest: &[u8]) -> Option<Found> {
    let word = [b"stringData".as_slice(), b"data"].into_iter().find(|word| rest.starts_with(word))?;
    let mut at = word.len();
    at += quote(&rest[at..]).map_or(0, |(slashes, _)| slashes + 1);
    at += count(&rest[at..], |byte| byte == b' ', 4);
    if rest.get(at) != Some(&b':') {
        return None;
    }
    at += 1;
    at += count(&rest[at..], |byte| byte == b' ', 4);
    let body = match below(before, &rest[at..]) {
        Some(below) => {
            at += below.at;
            Body::Block { indent: below.indent, is_labelled: below.is_labelled }
        }
        // JSON goes on to the next brace, and YAML in this form to the end of its line.
        None if rest.get(at) == Some(&b'{') => {
            at += 1;
            let is_json = quote(&rest[at + blank_lines(&rest[at..])..]).is_some();
            if is_json { Body::Group } else { Body::Of(|byte| byte != b'}') }
        }
        None => return None,
    };
    if rest[at..].starts_with(b"[redacted") {
        return None;
    }
    let ahead = &rest[at..rest.len().min(SEES_KIND)];
    let is_kind = |text: &[u8]| text.starts_with(b"kind") && kind_is_secret(&text[4..]).is_some();
    let says = |text: &[u8], from: Option<usize>| {
        from.is_some_and(|from| kind_is_secret(&text[from + 4..]) == Some(true))
    };
    let kinds = |text: &[u8]| (0..text.len()).filter(|from| is_kind(&text[*from..])).collect::<Vec<_>>();
    let is_secret = word != b"data"
        || command(before).windows(PATCH.len()).any(|words| words == PATCH)
        || says(before, kinds(before).last().copied())
        || says(ahead, kinds(ahead).first().copied());
    is_secret.then(|| Found {
        keep: at,
        skip: 0,
        body: Some(body),
        what: "a Secret of Kubernetes".to_owned(),
    })
}

/// A command that is given the fields of a Secret alone.
const PATCH: &[u8] = b"patch secret";
/// So much is looked at to see of which kind an object is.
const SEES_KIND: usize = 1000;

/// Whether a kind is that of secrets, behind its name; none where no kind follows.
fn kind_is_secret(rest: &[u8]) -> Option<bool> {
    let mut at = quote(rest).map_or(0, |(slashes, _)| slashes + 1);
    if rest.get(at) != Some(&b':') {
        return None;
    }
    at += 1;
    at += count(&rest[at..], |byte| byte == b' ', 4);
    at += quote(&rest[at..]).map_or(0, |(slashes, _)| slashes + 1);
    let word = count(&rest[at..], |byte| byte.is_ascii_alphanumeric(), 16);
    Some(&rest[at..at + word] == b"Secret")
}
