//! Conversion of panics in libraries to errors.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::sync::Once;

thread_local! {
    /// Whether a panic of this thread is converted to an error, so that nothing is printed.
    static CAUGHT: Cell<bool> = const { Cell::new(false) };
}

/// Runs a library's reader; a panic in it becomes an error and prints nothing.
///
/// `polars` and `tokenizers` return errors for most damaged files and panic on some. The reader's data are dropped
/// after a panic, so inconsistent data cannot be observed.
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
    let outer = CAUGHT.replace(true);
    let result = catch_unwind(AssertUnwindSafe(read));
    CAUGHT.set(outer);
    result.unwrap_or_else(|panic| {
        let said = panic.downcast_ref::<String>().map(String::as_str);
        let said = said.or_else(|| panic.downcast_ref::<&str>().copied());
        Err(said.unwrap_or("the reader panicked without a message").to_owned())
    })
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::caught;

    #[test]
    fn panics_become_errors_and_results_pass_through() {
        assert_eq!(caught(|| Ok(3)), Ok(3));
        assert_eq!(caught::<u8>(|| Err("no".to_owned())), Err("no".to_owned()));
        let number = std::hint::black_box(7);
        assert_eq!(caught::<u8>(|| panic!("number {number}")), Err("number 7".to_owned()));
    }

    /// Runs other tests as a process of their own, since a test cannot see what the test runner prints.
    #[test]
    fn caught_panics_print_nothing() {
        let tests = [
            "caught::tests::panics_become_errors_and_results_pass_through",
            "data::tests::damaged_parquet_is_an_error",
        ];
        for test in tests {
            let mut child = Command::new(std::env::current_exe().unwrap());
            let output = child.args(["--exact", test, "--nocapture"]).output().unwrap();
            let [said, printed] =
                [&output.stderr, &output.stdout].map(|bytes| String::from_utf8_lossy(bytes));
            assert!(printed.contains("1 passed"), "{printed}");
            assert!(!said.contains("panicked"), "{test}: {said}");
        }
    }

    #[test]
    fn other_panics_are_printed_after_a_caught_one() {
        const CHILD: &str = "PE_ZOO_TEST_OF_PANICS";
        if std::env::var_os(CHILD).is_some() {
            _ = caught::<u8>(|| panic!("caught"));
            panic!("not caught");
        }
        let test = "caught::tests::other_panics_are_printed_after_a_caught_one";
        let mut child = Command::new(std::env::current_exe().unwrap());
        let child = child.args(["--exact", test, "--nocapture"]).env(CHILD, "1");
        let said = String::from_utf8_lossy(&child.output().unwrap().stderr).into_owned();
        assert!(said.contains("not caught") && said.matches("panicked at").count() == 1, "{said}");
    }
}
