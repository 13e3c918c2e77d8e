//! Passwords that are an argument of a command by their place alone: `mc alias set NAME URL KEY X`, `rabbitmqctl add_user
//! me X`. A new one is a row of `COMMANDS`.

use super::body::Body;
use super::commands::{blanks, word};
use super::decoded::continued_line;
use super::names::is_placeholder;
use super::shapes::{Found, LOOKS_AHEAD, may_begin, quote};

/// Programs in their order, and the arguments up to the password. `*`: any word; `a*` and `*a`: one that begins or ends
/// so; `...`: any words; `--a`: a flag that must stand there, while others may stand anywhere. The password is `X`; `=X`,
/// `:X` and `/X` are what stands behind that sign; `'X'` must be quoted, `X\r` ends a line; behind `X+` more of them
/// follow.
const COMMANDS: &[(&str, &str)] = &[
    ("ConvertTo-SecureString", "X"),
    ("EAP", "'X'"),
    ("IDENTIFIED", "BY 'X'"),
    ("IDENTIFIED", "WITH * BY 'X'"),
    ("PASSWORD", "'X'"),
    ("PSK", "'X'"),
    ("SMCIPMITool", "* * X"),
    ("addauth", "digest :X"),
    ("ansible-vault", "encrypt_string X"),
    ("b2", "account authorize * X"),
    ("b2", "authorize-account * X"),
    ("bindpw", "X"),
    ("bw", "login * X"),
    ("bw", "unlock X"),
    ("cargo", "login X"),
    ("ceph", "config-key put * X"),
    ("ceph", "config-key set * X"),
    ("ceph", "dashboard ac-user-create * X"),
    ("ceph", "dashboard ac-user-set-password * X"),
    ("cf", "auth * X"),
    ("circleci", "setup X"),
    ("cloudflared", "service install X"),
    ("com2sec", "* * X"),
    ("composer", "config github-oauth.* X"),
    ("composer", "config gitlab-token.* X"),
    ("composer", "config http-basic.* * X"),
    ("conda", "token set X"),
    ("createUser", "* * X+"),
    ("dvc", "remote modify * password X"),
    ("dvc", "remote modify * secret_access_key X"),
    ("ejabberdctl", "change_password * * X"),
    ("ejabberdctl", "register * * X"),
    ("enable", "password 7 X"),
    ("enable", "secret 0 X"),
    ("enable", "secret 5 X"),
    ("enable", "secret 9 X"),
    ("etcdctl", "user add :X"),
    ("expdp", "/X"),
    ("fly", "secrets set =X+"),
    ("flyctl", "secrets set =X+"),
    ("gcloud", "auth activate-refresh-token * X"),
    ("git", "config *.password X"),
    ("glab", "variable set * X"),
    ("grafana", "cli admin reset-admin-password X"),
    ("grafana-cli", "admin reset-admin-password X"),
    ("impdp", "/X"),
    ("incominguser", "* X"),
    ("ipmicfg", "-user add * * X"),
    ("ipmicfg", "-user setpwd * X"),
    ("ipmitool", "user set password * X"),
    ("ipmitool", "user test * * X"),
    ("maas", "login * * X"),
    ("masterauth", "X"),
    ("mc", "admin user add * * X"),
    ("mc", "alias set * * * X"),
    ("mc", "config host add * * * X"),
    ("mcli", "admin user add * * X"),
    ("mcli", "alias set * * * X"),
    ("mkpasswd", "X"),
    ("mysqladmin", "password X"),
    ("neo4j-admin", "dbms set-initial-password X"),
    ("neo4j-admin", "set-initial-password X"),
    ("net", "user * X+"),
    ("ngc", "config set apikey X"),
    ("ngrok", "authtoken X"),
    ("ngrok", "config add-authtoken X"),
    ("nmcli", "... *psk X"),
    ("nmcli", "... password X"),
    ("npm", "config set *_authToken X"),
    ("npm", "config set *_password X"),
    ("nuget", "setapikey X"),
    ("nv", "set ... *password X"),
    ("openssl", "passwd X"),
    ("outgoinguser", "* X"),
    ("pdftk", "... input_pw X"),
    ("pdftk", "... owner_pw X"),
    ("pdftk", "... user_pw X"),
    ("poetry", "config http-basic.* * X"),
    ("poetry", "config pypi-token.* X"),
    ("pro", "attach X"),
    ("prosodyctl", "register * * X"),
    ("pulumi", "config set --secret * X"),
    ("qpdf", "... --encrypt X+"),
    ("rabbitmqctl", "add_user * X"),
    ("rabbitmqctl", "authenticate_user * X"),
    ("rabbitmqctl", "change_password * X"),
    ("racadm", "... *Password X"),
    ("radius-server", "host ... key X+"),
    ("radius-server", "key X+"),
    ("radtest", "* X+"),
    ("rclone", "config ... pass X"),
    ("rclone", "config ... secret_access_key X"),
    ("rclone", "config password * * X"),
    ("rclone", "obscure X"),
    ("redis-cli", "AUTH X+"),
    ("redis-cli", "CONFIG SET requirepass X"),
    ("redis-cli", "config set requirepass X"),
    ("requirepass", "X"),
    ("rocommunity", "X"),
    ("rootpw", "X"),
    ("rwcommunity", "X"),
    ("samba-tool", "user add * X"),
    ("samba-tool", "user create * X"),
    ("send", "X\\r"),
    ("smcipmitool", "* * X"),
    ("snmp-server", "community X"),
    ("snyk", "auth X"),
    ("sqlldr", "/X"),
    ("sqlplus", "/X"),
    ("tacacs-server", "host ... key X+"),
    ("tacacs-server", "key X+"),
    ("ua", "attach X"),
    ("username", "... password 0 X"),
    ("username", "... password 7 X"),
    ("username", "... secret 0 X"),
    ("username", "... secret 5 X"),
    ("username", "... secret 9 X"),
    ("username", "... secret sha512 X"),
    ("vastai", "set api-key X"),
    ("vault", "kv patch * =X+"),
    ("vault", "kv put * =X+"),
    ("vault", "operator rekey X"),
    ("vault", "operator unseal X"),
    ("vault", "token lookup X"),
    ("vault", "token renew X"),
    ("vault", "token revoke X"),
    ("vault", "unwrap X"),
    ("vault", "write secret/* =X+"),
    ("virsh", "secret-set-value * X"),
    ("weka", "user add * * X"),
    ("weka", "user login * X"),
    ("wpa_passphrase", "* X"),
    ("yarn", "config set npmAuthToken X"),
];
const LONGEST_PROGRAM: usize = 24;
/// Of a command, up to its password.
const MOST_OF_COMMAND: usize = LOOKS_AHEAD / 2;
/// So much of a word is looked at.
const MOST_OF_WORD: usize = 128;
/// Commands behind which another one may stand.
const CALLERS: [&[u8]; 12] = [
    b"sudo",
    b"exec",
    b"srun",
    b"time",
    b"env",
    b"nohup",
    b"then",
    b"do",
    b"pwsh",
    // As bash reports what a signal ended.
    b"Killed",
    b"Terminated",
    b"Aborted",
];

