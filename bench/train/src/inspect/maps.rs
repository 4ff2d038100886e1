//! Maps computed from observed ones: attention of positions alone, differences of two models, averages over blocks.

use pe_zoo::attention::TraceKind;

use crate::run::{AttentionMap, Look, Observed};

/// Adds to each layer the attention of positions alone, if its encoding acts on logits or products.
pub fn add_positions_alone(seen: &mut Observed) {
    for maps in &mut seen.layers {
        if let Some(alone) = positions_alone(maps) {
            maps.push(alone);
        }
    }
}

/// Returns the softmax of the terms that the encoding adds to the logits and of the products of positions alone, which
/// is the attention of queries and keys without content; `None` if the encoding has neither.
fn positions_alone(maps: &[AttentionMap]) -> Option<AttentionMap> {
    let of_positions = |map: &&AttentionMap| {
        use TraceKind::{AddedLogits, PositionProducts};
        matches!(map.look, Look::Trace(AddedLogits | PositionProducts))
    };
    let sum = maps
        .iter()
        .filter(of_positions)
        .cloned()
        .reduce(|sum, map| combined(&sum, &map, |a, b| a + b))?;
    let heads = sum.heads.into_iter().map(|rows| rows.into_iter().map(softmax).collect()).collect();
    Some(AttentionMap { look: Look::PositionsAlone, heads })
}

fn softmax(mut row: Vec<f32>) -> Vec<f32> {
    let most = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    for value in &mut row {
        *value = (*value - most).exp();
    }
    let sum = row.iter().sum::<f32>();
    for value in &mut row {
        *value /= sum;
    }
    row
}

/// Applies a function to the values of two maps of one shape; the quantity is that of the first.
fn combined(a: &AttentionMap, b: &AttentionMap, f: fn(f32, f32) -> f32) -> AttentionMap {
    let row = |(a, b): (&Vec<f32>, &Vec<f32>)| a.iter().zip(b).map(|(a, b)| f(*a, *b)).collect();
    let head = |(a, b): (&Vec<Vec<f32>>, &Vec<Vec<f32>>)| a.iter().zip(b).map(row).collect();
    AttentionMap { look: a.look, heads: a.heads.iter().zip(&b.heads).map(head).collect() }
}

/// Returns the maps of `seen` less those of `other`, for the quantities that both have in a layer.
///
/// # Errors
/// If the numbers of layers, heads or tokens differ.
pub fn difference(seen: &Observed, other: &Observed) -> anyhow::Result<Observed> {
    let shape = |seen: &Observed| {
        let first = seen.layers.first().and_then(|maps| maps.first());
        first.map(|map| [seen.layers.len(), map.heads.len(), map.heads[0].len()])
    };
    let (own, others) = (shape(seen), shape(other));
    let sizes = |shape: Option<[usize; 3]>| {
        let [layers, heads, tokens] = shape.unwrap_or_default();
        format!("{layers} layers, {heads} heads and {tokens} tokens")
    };
    anyhow::ensure!(
        own == others,
        "one model has maps of {}, the other of {}, expected the same numbers",
        sizes(own),
        sizes(others)
    );
    let layer = |(own, other): (&Vec<AttentionMap>, &Vec<AttentionMap>)| {
        let pair = |map: &AttentionMap| {
            let other = other.iter().find(|other| other.look == map.look)?;
            Some(combined(map, other, |a, b| a - b))
        };
        own.iter().filter_map(pair).collect()
    };
    Ok(Observed { layers: seen.layers.iter().zip(&other.layers).map(layer).collect() })
}

