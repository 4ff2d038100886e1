//! Records in one Parquet file, `records.parquet`, for results that are kept in a repository.
//!
//! A row has the key of a cell, what it was, and its record as JSON with the checksum. Rows of similar cells are
//! neighbours, so that most of their text compresses away.

use std::collections::BTreeSet;
use std::io::Cursor;
use std::path::Path;

use polars::polars_utils::compression::ZstdLevel;
use polars::prelude::*;
use rayon::prelude::*;
use records::store::RecordError;
use records::{Answers, CurvePoint, Outcomes, RunRecord, Validation};

use crate::caught::caught;

/// Name of the file in a results folder.
pub const PACKED: &str = "records.parquet";

/// Level of compression; higher ones take longer and save less than 1%.
const LEVEL: i32 = 19;

/// Bytes of a page before compression. Pages are compressed apart from each other: those of 1 MiB, the default, make the
/// file of 4,631 lean records 6% larger.
const PAGE: usize = 64 << 20;

/// Packs records into the bytes of a Parquet file.
///
/// # Errors
/// [`RecordError::Unwritable`] and [`RecordError::Packing`].
pub fn pack(records: &[RunRecord]) -> Result<Vec<u8>, RecordError> {
    let mut order: Vec<&RunRecord> = records.iter().collect();
    order.sort_by_key(|r| {
        let fresh = r.grid.as_ref().map(|grid| grid.fresh);
        (&r.suite, &r.workload, fresh, &r.encoding.name, r.seed, &r.key)
    });
    let texts: Result<Vec<String>, RecordError> = order.iter().map(|r| r.line()).collect();
    let column = |get: fn(&RunRecord) -> &str| order.iter().map(|r| get(r)).collect::<Vec<_>>();
    let write = |texts: Vec<String>| -> PolarsResult<Vec<u8>> {
        crate::threads::check()?;
        let mut frame = df!(
            "key" => column(|r| &r.key),
            "suite" => column(|r| &r.suite),
            "workload" => column(|r| &r.workload),
            "encoding" => column(|r| &r.encoding.name),
            "seed" => order.iter().map(|r| r.seed).collect::<Vec<_>>(),
            "status" => column(|r| r.status.name()),
            "record" => texts,
        )?;
        let mut bytes = Vec::new();
        let compression = ParquetCompression::Zstd(Some(ZstdLevel::try_new(LEVEL)?));
        let writer = ParquetWriter::new(&mut bytes).with_data_page_size(Some(PAGE));
        writer.with_compression(compression).finish(&mut frame)?;
        Ok(bytes)
    };
    write(texts?).map_err(|error| RecordError::Packing { reason: error.to_string() })
}

/// Reads the packed records of a results folder, with one result for each row; none without such a file. A file that is no
/// file of packed records is one [`RecordError::Damaged`], and so is a row whose cell an earlier row has.
///
/// # Errors
/// [`RecordError::Io`] if the file cannot be read.
pub(crate) fn read_packed(dir: &Path) -> Result<Vec<Result<RunRecord, RecordError>>, RecordError> {
    let path = dir.join(PACKED);
    if !path.is_file() {
        return Ok(Vec::new());
    }
    let bytes = std::fs::read(&path).map_err(|error| RecordError::io("read", &path, error))?;
    let parsed = |text: String| RunRecord::parse(&path, text.as_bytes());
    let mut records: Vec<_> = match caught(|| texts(bytes).map_err(|error| error.to_string())) {
        Ok(texts) => texts.into_par_iter().map(parsed).collect(),
        Err(reason) => vec![Err(RecordError::Damaged { path: path.clone(), reason })],
    };
    // Each would be counted.
    let mut seen = BTreeSet::new();
    for found in &mut records {
        if let Ok(record) = found
            && !seen.insert(record.key.clone())
        {
            let reason = format!("it has the cell {} more than once", record.key);
            *found = Err(RecordError::Damaged { path: path.clone(), reason });
        }
    }
    Ok(records)
}

