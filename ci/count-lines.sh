#!/usr/bin/env bash
# Counts the lines of code of the product, by crate: Rust lines that are neither blank nor a comment, without tests,
# the conformance kit, scalar references, examples, benches and fixtures.
set -euo pipefail
cd "$(dirname "$0")/.."
total=0
for crate in pe-zoo tasks reports/records reports/stats reports/analysis reports bench/train bench/sweep bench/llm bench/cli; do
  lines=$(git ls-files "$crate/src/*.rs" | grep -vE '(^|/)(tests|testkit|testing|fixtures)(/|\.rs$)|^pe-zoo/src/reference[/.]' \
    | xargs awk '
      FNR == 1 { test = 0 }
      /^[ \t]*#\[cfg\((test|all\(test.*)\)\]/ { test = 1 }
      # A test module ends with its file or with a closing brace in the first column.
      test && /^}/ { test = 0; next }
      test && /^(pub(\([a-z]+\))? )?(mod|use|fn|const|static) .*;$/ { test = 0; next }
      test { next }
      /^[ \t]*$/ || /^[ \t]*\/\// { next }
      { n++ }
      END { print n }')
  printf '%-16s %6d\n' "$crate" "$lines"
  total=$((total + lines))
done
printf '%-16s %6d\n' total "$total"
