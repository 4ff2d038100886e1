#!/usr/bin/env bash
# One night: runs a suite, writes its report, compares it with the accepted baseline, and adds it to the trend.
#
# Exit status 3: the gate failed. The first night, and any with NIGHTLY_ACCEPT=1, becomes the
# baseline. Arguments are passed to `pe-bench run`. Instructions are counted where valgrind is installed; where it is
# not, the verdict says so.
#
#   NIGHTLY_SUITE   suite or path of a TOML file; default: nightly
#   NIGHTLY_DIR     where night/, baseline/, history/ and verdict.txt are; default: results/nights
#   NIGHTLY_JOBS    cells in parallel; default: 1, so that times are meaningful
#   PE_BENCH        the program; default: it is built with the release profile
set -euo pipefail
cd "$(dirname "$0")/.."
suite=${NIGHTLY_SUITE:-nightly}
dir=${NIGHTLY_DIR:-results/nights}
if [ -z "${PE_BENCH:-}" ]; then
  cargo build --release --bin pe-bench
  PE_BENCH=${CARGO_TARGET_DIR:-target}/release/pe-bench
fi

mkdir -p "$dir"
# A night that ends early is published, and an older verdict must not stand beside it.
rm -rf "$dir/night" "$dir/verdict.txt"
status=0
"$PE_BENCH" run "$suite" --out "$dir/night" --jobs "${NIGHTLY_JOBS:-1}" "$@" || status=$?
# 1: some cells failed, which the gate judges; any other error ends the night.
[ "$status" -le 1 ] || exit "$status"

accept=()
if { [ ! -d "$dir/baseline/cells" ] && [ ! -f "$dir/baseline/records.parquet" ]; } || [ "${NIGHTLY_ACCEPT:-}" = 1 ]; then
  accept=(--accept)
fi
status=0
"$PE_BENCH" nightly "$dir/night" --count --baseline "$dir/baseline" --history "$dir/history" "${accept[@]}" |
  tee "$dir/verdict.txt" || status=$?
"$PE_BENCH" report "$dir/night"
exit "$status"
