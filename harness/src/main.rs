//! Parse, call, exit code; nothing else.

#[global_allocator]
static ALLOCATOR: recipes::huge_pages::HugePages = recipes::huge_pages::HugePages;

fn main() {
    std::process::exit(harness::cli::main(std::env::args_os().collect()));
}
