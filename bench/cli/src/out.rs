//! Output: the only module that writes to standard output and standard error.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::borrow::Cow;
use std::error::Error as _;
use std::io::{ErrorKind, Write, stderr, stdout};
use std::num::{IntErrorKind, ParseFloatError, ParseIntError};
use std::sync::atomic::{AtomicBool, Ordering};

use clap::ColorChoice;
use console::Style;

/// Whether standard output failed before; further output is dropped and the command continues.
static CLOSED: AtomicBool = AtomicBool::new(false);

/// Whether standard output failed for a reason other than a closed pipe (as under `| head`).
static FAILED: AtomicBool = AtomicBool::new(false);

/// Exit status after an error about the command line, the same as clap's.
const USAGE: i32 = 2;

/// Text that is safe to print: no control character of its origin reaches the terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Printable(String);

impl Printable {
    /// Replaces each control character by its escape, as [`printable`].
    pub(super) fn of(text: &str) -> Self {
        Self(printable(text).into_owned())
    }

    /// Applies a terminal style.
    pub(super) fn styled(self, style: &Style) -> Self {
        Self(style.apply_to(self.0).to_string())
    }

    /// Appends two spaces and another text.
    pub(super) fn beside(self, other: &Self) -> Self {
        Self(format!("{}  {}", self.0, other.0))
    }

    /// Joins texts without space between them.
    pub(super) fn joined(parts: impl IntoIterator<Item = Self>) -> Self {
        Self(parts.into_iter().map(|part| part.0).collect())
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

/// Number of items with their name, in the plural unless it is 1: `1 cell`, `2 cells`.
pub(super) fn counted(count: usize, name: &str) -> String {
    format!("{count} {name}{}", if count == 1 { "" } else { "s" })
}

/// Prints a line. A closed pipe, as under `| head`, does not end the command.
pub(super) fn say(text: &str) {
    print(&Printable::of(text));
}

/// Prints a line that is already escaped.
pub(super) fn print(line: &Printable) {
    write(&format!("{}\n", line.0));
}

/// Prints text without a line end and flushes it.
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
            complain(&format!("error: cannot write to standard output: {error}"));
        }
    }
}

/// Whether nobody reads standard output any more.
pub(super) fn is_closed() -> bool {
    CLOSED.load(Ordering::Relaxed)
}

/// Whether output was lost for a reason other than a closed pipe.
pub(super) fn has_failed() -> bool {
    FAILED.load(Ordering::Relaxed)
}

/// Prints a message to standard error, without the middle of a very long one; failures to do so are ignored. Its kind is
/// coloured as clap does it.
pub(super) fn complain(text: &str) {
    let text = printable(text);
    let text = bounded(&text);
    let (kind, rest) = text.split_at(text.find(' ').unwrap_or(0));
    let style = match kind {
        "error:" => Style::new().red().bold(),
        "warning:" => Style::new().yellow().bold(),
        "note:" => Style::new().green(),
        _ => Style::new(),
    };
    let _ = writeln!(stderr(), "{}{rest}", style.for_stderr().apply_to(kind));
}

/// Sets when this process uses colours; by default on terminals, unless NO_COLOR is set.
pub(super) fn set_colors(choice: ColorChoice) {
    if choice != ColorChoice::Auto {
        console::set_colors_enabled(choice == ColorChoice::Always);
        console::set_colors_enabled_stderr(choice == ColorChoice::Always);
    }
}

/// Number of characters up to which a message is printed whole, and of those printed of a longer one at either end.
const LONGEST: usize = 2000;
const END: usize = 900;

/// Replaces the middle of a long text: a message repeats what a user wrote, which may have any length, and its cause and
/// remedy stand at its ends.
fn bounded(text: &str) -> Cow<'_, str> {
    let count = text.chars().count();
    if count <= LONGEST {
        return Cow::Borrowed(text);
    }
    let head = text.chars().take(END).collect::<String>();
    let tail = text.chars().skip(count - END).collect::<String>();
    Cow::Owned(format!("{head} ... ({} characters left out) ... {tail}", count - 2 * END))
}

