//! Division of documents into windows.

use std::ops::Range;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::Rng as _;

use super::config::EvalWindows;
use crate::data::Part;
use crate::random::below;
use crate::tokens::Span;

/// Documents of one part, as ranges of tokens. Documents of fewer than two tokens have nothing to predict and are left
/// out.
#[derive(Debug, Default)]
pub(super) struct Documents {
    ranges: Vec<Range<usize>>,
    /// Cumulative number of tokens after each document.
    ends: Vec<usize>,
    /// Size of the text in bytes, omitted documents included.
    pub(super) bytes: usize,
    /// Number of tokens, omitted documents included.
    pub(super) tokens: usize,
}

/// Range of tokens with the index of the first scored one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Window {
    pub(super) tokens: Range<usize>,
    /// First scored token, never the first of `tokens`.
    pub(super) scored_from: usize,
    /// Index of the document in its part.
    pub(super) document: usize,
}

impl Documents {
    pub(super) fn of(part: Part, spans: &[Span]) -> Self {
        let mut documents = Self::default();
        let mut start = 0;
        for span in spans {
            let range = start..span.end;
            start = span.end;
            if span.part == part {
                documents.bytes += span.bytes;
                documents.tokens += range.len();
                if range.len() >= 2 {
                    let before = documents.ends.last().copied().unwrap_or(0);
                    documents.ends.push(before + range.len());
                    documents.ranges.push(range);
                }
            }
        }
        documents
    }

    /// Number of documents with something to predict.
    pub(super) fn count(&self) -> usize {
        self.ranges.len()
    }

    /// Number of tokens of a document.
    pub(super) fn size(&self, document: usize) -> usize {
        self.ranges[document].len()
    }

    /// Number of windows of this size that fit without overlap.
    pub(super) fn room(&self, window: usize) -> usize {
        self.ranges.iter().map(|range| range.len() / window).sum()
    }

    /// Draws a window of `len + 1` tokens, or a whole shorter document: first the document, by its size, then the
    /// position in it. There must be a document.
    pub(super) fn draw(&self, len: usize, rng: &mut ChaCha8Rng) -> Window {
        let document = match (&self.ranges[..], self.ends.last()) {
            ([_, _, ..], Some(all)) => {
                let token = below_wide(rng, *all);
                self.ends.partition_point(|end| *end <= token)
            }
            _ => 0,
        };
        let range = &self.ranges[document];
        let places = range.len().saturating_sub(len).max(1);
        let start = range.start + below_wide(rng, places);
        Window { tokens: start..(start + len + 1).min(range.end), scored_from: start + 1, document }
    }

    /// Greatest number of windows of an evaluation.
    pub(super) fn most(&self, len: usize, how: EvalWindows) -> usize {
        match how {
            EvalWindows::Spread => self.room(len.saturating_add(1)),
            EvalWindows::Whole => self.sliding_count(len, len),
            EvalWindows::Sliding(stride) => self.sliding_count(len, stride.get() as usize),
        }
    }

    /// Returns `count` windows, at most [`Self::most`]; fewer windows of a whole part are spread evenly over it.
    pub(super) fn windows(&self, len: usize, count: usize, how: EvalWindows) -> Vec<Window> {
        let all = match how {
            EvalWindows::Spread => return self.spread(len, count),
            EvalWindows::Whole => self.sliding(len, len),
            EvalWindows::Sliding(stride) => self.sliding(len, stride.get() as usize),
        };
        let most = all.len();
        let count = count.min(most);
        (0..count).map(|k| all[k * most / count].clone()).collect()
    }

    /// Gives each document its share of the windows, evenly spaced: at least a window apart, because the share never
    /// exceeds the number that fits.
    fn spread(&self, len: usize, count: usize) -> Vec<Window> {
        let window = len + 1;
        let room = self.room(window).max(1);
        let mut windows = Vec::with_capacity(count);
        let mut room_before = 0;
        for (document, range) in self.ranges.iter().enumerate() {
            let room_behind = room_before + range.len() / window;
            let share = count * room_behind / room - count * room_before / room;
            windows.extend((0..share).map(|k| {
                let start = range.start + k * range.len() / share;
                Window { tokens: start..start + window, scored_from: start + 1, document }
            }));
            room_before = room_behind;
        }
        windows
    }

    fn sliding_count(&self, len: usize, stride: usize) -> usize {
        let of = |tokens: usize| 1 + tokens.saturating_sub(len.saturating_add(1)).div_ceil(stride);
        self.ranges.iter().map(|range| of(range.len())).sum()
    }

    fn sliding(&self, len: usize, stride: usize) -> Vec<Window> {
        let mut windows = Vec::with_capacity(self.sliding_count(len, stride));
        for (document, range) in self.ranges.iter().enumerate() {
            let (mut start, mut scored_from) = (range.start, range.start + 1);
            loop {
                let end = (start + len + 1).min(range.end);
                windows.push(Window { tokens: start..end, scored_from, document });
                if end == range.end {
                    break;
                }
                (start, scored_from) = (start + stride, end);
            }
        }
        windows
    }
}

/// Draws uniformly from `0..n`, like [`below`] if `n` has 32 bits.
fn below_wide(rng: &mut ChaCha8Rng, n: usize) -> usize {
    match u32::try_from(n) {
        Ok(n) => below(rng, n) as usize,
        Err(_) => ((u128::from(rng.next_u64()) * n as u128) >> 64) as usize,
    }
}
