#!/usr/bin/env bash
# Lists type names that are defined more than once in the sources of the workspace, tests apart, with their places.
# Exit status 1 if there are any. Items under `#[cfg(test)]` and files named tests.rs do not count.
set -euo pipefail
cd "$(dirname "$0")/.."
found=$(mktemp)
trap 'rm -f "$found"' EXIT

git ls-files 'pe-zoo/src/*.rs' 'tasks/src/*.rs' 'reports/*src/*.rs' 'bench/*/src/*.rs' |
    grep -vE '(^|/)tests(/|\.rs$)' |
    xargs awk '
        FNR == 1 { tests = 0 }
        /^#\[cfg\((all\()?test[,)]/ { tests = 1 }
        # The item ends on its line, or with a closing brace in the first column.
        tests && (/^}/ || /^(pub(\([a-z]+\))? )?(mod|use|fn|const|static) .*;$/) { tests = 0; next }
        tests { next }
        match($0, /^ *(pub(\([a-z: ]+\))? )?(struct|enum|trait|union|type) [A-Z][A-Za-z0-9]*/) {
            indent = match($0, /[^ ]/) - 1
            name = $0
            sub(/^ *(pub(\([a-z: ]+\))? )?(struct|enum|trait|union|type) /, "", name)
            sub(/[^A-Za-z0-9].*/, "", name)
            # Associated types of traits and impls are named by their trait.
            if (indent > 0 && $0 ~ /^ *(pub(\([a-z: ]+\))? )?type /) next
            count[name]++
            places[name] = places[name] "  " FILENAME ":" FNR "\n"
        }
        END {
            for (name in count) if (count[name] > 1) {
                printf "%s\n%s", name, places[name]
            }
        }' > "$found"
cat "$found"
names=$(grep -c '^[A-Z]' "$found" || true)
echo "type names with more than one definition: $names"
[ "$names" -eq 0 ]
