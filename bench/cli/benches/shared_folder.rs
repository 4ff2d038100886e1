//! Simulation of many workers on one results folder: threads with claims of their own stand for processes on many
//! machines. Files, locks and records are real, training is a pause.
//!
//! `cargo bench --bench shared_folder -- [FOLDER [WORKERS...]]`; default: a temporary folder, and 1, 10, 100 and 1000
//! workers. The folder decides what is measured: give one on the file system that the workers share.
//!
//! Two tables are printed. The first has the claims a second when every worker takes and releases free cells without a
//! pause. The second has a sweep of four cells for each worker, all started at once, without and with numbers of workers
//! (`run --worker`): the time until workers have their first cell, the time between the end of a cell and the start of the
//! worker's next one, and the time of the whole sweep beside the pauses alone.
#![expect(clippy::print_stdout, reason = "a measurement that nobody sees is none")]

use std::path::{Path, PathBuf};
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use sweep::claim::{ClaimAttempt, Claims};
use sweep::order;
use tasks::FileError;

/// As the default of `--claim-seconds`.
const PATIENCE: Duration = Duration::from_mins(1);
/// Duration of the first measurement.
const SATURATED: Duration = Duration::from_secs(5);
/// Cells of the sweep for each worker.
const CELLS: usize = 4;
/// Pause that stands for the training of a cell.
const TRAINING: Duration = Duration::from_secs(8);
/// A worker gives up after this time; the sweep is then not finished.
const LONGEST: Duration = Duration::from_mins(3);
/// Size of a record with two lengths, validations and slices.
const RECORD_BYTES: usize = 20_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments = std::env::args().skip(1).filter(|argument| !argument.starts_with("--"));
    let arguments = arguments.collect::<Vec<_>>();
    let temporary = tempfile::tempdir()?;
    let folder = arguments.first().map_or(temporary.path().to_owned(), PathBuf::from);
    let workers = match arguments.get(1..).filter(|workers| !workers.is_empty()) {
        Some(workers) => workers.iter().map(|n| n.parse()).collect::<Result<Vec<usize>, _>>()?,
        None => vec![1, 10, 100, 1000],
    };
    println!("| workers | claims/s | median | 99% | longest |");
    println!("| ---: | ---: | ---: | ---: | ---: |");
    for workers in &workers {
        let results = folder.join(format!("saturated-{workers}"));
        let (waits, took) = saturated(&results, *workers)?;
        let rate = waits.len() as f64 / took.as_secs_f64();
        let [median, most, longest] = shares(waits);
        println!("| {workers} | {rate:.0} | {median:.1?} | {most:.1?} | {longest:.1?} |");
        std::fs::remove_dir_all(&results)?;
    }
    println!();
    println!(
        "| workers | numbered | cells | first cell: median | last worker | next cell: median | 99% | sweep | pauses | tries |"
    );
    println!("| ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |");
    for (workers, numbered) in workers.iter().flat_map(|n| [(n, false), (n, true)]) {
        let results = folder.join(format!("sweep-{workers}"));
        let Sweep { done, first, next, took, tries } = sweep(&results, *workers, numbered)?;
        let ([first, _, last], [median, most, _]) = (shares(first), shares(next));
        println!(
            "| {workers} | {numbered} | {done} of {} | {first:.1?} | {last:.1?} | {median:.1?} | {most:.1?} | {took:.1?} | {:.1?} | {tries} |",
            workers * CELLS,
            TRAINING * CELLS as u32,
        );
        std::fs::remove_dir_all(&results)?;
    }
    Ok(())
}

/// Median, 99% and longest of some times.
fn shares(mut times: Vec<Duration>) -> [Duration; 3] {
    times.sort_unstable();
    let at = |share: f64| times.get((times.len().saturating_sub(1) as f64 * share) as usize);
    [0.5, 0.99, 1.0].map(|share| at(share).copied().unwrap_or_default())
}

