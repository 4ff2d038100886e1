//! Checks that the documentation of a task has its headings and a sample that the task draws.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::Example;
use crate::draw;
use crate::registry::module_doc;

const HEADINGS: [&str; 6] = [
    "# ",
    "## What it asks of an encoding",
    "## Predicted order",
    "## Definition",
    "## Sample",
    "## Source",
];

/// Seed of the documented sample.
const SEED: u64 = 0;

pub(crate) fn check(card: &str, source: &str, example: &Example) {
    let doc = module_doc(source);
    let doc: Vec<&str> = doc.lines().collect();
    let headings = doc.iter().filter(|line| line.starts_with('#'));
    for (line, heading) in headings.clone().zip(HEADINGS) {
        assert!(line.starts_with(heading), "`{line}` instead of `{heading}`");
    }
    assert_eq!(headings.count(), HEADINGS.len());
    assert_eq!(card, doc.join("\n"));

    let task = example.config.build().unwrap();
    let sample = task.train_sample(example.len, &mut ChaCha8Rng::seed_from_u64(SEED));
    let drawn = draw(task.as_ref(), &sample);
    let documented = doc
        .iter()
        .skip_while(|line| **line != "## Sample")
        .skip_while(|line| **line != "```text")
        .skip(1)
        .take_while(|line| **line != "```")
        .copied()
        .collect::<Vec<_>>()
        .join("\n");
    assert_eq!(documented, drawn, "write this sample into the documentation:\n{drawn}\n");
}
