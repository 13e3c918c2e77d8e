//! Secrets in the forms in which logs, scripts and settings hold them: those that are taken out wherever they stand, and
//! the one list of those that are not. The redactor is tested with both by itself, and in a whole run.

/// A text with a secret in it, and what must be seen nowhere.
#[derive(Clone)]
pub(super) struct Form {
    pub text: String,
    pub secret: String,
}

fn form(text: impl Into<String>, secret: impl Into<String>) -> Form {
    Form { text: text.into(), secret: secret.into() }
}

/// A value that the harness is given, with what has another form in JSON, in shells, in addresses and as bytes.
pub(super) const KNOWN: &str = "s\u{e4}cret/w0rd+9 x'7\"<Qz>4hK2";

/// Each with another secret, made of letters and digits.
fn secrets() -> impl Iterator<Item = String> {
    (100..).map(|nth| format!("x1Y2q9W8e{nth}R6t5Z4"))
}

/// Forms of an unknown value, with `{X}` in its place, `{L}` for one of 60 characters and `{E}` for ESC.
pub(super) fn unknown() -> Vec<Form> {
    UNKNOWN.iter().zip(secrets()).map(|(text, x)| form(fill(text, &x), x)).collect()
}

fn fill(text: &str, x: &str) -> String {
    text.replace("{X}", x).replace("{L}", &x.repeat(4)).replace("{E}", "\u{1b}").replace("{P}", "PRIVATE KEY")
}