/// Runs `work` in one thread for each worker, at once, and returns its results.
fn at_once<T: Send>(
    results: &Path,
    workers: usize,
    work: impl Fn(usize, &Claims) -> Result<T, FileError> + Sync,
) -> Result<Vec<T>, FileError> {
    let barrier = Barrier::new(workers);
    thread::scope(|scope| {
        let threads = (0..workers).map(|worker| {
            let (barrier, work) = (&barrier, &work);
            thread::Builder::new().stack_size(1 << 18).spawn_scoped(scope, move || {
                let claims = Claims::new(results, PATIENCE)?;
                barrier.wait();
                work(worker, &claims)
            })
        });
        let threads = threads.collect::<Result<Vec<_>, _>>().expect("a thread for each worker");
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    })
}

/// Time of each claim, and of all together: workers finish the claim that they try when [`SATURATED`] is over.
fn saturated(results: &Path, workers: usize) -> Result<(Vec<Duration>, Duration), FileError> {
    let start = Instant::now();
    let waits = at_once(results, workers, |worker, claims| {
        let (start, mut waits) = (Instant::now(), Vec::new());
        while start.elapsed() < SATURATED {
            let begun = Instant::now();
            let claim = claims.claim(&format!("{worker:08}{:08}", waits.len()))?;
            assert!(matches!(claim, ClaimAttempt::Mine(_)), "the cell is this worker's alone");
            drop(claim);
            waits.push(begun.elapsed());
        }
        Ok(waits)
    })?;
    Ok((waits.into_iter().flatten().collect(), start.elapsed()))
}

/// Result of a simulated sweep.
struct Sweep {
    done: u64,
    /// Time until each worker had its first cell.
    first: Vec<Duration>,
    /// Time between a cell's end and the worker's next one.
    next: Vec<Duration>,
    took: Duration,
    /// Claims that were tried.
    tries: u64,
}

fn sweep(
    results: &Path,
    workers: usize,
    numbered: bool,
) -> Result<Sweep, Box<dyn std::error::Error>> {
    let keys = (0..workers * CELLS).map(|cell| format!("{cell:016x}")).collect::<Vec<_>>();
    let cells = results.join("cells");
    std::fs::create_dir_all(&cells)?;
    let (done, tries) = (AtomicU64::new(0), AtomicU64::new(0));
    let start = Instant::now();
    let waits = at_once(results, workers, |worker, claims| {
        let (start, mut begun, mut waits) = (Instant::now(), Instant::now(), Vec::new());
        let mut cells_in_order = (0..keys.len()).collect::<Vec<_>>();
        let seconds = vec![TRAINING.as_secs_f64(); keys.len()];
        order::sort(&mut cells_in_order, &seconds, numbered.then_some(worker as u32));
        for key in cells_in_order.into_iter().map(|cell| &keys[cell]) {
            if start.elapsed() > LONGEST {
                break;
            }
            let record = cells.join(format!("{key}.json"));
            if record.exists() {
                continue;
            }
            tries.fetch_add(1, Ordering::Relaxed);
            let ClaimAttempt::Mine(claim) = claims.claim(key)? else { continue };
            if record.exists() {
                continue;
            }
            waits.push(begun.elapsed());
            thread::sleep(TRAINING);
            claim.is_still_mine()?;
            let written = records::store::write_atomically(&record, &vec![b'x'; RECORD_BYTES]);
            written.map_err(tasks::FileError::of("write", &record))?;
            done.fetch_add(1, Ordering::Relaxed);
            drop(claim);
            begun = Instant::now();
        }
        Ok(waits)
    })?;
    let took = start.elapsed();
    let first = waits.iter().filter_map(|waits| waits.first().copied()).collect();
    let next = waits.iter().flat_map(|waits| waits.iter().skip(1).copied()).collect();
    let [done, tries] = [done, tries].map(AtomicU64::into_inner);
    Ok(Sweep { done, first, next, took, tries })
}
