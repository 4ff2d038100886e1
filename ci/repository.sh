#!/usr/bin/env bash
# Writes the address of this repository into what is published: all crates, the Python package and the book.
#
#   ci/repository.sh URL        e.g. https://example.org/user/pe-zoo
set -euo pipefail
cd "$(dirname "$0")/.."
url=${1:?"usage: ci/repository.sh URL"}
url=${url%/}
for file in $(git ls-files '*Cargo.toml'); do
  sed -i.old -e '/^repository/d' -e '/^homepage/d' "$file"
  if grep -q '^\[workspace.package\]' "$file"; then
    sed -i.old "s|^\[workspace.package\]|&\nrepository = \"$url\"\nhomepage = \"$url\"|" "$file"
  fi
  sed -i.old 's|^license.workspace = true|&\nrepository.workspace = true\nhomepage.workspace = true|' "$file"
done
sed -i.old -e '/^\[project.urls\]/,/^$/d' bench/python/pyproject.toml
printf '\n[project.urls]\nRepository = "%s"\n' "$url" >>bench/python/pyproject.toml
sed -i.old -e '/^git-repository-url/d' -e "s|^\[output.html\]|&\ngit-repository-url = \"$url\"|" doc/guide/book.toml
find . -name '*.old' -not -path './target/*' -delete
cargo metadata --no-deps --format-version 1 >/dev/null