/// Returns maps whose cells are means over blocks of `tokens` by `tokens` entries that rows see.
pub fn averaged(seen: &Observed, tokens: usize) -> Observed {
    let map = |map: &AttentionMap| {
        let head = |rows: &Vec<Vec<f32>>| {
            if map.is_of_columns() {
                return vec![rows[0].chunks(tokens).map(|block| mean(block.iter())).collect()];
            }
            let block_row = |rows: &[Vec<f32>]| {
                let columns = rows.last().map_or(0, Vec::len);
                let block = |start: usize| {
                    let cut =
                        |row: &'_ Vec<f32>| start.min(row.len())..(start + tokens).min(row.len());
                    mean(rows.iter().flat_map(|row| &row[cut(row)]))
                };
                (0..columns).step_by(tokens).map(block).collect()
            };
            rows.chunks(tokens).map(block_row).collect()
        };
        AttentionMap { look: map.look, heads: map.heads.iter().map(head).collect() }
    };
    let layer = |maps: &Vec<AttentionMap>| maps.iter().map(map).collect();
    Observed { layers: seen.layers.iter().map(layer).collect() }
}

fn mean<'a>(values: impl Iterator<Item = &'a f32>) -> f32 {
    let (sum, count) = values.fold((0.0, 0), |(sum, count), value| (sum + value, count + 1));
    sum / count.max(1) as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(look: Look, rows: &[&[f32]]) -> AttentionMap {
        AttentionMap { look, heads: vec![rows.iter().map(|row| Vec::from(*row)).collect()] }
    }

    fn one(map: AttentionMap) -> Observed {
        Observed { layers: vec![vec![map]] }
    }

    #[test]
    fn blocks_are_means_over_the_entries_that_rows_see() {
        let rows: [&[f32]; 3] = [&[1.0], &[2.0, 3.0], &[4.0, 6.0, 9.0]];
        let found = averaged(&one(map(Look::Attention, &rows)), 2);
        // 1, 2 and 3; 4 and 6; 9.
        assert_eq!(found.layers[0][0].heads[0], [vec![2.0], vec![5.0, 9.0]]);
        let columns = map(Look::Trace(TraceKind::Forgetting), &[&[1.0, 2.0, 6.0]]);
        assert_eq!(averaged(&one(columns), 2).layers[0][0].heads[0], [vec![1.5, 6.0]]);
        let same = averaged(&one(map(Look::Attention, &rows)), 1);
        assert_eq!(same.layers[0][0].heads[0][2], [4.0, 6.0, 9.0]);
    }

    #[test]
    fn positions_alone_are_the_softmax_of_terms_and_products() {
        let added = map(Look::Trace(TraceKind::AddedLogits), &[&[5.0], &[0.0, 1.0]]);
        let products = map(Look::Trace(TraceKind::PositionProducts), &[&[2.0], &[0.0, 0.5]]);
        let mut seen = Observed { layers: vec![vec![added, products], Vec::new()] };
        add_positions_alone(&mut seen);
        let alone = seen.layers[0].last().unwrap();
        assert_eq!((alone.look, seen.layers[1].len()), (Look::PositionsAlone, 0));
        let share = 1.0 / (1.0 + (-1.5_f32).exp());
        assert!((alone.heads[0][0][0] - 1.0).abs() < 1e-6);
        assert!((alone.heads[0][1][1] - share).abs() < 1e-6, "{:?}", alone.heads);
    }

    #[test]
    fn a_difference_has_the_quantities_of_both_and_refuses_other_shapes() {
        let weights = map(Look::Attention, &[&[1.0], &[0.25, 0.75]]);
        let gates = map(Look::Trace(TraceKind::Gates), &[&[1.0], &[1.0, 1.0]]);
        let a = Observed { layers: vec![vec![weights, gates]] };
        let b = one(map(Look::Attention, &[&[1.0], &[0.5, 0.5]]));
        let found = difference(&a, &b).unwrap();
        assert_eq!(found.layers[0].len(), 1);
        assert_eq!(found.layers[0][0].heads[0], [vec![0.0], vec![-0.25, 0.25]]);
        let short = one(map(Look::Attention, &[&[1.0]]));
        assert!(difference(&a, &short).unwrap_err().to_string().contains("expected the same"));
    }
}
