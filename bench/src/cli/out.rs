//! Printing: the only place that writes to standard output and standard error.

use std::borrow::Cow;
use std::io::{ErrorKind, Write, stderr, stdout};
use std::sync::atomic::{AtomicBool, Ordering};

use console::Style;

/// Standard output takes no more; what is said is dropped and the work goes on.
static CLOSED: AtomicBool = AtomicBool::new(false);

/// Standard output failed for another reason than that its reader has left, as `head` does.
static FAILED: AtomicBool = AtomicBool::new(false);

/// Text that is safe to print: no control character of its origin reaches the terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Printable(String);

impl Printable {
    /// Replaces each control character by its escape, as [`printable`].
    pub(super) fn of(text: &str) -> Self {
        Self(printable(text).into_owned())
    }

    /// The same in a style.
    pub(super) fn styled(self, style: &Style) -> Self {
        Self(style.apply_to(self.0).to_string())
    }

    /// This text, two spaces, and another.
    pub(super) fn beside(self, other: &Self) -> Self {
        Self(format!("{}  {}", self.0, other.0))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

/// Replaces every control character but line feed and tab by its JSON escape: a record, a suite or a model file must
/// not be able to drive the terminal. Characters that turn the direction of writing count as control characters.
pub(super) fn printable(text: &str) -> Cow<'_, str> {
    let hidden = |c: char| {
        (c.is_control() && c != '\n' && c != '\t')
            || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    if !text.contains(hidden) {
        return Cow::Borrowed(text);
    }
    let escape = |c: char| if hidden(c) { format!("\\u{:04x}", c as u32) } else { c.to_string() };
    Cow::Owned(text.chars().map(escape).collect())
}

/// Prints a line. A reader that has left, as under `| head`, ends no work.
pub(super) fn say(text: &str) {
    print(&Printable::of(text));
}

/// Prints a line that is printable already.
pub(super) fn print(line: &Printable) {
    write(&format!("{}\n", line.0));
}

/// Prints a part of a line at once.
pub(super) fn say_part(text: &str) {
    write(&printable(text));
}

fn write(text: &str) {
    if CLOSED.load(Ordering::Relaxed) {
        return;
    }
    let mut out = stdout();
    if let Err(error) = out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        CLOSED.store(true, Ordering::Relaxed);
        if error.kind() != ErrorKind::BrokenPipe {
            FAILED.store(true, Ordering::Relaxed);
            complain(&format!("error: standard output cannot be written: {error}"));
        }
    }
}

/// Whether output was lost for another reason than that its reader has left.
pub(super) fn has_failed() -> bool {
    FAILED.load(Ordering::Relaxed)
}

/// Prints a line about trouble; one that cannot be printed is dropped.
pub(super) fn complain(text: &str) {
    let _ = writeln!(stderr(), "{}", printable(text));
}

/// An error and its causes as one line; a cause that the error before it quotes is not repeated.
pub(super) fn chain(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if text.is_empty() {
            text = cause;
        } else if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_become_escapes_that_json_reads() {
        let hostile = "a\u{1b}[31m\u{7}\u{9b}2J\r\u{7f}\u{202e}b";
        let clean = printable(hostile);
        assert_eq!(clean, "a\\u001b[31m\\u0007\\u009b2J\\u000d\\u007f\\u202eb");
        assert_eq!(serde_json::from_str::<String>(&format!("\"{clean}\"")).unwrap(), hostile);
        for plain in ["", "tab\tand\nlines", "größer – 漢字 …"] {
            assert!(matches!(printable(plain), Cow::Borrowed(same) if same == plain));
        }
    }

    #[test]
    fn a_cause_is_said_once() {
        let error = anyhow::anyhow!("No such file").context("a.toml: No such file; check it");
        assert_eq!(chain(&error), "a.toml: No such file; check it");
        let error = anyhow::anyhow!("disk full").context("a.json cannot be written");
        assert_eq!(chain(&error), "a.json cannot be written: disk full");
    }
}
