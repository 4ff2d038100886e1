//! Libraries that panic on damaged files.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs a library's reader; a panic in it becomes an error like its others.
///
/// `polars` and `tokenizers` return errors for most damaged files and panic on some. Nothing that the reader has
/// touched is used afterwards, so nothing half-changed can be seen.
pub(crate) fn caught<T>(read: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(|panic| {
        let said = panic.downcast_ref::<String>().map(String::as_str);
        let said = said.or_else(|| panic.downcast_ref::<&str>().copied());
        Err(said.unwrap_or("its reader gave up").to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::caught;

    #[test]
    fn panics_become_errors_and_results_pass_through() {
        assert_eq!(caught(|| Ok(3)), Ok(3));
        assert_eq!(caught::<u8>(|| Err("no".to_owned())), Err("no".to_owned()));
        let number = std::hint::black_box(7);
        assert_eq!(caught::<u8>(|| panic!("number {number}")), Err("number 7".to_owned()));
    }
}
