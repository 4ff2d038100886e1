//! Learns byte pair merges from counted words.
//!
//! The merges are those of the trainer of `tokenizers`, in the same order. That trainer moves the whole remainder of
//! a word at each merge, which is quadratic in the longest word. Here words are linked lists, and each pair has the
//! list of its positions.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use tokenizers::models::bpe::BPE;
use tokenizers::parallelism::MaybeParallelBridge as _;
use tokenizers::{AddedToken, Trainer};

/// Two adjacent tokens.
type TokenPair = (u32, u32);

/// End of a linked list.
const NONE: usize = usize::MAX;
/// Token of a symbol that was merged into the one before it.
const GONE: u32 = u32::MAX;

/// Trainer of `tokenizers` that learns merges until the vocabulary has a given size.
pub(super) struct PairTrainer {
    alphabet: BTreeSet<char>,
    vocabulary: usize,
    words: BTreeMap<String, u64>,
}

impl PairTrainer {
    /// Returns a trainer whose vocabulary starts with `alphabet` and ends at `vocabulary` tokens.
    pub(super) fn new(alphabet: BTreeSet<char>, vocabulary: usize) -> Self {
        Self { alphabet, vocabulary, words: BTreeMap::new() }
    }
}

impl Trainer for PairTrainer {
    type Model = BPE;

    fn should_show_progress(&self) -> bool {
        false
    }

    fn train(&self, model: &mut BPE) -> tokenizers::Result<Vec<AddedToken>> {
        let mut learner = Learner::new(&self.alphabet, &self.words);
        learner.learn(self.vocabulary);
        let text = |token: u32| learner.texts[token as usize].clone();
        let merges = learner.merges().into_iter().map(|(a, b)| (text(a), text(b))).collect();
        let vocabulary = learner.ids.iter().map(|(text, id)| (text.clone(), *id));
        let vocabulary: tokenizers::models::bpe::Vocab = vocabulary.collect();
        *model = BPE::builder().vocab_and_merges(vocabulary, merges).build()?;
        Ok(Vec::new())
    }

    fn feed<I, S, F>(&mut self, texts: I, words_of: F) -> tokenizers::Result<()>
    where
        I: Iterator<Item = S> + Send,
        S: AsRef<str> + Send,
        F: Fn(&str) -> tokenizers::Result<Vec<String>> + Sync,
    {
        let counted = texts.maybe_par_bridge().map(|text| {
            let mut counts = BTreeMap::new();
            for word in words_of(text.as_ref())? {
                *counts.entry(word).or_insert(0) += 1;
            }
            Ok(counts)
        });
        let sum = |a: tokenizers::Result<BTreeMap<String, u64>>, b| {
            let (mut a, b): (_, BTreeMap<String, u64>) = (a?, b?);
            for (word, count) in b {
                *a.entry(word).or_insert(0) += count;
            }
            Ok(a)
        };
        self.words = counted.reduce(|| Ok(BTreeMap::new()), sum)?;
        Ok(())
    }
}

/// Token at its place in a word.
struct Symbol {
    token: u32,
    word: usize,
    before: usize,
    after: usize,
}

/// Pair that may be merged next, with the words that contain it. The most frequent comes first; among equals, the
/// smaller ids.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    count: i64,
    pair: Reverse<TokenPair>,
    /// Indices of the words, ascending. A pair that arose from two merges has two candidates, each with its own
    /// words.
    words: Vec<usize>,
}

#[derive(Default)]
struct Occurrences {
    count: i64,
    /// Positions of the left symbols, possibly of pairs that no longer exist.
    places: Vec<usize>,
}

struct Learner {
    /// Text of each token.
    texts: Vec<String>,
    /// Token of each text.
    ids: BTreeMap<String, u32>,
    symbols: Vec<Symbol>,
    /// How often each word occurs.
    counts: Vec<i64>,
    pairs: BTreeMap<TokenPair, Occurrences>,
    queue: BinaryHeap<Candidate>,
    merged: Vec<TokenPair>,
}

