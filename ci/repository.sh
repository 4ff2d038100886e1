#!/usr/bin/env bash
# Writes the address of this repository into what is published: all crates, the Python package, the book, the citation and the
# badges of README.md. A second run replaces what the first one wrote.
#
#   ci/repository.sh URL [SITE]        e.g. https://example.org/user/pe-zoo https://user.example.org/pe-zoo
#
# SITE is the address of what ci/site.sh writes, the homepage of the packages; default: URL.
set -euo pipefail
cd "$(dirname "$0")/.."
url=${1:?"usage: ci/repository.sh URL [SITE]"}
url=${url%/}
site=${2:-$url}
site=${site%/}
for file in $(git ls-files '*Cargo.toml'); do
  sed -i.old -e '/^repository/d' -e '/^homepage/d' "$file"
  if grep -q '^\[workspace.package\]' "$file"; then
    sed -i.old "s|^\[workspace.package\]|&\nrepository = \"$url\"\nhomepage = \"$site\"|" "$file"
  fi
  sed -i.old 's|^license.workspace = true|&\nrepository.workspace = true\nhomepage.workspace = true|' "$file"
done
sed -i.old -e '/^\[project.urls\]/,$d' bench/python/pyproject.toml
sed -i.old -e '${/^$/d;}' bench/python/pyproject.toml
printf '\n[project.urls]\nRepository = "%s"\nHomepage = "%s"\n' "$url" "$site" >>bench/python/pyproject.toml
sed -i.old -e '/^git-repository-url/d' -e "s|^\[output.html\]|&\ngit-repository-url = \"$url\"|" doc/guide/book.toml
sed -i.old -e '/^repository-code:/d' -e '/^url:/d' -e "s|^type: software|&\nrepository-code: $url\nurl: $site|" CITATION.cff
badge() { printf '[![%s](%s/actions/workflows/%s.yml/badge.svg)](%s/actions/workflows/%s.yml)' "$1" "$url" "$1" "$url" "$1"; }
sed -i.old "1s|.*|# pe-zoo $(badge ci) $(badge nightly)|" README.md
find . -name '*.old' -not -path './target/*' -delete
cargo metadata --no-deps --format-version 1 >/dev/null
