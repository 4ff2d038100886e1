#!/usr/bin/env bash
# Tests ci/nightly.sh: two equal nights must pass, planted regressions must be detected.
# Uses the program PE_BENCH, or builds the one of the dev profile.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ -z "${PE_BENCH:-}" ]; then
  cargo build --workspace --bin pe-bench
  PE_BENCH=${CARGO_TARGET_DIR:-target}/debug/pe-bench
fi
export PE_BENCH
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

# expect STATUS TEXT ARGUMENTS: a night run with these arguments must end with this status and have this text in its verdict.
expect() {
  local status=0
  bash ci/nightly.sh "${@:3}" > "$tmp/log" 2>&1 || status=$?
  if [ "$status" -ne "$1" ] || ! grep -q "$2" "$tmp/log"; then
    echo "FAILED: expected status $1 and '$2', got status $status:"
    cat "$tmp/log"
    exit 1
  fi
  echo "ok: status $1, $2"
}

suite '"rope"' '"alibi"'
expect 0 'accepted: 16 cells are the baseline now'
expect 0 '16 cells compared, 16 of them identical'
suite '{ kind = "nope", name = "rope" }' '"alibi"'
expect 3 'FAIL quality: rope'
suite '"rope"' '{ kind = "cope-mlp", name = "alibi" }'
if command -v valgrind > /dev/null; then
  expect 3 'FAIL cost: alibi on aababbabbb: instructions of a training step'
else
  expect 3 'not compared: instructions of a training step: not counted on this machine'
fi
grep -q 'FAIL cost: alibi on aababbabbb: parameters of the model' "$tmp/log"
suite '"rope"' '"alibi"'
# The reference engine allocates more memory, for the same results.
expect 3 'FAIL cost: rope on aababbabbb: allocations of a training step' --engine reference
expect 0 '16 of them identical'
if grep -q 'FAIL' "$tmp/log"; then
  echo "FAILED: a night equal to the baseline did not pass"
  exit 1
fi
for file in night/report.md history/trend.html history/trend.md verdict.txt; do
  test -s "$NIGHTLY_DIR/$file"
done
echo "the nightly gate detects the planted regressions and passes otherwise"
