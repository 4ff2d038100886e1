#!/usr/bin/env bash
# Writes the site to a folder: the guide, below zoo/ the report of the zoo's records, and below nightly/ the report and the trend
# of the last night, if there is one. Checks all links of the guide. Needs mdbook (0.5.4), Python and Rust.
#
#   ci/site.sh FOLDER
set -euo pipefail
cd "$(dirname "$0")/.."
site=${1:?"usage: ci/site.sh FOLDER"}
for tool in mdbook python3; do
  command -v "$tool" > /dev/null || { echo "$tool is missing; install it (mdbook: cargo install mdbook --version 0.5.4)" >&2; exit 2; }
done
mkdir -p "$site"
site=$(cd "$site" && pwd)
mdbook build doc/guide --dest-dir "$site"
python3 ci/links.py "$site"
cargo run --quiet -- report results/zoo/2-cores_2026-11 --out "$site/zoo"
nights=${NIGHTLY_DIR:-results/nights}
if [ -d "$nights/night" ]; then
  mkdir -p "$site/nightly"
  cp -r "$nights/night/." "$site/nightly/"
  rm -rf "$site/nightly/cells"
  for file in "$nights"/history/trend.* "$nights/verdict.txt"; do
    [ ! -f "$file" ] || cp "$file" "$site/nightly/"
  done
fi
