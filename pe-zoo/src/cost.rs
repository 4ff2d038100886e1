//! Itemised operation counts of one forward pass, as formulas of the model's sizes.
//!
//! One multiply-accumulate is two operations. Every item states its kind of work, because published
//! counts omit some kinds; here nothing is omitted.

use std::collections::BTreeSet;

/// Kind of work of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// Multiply-accumulates of a matrix product. The testkit counts these.
    Product,
    /// Matrix product written as a contraction over named axes (einsum). Profilers count its
    /// operations, but not its multiply-accumulates.
    Contraction,
    /// Elementwise function that profilers recognise (softmax, `SiLU`, `ReLU`) and count as one
    /// operation per element.
    Activation {
        /// Number of elementary operations per element.
        each: u64,
    },
    /// Any other elementwise operation: sums, rotations, running sums. Table look-ups are free.
    Elementwise,
}

/// Sign with which an item enters a sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Share {
    /// The work is done and added.
    Done,
    /// The work is subtracted: a model without any encoding does it, and this encoding avoids it.
    Spared,
    /// The work is done in any case, so that an encoding beside this one cannot save it.
    Kept,
}

/// Count of an item in table 3 of the TAPE paper.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InTable3 {
    /// The item is counted once.
    Once,
    /// The item is counted several times, as often as the authors' code computes it.
    AsDoneThere {
        /// Number of times that the item is counted.
        times: u64,
        /// Difference of the authors' code that explains the count.
        why: &'static str,
    },
    /// The item is counted several times to match the printed number; no source explains it.
    Fitted {
        /// Number of times that the item is counted.
        times: u64,
    },
}

impl InTable3 {
    fn times(self) -> u64 {
        match self {
            Self::Once => 1,
            Self::AsDoneThere { times, .. } | Self::Fitted { times } => times,
        }
    }
}

/// One item of a cost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// Description in a few words.
    pub what: &'static str,
    /// Kind of work of the item.
    pub work: Work,
    /// Number of multiply-accumulates, of elements of an activation, or of operations, over all
    /// layers.
    pub count: u64,
    /// Whether the work is done for every pair of tokens, of which a causal model needs only half.
    pub pairs: bool,
    /// Sign with which the item enters a sum.
    pub share: Share,
    /// Number of positions that a row sees, of which a model with windows needs only these pairs; `None`: all.
    pub horizon: Option<usize>,
    /// Whether the work is proportional to the width of queries, which an encoding may increase.
    pub over_queries: bool,
    /// Count of the item in table 3 of the TAPE paper.
    pub in_table_3: InTable3,
}

/// Itemised cost of one forward pass over one sequence, every pair of tokens counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cost {
    /// Items in the order of addition.
    pub items: Vec<Item>,
}

/// Totals of a cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CostTotals {
    /// Number of multiply-accumulate operations.
    pub macs: u64,
    /// Number of operations, two per multiply-accumulate.
    pub flops: u64,
}

impl Cost {
    /// Creates a cost without items.
    pub fn none() -> Self {
        Self::default()
    }

    fn with(mut self, what: &'static str, work: Work, count: usize, pairs: bool) -> Self {
        self.items.push(Item {
            what,
            work,
            count: count as u64,
            pairs,
            share: Share::Done,
            horizon: None,
            over_queries: false,
            in_table_3: InTable3::Once,
        });
        self
    }

    /// Adds a matrix product of `macs` multiply-accumulates.
    #[must_use]
    pub fn product(self, what: &'static str, macs: usize) -> Self {
        self.with(what, Work::Product, macs, false)
    }

    /// Adds a matrix product over all pairs of tokens.
    #[must_use]
    pub fn pair_product(self, what: &'static str, macs: usize) -> Self {
        self.with(what, Work::Product, macs, true)
    }

    /// Adds a contraction over named axes (einsum); see [`Work::Contraction`].
    #[must_use]
    pub fn contraction(self, what: &'static str, macs: usize) -> Self {
        self.with(what, Work::Contraction, macs, false)
    }

    /// Adds an elementwise function that profilers recognise, with `each` operations on each of
    /// `elements` elements.
    #[must_use]
    pub fn activation(self, what: &'static str, elements: usize, each: u64) -> Self {
        self.with(what, Work::Activation { each }, elements, false)
    }

    /// Adds an elementwise function that profilers recognise, on all pairs of tokens.
    #[must_use]
    pub fn pair_activation(self, what: &'static str, elements: usize, each: u64) -> Self {
        self.with(what, Work::Activation { each }, elements, true)
    }

