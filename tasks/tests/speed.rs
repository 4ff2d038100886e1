//! Speed of the generators. Run in release: `cargo test --workspace --release --test speed -- --ignored --nocapture`.
#![allow(clippy::unwrap_used, reason = "tests panic on failure")]

use std::hint::black_box;
use std::time::Instant;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use tasks::{ALL, TaskConfig};

/// Length in each task's unit.
const LEN: usize = 512;
/// Rate below which training on a fast device could wait for its data.
const TOKENS_PER_SECOND: f64 = 20e6;

#[test]
#[ignore = "measures time: meaningful in release on an idle machine only"]
fn every_task_draws_more_than_twenty_million_tokens_a_second() {
    let mut slow = Vec::new();
    for meta in ALL.iter().filter(|meta| !meta.takes_path) {
        let task = TaskConfig::from_id(meta.id).unwrap().build().unwrap();
        let mut rng = ChaCha8Rng::seed_from_u64(0);
        let mut draw = |count: usize| -> usize {
            (0..count).map(|_| black_box(task.train_sample(LEN, &mut rng)).tokens.len()).sum()
        };
        draw(200);
        // The best of five excludes the time of other processes.
        let rate = (0..5)
            .map(|_| {
                let start = Instant::now();
                let tokens = draw(2000);
                tokens as f64 / start.elapsed().as_secs_f64()
            })
            .fold(0.0, f64::max);
        eprintln!("{:20} {:7.0} million tokens a second", meta.id, rate / 1e6);
        if rate < TOKENS_PER_SECOND {
            slow.push(meta.id);
        }
    }
    assert!(slow.is_empty(), "too slow: {slow:?}");
}
