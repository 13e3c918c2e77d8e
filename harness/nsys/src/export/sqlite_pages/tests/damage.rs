//! Files with bytes that were changed at random: each is read or refused, and none ends in a panic.

use super::*;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering};

/// Numbers that are the same on every machine.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % sides.max(1) as u64) as usize
    }
}

/// Small files that have all there is: inner pages, overflow, row numbers, holes, an index.
fn sound() -> Vec<Vec<u8>> {
    let strings = "CREATE TABLE t2(id INTEGER PRIMARY KEY, b TEXT, c REAL);\
        INSERT INTO t2 SELECT a + 100, b || hex(zeroblob(a * 9 % 700)), a / 3.0 FROM t WHERE a < 40;\
        CREATE INDEX i ON t2(b); UPDATE t SET b = NULL WHERE a % 5 = 0";
    [(512, 300, 20), (1024, 60, 200), (4096, 200, 10)]
        .map(|(page_size, rows, text)| {
            let (_folder, path) = database(page_size, &format!("{}; {strings}", counted(rows, text)));
            std::fs::read(path).expect("read")
        })
        .into()
}

fn damage(bytes: &mut Vec<u8>, dice: &mut Dice) {
    for _ in 0..=dice.roll(6) {
        let length = bytes.len();
        let page = 512 << dice.roll(4);
        let at = match dice.roll(4) {
            0 => dice.roll(100.min(length)),
            // The heads of pages and their pointers are where it hurts.
            1 => (dice.roll(length / page + 1) * page + dice.roll(16)).min(length - 1),
            _ => dice.roll(length),
        };
        match dice.roll(16) {
            0 => bytes.truncate((at + 1).max(17)),
            1 => {
                let from = dice.roll(length / page) * page;
                let to = dice.roll(length / page) * page;
                if from.max(to) + page <= length {
                    bytes.copy_within(from..from + page, to);
                }
            }
            2 => bytes.resize(length + dice.roll(2000), 0),
            3..=6 => bytes[at] ^= 1 << dice.roll(8),
            7..=11 => bytes[at] = [0, 1, 2, 5, 13, 0x7f, 0x80, 0xff][dice.roll(8)],
            _ => bytes[at] = dice.roll(256) as u8,
        }
    }
}

/// How many of the damaged files were read all the same.
fn read_damaged(count: u64, threads: u64) -> u64 {
    let sound = sound();
    let read = AtomicU64::new(0);
    let wanted: [Vec<&'static ColumnSpec>; 2] = [
        vec![
            column("a", ColumnType::Integer, true),
            column("b", ColumnType::Text, true),
            column("z", ColumnType::Real, false),
        ],
        vec![
            column("id", ColumnType::Integer, true),
            column("b", ColumnType::Text, true),
            column("c", ColumnType::Real, true),
        ],
    ];
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (sound, read, wanted) = (&sound, &read, &wanted);
            scope.spawn(move || {
                let file = tempfile::NamedTempFile::new().expect("a file");
                for seed in (thread..count).step_by(threads as usize) {
                    let mut dice = Dice(seed);
                    let mut bytes = sound[dice.roll(sound.len())].clone();
                    damage(&mut bytes, &mut dice);
                    file.as_file().set_len(0).expect("emptied");
                    file.as_file().write_all_at(&bytes, 0).expect("written");
                    let Ok(Opened::Plain(pages)) = open(file.path()) else { continue };
                    let tables = ["t", "t2"].into_iter().zip(wanted);
                    let sound =
                        tables.filter(|(name, wanted)| matches!(pages.table(name, wanted), Ok(Some(_))));
                    read.fetch_add(u64::from(sound.count() == 2), Ordering::Relaxed);
                }
            });
        }
    });
    read.into_inner()
}

#[test]
fn files_with_damage_are_read_or_refused() {
    let count = 4000;
    let read = read_damaged(count, 2);
    assert!(read > count / 100 && read < count, "damage that is too mild or too wild: {read} were read");
}

#[test]
#[ignore = "a million damaged files take long: cargo test --release -p nsys --lib damaged -- --ignored --nocapture"]
fn a_million_damaged_files_are_read_or_refused() {
    let count = 1_000_000;
    let threads = std::thread::available_parallelism().map_or(2, |cores| cores.get().min(16) as u64);
    let read = read_damaged(count, threads);
    println!("{count} damaged files, {read} of them readable");
}