    /// Adds `operations` elementwise operations.
    #[must_use]
    pub fn elementwise(self, what: &'static str, operations: usize) -> Self {
        self.with(what, Work::Elementwise, operations, false)
    }

    /// Adds elementwise operations on all pairs of tokens.
    #[must_use]
    pub fn pair_elementwise(self, what: &'static str, operations: usize) -> Self {
        self.with(what, Work::Elementwise, operations, true)
    }

    /// Sets the count of the last item in table 3 of the TAPE paper.
    #[must_use]
    pub fn in_table_3(self, counted: InTable3) -> Self {
        self.last(|item| item.in_table_3 = counted)
    }

    /// Subtracts a product over all pairs of tokens that a model without any encoding computes and
    /// this encoding avoids.
    #[must_use]
    pub fn pair_product_spared(self, what: &'static str, macs: usize) -> Self {
        self.with(what, Work::Product, macs, true).last(|item| item.share = Share::Spared)
    }

    /// Marks a product over all pairs of tokens of a model without any encoding as needed, even
    /// beside an encoding that would save it.
    #[must_use]
    pub fn pair_product_kept(self, what: &'static str, macs: usize) -> Self {
        self.with(what, Work::Product, macs, true).last(|item| item.share = Share::Kept)
    }

    /// Marks the last item as proportional to the width of queries.
    #[must_use]
    pub fn over_queries(self) -> Self {
        self.last(|item| item.over_queries = true)
    }

    /// Returns the cost with queries `times` as wide.
    #[must_use]
    pub fn with_wider_queries(mut self, times: u64) -> Self {
        self.items.iter_mut().filter(|item| item.over_queries).for_each(|i| i.count *= times);
        self
    }

    fn last(mut self, change: impl FnOnce(&mut Item)) -> Self {
        self.items.last_mut().map(change);
        self
    }

    /// Concatenates the items of both costs.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.items.extend(other.items);
        self
    }

    /// Joins the costs of different layers: what one of them keeps in any case does not undo what another one saves.
    pub(crate) fn of_layers(costs: impl Iterator<Item = Self>) -> Self {
        let costs = costs.collect::<Vec<_>>();
        let count = |cost: &Self, share: Share| {
            let items = cost.items.iter().filter(|item| item.share == share);
            items.map(|item| item.count).sum::<u64>()
        };
        let saves = |cost: &Self| count(cost, Share::Spared) > count(cost, Share::Kept);
        let one_saves = costs.iter().any(saves);
        let settled = costs.into_iter().flat_map(|cost| {
            let counts = !one_saves || saves(&cost);
            cost.items.into_iter().filter(move |item| counts || item.share == Share::Done)
        });
        Self { items: settled.collect() }
    }

    /// Number of multiply-accumulates with every pair of tokens counted, as the reference engine
    /// computes them.
    pub fn macs(&self) -> u64 {
        let products = self.items.iter().filter(|item| item.is_product());
        sum(products.map(|item| (item.share, item.count)))
    }

    /// Number of elementwise operations with every pair of tokens counted.
    pub fn elementwise_operations(&self) -> u64 {
        self.items.iter().filter(|item| !item.is_product()).map(Item::operations).sum()
    }

    /// Returns the cost of layers whose rows see at most these numbers of positions, one a layer. Each item is the work of all these
    /// layers, in equal parts.
    #[must_use]
    pub fn within(self, horizons: &[Option<usize>]) -> Self {
        let layers = horizons.len() as u64;
        let kinds = horizons.iter().copied().collect::<BTreeSet<_>>();
        if kinds.iter().all(Option::is_none) {
            return self;
        }
        let (pairs, mut items): (Vec<_>, Vec<_>) =
            self.items.into_iter().partition(|item| item.pairs);
        for item in pairs {
            items.extend(kinds.iter().map(|kind| {
                let own = horizons.iter().filter(|other| *other == kind).count() as u64;
                let horizon = kind.iter().copied().chain(item.horizon).min();
                Item { count: item.count * own / layers, horizon, ..item.clone() }
            }));
        }
        Self { items }
    }

    /// As [`macs`](Self::macs) over `len` tokens, with the pairs outside of windows left out: as many of all pairs as of those that
    /// a causal model sees.
    pub fn macs_within(&self, len: usize) -> u64 {
        let products = self.items.iter().filter(|item| item.is_product());
        sum(products.map(|item| (item.share, item.within(item.count, len))))
    }

    /// Totals of a causal model over `len` tokens: each visible pair once, every operation counted.
    pub fn causal(&self, len: usize) -> CostTotals {
        let needed = |count: u64, item: &Item| {
            if !item.pairs {
                return count;
            }
            // `len * len` pairs become `len * (len + 1) / 2`.
            let count = u128::from(item.within(count, len));
            let len = len.max(1) as u128;
            (count * (len + 1) / (2 * len)) as u64
        };
        let products = self.items.iter().filter(|item| item.is_product());
        let others = self.items.iter().filter(|item| !item.is_product());
        let macs = sum(products.map(|item| (item.share, needed(item.count, item))));
        let elementwise = others.map(|item| needed(item.operations(), item)).sum::<u64>();
        CostTotals { macs, flops: 2 * macs + elementwise }
    }

    /// Totals as counted in table 3 of the TAPE paper: every pair, activations once per element,
    /// contractions only as operations, no other elementwise operations.
    pub fn as_in_table_3(&self) -> CostTotals {
        let (mut products, mut others) = (Vec::new(), 0);
        for item in &self.items {
            let count = item.count * item.in_table_3.times();
            match item.work {
                Work::Product => products.push((item.share, count)),
                Work::Contraction => others += 2 * count,
                Work::Activation { .. } => others += count,
                Work::Elementwise => {}
            }
        }
        let macs = sum(products.into_iter());
        CostTotals { macs, flops: 2 * macs + others }
    }
}

