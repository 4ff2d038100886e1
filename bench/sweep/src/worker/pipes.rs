//! Standard streams of a worker, as its sweep sees them.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin};
use std::sync::mpsc::{Receiver, channel};

use crate::protocol::WorkerReply;

/// Number of characters shown of a line that is no reply.
const SHOWN: usize = 80;

/// Collects the standard error of the worker.
pub(super) fn complaints(child: &mut Child) -> io::Result<std::thread::JoinHandle<String>> {
    let stderr = child.stderr.take();
    std::thread::Builder::new().spawn(move || {
        let mut bytes = Vec::new();
        let read = stderr.map_or(Ok(0), |mut stderr| stderr.read_to_end(&mut bytes));
        let text = String::from_utf8_lossy(&bytes).into_owned();
        match read {
            Ok(_) => text,
            Err(error) => format!("{text}\nits standard error cannot be read: {error}"),
        }
    })
}

/// Replies of the worker on its standard output, or the message about a line that is none.
pub(super) fn answers(child: &mut Child) -> io::Result<Receiver<Result<WorkerReply, String>>> {
    let (sender, receiver) = channel();
    let stdout = child.stdout.take();
    std::thread::Builder::new().spawn(move || {
        let mut lines = stdout.into_iter().flat_map(|stdout| BufReader::new(stdout).split(b'\n'));
        let mut is_open = true;
        while let Some(line) = lines.next().filter(|_| is_open) {
            is_open = line.is_ok() && sender.send(reply_of(line)).is_ok();
        }
    })?;
    Ok(receiver)
}

/// Reply in a line of a worker's standard output.
///
/// # Errors
/// Message, if the line cannot be read or is no reply, such as one that an encoding printed.
fn reply_of(line: io::Result<Vec<u8>>) -> Result<WorkerReply, String> {
    let line = line.map_err(|error| format!("the worker's replies cannot be read: {error}"))?;
    serde_json::from_slice(&line).map_err(|error| {
        let text = String::from_utf8_lossy(&line);
        let start = text.chars().take(SHOWN).collect::<String>();
        format!("the worker printed a line that is not a reply ({error}): {start}")
    })
}

/// Writes the request and returns the input, which must stay open: its end stops the worker. `None` if the worker does not
/// take the request; its input is closed then, so that it ends.
pub(super) fn hand_over(child: &mut Child, request: &str) -> Option<ChildStdin> {
    let mut stdin = child.stdin.take()?;
    writeln!(stdin, "{request}").and_then(|()| stdin.flush()).ok().map(|()| stdin)
}