/// Reads the column of records, on this thread, so that a panic stays on it.
fn texts(bytes: Vec<u8>) -> PolarsResult<Vec<String>> {
    let reader = ParquetReader::new(Cursor::new(bytes));
    let reader = reader.with_columns(Some(vec!["record".to_owned()]));
    let frame = reader.read_parallel(ParallelStrategy::None).finish()?;
    let texts = frame.column("record")?.str()?;
    Ok(texts.iter().map(|text| text.unwrap_or_default().to_owned()).collect())
}

/// Removes from records what a report of a repository does not need, and rounds what it shows with fewer digits; a second
/// time changes nothing.
///
/// Results by sample property are removed; of cells that only chose a value of a grid, beside others with fresh seeds,
/// also the training curve, all validations but the last, gates, and answers to single questions. Losses of single
/// questions are rounded to 86 evenly spaced values from the smallest to the largest of an evaluation, curves and
/// validations to four digits, perplexities and bits per byte, which follow from the likelihood, to six, and seconds of
/// evaluations to two. Where there are validations, their own seconds and those of curves, from which nothing is
/// computed then, keep one digit, and likelihoods of validations before the last two if exact match ranks. Other
/// results keep all digits.
pub fn lean(records: &mut [RunRecord]) {
    let place = |r: &RunRecord| (r.suite.clone(), r.workload.clone());
    let is_fresh = |r: &RunRecord| r.grid.as_ref().is_some_and(|grid| grid.fresh);
    let fresh: BTreeSet<_> = records.iter().filter(|r| is_fresh(r)).map(place).collect();
    for record in records {
        let only_chose =
            record.grid.is_some() && !is_fresh(record) && fresh.contains(&place(record));
        lean_one(record, only_chose);
    }
}

fn lean_one(record: &mut RunRecord, only_chose: bool) {
    for eval in &mut record.evals {
        eval.slices.clear();
        if only_chose {
            eval.outcomes = None;
        }
        if let Some(Outcomes { answers: Answers::Nll(losses), .. }) = &mut eval.outcomes {
            losses.coarsen();
        }
        shorten(&mut eval.perplexity, 6);
        eval.bits_per_byte.iter_mut().for_each(|bits| shorten(bits, 6));
        shorten(&mut eval.seconds, 2);
    }
    let train = &mut record.train;
    if only_chose {
        train.curve.clear();
        train.validations.drain(..train.validations.len().saturating_sub(1));
        train.split_validations.clear();
        record.gates.clear();
    }
    let timed = if train.validations.is_empty() { 4 } else { 1 };
    for CurvePoint { loss, learning_rate, seconds, .. } in &mut train.curve {
        shorten(loss, 4);
        shorten(learning_rate, 4);
        shorten(seconds, timed);
    }
    let others = train.split_validations.iter_mut().map(|other| &mut other.result);
    for Validation { token_accuracy, nll, seconds, .. } in
        train.validations.iter_mut().chain(others)
    {
        shorten(token_accuracy, 4);
        shorten(nll, 4);
        shorten(seconds, 1);
    }
    if let [before @ .., _] = &mut train.validations[..]
        && record.task.headline == "exact-match"
    {
        for validation in before {
            shorten(&mut validation.nll, 2);
        }
    }
}

/// Rounds a number to this many significant digits, at least one.
fn shorten(number: &mut f64, digits: usize) {
    *number = format!("{number:.*e}", digits - 1).parse().unwrap_or(*number);
}

#[cfg(test)]
mod tests {
    use std::fs;

    use records::store::hex;
    use records::testkit::TestCell;
    use sha2::{Digest, Sha256};

    use super::*;
    use crate::folder::packed_only;

    #[test]
    fn lean_records_keep_four_digits_of_curves_and_all_of_results() {
        let mut record = TestCell::new("w", "rope", 0).beyond(0.123_456_789).record();
        record.train.curve[0].loss = 1.234_567_8;
        record.train.curve[1].loss = f64::NAN;
        let validation = records::Validation {
            step: 50,
            exact_match: 57.0 / 128.0,
            token_accuracy: 0.750_499_001,
            nll: 1.234_567e-7,
            samples: 128,
            seconds: 12_345.678,
        };
        record.train.validations = vec![validation];
        let mut all = [record.clone()];
        lean(&mut all);
        let [lean] = all;
        assert!(lean.train.curve[1].loss.is_nan());
        let found = lean.train.validations[0];
        assert_eq!((found.nll, found.token_accuracy, found.seconds), (1.235e-7, 0.7505, 10_000.0));
        assert_eq!((lean.train.curve[0].loss, found.exact_match), (1.235, 57.0 / 128.0));
        assert_eq!((lean.evals, lean.train.seconds), (record.evals, record.train.seconds));
    }

