//! What `harness logs` prints of logs that it cannot read, and beside the tables of those that it can.

use super::{efa, mpi, nccl, nccl_tests, steps, testing};
use std::path::PathBuf;

type Shown = (i32, String, String);

/// As `testing::show`, of the verb that has no arguments of its own.
fn show_nccl_tests(texts: &[&[u8]], missing: &[&str]) -> Shown {
    let folder = tempfile::tempdir().expect("a folder");
    let mut files: Vec<PathBuf> = missing.iter().map(PathBuf::from).collect();
    for (text, number) in texts.iter().zip(1..) {
        let path = folder.path().join(format!("{number}.log"));
        std::fs::write(&path, text).expect("a file");
        files.push(path);
    }
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let code = nccl_tests::run(&files, nccl_tests::TableFormat::Text, false, &mut out, &mut err);
    let here = format!("{}/", folder.path().display());
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).replace(&here, "");
    (code, text(out), text(err))
}

fn errors(what: &str, (code, _, err): Shown) -> String {
    format!("# {what}, exit code {code}\n{err}")
}

#[test]
fn messages_of_unreadable_files() {
    let texts: [&[u8]; 2] = [b"\x28\xb5\x2f\xfd rest", b"prose\n"];
    let missing = ["/no/such/file"];
    let all = [
        errors("efa", testing::show(efa::run, &texts, &missing)),
        errors("mpi", testing::show(mpi::run, &texts, &missing)),
        errors("nccl", testing::show(nccl::run, &texts, &missing)),
        errors("nccl --compat", testing::show(nccl::run, &texts, &["--compat", "comm", "/no/such/file"])),
        errors("nccl-tests", show_nccl_tests(&texts, &missing)),
        errors("steps", testing::show(steps::run, &texts, &missing)),
    ];
    insta::assert_snapshot!(all.concat());
}

#[test]
fn messages_of_logs_of_something_else() {
    let epochs: &[u8] = b"Time taken for epoch 1 is 752.9 sec\n";
    let pax: &[u8] = b"I0411 15:03:26 1 programs.py:366] [PAX STATUS]: train_step() took 7.47 seconds.\n";
    let loss: &[u8] = b"iteration 7/9 | lm loss: 2 |\n";
    let step: &[u8] = b"iteration 7/9 | elapsed time per iteration (ms): 20.5 | lm loss: 2.5 |\n";
    let lfs: &[u8] = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 7\n";
    let row: &[u8] = b"1024 256 float sum -1 34.94 0.03 0.05 x 35.20 0.03 0.05 0\n";
    let all = [
        errors("efa", testing::show(efa::run, &[b""], &[])),
        errors("mpi", testing::show(mpi::run, &[b""], &[])),
        errors("nccl", testing::show(nccl::run, &[b""], &[])),
        errors("nccl of JSON", testing::show(nccl::run, &[b"{\n  \"rank\": 0\n}\n"], &[])),
        errors("nccl --compat", testing::show(nccl::run, &[b"prose\n"], &["--compat", "comm"])),
        errors("nccl-tests", show_nccl_tests(&[b"", b"prose\n", row, b"[{\"size\": 1024}]\n", lfs], &[])),
        errors("steps", testing::show(steps::run, &[b"", b"prose\n", epochs, pax, loss], &[])),
        errors("steps of a range", testing::show(steps::run, &[step], &["--steps", "70..75"])),
    ];
    let (_, compat, _) = testing::show(steps::run, &[b"prose\n"], &["--compat"]);
    let edges = ["0", "1T"].map(|text| nccl::edge(text).expect_err(text));
    let range = steps::range("5..2").expect_err("a range that ends before it begins");
    insta::assert_snapshot!(format!(
        "{}# steps --compat\n{compat}# --edges\n{}\n# --steps\n{range}",
        all.concat(),
        edges.join("\n")
    ));
}

#[test]
fn messages_beside_the_tables_of_nccl() {
    let line = |rank: u64, text: &str| format!("a:1{rank}:2 [{rank}] NCCL INFO {text}\n");
    let mut text = [
        line(0, "Channel 00/02 :    0   1   2   3"),
        line(1, "Trees [0] 2/-1/-1->1->0 [1] -1/-1/-1->1->2"),
        line(1, "NVLS Trees : [0] 2/-1/-1->1->0"),
        line(
            0,
            "24 coll channels, 0 collnet channels, 16 nvls channels, 32 p2p channels, 2 p2p channels per peer",
        ),
        line(0, "NVLS multicast support is available on dev 0"),
        line(4, "NET/Socket : Using [0]eth0:10.0.0.1<0>"),
        line(0, "AllReduce: 1024 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..3}"),
        line(
            0,
            "Init timings - ncclCommInitRank: rank 0 nranks 8 total 2.00 (kernels 0.25, bootstrap 1.25, rest 0.50)",
        ),
    ]
    .concat();
    for number in 0..25 {
        let letter = char::from(b'a' + number);
        text += &line(0, &format!("Flux capacitor {letter}{letter}{letter}{letter}"));
    }
    insta::assert_snapshot!(testing::show(nccl::run, &[text.as_bytes()], &[]).1);
}

#[test]
fn messages_beside_other_tables() {
    let fsdp: &[u8] = b"3: 2025-04-07 22:06:25 I [train.py:103] Epoch 1 Batch 5 Steps 9 Loss: 10.02562, \
                       Speed: 16.59 samples/sec, lr: 0.000038\n";
    let bar: &[u8] =
        "Epoch 1:  10%|█         | 10/100 [00:05<00:45,  2.00it/s, v_num=0, train_loss=0.5]\n".as_bytes();
    let sent: &[u8] = b"[1.0] MPI_Init: world_rank=0\n\
                       [1.5] MPI_Send: world_rank=0 comm_rank=0 -> dest=1 tag=5 bytes=8 comm=0x1\n";
    let head = "# nThread 1 nGpus 1 minBytes 1024 maxBytes 4096 step: 2(factor) warmup iters: 1 iters: 20\n";
    let row = |bytes: u64, algbw: f64, busbw: f64| {
        let half = format!("34.94 {algbw} {busbw} 0");
        format!("{bytes} {} float sum -1 {half} {half}\n", bytes / 4)
    };
    let (first, second, third) = (row(1024, 0.03, 0.05), row(2048, 0.06, 0.1), row(4096, 0.12, 0.2));
    let end = |average: f64| format!("# Out of bounds values : 0 OK\n# Avg bus bandwidth    : {average}\n");
    let runs = [
        format!("{first}n1: Test CUDA failure common.cu:9 'out of memory'\n"),
        format!("{head}{first}{second}{third}{}", end(480.0)),
        format!("{head}{first}{third}{}", end(0.125)),
        format!("{head}{}", end(0.1167)),
        format!("{head}{first}{second}{third}{}", end(0.1167)).replacen(" 0 34.94", " 5 34.94", 1),
    ];
    let runs = runs.each_ref().map(String::as_bytes);
    let all = [
        testing::show(efa::run, &[b"send_bytes :2\nsend_wrs :1\nrx_drops :0\n"], &[]),
        testing::show(mpi::run, &[sent], &[]),
        testing::show(steps::run, &[fsdp, bar], &[]),
        show_nccl_tests(&runs, &[]),
    ];
    insta::assert_snapshot!(all.map(|(_, out, _)| out).concat());
}
