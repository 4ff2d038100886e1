#!/usr/bin/env bash
# One night: runs a suite, writes its report, holds it against the accepted baseline, adds it to the trend.
#
# Exit status 3: the gate does not take the night. The first night, and any with NIGHTLY_ACCEPT=1, becomes the
# baseline. Arguments are handed to `pe-bench run`. Instructions are counted where valgrind is installed; where it is
# not, the verdict says so.
#
#   NIGHTLY_SUITE   suite or path of a TOML file; default: nightly
#   NIGHTLY_DIR     where night/, baseline/, history/ and verdict.txt are; default: results/nights
#   NIGHTLY_JOBS    cells side by side; default: 1, so that times mean something
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
rm -rf "$dir/night"
status=0
"$PE_BENCH" run "$suite" --out "$dir/night" --jobs "${NIGHTLY_JOBS:-1}" "$@" || status=$?
# 1: some cells failed. They are for the gate to judge; anything else ends the night.
[ "$status" -le 1 ] || exit "$status"
# What could not be counted is missing in the verdict, which tells it: the night goes on.
"$PE_BENCH" count "$dir/night" || echo "instructions could not be counted" >&2
"$PE_BENCH" report "$dir/night"

accept=()
if [ ! -d "$dir/baseline/cells" ] || [ "${NIGHTLY_ACCEPT:-}" = 1 ]; then
  accept=(--accept)
fi
"$PE_BENCH" nightly "$dir/night" --baseline "$dir/baseline" --history "$dir/history" "${accept[@]}" |
  tee "$dir/verdict.txt"
