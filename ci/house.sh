#!/usr/bin/env bash
# Prints the numbers by which the size of the project is judged: what somebody must read and know to work on it.
set -euo pipefail
cd "$(dirname "$0")/.."
number() { printf '%-52s %s\n' "$1" "$2"; }
product() { git ls-files "$@" | grep -vE '(^|/)(tests|testkit|testing|fixtures)(/|\.rs$)|^pe-zoo/src/reference[/.]'; }
# Functions with a parameter that is a tuple or an array of names, outside of tests. The operands of an operation that Burn
# differentiates are an array by its trait (`Operation::forward`, `CubeOperation::forward`), and shapes are arrays everywhere.
tuples() {
  product 'pe-zoo/src/*.rs' 'tasks/src/*.rs' 'reports/*src/*.rs' 'bench/*/src/*.rs' |
    xargs grep -nP '[\[(]&?(mut )?[a-z_]\w*(, ?&?(mut )?[a-z_]\w*)+[\])]: ?[&\[(]' |
    grep -vP '\blet\b|\bfor\b|matches!|//|\|\(|\[(of_\w+(, )?)+\]|\[FlexTensor; |\]: \[CubeTensor; \d\](,$|\) -> \(CubeTensor, )|\[batch, ' || true
}
# Rust lines of each crate that are neither blank nor a comment, without tests, the conformance kit, scalar references, examples,
# benches and fixtures.
lines_of_crates() {
  local crate lines
  for crate in pe-zoo tasks reports/records reports/stats reports/analysis reports bench/train bench/sweep bench/llm bench/cli; do
    lines=$(product "$crate/src/*.rs" | xargs awk '
        FNR == 1 { test = 0 }
        /^[ \t]*#\[cfg\((test|all\(test.*)\)\]/ { test = 1 }
        # A test module ends with its file or with a closing brace in the first column.
        test && /^}/ { test = 0; next }
        test && /^(pub(\([a-z]+\))? )?(mod|use|fn|const|static) .*;$/ { test = 0; next }
        test { next }
        /^[ \t]*$/ || /^[ \t]*\/\// { next }
        { n++ }
        END { print n }')
    echo "$lines $crate"
  done
}
crates=$(lines_of_crates)
number 'product lines' "$(awk '{ total += $1 } END { print total }' <<< "$crates")"
number 'lines of the largest crate besides pe-zoo' "$(grep -v ' pe-zoo$' <<< "$crates" | sort -rn | head -n 1)"
number 'tracked files' "$(git ls-files | wc -l)"
number 'words of README, ARCHITECTURE, CONTRIBUTING, DESIGN' "$(git ls-files 'README.md' '*ARCHITECTURE.md' '*CONTRIBUTING.md' '*DESIGN.md' | xargs cat | wc -w)"
number 'commands of pe-bench' "$(grep -cP '^    [A-Z]\w+( \{|\(|,)' <(sed -n '/^enum Command {/,/^}/p' bench/cli/src/lib.rs))"
number 'tuple parameters' "$(tuples | wc -l)"
if [ "${1:-}" = --tuples ]; then tuples; fi
