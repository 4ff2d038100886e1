//! The `pe-bench` command.

use pe_bench::allocations::Counting;

// Training frees and asks again for the same large buffers all the time; this allocator keeps them.
#[global_allocator]
static ALLOCATOR: Counting<mimalloc::MiMalloc> = Counting(mimalloc::MiMalloc);

fn main() -> std::process::ExitCode {
    pe_bench::cli::main_with(Ok(pe_zoo::Registry::builtin()))
}
