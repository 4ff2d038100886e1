use pe_zoo::cost::InTable3;

use super::config::{BUILT_IN, CostConfig};
use super::*;

/// Computes every row of every published table from the encodings' own formulas.
#[test]
fn published_tables_are_met_to_every_printed_digit() {
    let mut rows = 0;
    for (name, _) in BUILT_IN {
        let config = CostConfig::named(name).unwrap();
        for published in &config.published {
            let encoding = crate::encodings::parse(&published.encoding).unwrap();
            let bill = Bill::of(&config, &encoding).unwrap();
            let expected = [&published.flops, &published.macs, &published.params];
            assert_eq!(bill.as_in_table_3().each_ref(), expected, "{name}: {}", published.encoding);
            rows += 1;
        }
    }
    assert_eq!(rows, 4, "RoPE, FIRE, T5, TAPE");
}

/// Computes TAPE's table 3 from costs written down in this test, independently of the encodings' formulas.
#[test]
fn the_rules_of_counting_give_tapes_table_3() {
    let config = CostConfig::named("tape-155m").unwrap();
    let (layers, heads, width, n) = (12, 12, 768, 1024);
    let pairs = layers * n * n;
    let fire = Cost::none()
        .pair_product("1 -> 32 -> heads", pairs * (32 + 32 * heads))
        .pair_activation("ReLU", pairs * 32, 1)
        .pair_elementwise("logarithms and sum of logits", pairs * (4 + heads));
    let t5 = Cost::none().pair_elementwise("sum of logits", pairs * heads);
    let inner = 48;
    let tape = Cost::none()
        .pair_product("cosines and sines mixed by the attention", pairs * 2 * width)
        .product("W_X", layers * n * width * inner)
        .in_table_3(InTable3::Fitted { times: 2 })
        .contraction("W_U and W_D on cosines and sines", layers * n * 4 * inner * width)
        .contraction("W_A on cosines and sines", layers * n * 2 * heads * width)
        .activation("SiLU", layers * n * inner, 4);
    for (cost, more_params, expected) in [
        (Cost::none(), 0, ["321.10", "160.46", "154.89"]),
        (fire, 12 * (33 * 12 + 66), ["331.97", "165.69", "154.90"]),
        (t5, 12 * 32 * 12, ["321.10", "160.46", "154.90"]),
        (tape, 12 * (2 * 48 * 12 + 48 * 768 + 12 * 12), ["365.65", "180.69", "155.33"]),
    ] {
        let bill = Bill {
            cost: config.model.cost(config.vocabulary, n).and(cost),
            params: (config.model.param_count(config.vocabulary) + more_params) as u64,
            len: n,
        };
        assert_eq!(bill.as_in_table_3(), expected);
    }
}

#[test]
fn the_honest_count_is_less_in_products_and_more_in_the_rest() {
    let config = CostConfig::named("tape-155m").unwrap();
    let bill = Bill::of(&config, &crate::encodings::parse("rope").unwrap()).unwrap();
    let (paper, honest) = (bill.cost.as_in_table_3(), bill.honest());
    // The attention's 19.3 G for all pairs become half of that and the diagonal.
    let saved = 2 * 1024 * 1024 * 768 * 12 - 1024 * 1025 * 768 * 12;
    assert_eq!(paper.macs - honest.macs, saved);
    assert!(honest.flops - 2 * honest.macs > paper.flops - 2 * paper.macs);
}

#[test]
fn an_unknown_configuration_suggests_the_nearest() {
    let error = CostConfig::named("tape-155").unwrap_err().to_string();
    assert!(error.contains("did you mean `tape-155m`?"), "{error}");
    assert!(CostConfig::named("no/such.toml").unwrap_err().to_string().contains("no/such.toml"));
}