impl Learner {
    fn new(alphabet: &BTreeSet<char>, words: &BTreeMap<String, u64>) -> Self {
        let seen: BTreeSet<char> = words.keys().flat_map(|word| word.chars()).collect();
        let texts: Vec<String> = alphabet.union(&seen).map(char::to_string).collect();
        let ids: BTreeMap<String, u32> = texts.iter().cloned().zip(0..).collect();
        let of_char: BTreeMap<char, u32> = alphabet.union(&seen).copied().zip(0..).collect();
        let mut learner = Self {
            texts,
            ids,
            symbols: Vec::new(),
            counts: words.values().map(|count| *count as i64).collect(),
            pairs: BTreeMap::new(),
            queue: BinaryHeap::new(),
            merged: Vec::new(),
        };
        let mut places: BTreeMap<TokenPair, Vec<usize>> = BTreeMap::new();
        for (word, text) in words.keys().enumerate() {
            let mut before = NONE;
            for c in text.chars() {
                let at = learner.symbols.len();
                let token = of_char[&c];
                learner.symbols.push(Symbol { token, word, before, after: NONE });
                if before != NONE {
                    learner.symbols[before].after = at;
                    let pair = (learner.symbols[before].token, token);
                    learner.pairs.entry(pair).or_default().count += learner.counts[word];
                    places.entry(pair).or_default().push(before);
                }
                before = at;
            }
        }
        learner.enqueue(places);
        learner
    }

    /// Adds positions at which pairs have arisen, and makes the pairs candidates.
    fn enqueue(&mut self, places: BTreeMap<TokenPair, Vec<usize>>) {
        for (pair, new) in places {
            let occurrences = self.pairs.entry(pair).or_default();
            if occurrences.count > 0 {
                let mut words: Vec<usize> = new.iter().map(|at| self.symbols[*at].word).collect();
                words.dedup();
                let count = occurrences.count;
                self.queue.push(Candidate { count, pair: Reverse(pair), words });
            }
            occurrences.places.extend(new);
        }
    }

    /// Merges the most frequent pair again and again until there are `size` tokens or no pairs.
    fn learn(&mut self, size: usize) {
        while self.ids.len() < size {
            let Some(mut top) = self.queue.pop() else { return };
            let count = self.pairs[&top.pair.0].count;
            if top.count != count {
                top.count = count;
                self.queue.push(top);
                continue;
            }
            if count < 1 {
                return;
            }
            self.merge(top.pair.0, &top.words);
        }
    }

    /// Replaces a pair by one token in these words.
    fn merge(&mut self, pair: TokenPair, words: &[usize]) {
        let text = [pair.0, pair.1].map(|token| self.texts[token as usize].as_str()).concat();
        let next = self.texts.len() as u32;
        let token = *self.ids.entry(text.clone()).or_insert(next);
        if token == next {
            self.texts.push(text);
        }
        self.merged.push(pair);
        let mut places = std::mem::take(&mut self.pairs.entry(pair).or_default().places);
        places.sort_unstable();
        let (places, others): (Vec<_>, Vec<_>) =
            places.into_iter().partition(|at| words.binary_search(&self.symbols[*at].word).is_ok());
        self.pairs.entry(pair).or_default().places = others;
        let mut made: BTreeMap<TokenPair, Vec<usize>> = BTreeMap::new();
        for at in places {
            let Symbol { token: left, word, before, after: right } = self.symbols[at];
            if left != pair.0 || right == NONE || self.symbols[right].token != pair.1 {
                continue;
            }
            let after = self.symbols[right].after;
            let count = self.counts[word];
            if before != NONE {
                let other = self.symbols[before].token;
                self.pairs.entry((other, pair.0)).or_default().count -= count;
                self.pairs.entry((other, token)).or_default().count += count;
                made.entry((other, token)).or_default().push(before);
            }
            if after != NONE {
                let other = self.symbols[after].token;
                self.pairs.entry((pair.1, other)).or_default().count -= count;
                self.pairs.entry((token, other)).or_default().count += count;
                made.entry((token, other)).or_default().push(at);
                self.symbols[after].before = at;
            }
            self.symbols[at].token = token;
            self.symbols[at].after = after;
            self.symbols[right].token = GONE;
        }
        self.enqueue(made);
    }

    /// Returns the merges in order; a merge that was made twice has its last position.
    fn merges(&self) -> Vec<TokenPair> {
        let mut seen = BTreeSet::new();
        let mut merges: Vec<TokenPair> =
            self.merged.iter().rev().filter(|pair| seen.insert(**pair)).copied().collect();
        merges.reverse();
        merges
    }
}