/// Sums the work done minus the work saved. The saved work is part of the work of a whole model.
fn sum(counts: impl Iterator<Item = (Share, u64)>) -> u64 {
    let [mut done, mut spared, mut kept] = [0; 3];
    for (share, count) in counts {
        match share {
            Share::Done => done += count,
            Share::Spared => spared += count,
            Share::Kept => kept += count,
        }
    }
    done.saturating_sub(u64::saturating_sub(spared, kept))
}

impl Item {
    /// Returns a count of work on pairs of `len` tokens without the pairs outside of the window.
    fn within(&self, count: u64, len: usize) -> u64 {
        match self.horizon.filter(|horizon| self.pairs && *horizon < len) {
            None => count,
            Some(horizon) => {
                let (count, len, seen) = (u128::from(count), len as u128, horizon as u128);
                (count * seen * (2 * len + 1 - seen) / (len * (len + 1))) as u64
            }
        }
    }

    /// Whether the work is counted in multiply-accumulates.
    pub fn is_product(&self) -> bool {
        matches!(self.work, Work::Product | Work::Contraction)
    }

    /// Number of elementary operations of the work.
    pub fn operations(&self) -> u64 {
        match self.work {
            Work::Product | Work::Contraction => 2 * self.count,
            Work::Activation { each } => each * self.count,
            Work::Elementwise => self.count,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_way_of_counting_takes_what_it_says() {
        let cost = Cost::none()
            .product("a", 100)
            .pair_product("b", 4 * 4 * 10)
            .contraction("c", 7)
            .in_table_3(InTable3::Fitted { times: 2 })
            .pair_activation("d", 16, 5)
            .elementwise("e", 3);
        assert_eq!((cost.macs(), cost.elementwise_operations()), (267, 83));
        // Four tokens have 10 visible pairs of 16.
        assert_eq!(cost.causal(4), CostTotals { macs: 207, flops: 414 + 50 + 3 });
        assert_eq!(cost.as_in_table_3(), CostTotals { macs: 260, flops: 520 + 28 + 16 });
        let spared = cost.pair_product_spared("f", 16);
        assert_eq!((spared.macs(), spared.causal(4).macs), (251, 197));
        assert_eq!(spared.as_in_table_3().macs, 244);
        let with_products = spared.pair_product_kept("f", 20);
        assert_eq!((with_products.macs(), with_products.causal(4).macs), (267, 207));
        // A row of four sees two positions: 7 of 10 visible pairs.
        let all = Cost::none().product("a", 100).pair_product("b", 4 * 4 * 10);
        let windowed = all.clone().within(&[Some(2), Some(2)]);
        assert_eq!((windowed.macs(), windowed.macs_within(4)), (260, 212));
        assert_eq!(windowed.causal(4).macs, 170);
        let mixed = all.within(&[Some(2), None]);
        assert_eq!((mixed.macs(), mixed.macs_within(4)), (260, 236));
        assert_eq!(mixed.within(&[Some(1), Some(1)]).macs_within(4), 100 + 64);
        let wide = Cost::none().product("a", 5).over_queries().product("b", 7);
        assert_eq!(wide.with_wider_queries(2).macs(), 17);
    }
}
