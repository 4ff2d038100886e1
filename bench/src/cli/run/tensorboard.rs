//! `--tensorboard DIR`: event files of running cells.
//!
//! Each cell has the folder `DIR/<workload>/<encoding>/seed-<seed>-<key>` with a file of this sweep, so that a resumed cell
//! has several; TensorBoard shows them as one. Scalars are `train/loss` and `train/learning_rate` (points of the training
//! curve: means since the last point), `train/step_loss` (the loss of a step, about once a second), and
//! `validation/exact_match`, `validation/token_accuracy` and `validation/nll`.
//!
//! A file is a sequence of TFRecords, each a serialized `Event` of TensorFlow's `event.proto`.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tasks::FileError;

use crate::cli::out::complain;
use crate::run::Progress;
use crate::sweep::{CellEvent, SweepEvent, SweepPlan};

/// Least time between two losses of single steps in a file.
const BETWEEN_LOSSES: Duration = Duration::from_secs(1);

/// Writer of the event files of a sweep.
pub(super) struct TensorBoard<'a> {
    folder: &'a Path,
    plan: &'a SweepPlan,
    /// Files of running cells, by index.
    files: BTreeMap<usize, EventFile>,
    /// Whether a write has failed; nothing is written from then on.
    has_failed: bool,
}

impl<'a> TensorBoard<'a> {
    pub(super) fn new(folder: &'a Path, plan: &'a SweepPlan) -> Self {
        Self { folder, plan, files: BTreeMap::new(), has_failed: false }
    }

    /// Writes an event. The first failure is reported, and the sweep continues without event files.
    pub(super) fn event(&mut self, event: &SweepEvent) {
        if self.has_failed {
            return;
        }
        if let Err(error) = self.write(event) {
            self.has_failed = true;
            complain(&format!(
                "warning: --tensorboard: {error}; the sweep continues without event files"
            ));
        }
    }

    fn write(&mut self, SweepEvent { index, what }: &SweepEvent) -> Result<(), FileError> {
        match what {
            CellEvent::Began { .. } => {
                self.files.insert(*index, EventFile::create(&self.place(*index))?);
                Ok(())
            }
            CellEvent::Interrupted | CellEvent::Lost | CellEvent::Ended(_) => {
                self.files.remove(index);
                Ok(())
            }
            what => match self.files.get_mut(index) {
                Some(file) => file.append(what).map_err(FileError::of("write", &file.path)),
                None => Ok(()),
            },
        }
    }

    /// Folder of a cell.
    fn place(&self, index: usize) -> PathBuf {
        let cell = &self.plan.cells[index].cell;
        let safe =
            |c: char| if c.is_ascii_alphanumeric() || "+-_.=,".contains(c) { c } else { '_' };
        let folder =
            |name: &str| name.trim_start_matches('.').chars().map(safe).collect::<String>();
        let key = self.plan.keys[index].get(..8).unwrap_or_default();
        let run = format!("seed-{}-{key}", cell.seed);
        self.folder.join(folder(&cell.workload)).join(folder(&cell.name)).join(run)
    }
}

/// Event file of one cell.
struct EventFile {
    path: PathBuf,
    file: File,
    last_loss: Option<Instant>,
}

impl EventFile {
    /// Creates a file with the version of the format.
    fn create(folder: &Path) -> Result<Self, FileError> {
        fs::create_dir_all(folder).map_err(FileError::of("create", folder))?;
        let nanoseconds = now().as_nanos();
        let name = format!("events.out.tfevents.{nanoseconds}.{}", std::process::id());
        let path = folder.join(name);
        let mut file = File::create(&path).map_err(FileError::of("create", &path))?;
        file.write_all(&record(&event(0, &bytes_field(3, b"brain.Event:2"))))
            .map_err(FileError::of("write", &path))?;
        Ok(Self { path, file, last_loss: None })
    }

    fn append(&mut self, what: &CellEvent) -> io::Result<()> {
        match what {
            // A session that starts at a step replaces what earlier files have from this step on.
            CellEvent::Resumed { step } => {
                let start = bytes_field(7, &varint_field(1, 1));
                self.file.write_all(&record(&event(*step as u64 + 1, &start)))
            }
            CellEvent::Progress(Progress::Train { done, loss: Some(loss), .. }) => {
                if self.last_loss.is_some_and(|last| last.elapsed() < BETWEEN_LOSSES) {
                    return Ok(());
                }
                self.last_loss = Some(Instant::now());
                self.scalars(*done as u64, &[("train/step_loss", *loss)])
            }
            CellEvent::Point(point) => self.scalars(
                point.step,
                &[("train/loss", point.loss), ("train/learning_rate", point.learning_rate)],
            ),
            CellEvent::Validated(validation) => self.scalars(
                validation.step,
                &[
                    ("validation/exact_match", validation.exact_match),
                    ("validation/token_accuracy", validation.token_accuracy),
                    ("validation/nll", validation.nll),
                ],
            ),
            _ => Ok(()),
        }
    }

    fn scalars(&mut self, step: u64, values: &[(&str, f64)]) -> io::Result<()> {
        let value = |(tag, value): &(&str, f64)| {
            let simple = [&[field(2, 5)][..], &(*value as f32).to_le_bytes()].concat();
            bytes_field(1, &[bytes_field(1, tag.as_bytes()), simple].concat())
        };
        let summary = values.iter().flat_map(value).collect::<Vec<_>>();
        self.file.write_all(&record(&event(step, &bytes_field(5, &summary))))
    }
}

fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Serialized `Event` at a step with one further field.
fn event(step: u64, content: &[u8]) -> Vec<u8> {
    let wall_time = [&[field(1, 1)][..], &now().as_secs_f64().to_le_bytes()].concat();
    [&wall_time[..], &varint_field(2, step), content].concat()
}

/// Tag of a field in the wire format of protocol buffers, for numbers below 16. Wire type 0 is a varint, 1 has 64 bits, 2
/// a length, 5 has 32 bits.
fn field(number: u8, wire_type: u8) -> u8 {
    (number << 3) | wire_type
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

fn varint_field(number: u8, value: u64) -> Vec<u8> {
    [&[field(number, 0)][..], &varint(value)].concat()
}

fn bytes_field(number: u8, bytes: &[u8]) -> Vec<u8> {
    [&[field(number, 2)][..], &varint(bytes.len() as u64), bytes].concat()
}

/// TFRecord: length and data, each followed by a masked CRC-32C.
fn record(data: &[u8]) -> Vec<u8> {
    let length = (data.len() as u64).to_le_bytes();
    [&length[..], &masked_crc(&length).to_le_bytes(), data, &masked_crc(data).to_le_bytes()]
        .concat()
}

fn masked_crc(data: &[u8]) -> u32 {
    crc32c(data).rotate_right(15).wrapping_add(0xa282_ead8)
}

/// CRC-32C (Castagnoli) of RFC 3720, bit by bit: a few kilobytes a second are written.
fn crc32c(data: &[u8]) -> u32 {
    !data.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ ((crc & 1) * 0x82f6_3b78))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_those_of_rfc_3720() {
        // Appendix B.4 of the RFC.
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
        assert_eq!(crc32c(&[0xff; 32]), 0x62a8_ab43);
        assert_eq!(crc32c(&(0..32).collect::<Vec<u8>>()), 0x46dd_794e);
    }

    #[test]
    fn varints_have_seven_bits_a_byte() {
        assert_eq!(varint(0), [0]);
        assert_eq!(varint(300), [0xac, 0x02]);
        assert_eq!(varint(u64::MAX).len(), 10);
    }
}
