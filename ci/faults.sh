#!/usr/bin/env bash
# Runs sweeps on small disks, under low limits, with unusable locks, deleted folders, wrong clocks and closed outputs. A
# sweep under such a fault may stop with a message, but must not panic or hang; the same command without the fault must
# end with the records of an undisturbed run.
#
#   ci/faults.sh [ROUNDS [SEED]]        PE_BENCH=path of the program; default: one round, the debug build
#
# A small disk is a tmpfs; where this user may not mount one, files are limited in size instead. A limit on processes does
# not bind root: the sweep then runs as the user 65534.
source "$(dirname "$0")/disturbed.sh"
rounds=${1:-1}
seed=${2:-1}
claim_seconds=2

cat > "$folder/suite.toml" <<'TOML'
name = "faults"
title = "Faults"
about = "Four small cells."
seeds = [0, 1]
encodings = ["rope", "cope"]

[model]
layers = 1
width = 16

[train]
steps = 300
batch_size = 4
len = 16

[eval]
lens = [16, 32]
samples = 8

[[workload]]
name = "flip-flop"
task = "flip-flop"
TOML

begin "$seed"
done_so_far=0
declare -A exits=()

# Runs the sweep under a fault and then without it, and compares.
#
# The fault is a shell function that runs the sweep: `"$@"` is its command line without the folder of results, $results.
fault() { # name; function; arguments of the function
  local name=$1 status=0 begun
  shift
  results="$folder/results.$done_so_far"
  mkdir -p "$results"
  begun=$SECONDS
  "$@" > "$folder/log" 2>&1 || status=$?
  # Without any memory the program can only abort.
  local starved=0
  if [ "$status" -eq 134 ] && grep -q "memory allocation of" "$folder/log"; then starved=1; fi
  # 101: a panic, also where standard error is closed; 126 and 127: the program was not started; above 128: a signal.
  if grep -q "panicked at" "$folder/log" || { [ "$status" -gt 100 ] && [ "$starved" -eq 0 ]; }; then
    echo "$name: exit status $status"
    tail -40 "$folder/log"
    exit 1
  fi
  local records
  records=$(records_of "$results")
  done_so_far=$((done_so_far + 1))
  exits[$status]=$((${exits[$status]:-0} + 1))
  echo "fault $done_so_far: $name: exit status $status, $records records, $((SECONDS - begun)) s$(said)"
  # A disk in a folder of its own is copied, so that it can be given back.
  if [ "${disk:-}" = "$results" ]; then
    cp -r "$results" "$results.copy"
    umount "$results"
    disk=
    results="$results.copy"
  fi
  again "$results" --retry failed,out-of-memory
  check "$results" || exit 1
}

# The first error of the log, for the line of the fault.
said() {
  local line
  line=$(grep -m 1 -E "^error|cannot|failed" "$folder/log" || true)
  [ -z "$line" ] || echo "; ${line:0:150}" | sed "s#$folder#...#g"
}

sweep() { "$bench" "${command[@]}" --out "$results" "$@"; }

limited() { # options of ulimit; e.g. -v 600000
  (
    ulimit "$@"
    sweep
  )
}

small_disk() { # options of tmpfs; limit of file sizes in blocks of 1024 bytes
  if mount -t tmpfs -o "$1" tmpfs "$results" 2>/dev/null; then
    mounted+=("$results")
    disk=$results
    sweep
  else
    echo "no small disk: files are limited to $2 KiB"
    limited -f "$2"
  fi
}

few_processes() { # limit
  if [ "$(id -u)" -eq 0 ]; then
    # The other user may not reach the folder of the program.
    [ -e "$folder/pe-bench" ] || cp "$bench" "$folder/pe-bench"
    chmod -R a+rwX "$folder"
    # A user may have other processes; the limit counts them.
    local taken
    taken=$(ps -L -u 65534 --no-headers 2>/dev/null | wc -l)
    setpriv --reuid=65534 --regid=65534 --clear-groups prlimit --nproc=$((taken + $1)) \
      "$folder/pe-bench" "${command[@]}" --out "$results"
  else
    limited -u "$1"
  fi
}