    #[test]
    fn a_second_lean_pack_changes_nothing_and_the_first_keeps_what_results_need() {
        let grid = |fresh: bool| {
            let axis = "train.optimizer.learning_rate".to_owned();
            Some(records::GridPoint { axis, value: 1e-3, default: true, fresh })
        };
        let mut records: Vec<RunRecord> = Vec::new();
        for (workload, fresh) in
            [("grid", false), ("grid", true), ("text", true), ("no-fresh", false)]
        {
            let mut record = TestCell::new(workload, "rope", u64::from(fresh)).beyond(0.7).record();
            if workload == "text" {
                record.task.headline = "perplexity".into();
            }
            record.grid = grid(fresh);
            let point = |step: u64| records::Validation {
                step,
                exact_match: 1.0 / 3.0,
                token_accuracy: 2.0 / 3.0,
                nll: 1.234_567,
                samples: 3,
                seconds: 1.0 / 3.0,
            };
            record.train.validations = vec![point(50), point(100)];
            let sums: Vec<f64> = (0..50_u32).map(|i| 2.0 + f64::from(i * i % 47) / 30.0).collect();
            let losses = records::Losses::of(&sums, &[1; 50]).unwrap();
            for eval in &mut record.evals {
                (eval.nll, eval.perplexity, eval.seconds) = (1.0 / 3.0, 4.0 / 3.0, 2.0 / 3.0);
                let answers = records::Answers::Nll(losses.clone());
                let questions = "0f".to_owned();
                eval.outcomes = Some(records::Outcomes { questions, answers });
            }
            records.push(record.as_written().unwrap());
        }
        let mut once = records.clone();
        lean(&mut once);
        let steps = |r: &RunRecord| r.train.validations.iter().map(|v| v.step).collect::<Vec<_>>();
        assert_eq!(steps(&once[0]), [100], "it only chose");
        assert!(once[0].train.curve.is_empty() && once[0].evals[0].outcomes.is_none());
        for (lean, full) in once.iter().zip(&records).skip(1) {
            assert_eq!(
                (steps(lean), lean.train.curve.len()),
                (vec![50, 100], full.train.curve.len())
            );
            assert!(
                lean.evals[0].outcomes.is_some()
                    && lean.evals[0].outcomes != full.evals[0].outcomes
            );
        }
        let likelihoods =
            |r: &RunRecord| r.train.validations.iter().map(|v| v.nll).collect::<Vec<_>>();
        assert_eq!(likelihoods(&once[1]), [1.2, 1.235]);
        assert_eq!(likelihoods(&once[2]), [1.235; 2], "the figure of a text shows them");
        let eval = &once[2].evals[0];
        assert!((eval.nll - 1.0 / 3.0).abs() < 1e-14);
        assert_eq!((eval.perplexity, eval.seconds), (1.333_33, 0.67));
        // Read back and packed again.
        let dir = tempfile::tempdir().unwrap();
        let bytes = pack(&once).unwrap();
        fs::write(dir.path().join(PACKED), &bytes).unwrap();
        let mut read: Vec<RunRecord> =
            packed_only(dir.path()).unwrap().into_iter().collect::<Result<_, _>>().unwrap();
        lean(&mut read);
        assert!(pack(&read).unwrap() == bytes);
    }

    #[test]
    fn what_records_share_is_packed_once() {
        let shared: String = (0..256_u32).map(|n| hex(&Sha256::digest(n.to_le_bytes()))).collect();
        let record = |seed| {
            let cell = TestCell::new("w", "rope", seed);
            cell.change(|r| r.host.cpu = shared.clone()).record()
        };
        // Of 18 MiB, 16 KiB in each record are the same, 8 KiB in compressed form. In pages of 1 MiB it would be 257,080 bytes.
        let bytes = pack(&(0..1024).map(record).collect::<Vec<_>>()).unwrap();
        assert!(bytes.len() < 150_000, "{}", bytes.len());
    }
}
