//! Archives that are whole, cut, damaged and hostile.

use super::*;

fn archive(entries: &[(&str, EntryType, &[u8])]) -> Vec<u8> {
    let mut builder = Builder::new(GzEncoder::new(Vec::new(), Compression::default()));
    for (name, kind, bytes) in entries {
        let mut header = Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        header.set_entry_type(*kind);
        if *kind == EntryType::Symlink {
            header.set_link_name("/etc/passwd").expect("a link");
        }
        // The builder itself refuses `..`: a hostile archive is written by hand.
        let field = &mut header.as_old_mut().name;
        field[..name.len()].copy_from_slice(name.as_bytes());
        header.set_cksum();
        builder.append(&header, *bytes).expect("appended");
    }
    builder.into_inner().expect("built").finish().expect("finished")
}

/// An entry as bytes, whatever it says of itself.
fn raw(kind: EntryType, size: u64, body: &[u8]) -> Vec<u8> {
    let mut header = Header::new_gnu();
    header.set_path("run/a").expect("a path");
    header.set_size(size);
    header.set_mode(0o644);
    header.set_entry_type(kind);
    header.set_cksum();
    let mut bytes = header.as_bytes().to_vec();
    bytes.extend_from_slice(body);
    bytes.resize(bytes.len().next_multiple_of(512), 0);
    bytes
}

fn packed(entries: &[Vec<u8>]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(&entries.concat()).expect("written");
    encoder.write_all(&[0; 1024]).expect("written");
    encoder.finish().expect("finished")
}

#[test]
fn long_name_and_pax_headers_of_more_than_8_kib_are_refused_unread() {
    let long = vec![b'a'; 1 << 20];
    for kind in [b'L', b'K', b'x', b'g'].map(EntryType::new) {
        let bomb = packed(&[raw(kind, 1 << 20, &long), raw(EntryType::Regular, 1, b"1")]);
        let why = unpacked(&bomb).expect_err("refused");
        assert!(why.contains("a header of 1048576 bytes, limit 8192"), "{kind:?}: {why}");
    }
}

#[test]
fn a_pax_record_cannot_give_a_file_another_size_than_its_header() {
    let record = b"13 size=4096\n";
    let bytes = vec![b'1'; 4096];
    let pax = raw(EntryType::XHeader, record.len() as u64, record);
    let why = unpacked(&packed(&[pax, raw(EntryType::Regular, 0, &bytes)])).expect_err("refused");
    assert!(why.contains("two sizes"), "{why}");
}

#[test]
fn a_bundle_of_more_entries_than_a_run_has_is_refused() {
    let archive =
        |count| Archive::new(io::Cursor::new(vec![raw(EntryType::Regular, 0, b""); count].concat()));
    assert!(survey(&mut archive(10), 1 << 20, 10).is_ok());
    let refused = survey(&mut archive(11), 1 << 20, 10);
    assert!(matches!(refused, Err(Refused::Why(why)) if why.contains("more than 10 entries")));
}

#[test]
fn reading_fails_where_the_limit_of_unpacked_bytes_is_passed() {
    let read = |bytes: u64| {
        let is_over = Rc::new(Cell::new(false));
        let mut bounded =
            Bounded { inner: io::repeat(0).take(bytes), left: 1000, is_over: Rc::clone(&is_over) };
        (io::copy(&mut bounded, &mut io::sink()).is_ok(), is_over.get())
    };
    assert_eq!(read(1000), (true, false));
    assert_eq!(read(1001), (false, true));
}

fn unpacked(bytes: &[u8]) -> Result<String, String> {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("x.tar.gz");
    fs::write(&file, bytes).expect("written");
    let place = folder.path().join("place");
    let result = unpack(&file, &place);
    let beside: Vec<_> = fs::read_dir(folder.path()).expect("read").flatten().collect();
    assert!(beside.len() <= 2, "something was written beside the place: {beside:?}");
    result
}

#[test]
fn a_pipe_or_a_device_is_no_bundle_and_is_not_waited_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    nix::unistd::mkfifo(&path("pipe"), nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
    std::os::unix::fs::symlink("/dev/zero", path("device")).expect("linked");
    for name in ["pipe", "device"] {
        assert_eq!(unpack(&path(name), &path("place")), Err("not a regular file".to_owned()), "{name}");
    }
}

