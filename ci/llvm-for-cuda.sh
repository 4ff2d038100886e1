#!/usr/bin/env bash
# Installs an LLVM where the build of Burn's `cuda` feature expects it. Optional: with a network the build
# script fetches its own bundle, and this is not needed. Where that download is refused, the same static
# libraries are taken from a Debian package (llvm-MAJOR-dev of the suite named below), through the package
# mirror that this machine uses anyway.
#
#   ci/llvm-for-cuda.sh [--check]       --check: report whether it is installed, without changes
#
# LLVM_SUITE names another suite of the mirror than sid.
#
# Once per machine. Needs a Debian or Ubuntu on x86-64 with curl, dpkg, xz, gcc, g++, binutils and the
# development files of zlib and zstd. About 60 MB to fetch, 420 MB on disk, a minute.
# A program built with it needs glibc 2.36 or newer, libstdc++, zlib and zstd where it runs, and for CUDA
# the NVIDIA driver and NVRTC.
set -euo pipefail
version=23.1.0-4
major=${version%%.*}
suite=${LLVM_SUITE:-sid}
target="${XDG_DATA_HOME:-$HOME/.local/share}/tracel/tracel-llvm-$version"
done_mark="$target/.tracel-llvm-installed"

fail() { echo "llvm-for-cuda: $*" >&2; exit 1; }

case "${1:-}" in
  --check)
    [ -e "$done_mark" ] && { echo "LLVM $version is at $target"; exit 0; }
    fail "LLVM $version is not at $target; run ci/llvm-for-cuda.sh without --check"
    ;;
  '') ;;
  *) echo "usage: ci/llvm-for-cuda.sh [--check]" >&2; exit 2 ;;
esac
[ -e "$done_mark" ] && { echo "LLVM $version is already at $target"; exit 0; }
[ "$(uname -sm)" = "Linux x86_64" ] || fail "this machine is $(uname -sm), but the package is only for Linux x86_64"
for tool in curl dpkg xz gcc g++ ar sha256sum awk; do
  command -v "$tool" > /dev/null || fail "$tool is missing; install it with the system's package manager"
done
for header in zlib.h zstd.h; do
  echo "#include <$header>" | gcc -E - > /dev/null 2>&1 ||
    fail "$header is missing; install zlib1g-dev and libzstd-dev"
done

# Some of the files may be missing, at which mawk ends.
mirror=$(cat /etc/apt/sources.list.d/*.sources /etc/apt/sources.list 2> /dev/null |
  awk '/^URIs:/ { print $2; exit } /^deb / { for (i = 2; i <= NF; i++) if ($i ~ /^http/) { print $i; exit } }' || true)
[ -n "$mirror" ] || fail "the package sources under /etc/apt name no mirror"
mirror=${mirror%/}

work=$(mktemp -d)
# Moved into place as the last step, so that an incomplete bundle is never used.
trap 'rm -rf "$work"' EXIT

index="$mirror/dists/$suite/main/binary-amd64/Packages.xz"
curl -fsS "$index" | xz -dc > "$work/index" || fail "the list of packages cannot be read: $index"
field() {
  awk -v package="llvm-$major-dev" -v name="$1" '
    $1 == "Package:" { here = ($2 == package) }
    here && $1 == name ":" { print $2; exit }' "$work/index"
}
file=$(field Filename)
sum=$(field SHA256)
[ -n "$file" ] && [ -n "$sum" ] || fail "llvm-$major-dev is not in suite $suite of $mirror; set LLVM_SUITE to one that has it"
curl -fsS -o "$work/package.deb" "$mirror/$file" || fail "cannot fetch $mirror/$file"
echo "$sum  $work/package.deb" | sha256sum --check --quiet || fail "the package is damaged: $mirror/$file"
dpkg -x "$work/package.deb" "$work/files"

from="$work/files/usr/lib/llvm-$major"
bundle="$work/bundle"
mkdir -p "$bundle/bin" "$bundle/lib" "$bundle/include"
cp -a "$from"/lib/libLLVM*.a "$bundle/lib/"
cp -a "$work/files/usr/include/llvm-$major/." "$work/files/usr/include/llvm-c-$major/." "$bundle/include/"
release=$(sed -n 's/.*PACKAGE_VERSION "\([0-9.]*\)".*/\1/p' "$from/lib/cmake/llvm/LLVMConfigVersion.cmake" 2> /dev/null |
  head -n 1 || true)

# The package was compiled against a newer C library, in which three functions have other names.
cat > "$work/names.c" <<'C'
#include <stdlib.h>
long __isoc23_strtol(const char *text, char **end, int base) { return strtol(text, end, base); }
long long __isoc23_strtoll(const char *text, char **end, int base) { return strtoll(text, end, base); }
unsigned long long __isoc23_strtoull(const char *text, char **end, int base) { return strtoull(text, end, base); }
C
gcc -O2 -c "$work/names.c" -o "$work/names.o"
# The name sorts last, because the library must be linked last.
ar rcs "$bundle/lib/libLLVMzNames.a" "$work/names.o"

# The options of llvm-config that the build script uses.
cat > "$bundle/bin/llvm-config" <<CONFIG
#!/usr/bin/env bash
root=\$(cd "\$(dirname "\$0")/.." && pwd)
flags="-I\$root/include -D_GNU_SOURCE -D__STDC_CONSTANT_MACROS -D__STDC_FORMAT_MACROS -D__STDC_LIMIT_MACROS"
names() { for path in "\$root"/lib/libLLVM*.a; do basename "\$path"; done; }
for argument in "\$@"; do
  case "\$argument" in
    --libs) names | sed 's/^lib/-l/; s/[.]a\$//' | tr '\n' ' '; echo ;;
    --libnames) names | tr '\n' ' '; echo ;;
    --system-libs) echo "-lrt -ldl -lm -lz -lzstd" ;;
    --libdir) echo "\$root/lib" ;;
    --includedir) echo "\$root/include" ;;
    --version) echo "${release:-$major.1.0}" ;;
    --cxxflags) echo "\$flags -std=c++17 -fno-exceptions -funwind-tables" ;;
    --cflags) echo "\$flags" ;;
  esac
done
CONFIG
chmod +x "$bundle/bin/llvm-config"
touch "$bundle/.tracel-llvm-installed"
mkdir -p "$(dirname "$target")"
rm -rf "$target"
mv "$bundle" "$target"
echo "LLVM ${release:-$major} is at $target"
