//! Bootstrap draws of the runs of tasks. Scores are counted instead of sorted, because a large report has hundreds of pairs
//! of encodings.

use rand::{Rng, RngExt};

use super::TaskScores;

impl TaskScores {
    /// Draws the shift of all scores.
    pub(super) fn shift(&self, rng: &mut impl Rng) -> f64 {
        if self.question_error > 0.0 { self.question_error * normal(rng) } else { 0.0 }
    }

    /// Draws the index of a seed as often as there are seeds.
    pub(super) fn picks(&self, rng: &mut impl Rng) -> impl Iterator<Item = usize> {
        let n = self.seeds.len();
        (0..n).map(move |_| rng.random_range(0..n))
    }
}

/// Scores in ascending order, and how often a draw has each.
pub(super) struct DrawnScores {
    sorted: Vec<f64>,
    /// Place in `sorted` of each seed.
    places: Vec<usize>,
    /// Number of times that each of `sorted` is drawn.
    counts: Vec<u32>,
}

impl DrawnScores {
    pub(super) fn new(seeds: &[f64]) -> Self {
        let mut order: Vec<usize> = (0..seeds.len()).collect();
        order.sort_by(|a, b| seeds[*a].total_cmp(&seeds[*b]));
        let mut places = vec![0; order.len()];
        order.iter().enumerate().for_each(|(place, seed)| places[*seed] = place);
        let sorted = order.iter().map(|seed| seeds[*seed] + 0.0).collect();
        Self { sorted, places, counts: vec![0; order.len()] }
    }

    /// Counts the picks of a task whose first seed has the index `first`.
    pub(super) fn add(&mut self, picks: impl Iterator<Item = usize>, first: usize) {
        let places = &self.places[first..];
        for pick in picks {
            self.counts[places[pick]] += 1;
        }
    }

    /// Returns the number of scores at or below a threshold.
    pub(super) fn place(&self, threshold: f64) -> usize {
        self.sorted.partition_point(|score| *score <= threshold)
    }

    /// Returns the interquartile mean of the drawn scores and, for each place, the share of them that come after it in
    /// ascending order. The counts are then 0 again.
    pub(super) fn summarize(&mut self, places: &[usize]) -> (f64, Vec<f64>) {
        let drawn = self.sorted.len();
        let (cut, mut before, mut sum) = (drawn / 4, 0, 0.0);
        for (score, count) in self.sorted.iter().zip(&self.counts) {
            let up_to = before + *count as usize;
            // Each draw is added by itself, as in a list of all of them.
            for _ in before.max(cut)..up_to.min(drawn - cut) {
                sum += score;
            }
            before = up_to;
        }
        let after = |place: &usize| self.counts[*place..].iter().sum::<u32>();
        let shares = places.iter().map(|place| f64::from(after(place)) / drawn as f64).collect();
        self.counts.fill(0);
        (sum / (drawn - 2 * cut) as f64, shares)
    }
}

/// Draws of two encodings on one task.
pub(super) struct DrawnPair<'a> {
    tasks: [&'a TaskScores; 2],
    a: DrawnScores,
    b: DrawnScores,
    /// For each score of `a` in ascending order the number of scores of `b` below it, and at or below it.
    below: Vec<[usize; 2]>,
    /// Number of drawn scores of `b` before each of its scores in ascending order.
    sums: Vec<u32>,
}

impl<'a> DrawnPair<'a> {
    pub(super) fn new(a: &'a TaskScores, b: &'a TaskScores) -> Self {
        let [own, other] = [a, b].map(|task| DrawnScores::new(&task.seeds));
        let mut pair =
            Self { tasks: [a, b], a: own, b: other, below: Vec::new(), sums: Vec::new() };
        pair.compare(0.0, 0.0);
        pair
    }

    /// Compares all scores with these shifts of `a` and of `b`.
    fn compare(&mut self, shift_a: f64, shift_b: f64) {
        let (mut below, mut to) = (0, 0);
        let other = |place: usize| self.b.sorted.get(place).map(|score| score + shift_b);
        self.below.clear();
        for score in self.a.sorted.iter().map(|score| score + shift_a) {
            while other(below).is_some_and(|other| other < score) {
                below += 1;
            }
            while other(to).is_some_and(|other| other <= score) {
                to += 1;
            }
            self.below.push([below, to]);
        }
    }

    /// Returns the area under the ROC curve of one draw.
    pub(super) fn draw(&mut self, rng: &mut impl Rng) -> f64 {
        let [a, b] = self.tasks;
        let mut drawn = |scores: &mut DrawnScores, task: &TaskScores| {
            let shift = task.shift(rng);
            scores.counts.fill(0);
            scores.add(task.picks(rng), 0);
            shift
        };
        let (shift_a, shift_b) = (drawn(&mut self.a, a), drawn(&mut self.b, b));
        if self.tasks.iter().any(|task| task.question_error > 0.0) {
            self.compare(shift_a, shift_b);
        }
        let mut sum = 0;
        self.sums.clear();
        self.sums.push(0);
        for count in &self.b.counts {
            sum += count;
            self.sums.push(sum);
        }
        let twice_won = |(count, [below, to]): (&u32, &[usize; 2])| {
            count * (self.sums[*below] + self.sums[*to])
        };
        let twice_won: u32 = self.a.counts.iter().zip(&self.below).map(twice_won).sum();
        f64::from(twice_won) / (2 * a.seeds.len() * b.seeds.len()) as f64
    }
}

/// Draws a standard normal number (Box and Muller 1958).
pub fn normal(rng: &mut impl Rng) -> f64 {
    // 1 - u is never 0.
    let radius = (-2.0 * (1.0 - rng.random::<f64>()).ln()).sqrt();
    radius * (std::f64::consts::TAU * rng.random::<f64>()).cos()
}
