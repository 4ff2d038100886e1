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
number 'product lines (ci/count-lines.sh)' "$(bash ci/count-lines.sh | awk '$1 == "total" { print $2 }')"
number 'lines of the largest crate besides pe-zoo' "$(bash ci/count-lines.sh | awk '$1 != "total" && $1 != "pe-zoo" { print $2, $1 }' | sort -rn | head -n 1)"
number 'tracked files' "$(git ls-files | wc -l)"
number 'words of README, ARCHITECTURE, CONTRIBUTING, DESIGN' "$(git ls-files 'README.md' '*ARCHITECTURE.md' '*CONTRIBUTING.md' '*DESIGN.md' | xargs cat | wc -w)"
number 'commands of pe-bench' "$(grep -cP '^    [A-Z]\w+( \{|\(|,)' <(sed -n '/^enum Command {/,/^}/p' bench/cli/src/lib.rs))"
number 'tuple parameters' "$(tuples | wc -l)"
if [ "${1:-}" = --tuples ]; then tuples; fi