/// A password further on in the command whose program begins at the first byte of `rest`; the bytes up to it are no part
/// of it, and may hold other secrets.
pub(super) fn find(before: &[u8], rest: &[u8]) -> Option<Found> {
    if !may_begin(before, *rest.first()?) || !rest[0].is_ascii_alphabetic() {
        return None;
    }
    let in_program = |byte: &&u8| byte.is_ascii_alphanumeric() || b"-_".contains(byte);
    let length = rest.iter().take(LONGEST_PROGRAM + 1).take_while(in_program).count();
    let program = &rest[..length];
    let from = COMMANDS.partition_point(|(name, _)| name.as_bytes() < program);
    let mut rows = COMMANDS[from..].iter().take_while(|(name, _)| name.as_bytes() == program).peekable();
    rows.peek()?;
    // The end of a longer name.
    if before.last().is_some_and(|last| b"-.@".contains(last)) {
        return None;
    }
    let command = &rest[..rest.len().min(MOST_OF_COMMAND)];
    rows.find_map(|(name, pattern)| {
        if may_be_prose(name, pattern) && !begins_command(before) {
            return None;
        }
        let is_listed = before.last().is_some_and(|last| b"\"'".contains(last));
        let (keep, body) = password(command, length, pattern, is_listed)?;
        Some(Found { keep, skip: 0, body: Some(body), what: format!("{name} ...") })
    })
}

/// Whether a row may be a sentence: it has no word but its program, or that is an everyday word.
fn may_be_prose(name: &str, pattern: &str) -> bool {
    let mut pieces = pattern.split(' ');
    let is_any = |piece: &str| piece == "*" || (piece.contains('X') && piece != "'X'");
    matches!(name, "net" | "pro" | "ua") || pieces.all(is_any)
}

/// Whether a command may begin behind these bytes: at the beginning of a line, behind a prompt, a path or a caller.
pub(super) fn begins_command(before: &[u8]) -> bool {
    let trimmed = before.trim_ascii_end();
    if trimmed.is_empty() || before.ends_with(b"\n") || before.ends_with(b"\\n") {
        return true;
    }
    if trimmed.last().is_some_and(|last| b"\0;|&(){}`\"'$#>+:-=/[]".contains(last)) {
        return true;
    }
    let last = trimmed.rsplit(|byte| byte.is_ascii_whitespace()).next().unwrap_or_default();
    last.contains(&b'=') || CALLERS.iter().any(|caller| last.ends_with(caller))
}

