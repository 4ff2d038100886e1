//! Ranks shared by encodings without a significant difference.

/// Returns the rank of each of `count` encodings, given in the order of their means, best first: 1, 2, ...
///
/// The best encoding without a rank leads a group; all others without a rank that are not `separable` from the leader
/// share its rank; then the best of the rest leads the next group. So every member of a group is separable from the
/// leaders of all groups before, and not separable from its own leader.
///
/// Not separable does not mean equal: of two encodings with the same leader, one may be separable from the other. An
/// encoding with a better mean can have a worse rank than one with a worse mean whose seeds scatter so much that it
/// cannot be separated from the leader.
pub fn rank_groups(count: usize, separable: impl Fn(usize, usize) -> bool) -> Vec<u32> {
    let mut ranks = vec![0; count];
    let mut rank = 0;
    while let Some(leader) = ranks.iter().position(|r| *r == 0) {
        rank += 1;
        ranks[leader] = rank;
        for (other, held) in ranks.iter_mut().enumerate().skip(leader + 1) {
            if *held == 0 && !separable(leader, other) {
                *held = rank;
            }
        }
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_share_a_rank_or_none_does() {
        assert_eq!(rank_groups(3, |_, _| false), [1, 1, 1]);
        assert_eq!(rank_groups(3, |_, _| true), [1, 2, 3]);
        assert_eq!(rank_groups(0, |_, _| true), Vec::<u32>::new());
    }

    #[test]
    fn a_group_is_what_its_leader_is_not_separable_from() {
        // 0 and 1, 1 and 2 are not separable, but 0 is ahead of 2; 3 is behind all.
        let separable = |a: usize, b: usize| b == 3 || (a, b) == (0, 2);
        assert_eq!(rank_groups(4, separable), [1, 1, 2, 3]);
    }

    #[test]
    fn a_noisy_one_stays_with_the_best_although_a_better_mean_does_not() {
        assert_eq!(rank_groups(3, |a, b| (a, b) == (0, 1)), [1, 2, 1]);
    }
}