const UNKNOWN: &[&str] = &[
    "Authorization: Bearer {X}",
    "Authorization: Basic {X}\nnext",
    "proxy-authorization: Basic {X}",
    "authorization=Basic {X}",
    "x-auth-token: A {X}",
    "Set-Cookie: a=b; session={X}; Path=/",
    "> Cookie: a=b; session={X}",
    "curl -H 'Authorization: token {X}' https://host",
    "{'Authorization': 'Bearer {X}'}",
    "HF_TOKEN={E}[32m{X}{E}[0m",
    "{E}[1mHF_TOKEN{E}[0m={E}[38;5;12m{X}{E}[0m",
    "{E}[36mHF_TOKEN{E}[0m: '{E}[32m{X}{E}[0m'",
    "{E}[32mhf_{L}",
    "a\u{1}hf_{L}",
    "{E}(Bghp_{L}",
    "HF_TOKEN=\u{1}{X}",
    "DB_PASSWORD='first line\n{X}'",
    "DB_PASSWORD=\"first line\nsecond\n{X}\"\nNEXT=1",
    "HF_TOKEN:\n  {X}\nnext: 1",
    "  HF_TOKEN: |\n    {X}\n    {X}\n  next: 1",
    "password: >-\n  {X}",
    "machine host login me password {X}",
    "machine host\n  login me\n  password {X}\n",
    "docker login -u me -p {X} registry",
    "docker login -p{X}",
    "sshpass -p {X} ssh host",
    "sshpass -p'{X}' ssh host",
    "redis-cli -h host -a {X} ping",
    "curl -s -u me:{X} https://host",
    "curl --user me:{X} https://host",
    "[\"curl\", \"-u\", \"me:{X}\"]",
    "mysql -u me -p{X} db",
    "PGPASSWORD={X}",
    "MYSQL_PWD={X}",
    "DB_PASS={X}",
    "SSHPASS={X}",
    "secretkey={X}",
    "AccountName=a;AccountKey={X}==",
    "HF_TOKEN2={X}",
    "db_password1: {X}",
    "https://host/a?sig={X}&b=1",
    "https://host/a?b=1&X-Amz-Signature={X}",
    "https://host/a?b=1&amp;Signature={X}",
    "https://hooks.slack.com/services/T0001/B0001/{X}",
    "npm_{L}",
    "ya29.{L}",
    "xapp-1-{X}",
    "hvs.{L}",
    "SG.{L}",
    "dop_v1_{L}",
    "AGE-SECRET-KEY-1{L}",
    "{\"token\":[\"{X}\"]}",
    "{\"token\": [\n  \"a\",\n  \"{X}\"\n]}",
    "setenv HF_TOKEN {X}",
    "set -gx HF_TOKEN {X}",
    "aws configure set aws_secret_access_key {X}",
    "declare -x HF_TOKEN=\"{X}\"",
    "setenv(\"HF_TOKEN\", \"{X}\")",
    "[('A', '1'), ('HF_TOKEN', '{X}')]",
    "| HF_TOKEN | {X} |",
    "\u{2502} HF_TOKEN \u{2502} {X} \u{2502}",
    "<password>{X}</password>",
    "env:\n  - name: HF_TOKEN\n    value: {X}\n",
    "{\"name\": \"HF_TOKEN\", \"value\": \"{X}\"}",
    "<property name=\"db.password\" value=\"{X}\"/>",
    "{\"auths\": {\"host\": {\"auth\": \"{X}=\"}}}",
    "//registry.host/:_auth={X}",
    "{\"log\":\"-----BEGIN {P}-----\\n\",\"stream\":\"stdout\",\"time\":\"1\"}\n{\"log\":\"{X}\\n\",\"stream\":\"stdout\"}\n{\"log\":\"-----END {P}-----\\n\"}",
    "https://{X}@github.com/x",
    "git clone https://{X}@github.com/x.git",
    "{\"HF_TOKEN\": {\"value\": \"{X}\"}}",
    "{\"HF_TOKEN\": [{\"value\": \"{X}\"}]}",
    "HF_TOKEN:\n  value: {X}\n",
    "MASTER_KEY: !!str {X}",
    "MASTER_KEY: &anchor !!str '{X}'",
    "GITHUB_PAT={X}",
    "github_pat: {X}",
    "HF_TOKEN\t{X}",
    "HF_TOKEN -> {X}",
    "HF_TOKEN->{X}",
    "HF_TOKEN \u{2192} {X}",
    "HF_TOKEN is set to {X}",
    "  hf_token ........................................ {X}\n  lr .............................................. 0.1",
    "HF_TOKEN was \"{X}\"",
    "the password is {X}",
    "Password for user: {X}",
    "Password for 'https://me@host': {X}",
    "Bearer: {X}",
    "{\"Bearer\": \"{X}\"}",
    "wandb login {X}",
    "wandb login --relogin {X}",
    "huggingface_hub.login(\"{X}\")",
    "wandb.login(key='{X}')",
    "HF_TOKEN=\\\n{X}",
    "prog --token \\\n  {X}",
    "https://host/?next=access_token%3D{X}%26a%3D1",
    "access_token%253D{X}",
    "HF_\u{200b}TOKEN={X}",
    "HF_TOKEN\u{200b}={X}",
    "\u{ff28}\u{ff26}\u{ff3f}\u{ff34}\u{ff2f}\u{ff2b}\u{ff25}\u{ff2e}\u{ff1d}{X}",
    "PuTTY-User-Key-File-3: ssh-ed25519\nPrivate-Lines: 2\n{L}\n{X}\nPrivate-MAC: 1",
    "-----BEGIN {P}-----\n{L}\n{X}\n-----END {P}-----",
    "::error::-----BEGIN {P}-----%0A{L}%0A{X}%0A-----END {P}-----",
    "?key=-----BEGIN%20RSA%20PRIVATE%20KEY-----%0A{L}%2B%0A{X}%0A-----END%20RSA%20PRIVATE%20KEY-----",
    "key=-----BEGIN+PRIVATE+KEY-----%0A{X}%0A-----END+PRIVATE+KEY-----",
    "[default0]:-----BEGIN {P}-----\n[default0]:{X}\n[default0]:-----END {P}-----",
    "0: -----BEGIN RSA {P}-----\n0: {X}\n0: -----END RSA {P}-----",
    "[1,0]<stdout>:-----BEGIN PGP {P} BLOCK-----\n[1,0]<stdout>:{X}\n[1,0]<stdout>:-----END PGP {P} BLOCK-----",
    // Lines of sources, as tracebacks and shells show them.
    "os.environ['HF_TOKEN'] = '{X}'",
    "config[\"hf_token\"]=\"{X}\"",
    "ENV[b'HF_TOKEN'] = b'{X}'",
    "declare -A all=([HF_TOKEN]=\"{X}\")",
    "HF_TOKEN: str = '{X}'",
    "self.api_key: Optional[str] = \"{X}\"",
    "def f(token: 'str | None' = b'{X}'):",
    "const apiKey: string = \"{X}\";",
    "var apiKey string = \"{X}\"",
    "{b'HF_TOKEN': b'{X}'}",
    "f(hf_token=f\"{X}\")",
    "hf_token = \"\"\"{X}\"\"\"",
    "env HF_TOKEN=$'{X}' prog",
    "('HF_TOKEN', b'{X}')",
    "PGPASSWORD+={X}",
    "HF_TOKEN ?= {X}",
    "process.env.HF_TOKEN ||= '{X}'",
    "if token === '{X}'",
    "HF_TOKEN=( {X} )",
    "hf_token = (\n    '{X}'\n)",
    // Values below names, behind what launchers put before lines.
    "a\n0: HF_TOKEN:\n0:   {X}\n0: next",
    "a\n[default0]:HF_TOKEN:\n[default0]:  {X}\n[default0]:next",
    "a\n[1,0]<stdout>:password: |\n[1,0]<stdout>:  a\n[1,0]<stdout>:  {X}\n[1,0]<stdout>:next",
    "a\n0: env:\n0:   - name: HF_TOKEN\n0:     value: {X}\n",
    "api_key:\n  - {X}\n",
    // Names of values in other programs.
    "kind: Secret\nmetadata:\n  name: a\ndata:\n  any: {X}\n  other: {X}\nnext: 1",
    "data:\n  any: {X}\nkind: Secret\n",
    "stringData:\n  any: {X}\nnext: 1",
    "{\"data\": {\"any\": \"{X}\"}, \"kind\": \"Secret\"}",
    "client-key-data: {X}",
    "userPassword:: {X}",
    "Secret access key: {X}",
    "Server=host;Uid=me;Pwd={X};",
    "DB_PW: {X}",
    "DOCKER_AUTH_CONFIG={X}",
    "NPM_AUTH={X}",
    "Api-Key {X}",
    "Token {X}",
    "auth_token {X}",
    "password is: {X}",
    "alter user me with PASSWORD '{X}'",
    "ansible_become_pass: {X}",
    "Passcode: {X}",
    // Commands.
    "mysql -u root -p'{X}'",
    "ldapsearch -x -w {X} -b dc=a",
    "openssl rsa -passin pass:{X} -in a",
    "openssl enc -aes-256-cbc -k {X}",
    "kubectl create secret generic a --from-literal=a={X}",
    "kubectl create secret generic a --from-literal a='{X}'",
    "prog --env HF_TOKEN {X}",
    "plink -pw {X} host",
    "unzip -P {X} a.zip",
    "7z x -p{X} a.7z",
    "vault login {X}",
    "a\nredis-cli -h host -a {X}",
    "a\nhttps://{X}@github.com/x",
    "echo {X} | docker login --password-stdin",
    "echo -n '{X}' | gh auth login --with-token",
    "printf '%s' \"{X}\" | docker login -u me --password-stdin host",
    "machine host login me password \"{X}\"",
    "ipmitool -H host -U ADMIN -P {X} power status",
    "racadm -r host -u root -p {X} getsysinfo",
    "skopeo copy --src-creds=me:{X} a b",
    "skopeo copy --dest-creds me:{X} a b",
    "sudo -S true <<< {X}",
    "sudo -S true <<<'{X}'",
    "docker login -u me --password-stdin <<< \"{X}\"",
    "htpasswd -b /etc/nginx/passwords me {X}",
    "htpasswd -cbB -C 12 file me '{X}'",
    "htpasswd -nb me {X}",
    "snmpwalk -v2c -c {X} host",
    "snmpget -v3 -u me -l authPriv -a SHA -A {X} -x AES -X '{X}' host",
    "smbclient //host/share -U me%{X}",
    "smbclient //host/share -U 'domain/me%{X}'",
    "mount -t cifs //host/share /mnt -o username=me,pass={X},uid=0",
    "//host/share /mnt cifs username=me,pass={X} 0 0",
    // Words of a shell that are quoted in parts.
    "HF_TOKEN='a'\"'\"'{X}'",
    "a HF_TOKEN='a'\"'\"' {X}' b",
    "prog --token 'a'\"'\"'b{X}' c",
    "prog --token \"a\"'\"'\"{X}\" c",
    "a HF_TOKEN='a b'{X} c",
    "a HF_TOKEN=\"a\"'{X}' b",
    "env HF_TOKEN='a'$'b'{X} prog",
    "prog --token=a'b'{X} c",
    "prog --token=a'{X}' c",
    // Names and values of clusters and registries.
    "export SLURM_JWT={X}",
    "{'SLURM_JWT': '{X}'}",
    "JWT: {X}",
    "StoragePass={X}",
    "sacctmgr: error: StoragePass={X}",
    "MUNGE:{L}:",
    "{\"auths\": {\"host\": {\"identitytoken\": \"{X}\"}}}",
    "registrytoken: {X}",
    "tls.key: LS0tLS1CRUdJTiBQUklWQVRFIEtFWS0tLS0tCk{L}",
    "any: LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVktLS0tLQo{L}\n{X}",
    "eyJhbGciOiJkaXIifQ..{L}.{L}",
    "cfat_{L}",
    "cfk_{L}",
    "xoxd-{L}",
    "GOCSPX-{L}",
    "dckr_oat_{L}",
    "https://discordapp.com/api/webhooks/123/{X}",
    "https://discord.com/api/v10/webhooks/123/{X}",
    "https://hooks.slack.com/triggers/T0001/1/{X}",
    "https://hooks.slack-gov.com/services/T0001/B0001/{X}",
    "https://api.telegram.org/bot123456789:{L}/sendMessage",
    "https://api.telegram.org/file/bot123456789:{L}/a.txt",
    "xai-{L}",
    "IQoJb3JpZ2luX2Vj{L}{L}",
    "FwoGZXIvYXdzE{L}/{L}%3D",
    "ABSKQmVkcm9ja{L}+{L}=",
    "bedrock-api-key-YmVkcm9jay{L}",
];

