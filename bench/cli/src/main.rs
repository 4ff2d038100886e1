//! The `pe-bench` command.

use train::allocations::Counting;

// Training repeatedly frees and allocates the same large buffers, which this allocator caches.
#[global_allocator]
static ALLOCATOR: Counting<mimalloc::MiMalloc> = Counting(mimalloc::MiMalloc);

fn main() -> std::process::ExitCode {
    pe_bench::main_with(Ok(pe_zoo::Registry::builtin()))
}
