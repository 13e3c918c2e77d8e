//! The signature of a pack: Ed25519, over all that stands before it, in the last line of the file.

use base::text::show;
use config::toml_reader::file;
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{PrivatePkcs8KeyDer, SubjectPublicKeyInfoDer};
use std::fmt::Write;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

const OPENING: &str = "# signature: ed25519 ";

/// What stands before the 32 bytes of an Ed25519 key in a public key's DER.
const PUBLIC_OPENING: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];

/// A public key, as 64 hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Signer(String);

impl Signer {
    /// `--trust`: the digits, or the file of a public key.
    pub(super) fn parse(word: &str) -> Result<Signer, String> {
        let word = word.trim();
        if let Some(key) = from_hex(word).filter(|key| key.len() == 32) {
            return Ok(Signer(hex(&key)));
        }
        if !word.is_empty() && word.chars().all(|c| c.is_ascii_hexdigit()) && !Path::new(word).exists() {
            return Err(format!(
                "--trust {word}: it takes all 64 digits of the key, or the file of the public key"
            ));
        }
        let bytes = read(Path::new(word))?;
        let public = SubjectPublicKeyInfoDer::from_pem_slice(&bytes).ok();
        let key = public.as_ref().and_then(|der| der.as_ref().strip_prefix(&PUBLIC_OPENING));
        let key = key.filter(|key| key.len() == 32).ok_or_else(|| {
            format!("{}: no public key of Ed25519: `openssl pkey -in KEY.pem -pubout` prints one", show(word))
        })?;
        Ok(Signer(hex(key)))
    }

    pub(super) fn digits(&self) -> &str {
        &self.0
    }

    /// Of names of files.
    pub(super) fn stem(&self) -> &str {
        self.0.get(..16).unwrap_or(&self.0)
    }

    /// Of messages.
    pub(super) fn short(&self) -> String {
        self.0.chars().take(8).collect()
    }
}

/// The text with its signature, by the key in a file of `openssl genpkey -algorithm ed25519`.
pub(super) fn sign(text: &str, key: &Path) -> Result<(String, Signer), String> {
    let shown = show(&key.to_string_lossy());
    let mode = std::fs::metadata(key).map_err(|error| format!("{shown}: {error}"))?.mode();
    if mode & 0o077 != 0 {
        return Err(format!("{shown}: others can read this key: chmod 600 {shown}"));
    }
    let bytes = read(key)?;
    let wrong = || {
        format!(
            "{shown}: no private key of Ed25519: make one with `openssl genpkey -algorithm ed25519 -out KEY.pem`"
        )
    };
    let der = PrivatePkcs8KeyDer::from_pem_slice(&bytes).map_err(|_| wrong())?;
    let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(der.secret_pkcs8_der()).map_err(|_| wrong())?;
    let signer = Signer(hex(pair.public_key().as_ref()));
    let signature = hex(pair.sign(text.as_bytes()).as_ref());
    Ok((format!("{text}{OPENING}{} {signature}\n", signer.digits()), signer))
}

/// The text that was signed, and by whom; or why it cannot be believed.
pub(super) fn verified(text: &str) -> Result<(&str, Signer), String> {
    let end = text
        .rfind(OPENING)
        .filter(|at| *at == 0 || text.get(..*at).is_some_and(|before| before.ends_with('\n')));
    let (signed, last) = end.and_then(|at| text.split_at_checked(at)).ok_or("it is not signed")?;
    let words = last.strip_prefix(OPENING).and_then(|rest| rest.strip_suffix('\n'));
    let parts = words.and_then(|words| words.split_once(' ')).and_then(|(key, signature)| {
        Some((from_hex(key).filter(|key| key.len() == 32)?, from_hex(signature)?))
    });
    let (key, signature) = parts.ok_or("its last line is no signature: the file is cut or was edited")?;
    UnparsedPublicKey::new(&ED25519, &key)
        .verify(signed.as_bytes(), &signature)
        .map_err(|_| "its signature is not of these bytes: the file was edited")?;
    Ok((signed, Signer(hex(&key))))
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    file::bytes(path).map_err(|error| format!("{}: {error}", show(&path.to_string_lossy())))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> = text.chars().map(|c| Some(c.to_digit(16)? as u8)).collect::<Option<_>>()?;
    let pairs = digits.chunks_exact(2);
    if !pairs.remainder().is_empty() {
        return None;
    }
    pairs.map(|pair| Some(pair.first()? << 4 | pair.last()?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    /// From RFC 8410, section 10.3.
    const KEY: &str = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n-----END PRIVATE KEY-----\n";
    const PUBLIC: &str = "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n-----END PUBLIC KEY-----\n";

    fn signed(text: &str, mode: u32) -> Result<(String, Signer), String> {
        let folder = tempfile::tempdir().expect("a folder");
        let key = folder.path().join("key.pem");
        fs::write(&key, KEY).expect("written");
        fs::set_permissions(&key, fs::Permissions::from_mode(mode)).expect("set");
        sign(text, &key)
    }

    #[test]
    fn what_was_signed_is_what_is_read_and_no_byte_of_it_can_change() {
        let (text, signer) = signed("instance = \"p5\"\n", 0o600).expect("signed");
        assert_eq!(verified(&text), Ok(("instance = \"p5\"\n", signer)));
        for at in 0..text.len() - 1 {
            let mut bytes = text.clone().into_bytes();
            bytes[at] ^= 1;
            let edited = String::from_utf8(bytes).expect("still ASCII");
            assert!(verified(&edited).is_err(), "{at}: {edited}");
        }
        assert!(verified(&format!("{text}x = 1\n")).is_err());
        assert!(verified("instance = \"p5\"\n").is_err());
        assert!(verified("").is_err());
    }

    #[test]
    fn the_key_of_openssl_is_the_same_in_both_files_and_as_digits() {
        let folder = tempfile::tempdir().expect("a folder");
        let public = folder.path().join("public.pem");
        fs::write(&public, PUBLIC).expect("written");
        let (_, signer) = signed("", 0o600).expect("signed");
        assert_eq!(Signer::parse(&public.to_string_lossy()), Ok(signer.clone()));
        assert_eq!(Signer::parse(signer.digits()), Ok(signer));
        fs::write(&public, KEY).expect("written");
        assert!(Signer::parse(&public.to_string_lossy()).is_err(), "a private key is no public one");
    }

    #[test]
    fn a_key_that_others_can_read_signs_nothing() {
        assert!(signed("", 0o640).is_err_and(|why| why.contains("chmod 600")));
    }
}
