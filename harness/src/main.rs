//! Parse, call, exit code; nothing else.

fn main() {
    std::process::exit(harness::cli::main(std::env::args_os().collect()));
}
