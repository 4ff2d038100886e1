//! What the built-in suites call longer is longer than anything that training draws.
#![allow(clippy::unwrap_used, reason = "tests panic on failure")]

use std::collections::{BTreeMap, BTreeSet};

use tasks::{EvaluatedSplit, Sample, Task};
use train::streams::{Stream, stream};
use train::suite::{self, Overrides};

/// Number of training samples whose sizes are taken for all.
const DRAWN: usize = 1000;
/// Number of samples of each evaluation.
const ASKED: usize = 100;

/// Greatest number of tokens, and greatest value of each property, of samples.
struct Sizes {
    tokens: usize,
    properties: BTreeMap<&'static str, u32>,
}

impl Sizes {
    fn of(samples: impl Iterator<Item = Sample>) -> Self {
        let mut sizes = Self { tokens: 0, properties: BTreeMap::new() };
        for sample in samples {
            sizes.tokens = sizes.tokens.max(sample.tokens.len());
            for (name, value) in sample.slices {
                let most = sizes.properties.entry(name).or_default();
                *most = value.max(*most);
            }
        }
        sizes
    }

    /// Whether a sample has more tokens than any of these, or a property beyond all of them.
    fn is_exceeded_by(&self, sample: &Sample) -> bool {
        let beyond = |(name, value): &(&'static str, u32)| self.properties[name] < *value;
        sample.tokens.len() > self.tokens || sample.slices.iter().any(beyond)
    }
}

fn check(task: &dyn Task, train_len: usize, lens: &[usize], place: &str) {
    let mut rng = stream(5, Stream::Data);
    let trained = Sizes::of((0..DRAWN).map(|_| task.train_sample(train_len, &mut rng)));
    for split in task.splits() {
        for len in lens.iter().filter(|len| **len > train_len && task.check_len(**len).is_ok()) {
            let evaluation = EvaluatedSplit::new(task, split.name, *len, train_len).unwrap();
            for sample in task.eval_set(split.name, *len, ASKED, 11).unwrap() {
                assert!(
                    !evaluation.is_unseen(&sample) || trained.is_exceeded_by(&sample),
                    "{place}: a sample of {} at {len} is no larger than those of training at {train_len}: {:?}, {} tokens",
                    split.name,
                    sample.slices,
                    sample.tokens.len()
                );
            }
        }
    }
}

#[test]
fn questions_that_count_as_longer_exceed_training_in_every_suite() {
    let mut checked = BTreeSet::new();
    for (name, text) in suite::BUILT_IN {
        let suite = suite::parse(name, text, &Overrides::default()).unwrap();
        for cell in &suite.cells {
            // Texts have no sizes but their lengths, and are not on every machine.
            if cell.task.meta().takes_path {
                continue;
            }
            let (train_len, lens) = (cell.train.len, &cell.eval.lens);
            let key =
                format!("{} {train_len} {lens:?}", serde_json::to_string(&cell.task).unwrap());
            // So are the texts of other tasks.
            let Ok(task) = cell.task.build() else { continue };
            if checked.insert(key) {
                check(&*task, train_len, lens, &format!("{name}, {}", cell.workload));
            }
        }
    }
    assert!(checked.len() > 30, "{}", checked.len());
}
