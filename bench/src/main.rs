//! The `pe-bench` command.

// Training frees and asks again for the same large buffers all the time; this allocator keeps them.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    pe_bench::cli::main()
}