# Another process holds the lock of the claims until the sweep continues without it.
held_lock() {
  mkdir -p "$results/claims"
  flock --no-fork -x "$results/claims/.lock" sleep 60 &
  local holder=$! status=0
  sleep 0.2
  sweep || status=$?
  kill "$holder" 2>/dev/null || true
  { wait "$holder" || true; } 2>/dev/null
  return "$status"
}

lock_is_a_folder() {
  mkdir -p "$results/claims/.lock"
  local status=0
  sweep || status=$?
  rmdir "$results/claims/.lock"
  return "$status"
}

claims_are_a_file() {
  : > "$results/claims"
  local status=0
  sweep || status=$?
  rm "$results/claims"
  return "$status"
}

# Runs a command again and again while the sweep works.
meanwhile() { # command
  sweep &
  local pid=$! status=0
  while kill -0 "$pid" 2>/dev/null; do
    "$@" 2>/dev/null || true
    sleep "0.$((RANDOM % 4 + 1))"
  done
  wait "$pid" || status=$?
  return "$status"
}

# Clocks of files that jump by decades in both directions.
jump() {
  local times=("1970-01-02" "2001-09-09" "2038-01-20" "2099-12-31" "now")
  find "$results" -type f -exec touch -d "${times[$((RANDOM % ${#times[@]}))]}" {} +
}

delete() { # folder
  rm -rf "${results:?}/$1"
}

closed() { # what the shell does with the outputs
  case $1 in
    reader) "$bench" "${command[@]/--quiet/--json}" --out "$results" | head -1 ;;
    stdout) sweep >&- ;;
    stderr) sweep 2>&- ;;
    stdin) sweep <&- ;;
    full) sweep > /dev/full ;;
    complaints) sweep 2> /dev/full ;;
  esac
}

# Only the sweep's user may write; root may always.
read_only() {
  chmod a-w "$results"
  local status=0
  sweep || status=$?
  chmod u+w "$results"
  return "$status"
}

for _ in $(seq "$rounds"); do
  for size in 16 32 64 $((RANDOM % 200 + 20)); do fault "disk of $size KiB" small_disk "size=${size}k" "$((size / 8))"; done
  for inodes in 8 12 $((RANDOM % 30 + 6)); do fault "$inodes inodes" small_disk "nr_inodes=$inodes" 4; done
  for blocks in 1 4 16 $((RANDOM % 60 + 1)); do fault "files of $blocks KiB" limited -f "$blocks"; done
  for mib in 100 200 300 400 600 800 1500 $((RANDOM % 900 + 100)); do
    fault "$mib MiB of address space" limited -v $((mib * 1024))
  done
  for files in 6 9 12 16 24 $((RANDOM % 40 + 4)); do fault "$files descriptors" limited -n "$files"; done
  for processes in 1 3 6 10 16 $((RANDOM % 30 + 1)); do fault "$processes processes" few_processes "$processes"; done
  fault "lock held by another process" held_lock
  fault "lock is a folder" lock_is_a_folder
  fault "claims are a file" claims_are_a_file
  fault "clocks jump" meanwhile jump
  fault "claims deleted" meanwhile delete claims
  fault "checkpoints deleted" meanwhile delete checkpoints
  fault "folder cannot be written" read_only
  for output in reader stdout stderr stdin full complaints; do fault "closed: $output" closed "$output"; done
done
summary=
for status in $(printf '%s\n' "${!exits[@]}" | sort -n); do summary="$summary, ${exits[$status]} with exit status $status"; done
echo "faults passed: $done_so_far faults (${summary#, }), all followed by $cells records equal to the undisturbed ones, seed $seed, $((SECONDS - start_seconds)) s"