/// The length of what parts two arguments, as a shell and as a list writes it. `is_quoted`: a mark may stand before it.
fn gap(rest: &[u8], is_quoted: bool) -> Option<usize> {
    let mark = if is_quoted { quote(rest).map_or(0, |(slashes, _)| slashes + 1) } else { 0 };
    let comma = usize::from(mark > 0 && rest.get(mark) == Some(&b','));
    let mut at = mark + comma;
    let blank = blanks(rest, at);
    at += blank;
    at += continued_line(rest.get(at..)?);
    at += blanks(rest, at);
    (blank > 0 || comma > 0).then_some(at)
}

/// Where the password of a command begins, and how far it goes. `at` is the end of the program's name.
fn password(command: &[u8], mut at: usize, pattern: &str, is_listed: bool) -> Option<(usize, Body)> {
    let mut pieces = pattern.split(' ').peekable();
    let (mut is_open, mut is_sought) = (is_listed, false);
    let (mut has_flag, mut is_behind_flag) = (false, false);
    loop {
        if pieces.next_if_eq(&"...").is_some() {
            is_sought = true;
        }
        let piece = *pieces.peek()?;
        at += gap(command.get(at..)?, is_open)?;
        let (body, opens) = word(command.get(at..)?);
        let begin = at + opens;
        let seen = body.seen(command.get(begin..)?, MOST_OF_WORD);
        let first = *seen.first()?;
        if b";|#".contains(&first) {
            return None;
        }
        is_open = is_listed || opens > 0;
        at = begin + seen.len();
        let is_match = matches(piece, seen);
        if first == b'-' && !is_match {
            has_flag |= seen != b"--";
            is_behind_flag = seen != b"--" && !seen.contains(&b'=');
            continue;
        }
        if piece.contains('X') && is_behind_flag && is_file(seen) {
            if seen.ends_with(b";") {
                return None;
            }
            is_behind_flag = false;
            continue;
        }
        if piece.contains('X') {
            let keep = begin + value_within(piece, seen, opens > 0)?;
            // Flags may have arguments, and then this is an argument before the password.
            let is_more = has_flag || piece.ends_with('+');
            return Some((keep, if is_more { Body::Header } else { body }));
        }
        if seen.ends_with(b";") {
            return None;
        }
        if is_match {
            pieces.next();
            // What stands before a word of the command's own moves nothing behind it.
            has_flag &= piece == "*";
            is_sought = false;
        } else if !is_behind_flag && !is_sought {
            return None;
        }
        is_behind_flag = false;
    }
}

/// Whether a piece of a pattern stands for a word that is no password.
fn matches(piece: &str, seen: &[u8]) -> bool {
    match (piece.strip_prefix('*'), piece.strip_suffix('*')) {
        _ if piece.contains('X') => false,
        _ if piece == "*" => !seen.starts_with(b"-"),
        (Some(end), _) => seen.ends_with(end.as_bytes()),
        (_, Some(begin)) => seen.starts_with(begin.as_bytes()),
        _ => seen == piece.as_bytes(),
    }
}

/// Whether what a flag is given is the path of a file, and no password.
fn is_file(seen: &[u8]) -> bool {
    let in_path = |byte: &u8| byte.is_ascii_lowercase() || b"/._-;".contains(byte);
    seen.starts_with(b"/") && seen[1..].contains(&b'/') && seen.iter().all(in_path)
}

/// Where in a word its password begins, where it has one.
fn value_within(piece: &str, seen: &[u8], is_quoted: bool) -> Option<usize> {
    let sign = piece.bytes().next().filter(|sign| b"=:/".contains(sign));
    let from = match sign {
        Some(sign) => seen.iter().position(|byte| *byte == sign).filter(|at| *at > 0)? + 1,
        None => 0,
    };
    let is_line = seen.ends_with(b"\\r") && !seen.contains(&b' ');
    let is_one = match piece {
        "'X'" => is_quoted,
        "X\\r" => is_quoted && is_line,
        // `@/a/script`
        "/X" => seen[0] != b'@',
        _ => true,
    };
    (is_one && !is_placeholder(&seen[from..])).then_some(from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_stand_in_their_order_and_each_row_ends_with_a_password() {
        assert!(COMMANDS.is_sorted_by(|one, next| one.0 <= next.0));
        for (name, pattern) in COMMANDS {
            assert!(name.len() <= LONGEST_PROGRAM, "{name}");
            let last = pattern.rsplit(' ').next().unwrap_or_default();
            assert!(last.contains('X') && pattern.matches('X').count() == 1, "{name} {pattern}");
        }
    }
}
