#!/usr/bin/env bash
# Tests ci/nightly.sh: two equal nights must pass, planted regressions must be detected.
# Uses the program PE_BENCH, or builds the one of the dev profile. Needs Python.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ -z "${PE_BENCH:-}" ]; then
  cargo build --workspace --bin pe-bench
  PE_BENCH=${CARGO_TARGET_DIR:-target}/debug/pe-bench
fi
export PE_BENCH
command -v python3 > /dev/null || { echo "python3 is missing" >&2; exit 2; }
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
export NIGHTLY_DIR=$tmp/nights NIGHTLY_SUITE=$tmp/suite.toml

# suite ROPE ALIBI: two encodings on four texts in which the order of letters matters, two seeds each.
suite() {
  cat > "$NIGHTLY_SUITE" <<TOML
name = "nights"
title = "Nights"
about = "For ci/nightly-test.sh."
seeds = [0, 1]
encodings = [$1, $2]
[model]
layers = 2
width = 16
heads = 2
[train]
steps = 60
batch_size = 8
len = 24
optimizer = { learning_rate = 1e-2, warmup_steps = 5 }
[eval]
lens = [24, 32]
samples = 8
TOML
  local pattern
  for pattern in aababbabbb abbbaabaab aabbababba abaabbbaba; do
    for _ in {1..120}; do printf %s "$pattern"; done > "$tmp/$pattern.txt"
    printf '[[workload]]\nname = "%s"\ntask = { kind = "text", path = "%s" }\n' \
      "$pattern" "$tmp/$pattern.txt" >> "$NIGHTLY_SUITE"
  done
}

# expect STATUS CONDITION ARGUMENTS: a night run with these arguments must end with this status, and the condition in Python
# must hold for its verdict `v` (the JSON of `pe-bench nightly --json`).
expect() {
  local status=0
  bash ci/nightly.sh "${@:3}" > "$tmp/log" 2>&1 || status=$?
  # Without the history of nights: the verdict alone, once more. It ends with status 3 if the gate fails.
  "$PE_BENCH" nightly "$NIGHTLY_DIR/night" --baseline "$NIGHTLY_DIR/baseline" --json > "$tmp/verdict.json" 2>> "$tmp/log" || true
  if [ "$status" -ne "$1" ] || ! python3 - "$tmp/verdict.json" "$2" <<'PY'
import json, sys
v = json.load(open(sys.argv[1]))
of = lambda kind, **wanted: any(wanted.items() <= entry.items() for entry in v[kind])
sys.exit(not eval(sys.argv[2]))
PY
  then
    echo "FAILED: expected status $1 and $2, got status $status:"
    cat "$tmp/log" "$tmp/verdict.json"
    exit 1
  fi
  echo "ok: status $1, $2"
}

all_same='v["compared"] == v["identical"] == 16'
rises='of("rises", encoding="alibi", workload="aababbabbb", what="parameters of the model")'
if command -v valgrind > /dev/null; then
  rises="$rises and of('rises', encoding='alibi', workload='aababbabbb', what='instructions of a training step')"
else
  rises="$rises and any(text.startswith('instructions of a training step') for text in v['uncounted'])"
fi
suite '"rope"' '"alibi"'
expect 0 "$all_same"
expect 0 "$all_same"
suite '{ kind = "nope", name = "rope" }' '"alibi"'
expect 3 'of("losses", encoding="rope")'
suite '"rope"' '{ kind = "cope-mlp", name = "alibi" }'
expect 3 "$rises"
suite '"rope"' '"alibi"'
# The reference engine allocates more memory, for the same results.
expect 3 'of("rises", encoding="rope", workload="aababbabbb", what="allocations of a training step")' --engine reference
expect 0 "$all_same and not (v['losses'] or v['rises'] or v['incomparable'])"
for file in night/report.md history/trend.html history/trend.md verdict.txt; do
  test -s "$NIGHTLY_DIR/$file"
done
echo "the nightly gate detects the planted regressions and passes otherwise"