/// Ends the program with a message about its command line. An argument may be the name of a file that somebody else
/// chose: one with control characters is printed without colours, as escapes.
pub(super) fn refuse(error: &clap::Error) -> ! {
    let text = text_of(error);
    let is_plain =
        matches!((printable(&text), bounded(&text)), (Cow::Borrowed(_), Cow::Borrowed(_)));
    if expected_number(error).is_none() && (!error.use_stderr() || is_plain) {
        error.exit();
    }
    complain(text.trim_end());
    std::process::exit(error.exit_code());
}

/// Text of an error about the command line, with what is expected in place of the message of a parser of numbers.
pub(super) fn text_of(error: &clap::Error) -> String {
    let text = error.render().to_string();
    match expected_number(error) {
        None => text,
        Some([said, expected]) => {
            text.replacen(&format!(": {said}\n"), &format!(": {expected}\n"), 1)
        }
    }
}

/// Ends the program with a message if an argument is not UTF-8: requests to workers, records and JSON output hold paths, and
/// JSON has no other text.
#[expect(clippy::unnecessary_debug_formatting, reason = "it shows the bytes that are no text")]
pub(super) fn refuse_other_than_utf8() {
    let Some(argument) = std::env::args_os().skip(1).find(|argument| argument.to_str().is_none())
    else {
        return;
    };
    complain(&format!(
        "error: the argument {argument:?} is not UTF-8; rename the file or folder, or give a link to it with a UTF-8 \
         name"
    ));
    std::process::exit(USAGE);
}

/// Message of a parser of numbers in an error about the command line, and what it should say.
fn expected_number(error: &clap::Error) -> Option<[String; 2]> {
    let source = error.source()?;
    let said = source.to_string();
    let range = said.split_once(" is not in ").and_then(|(_, range)| range.split_once("..="));
    if let Some((least, most)) = range {
        let expected = format!("expected a whole number from {least} to {most}");
        return Some([said, expected]);
    }
    let expected = match source.downcast_ref::<ParseIntError>().map(ParseIntError::kind) {
        Some(IntErrorKind::PosOverflow) => "expected a smaller whole number",
        Some(IntErrorKind::Zero) => "expected a whole number of at least 1",
        Some(_) => "expected a whole number of at least 0",
        None if source.is::<ParseFloatError>() => "expected a number",
        None => return None,
    };
    Some([said, expected.to_owned()])
}

/// Prints panics through [`complain`], with a backtrace if the environment asks for one.
pub(super) fn print_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let thread = std::thread::current();
        complain(&format!("thread `{}` {panic}", thread.name().unwrap_or("unnamed")));
        let backtrace = Backtrace::capture();
        if backtrace.status() == BacktraceStatus::Captured {
            let _ = writeln!(stderr(), "{}", printable(&backtrace.to_string()));
        }
    }));
}

/// Formats an error and its causes as one line, without causes that the text already contains.
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
    fn a_long_message_keeps_its_ends() {
        let text = format!("unknown encoding `{}`; known: rope", "é+".repeat(5000));
        let printed = bounded(&text);
        assert!(printed.starts_with("unknown encoding `é+é") && printed.ends_with("known: rope"));
        assert!(printed.contains("(8232 characters left out)"), "{printed}");
        assert!(printed.chars().count() <= LONGEST);
        let short = "x".repeat(LONGEST);
        assert!(matches!(bounded(&short), Cow::Borrowed(same) if same == short));
    }

    #[test]
    fn a_cause_is_said_once() {
        let error = anyhow::anyhow!("No such file").context("a.toml: No such file; check it");
        assert_eq!(chain(&error), "a.toml: No such file; check it");
        let error = anyhow::anyhow!("disk full").context("a.json cannot be written");
        assert_eq!(chain(&error), "a.json cannot be written: disk full");
    }
}