#[test]
fn what_leads_out_links_or_stands_twice_is_refused_and_nothing_is_written_elsewhere() {
    let file = EntryType::Regular;
    assert_eq!(unpacked(&archive(&[("run/plan.json", file, b"{}")])), Ok("run".to_owned()));
    assert_eq!(
        unpacked(&archive(&[("./run/", EntryType::Directory, b""), ("./run/a", file, b"1")])),
        Ok("run".to_owned())
    );
    let mut messages = String::new();
    for (entries, expected) in [
        (&[("../x", file, b"1".as_slice())][..], "not a file below one folder"),
        (&[("run/../../x", file, b"1")], "not a file below one folder"),
        (&[("/tmp/x", file, b"1")], "not a file below one folder"),
        (&[("x", file, b"1")], "not a file below one folder"),
        (&[("../", EntryType::Directory, b"")], "leads out"),
        (&[("run/l", EntryType::Symlink, b"")], "neither file nor folder"),
        (&[("run/l", EntryType::Link, b"")], "neither file nor folder"),
        (&[("run/l", EntryType::Char, b"")], "neither file nor folder"),
        (&[(".hidden/x", file, b"1")], "not the name of a run"),
        (&[("latest/x", file, b"1")], "not the name of a run"),
        (&[("a/x", file, b"1"), ("b/x", file, b"1")], "more than one run"),
        (&[("a/x", file, b"1"), ("a/x", file, b"2")], "duplicate"),
        (&[], "it is empty"),
    ] {
        let why = unpacked(&archive(entries)).expect_err(expected);
        assert!(why.contains(expected), "{why}, not: {expected}");
        messages += &format!("{why}\n");
    }
    insta::assert_snapshot!("messages", messages);
}

#[test]
fn names_that_no_file_of_a_run_has_are_refused_and_shown_as_they_are() {
    let named = |name: &[u8]| {
        let mut builder = Builder::new(GzEncoder::new(Vec::new(), Compression::default()));
        let mut header = Header::new_gnu();
        let field = &mut header.as_old_mut().name;
        let short = name.get(..field.len()).unwrap_or(name);
        field[..short.len()].copy_from_slice(short);
        header.set_size(1);
        header.set_mode(0o644);
        header.set_cksum();
        if name.len() > 100 {
            let path = String::from_utf8_lossy(name).into_owned();
            builder.append_data(&mut header, path, b"1".as_slice()).expect("appended");
        } else {
            builder.append(&header, b"1".as_slice()).expect("appended");
        }
        unpacked(&builder.into_inner().expect("built").finish().expect("finished"))
    };
    assert_eq!(named(b"run/a"), Ok("run".to_owned()));
    assert_eq!(named(format!("run/{}", "a".repeat(200)).as_bytes()), Ok("run".to_owned()));
    for (name, expected) in [
        (b"run/\xff\xfe".to_vec(), "not UTF-8"),
        (b"run/a\x1b[2Jb".to_vec(), "not a file below one folder: \"run/a\\u{1b}[2Jb\""),
        (b"run/a\nb".to_vec(), "\"run/a\\nb\""),
        (format!("run/{}", "a".repeat(300)).into_bytes(), "not a file below one folder"),
        (format!("run/{}", "a/".repeat(3000) + "a").into_bytes(), "not a file below one folder"),
    ] {
        let why = named(&name).expect_err(expected);
        assert!(why.contains(expected) && !why.contains('\u{1b}'), "{why}, not: {expected}");
    }
}

#[test]
fn a_cut_or_damaged_archive_is_refused_wherever_it_is_cut() {
    let noise: Vec<u8> = (0..5000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let whole =
        archive(&[("run/plan.json", EntryType::Regular, b"{}"), ("run/a", EntryType::Regular, &noise)]);
    assert!(unpacked(&whole).is_ok());
    for at in [0, 5, 20, whole.len() / 2, whole.len() - 9, whole.len() - 1] {
        assert!(unpacked(&whole[..at]).is_err(), "cut at {at} of {}", whole.len());
    }
    let mut damaged = whole.clone();
    let middle = damaged.len() / 2;
    damaged[middle] ^= 0x55;
    assert!(unpacked(&damaged).is_err());
    assert!(unpacked(b"no archive at all").expect_err("no gzip").contains("not a bundle"));
}

#[test]
fn an_archive_that_would_fill_the_disk_is_refused_by_what_it_declares() {
    let mut header = Header::new_gnu();
    header.set_path("run/a").expect("a path");
    header.set_size(1 << 40);
    header.set_cksum();
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(header.as_bytes()).expect("written");
    let why = unpacked(&encoder.finish().expect("finished")).expect_err("too large");
    assert!(why.contains("would unpack to more than"), "{why}");
}