/// Forms of `KNOWN`, each with a part of it that stands in this form alone.
pub(super) fn known() -> Vec<Form> {
    let hex =
        |between: &str| KNOWN.bytes().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(between);
    let mut forms: Vec<Form> =
        ENCODED.iter().map(|(text, secret)| form(text.replace("{E}", "\u{1b}"), *secret)).collect();
    forms.extend([
        form(KNOWN, "w0rd+9"),
        form(format!("{KNOWN:?}"), "w0rd+9"),
        form(hex(""), "773072642b39"),
        form(hex("").to_uppercase(), "773072642B39"),
        form(hex(" "), "77 30 72 64"),
        form(hex(":").to_uppercase(), "77:30:72:64"),
        form(format!("\\x{}", hex("\\x")), "\\x77\\x30\\x72"),
        form(format!("%{}", hex("%").to_uppercase()), "%77%30%72"),
    ]);
    forms
}

const ENCODED: &[(&str, &str)] = &[
    // base64(1) of the value itself, behind 1 and 2 more bytes, with the letters that addresses have, and wrapped.
    ("c8OkY3JldC93MHJkKzkgeCc3IjxRej40aEsy", "3JldC93MHJk"),
    ("YTpzw6RjcmV0L3cwcmQrOSB4JzciPFF6PjRoSzI=", "jcmV0L3cwcmQr"),
    ("YXM6c8OkY3JldC93MHJkKzkgeCc3IjxRej40aEsy", "3JldC93MHJk"),
    ("YTpzw6RjcmV0L3cwcmQrOSB4JzciPFF6PjRoSzI", "jcmV0L3cwcmQr"),
    ("c8OkY3JldC93MHJk\nKzkgeCc3IjxRej40aEsy", "KzkgeCc3IjxR"),
    // `json.dumps` and `repr` of Python, `printf %q` of bash, addresses and pages.
    (r#"s\u00e4cret/w0rd+9 x'7\"<Qz>4hK2"#, "w0rd"),
    (r#"b's\xc3\xa4cret/w0rd+9 x\'7"<Qz>4hK2'"#, "w0rd"),
    (r#"$'s\303\244cret/w0rd+9 x\'7"<Qz>4hK2'"#, "w0rd"),
    ("s\u{e4}cret/w0rd+9\\ x\\'7\\\"\\<Qz\\>4hK2", "w0rd"),
    ("s%C3%A4cret%2Fw0rd%2B9%20x%277%22%3CQz%3E4hK2", "w0rd"),
    ("s%c3%a4cret/w0rd%2b9+x%277%22%3cQz%3e4hK2", "w0rd"),
    ("s\u{e4}cret/w0rd+9 x&#39;7&quot;&lt;Qz&gt;4hK2", "w0rd"),
    // JSON of Go and of PHP, pages, octal, `cmd`, other cases, and two pieces of one text.
    (r#"s\u00e4cret/w0rd+9 x'7\"\u003cQz\u003e4hK2"#, "w0rd"),
    (r#"s\u00e4cret\/w0rd+9 x'7\"<Qz>4hK2"#, "w0rd"),
    (r#"s\u{e4}cret\u{2f}w0rd\u{2b}9 x'7\"<Qz>4hK2"#, "w0rd"),
    ("s&#228;cret&#47;w0rd&#43;9 x&#39;7&#34;&#60;Qz&#62;4hK2", "w0rd"),
    ("s&#xE4;cret/w0rd&#x2B;9 x'7\"&lt;Qz&gt;4hK2", "w0rd"),
    ("s&amp;#228;cret/w0rd+9 x'7&amp;quot;&amp;lt;Qz&amp;gt;4hK2", "w0rd"),
    (r"s\303\244cret\057w0rd\0539\040x\0477\042\074Qz\0764hK2", "w0rd"),
    ("s\u{e4}cret/w0rd+9 x'7\"^<Qz^>4hK2", "w0rd"),
    ("s%C3%A4cret%252Fw0rd%2B9%20x%277%22%3CQz%3E4hK2", "w0rd"),
    ("s=C3=A4cret/w0rd+9=20x'7\"<Qz>4hK2", "w0rd"),
    ("S\u{c4}CRET/W0RD+9 X'7\"<QZ>4HK2", "W0RD"),
    ("s\u{e4}cReT/w0Rd+9 x'7\"<Qz>4hk2", "w0Rd"),
    ("\"s\u{e4}cret/w0\" + \"rd+9 x'7\\\"<Qz>4hK2\"", "cret/w0"),
    ("s\u{e4}cret/w0\\\nrd+9 x'7\"<Qz>4hK2", "cret/w0"),
    // Wrapped at a column, also behind a launcher's prefix and an indent, and in colours.
    ("s\u{e4}cret/w0rd+9\n x'7\"<Qz>4hK2", "w0rd"),
    ("[default0]:s\u{e4}cret/w0\n[default0]:rd+9 x'7\"<Qz>4hK2", "cret/w0"),
    ("s\u{e4}cret/w0\n      rd+9 x'7\"<Qz>4hK2", "rd+9"),
    ("s\u{e4}cret{E}[0m/{E}[32mw0rd+9 x'7\"<Qz>4hK2", "w0rd"),
    // Hexadecimal digits and pieces of base64 behind labels, in quoted lines, and in pieces of a container's line.
    ("3: 73c3a46372\n3: 65742f773072642b392078\n3: 2737223c517a3e34684b32", "77307264"),
    ("\"c8OkY3JldC93MHJk\"\n\"KzkgeCc3IjxRej40aEsy\"", "KzkgeCc3IjxR"),
    (
        "2026-01-31T12:00:00.123456789Z stdout P s\u{e4}cret/w0\n2026-01-31T12:00:00.123456790Z stdout F rd+9 x'7\"<Qz>4hK2",
        "cret/w0",
    ),
    // Lists of bytes, and what `xxd`, `hexdump -C` and `od` print behind `key=`, with the letters beside them.
    (HEX_LIST, "0x77, 0x30"),
    (
        "[115, 195, 164, 99, 114, 101, 116, 47, 119, 48, 114, 100, 43, 57, 32, 120, 39, 55, 34, 60, 81, 122, 62, 52, 104, 75, 50]",
        "119, 48",
    ),
    (
        "[115 195 164 99 114 101 116 47 119 48 114 100 43 57 32 120 39 55 34 60 81 122 62 52 104 75 50]",
        "119 48",
    ),
    (XXD, "7730 7264"),
    (XXD, "w0rd"),
    (XXD, "4hK2"),
    (HEXDUMP, "77 30 72"),
    (HEXDUMP, "w0rd"),
    (HEXDUMP, "4hK2"),
    (OD, "w   0   r   d"),
    (
        " 6b 65 79 3d 73 c3 a4 63 72 65 74 2f 77 30 72 64\n 2b 39 20 78 27 37 22 3c 51 7a 3e 34 68 4b 32\n",
        "77 30 72",
    ),
    // Base64 of base64, of that behind `me:`, of hexadecimal digits, of JSON and of an address; base32; `ascii` of Python.
    ("YzhPa1kzSmxkQzkzTUhKa0t6a2dlQ2MzSWp4UmVqNDBhRXN5", "zTUhKa0t6"),
    ("YldVNmM4T2tZM0psZEM5M01ISmtLemtnZUNjM0lqeFJlajQwYUVzeQ==", "5M01ISmtL"),
    ("NzNjM2E0NjM3MjY1NzQyZjc3MzA3MjY0MmIzOTIwNzgyNzM3MjIzYzUxN2EzZTM0Njg0YjMy", "c3MzA3MjY0"),
    ("eyJwIjogInNcdTAwZTRjcmV0L3cwcmQrOSB4JzdcIjxRej40aEsyIn0=", "cmV0L3cwcmQr"),
    ("cyVDMyVBNGNyZXQlMkZ3MHJkJTJCOSUyMHglMjc3JTIyJTNDUXolM0U0aEsy", "RncwcmQl"),
    ("ME5HHQ5EMNZGK5BPO4YHEZBLHEQHQJZXEI6FC6R6GRUEWMQ=", "BPO4YHEZ"),
    (r#"s\xe4cret/w0rd+9 x\'7"<Qz>4hK2"#, "w0rd"),
];

const HEX_LIST: &str = "{ 0x73, 0xc3, 0xa4, 0x63, 0x72, 0x65, 0x74, 0x2f, 0x77, 0x30, 0x72, 0x64, 0x2b, 0x39,\n  0x20, 0x78, 0x27, 0x37, 0x22, 0x3c, 0x51, 0x7a, 0x3e, 0x34, 0x68, 0x4b, 0x32 };";
const XXD: &str = "00000000: 6b65 793d 73c3 a463 7265 742f 7730 7264  key=s..cret/w0rd\n00000010: 2b39 2078 2737 223c 517a 3e34 684b 32    +9 x'7\"<Qz>4hK2";
const HEXDUMP: &str = "00000000  6b 65 79 3d 73 c3 a4 63  72 65 74 2f 77 30 72 64  |key=s..cret/w0rd|\n00000010  2b 39 20 78 27 37 22 3c  51 7a 3e 34 68 4b 32     |+9 x'7\"<Qz>4hK2|\n0000001f";
const OD: &str = "0000000   k   e   y   =   s 303 244   c   r   e   t   /   w   0   r   d\n0000020   +   9       x   '   7   \"   <   Q   z   >   4   h   K   2\n0000037";

/// The forms that are knowingly not taken out. What is caught after all does not belong here.
pub(super) fn not_caught() -> Vec<Form> {
    let unknown = UNKNOWN_NOT_CAUGHT.iter().zip(secrets().skip(500));
    let unknown = unknown.map(|((_, text), x)| form(fill(text, &x), x));
    unknown.chain(KNOWN_NOT_CAUGHT.iter().map(|(_, text, secret)| form(*text, *secret))).collect()
}

/// Names of the forms of an unknown value that are not taken out, for a reader, and the forms.
pub(crate) const UNKNOWN_NOT_CAUGHT: &[(&str, &str)] = &[
    ("with no name beside it", "{X}"),
    ("behind a name that is not English", "Passwort: {X}"),
    ("in the columns of a `.pgpass`", "host:5432:db:me:{X}"),
    ("in the path of an address", "https://host/hooks/{X}"),
    ("behind the column at which a terminal wrapped it", "hf_x1Y2q9W8e7R6t5Z4x1Y2q9W8\n{X}"),
    ("behind more words than a few", "the password that we chose is {X}"),
    ("in a call, such as `Field(\"X\")`", "api_key: str = Field(\"{X}\")"),
    ("behind a flag of one letter of a program that is not known", "prog -t {X}"),
    (
        "in the `data` of a Kubernetes Secret that says more than 1,000 characters away what it is",
        "data:\n  any: {X}\n",
    ),
    ("in a folder's form behind `pwd`", "pwd=/{X}"),
    ("in a here-string of a shell for a program that is not known", "prog <<< {X}"),
    ("in a line below its name that is not indented", "HF_TOKEN=\n{X}"),
    ("below its name, where each line begins with a host or a container", "p5-001: HF_TOKEN:\np5-001:   {X}"),
    ("in a list without quotation marks, behind its first word", "api_key: [a, {X}]"),
    ("in columns that a comma or a semicolon parts", "HF_TOKEN,{X}"),
    ("in the rows of a table, below its name", "| user | password |\n|---|---|\n| me | {X} |"),
    ("behind a name and a comment in brackets", "HF_TOKEN (from env): {X}"),
    ("in an attribute of an element that has the name", "<token value='{X}'/>"),
    ("behind `IDENTIFIED BY` of SQL", "IDENTIFIED BY '{X}'"),
    ("behind `pin`, `otp`, `salt` and the like", "pin={X}"),
    ("in a cookie outside of a header", "curl -b session={X} host"),
];

/// The same of a known value: names, forms, and what stays of each.
pub(crate) const KNOWN_NOT_CAUGHT: &[(&str, &str, &str)] = &[
    ("backwards", "2Kh4>zQ<\"7'x 9+dr0w/terc\u{e4}s", "dr0w"),
    ("in part", "9 x'7\"<Qz>", "x'7\"<Qz"),
    (
        "encrypted or compressed",
        "H4sIAAAAAAACAys+vCS5KLVEv9ygKEXbUqFC3VzJJrDKziTD2wgAQ3KlAxsAAAA=",
        "LVEv9ygKEXbUqFC3VzJ",
    ),
    ("in base85", "bHk)#a%FTccQA5fD>)!|CpRKIQF=Z!XiG8", "FTccQA5fD"),
    (
        "in base64 of base64 of base64",
        "WXpoUGExa3pTbXhrUXprelRVaEthMHQ2YTJkbFEyTXpTV3A0VW1WcU5EQmhSWE41",
        "prelRVaEthMHQ2",
    ),
    (
        "in words of two bytes, as `od -x` prints it",
        "0000000 c373 63a4 6572 2f74 3077 6472 392b 7820\n0000020 3727 3c22 7a51 343e 4b68 0032\n",
        "3077 6472",
    ),
];
