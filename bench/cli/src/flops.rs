//! `pe-bench flops`: analytic cost of a forward pass.

use clap::Args;
use pe_zoo::Combination;
use pe_zoo::cost::InTable3;
use pe_zoo::cost::{Item, Work};

use super::columns::{row, say_rows, say_table};
use super::out::say;
use super::parsers::number;
use train::flops::Bill;
use train::flops::config::{CostConfig, Published};

/// Arguments of `flops`.
#[derive(Args, Clone)]
pub(crate) struct FlopsArgs {
    /// Configuration of the model: a built-in name (tape-155m), or the path of a TOML file with the same fields.
    #[arg(long, default_value = "tape-155m")]
    config: String,
    /// Encodings or combinations, separated by commas; default: the encodings with published costs if the configuration
    /// has such costs, otherwise all encodings.
    #[arg(long)]
    encodings: Option<String>,
    /// Number of tokens in the sequence; default: the number in the configuration.
    #[arg(long, value_parser = number(1..=1 << 24))]
    len: Option<usize>,
    /// Count all operations of a causal model: elementwise operations are included, masked pairs of tokens are not.
    #[arg(long)]
    honest: bool,
    /// Also print the cost of each operation in the model and encoding.
    #[arg(long)]
    items: bool,
}

pub(super) fn flops(arguments: &FlopsArgs) -> anyhow::Result<()> {
    let mut config = CostConfig::named(&arguments.config)?;
    if let Some(len) = arguments.len {
        if len != config.len {
            config.published.clear();
        }
        config.len = len;
    }
    let bills = encodings(arguments, &config)
        .iter()
        .map(|text| {
            let encoding = train::encodings::parse(text)?;
            Ok((encoding.to_string(), Bill::of(&config, &encoding)?))
        })
        .collect::<anyhow::Result<Vec<_>>>()?;
    anyhow::ensure!(!bills.is_empty(), "--encodings is empty, expected at least one encoding");
    let model = &config.model;
    say(&format!(
        "{}: {} layers, width {}, {} heads, vocabulary {}; one forward pass over {} tokens",
        config.about, model.layers, model.width, model.heads, config.vocabulary, config.len
    ));
    if arguments.honest {
        honest(&bills);
    } else {
        as_published(&bills, &config.published);
    }
    if arguments.items {
        for (name, bill) in &bills {
            items(name, bill);
        }
    }
    Ok(())
}

fn encodings(arguments: &FlopsArgs, config: &CostConfig) -> Vec<String> {
    match &arguments.encodings {
        Some(list) => Combination::split_list(list).into_iter().map(str::to_owned).collect(),
        None if config.published.is_empty() || arguments.honest => train::encodings::ids(),
        None => config.published.iter().map(|row| row.encoding.clone()).collect(),
    }
}

fn as_published(bills: &[(String, Bill)], published: &[Published]) {
    say(
        "Counted as in TAPE's table 3: every pair of tokens, 2 FLOPs per MAC, 1 FLOP per element of softmax,",
    );
    say(
        "SiLU and ReLU. Other elementwise operations are not counted. The output head is counted. M is 2^20.",
    );
    let rows = bills.iter().map(|(name, bill)| {
        let [flops, macs, params] = bill.as_in_table_3();
        let known = published.iter().find(|known| {
            train::encodings::parse(&known.encoding).is_ok_and(|k| k.to_string() == *name)
        });
        let verdict = known.map_or("–".to_owned(), |known| {
            let same = (&known.flops, &known.macs, &known.params) == (&flops, &macs, &params);
            let printed = format!("{} {} {}", known.flops, known.macs, known.params);
            if same { format!("{printed}, the same") } else { format!("{printed}, DIFFERENT") }
        });
        row([name, &flops, &macs, &params, &verdict])
    });
    say_table(["encoding", "FLOPs G", "MACs G", "params M", "published"], rows);
    for (name, bill) in bills {
        for item in &bill.cost.items {
            match item.in_table_3 {
                InTable3::Once => {}
                InTable3::AsDoneThere { times, why } => {
                    say(&format!("`{}` of {name} is counted {times} times: {why}.", item.what));
                }
                InTable3::Fitted { times } => say(&format!(
                    "Fitted convention: `{}` of {name} is counted {times} times. Only this count gives the \
                     published number; neither the paper nor its code explains it.",
                    item.what
                )),
            }
        }
    }
}

fn honest(bills: &[(String, Bill)]) {
    say(
        "Operations of a causal model: each pair of tokens is counted once, with 2 FLOPs per MAC. Every",
    );
    say("elementwise operation is counted. Table look-ups are not counted.");
    let least = bills.iter().map(|(_, bill)| bill.honest().flops).min().unwrap_or(1);
    let rows = bills.iter().map(|(name, bill)| {
        let sums = bill.honest();
        let billions = |n: u64| format!("{:.3}", n as f64 / 1e9);
        row([
            name,
            &billions(sums.flops),
            &billions(sums.macs),
            &billions(sums.flops - 2 * sums.macs),
            &bill.params.to_string(),
            &format!("{:.4}", sums.flops as f64 / least as f64),
        ])
    });
    say_table(["encoding", "FLOPs G", "MACs G", "elementwise G", "params", "x cheapest"], rows);
}

fn items(name: &str, bill: &Bill) {
    say("");
    say(&format!("{name}: cost of each operation, with every pair of tokens counted"));
    let kind = |item: &Item| match item.work {
        Work::Product => "MACs",
        Work::Contraction => "MACs (einsum)",
        Work::Activation { .. } => "elements",
        Work::Elementwise => "operations",
    };
    let rows = bill.cost.items.iter().map(|item| {
        let pairs = if item.pairs { "per pair" } else { "" };
        row([item.what, &item.count.to_string(), kind(item), pairs])
    });
    say_rows(rows.collect());
}
