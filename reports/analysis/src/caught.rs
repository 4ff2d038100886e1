//! Conversion of panics of polars to errors. The crate `tasks`, on which this one does not depend, has the same for its files.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::sync::Once;

thread_local! {
    /// Whether a panic of this thread becomes an error, so that nothing is printed.
    static CAUGHT: Cell<bool> = const { Cell::new(false) };
}

/// Runs a reader; a panic in it becomes an error and prints nothing. Polars returns errors for most damaged files and panics
/// on some.
pub(crate) fn caught<T>(read: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let print = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            if !CAUGHT.get() {
                print(panic);
            }
        }));
    });
    CAUGHT.set(true);
    let result = catch_unwind(AssertUnwindSafe(read));
    CAUGHT.set(false);
    result.unwrap_or_else(|_| Err("the Parquet reader fails on this file".to_owned()))
}
