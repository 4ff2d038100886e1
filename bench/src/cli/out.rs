//! The only place that prints.

/// Prints a line for the user.
#[expect(clippy::print_stdout, reason = "this is the program's output")]
pub(super) fn say(text: &str) {
    println!("{text}");
}

/// Prints a line about trouble.
pub(super) fn complain(text: &str) {
    eprintln!("{text}");
}
