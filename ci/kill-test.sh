#!/usr/bin/env bash
# Disturbs a sweep N times (default 30) at random moments and runs the same command again each time. Asks for the records
# of an undisturbed run: none lost, none doubled, all equal in everything but timings. The disturbances take turns:
#
#   KILL of the group (sweep and workers), of the sweep alone (its workers must end by themselves), of one worker (its cell
#   resumes); TERM, HUP, USR1 and INT to the sweep (exit statuses 143, 129, 138 and 130); STOP of the whole group until
#   its claims have expired and CONT later, while a second sweep takes its cells.
#
# Every third sweep that is killed or asked to stop has a second one beside it on the same folder.
#
#   ci/kill-test.sh [N [SEED]]        PE_BENCH=path of the program; default: the debug build
source "$(dirname "$0")/disturbed.sh"
disturbances=${1:-30}
seed=${2:-1}
claim_seconds=5

cat > "$folder/suite.toml" <<'TOML'
name = "kill"
title = "Kill test"
about = "A few cells of some seconds each."
seeds = [0]
encodings = ["rope", "cope", "randomized"]

[model]
layers = 2
width = 32
heads = 2

[train]
steps = 600
batch_size = 8
len = 32
validation = { every_steps = 150, samples = 8, solved_exact_match = 1.0, solved_checks = 99 }

[eval]
lens = [32, 64]
samples = 20

[[workload]]
name = "flip-flop"
task = "flip-flop"

[[workload]]
name = "copy-with-dropout"
task = "copy"
encodings = ["tape", "alibi"]
model = { dropout = 0.1 }
train = { steps = 400, len = 16 }
eval = { lens = [16, 32] }
TOML

# Starts a sweep in a group of processes of its own, so that the group can be killed.
start() { # folder of results; name of the log
  setsid "$bench" "${command[@]}" --out "$1" > "$folder/log.$2" 2>&1 &
  running+=($!)
}

failed() { # what; name of the log
  echo "$1:"
  cat "$folder/log.$2"
  exit 1
}

# Workers of a sweep that have not ended.
workers() { # process id of the sweep
  for stat in /proc/[0-9]*/stat; do
    awk -v parent="$1" '{ id = $1; sub(/.*\) /, ""); if ($2 == parent && $1 != "Z") print id }' "$stat" 2>/dev/null || true
  done
}

begin "$seed"

kinds=(group sweep worker TERM HUP USR1 INT STOP)
declare -A statuses=([TERM]=143 [HUP]=129 [USR1]=138 [INT]=130)
declare -A counts=()
done_so_far=0 finished=0 pairs=0 worker_kills=0
results="$folder/disturbed.0"
while [ "$done_so_far" -lt "$disturbances" ]; do
  kind=${kinds[$((done_so_far % ${#kinds[@]}))]}
  # Three deaths of its worker are the end of a cell: a folder sees two.
  if [ "$kind" = worker ] && [ "$worker_kills" -ge 2 ]; then kind=group; fi
  running=()
  start "$results" 1
  pid=${running[0]}
  if [ $((done_so_far % 3)) -eq 2 ] && [ "$kind" != worker ] && [ "$kind" != STOP ]; then
    start "$results" 2
    pairs=$((pairs + 1))
  fi
  # Anywhere from its first moment to two thirds of an undisturbed run.
  pause=$((20 + (RANDOM * 32768 + RANDOM) % (milliseconds * 2 / 3)))
  sleep "$((pause / 1000)).$(printf %03d $((pause % 1000)))"
  worker=
  [ "$kind" != worker ] || worker=$(workers "$pid" | head -1)
  if ! kill -0 "$pid" 2>/dev/null || { [ "$kind" = worker ] && [ -z "$worker" ]; }; then
    # The sweep ended before: its records are compared, and the disturbances continue in a new folder.
    wait "$pid" || failed "a sweep failed" 1
    for other in "${running[@]:1}"; do wait "$other" || failed "the second sweep failed" 2; done
    check "$results" || exit 1
    finished=$((finished + 1)) worker_kills=0
    results="$folder/disturbed.$finished"
    continue
  fi
  status=0
  # The sweep may have ended a moment ago.
  case $kind in
    group) kill -9 -- "-$pid" 2>/dev/null || true ;;
    sweep) kill -9 "$pid" 2>/dev/null || true ;;
    worker)
      kill -9 "$worker" 2>/dev/null || true
      worker_kills=$((worker_kills + 1))
      ;;
    STOP)
      kill -STOP -- "-$pid"
      start "$results" 2
      sleep $((claim_seconds + 1))
      kill -CONT -- "-$pid"
      ;;
    *) kill "-$kind" "$pid" 2>/dev/null || true ;;
  esac
  { wait "$pid" || status=$?; } 2>/dev/null
  expected="${statuses[$kind]:-0}"
  case $kind in
    group | sweep) ;;
    # A sweep that was at its end when the signal came has succeeded.
    *) [ "$status" -eq "$expected" ] || [ "$status" -eq 0 ] || failed "exit status $status after $kind, expected $expected" 1 ;;
  esac
  done_so_far=$((done_so_far + 1))
  counts[$kind]=$((${counts[$kind]:-0} + 1))
  records=$(records_of "$results")
  echo "disturbance $done_so_far: $kind after $pause ms, exit status $status, $records records by then"
  for other in "${running[@]:1}"; do
    # The second sweep continues alone and takes over the cells of the first one.
    wait "$other" || failed "the second sweep failed" 2
  done
done
running=()
again "$results"
check "$results" || exit 1
summary=
for kind in "${kinds[@]}"; do summary="$summary, ${counts[$kind]:-0} $kind"; done
echo "kill test passed: $disturbances disturbances (${summary#, }; $pairs beside a second sweep), $((finished + 1)) folders of $cells cells equal the undisturbed one, seed $seed, $((SECONDS - start_seconds)) s"
