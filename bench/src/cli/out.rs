//! The only place that prints.

use std::io::{ErrorKind, Write, stdout};

/// Prints a line for the user; ends the program quietly when nobody reads on, as under `| head`.
pub(super) fn say(text: &str) {
    if let Err(error) = writeln!(stdout(), "{text}") {
        if error.kind() == ErrorKind::BrokenPipe {
            std::process::exit(0);
        }
        complain(&format!("error: output cannot be written: {error}"));
        std::process::exit(1);
    }
}

/// Prints a line about trouble.
pub(super) fn complain(text: &str) {
    eprintln!("{text}");
}
