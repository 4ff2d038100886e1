//! Allocation counts per thread.
//!
//! Each thread has its own counter, so that concurrent threads neither affect the count nor contend for it.

use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;

use records::Allocations;

thread_local! {
    // Const-initialised and without a destructor, because access must not allocate.
    static ASKED: Cell<Allocations> = const { Cell::new(Allocations { count: 0, bytes: 0 }) };
}

/// Allocator that counts allocations. Counts exist only if it is the global allocator, as in `pe-bench`.
#[derive(Debug)]
pub struct Counting<A>(pub A);

fn count(bytes: usize) {
    // A thread that is ending has no counter any more; its allocations are not counted.
    let _ = ASKED.try_with(|asked| {
        let Allocations { count, bytes: before } = asked.get();
        asked.set(Allocations {
            count: count.wrapping_add(1),
            bytes: before.wrapping_add(bytes as u64),
        });
    });
}

#[expect(unsafe_code, reason = "all calls are forwarded; counting does not touch their memory")]
// SAFETY: all calls are forwarded to the inner allocator.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Counting<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller's guarantees are those that the inner allocator requires.
        unsafe { self.0.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: as above.
        unsafe { self.0.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count(new_size);
        // SAFETY: as above.
        unsafe { self.0.realloc(block, layout, new_size) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { self.0.dealloc(block, layout) }
    }
}

/// Allocations of this thread so far; zero if the global allocator does not count.
pub fn asked() -> Allocations {
    ASKED.with(Cell::get)
}

/// Whether the global allocator counts.
pub fn is_counted() -> bool {
    let before = asked();
    drop(std::hint::black_box(Box::new(0_u8)));
    asked() != before
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::alloc::System;

    #[test]
    #[expect(unsafe_code, reason = "asks an allocator by hand")]
    fn blocks_are_counted_with_their_sizes_and_only_where_they_are_asked_for() {
        let allocator = Counting(System);
        let before = asked();
        let layout = Layout::array::<u8>(100).unwrap();
        // SAFETY: the layouts are those that the block has at the time.
        unsafe {
            let block = allocator.realloc(allocator.alloc(layout), layout, 300);
            allocator.dealloc(block, Layout::array::<u8>(300).unwrap());
            allocator.dealloc(allocator.alloc_zeroed(layout), layout);
        }
        let after = asked();
        assert_eq!((after.count - before.count, after.bytes - before.bytes), (3, 500));
        let elsewhere = std::thread::spawn(asked).join().unwrap();
        assert_eq!(elsewhere, Allocations::default());
    }

    #[test]
    fn it_is_known_whether_the_allocator_counts() {
        // The tests of this library have Rust's own.
        assert!(!is_counted());
    }
}
