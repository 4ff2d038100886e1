#!/usr/bin/env bash
# Runs a sweep on a real Slurm of two nodes on this machine, disturbs it, and compares its records with those of an
# undisturbed run. `pe-bench cluster slurm --submit` writes and submits the batch script; then
#
#   1. a job of a partition with priority preempts a worker, which Slurm queues again;
#   2. one task of the array is cancelled;
#   3. the daemon of a node is killed with its worker running, and started again once Slurm has given the node up;
#   4. the time limit strikes: Slurm signals the workers, which write checkpoints and queue themselves again.
#
# In a second array a paused cell keeps two of three tasks without work. They end with status 4 and enter the queue again: one
# until its last restart, the other until the task of the paused cell is cancelled, whose cell it finishes.
#
# Needs Debian, root and a network for packages. Nothing outside a temporary folder is changed, apart from the packages. No
# accounting and no cgroups, so that it also runs in a container. Takes 10 to 20 minutes.
#
#   ci/slurm-test.sh        PE_BENCH=path of the program; default: the debug build
set -euo pipefail
cd "$(dirname "$0")/.."
target="${CARGO_TARGET_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/pe-zoo/ci-target}"
bench=$(realpath "${PE_BENCH:-$target/debug/pe-bench}")
[ -x "$bench" ] || { echo "there is no program $bench; build it, or set PE_BENCH to its path" >&2; exit 2; }
# Enough work for the time limit to strike: about half a minute for a cell on an idle machine.
steps=${SLURM_TEST_STEPS:-20000}

# With several names, `command -v` succeeds if one of them is found.
if ! { command -v slurmctld && command -v slurmd && command -v munged; } > /dev/null; then
  apt-get install --yes --no-install-recommends slurm-wlm munge > /dev/null
fi

folder=$(mktemp -d)
export SLURM_CONF="$folder/slurm.conf"
declare -A daemons=()
clean_up() {
  status=$?
  trap - EXIT
  scancel --quiet --user=root 2> /dev/null || true
  sleep 2
  for pid in "${daemons[@]}"; do kill "$pid" 2> /dev/null || true; done
  if [ "$status" -ne 0 ]; then
    echo "failed; the last lines of every log:"
    tail -n 15 "$folder"/log/* "$folder"/{results,open}/slurm/*.log 2> /dev/null || true
  fi
  sleep 1
  rm -rf "$folder"
  exit "$status"
}
trap clean_up EXIT

begin=$SECONDS
say() { printf '%4d s  %s\n' $((SECONDS - begin)) "$*"; }

# Waits until a command succeeds.
until_true() { # seconds, description, command
  local seconds=$1 description=$2 end=$((SECONDS + $1))
  shift 2
  until "$@" > /dev/null 2>&1; do
    [ $SECONDS -lt $end ] || { echo "not within $seconds s: $description"; exit 1; }
    sleep 1
  done
}

# --- the cluster ---
host=$(hostname -s)
mkdir -p "$folder"/{log,state,spool.one,spool.two}
dd if=/dev/urandom of="$folder/munge.key" bs=1024 count=1 status=none
chmod 600 "$folder/munge.key"
chmod 755 "$folder"
cat > "$SLURM_CONF" << CONF
ClusterName=test
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=16817
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
# A job that is queued again waits for as long as its last credential may be valid; two minutes by default.
AuthInfo=socket=$folder/munge.socket,cred_expire=20
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.%n.pid
SlurmctldLogFile=$folder/log/slurmctld
SlurmdLogFile=$folder/log/slurmd.%n
SlurmdSpoolDir=$folder/spool.%n
StateSaveLocation=$folder/state
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
JobCompType=jobcomp/filetxt
JobCompLoc=$folder/ended.txt
JobRequeue=1
MaxArraySize=5
MinJobAge=3600
ReturnToService=2
SlurmdTimeout=15
NodeName=one NodeHostname=$host NodeAddr=127.0.0.1 Port=16821 CPUs=2 RealMemory=6000
NodeName=two NodeHostname=$host NodeAddr=127.0.0.1 Port=16822 CPUs=2 RealMemory=6000
PartitionName=work Nodes=ALL Default=YES MaxTime=INFINITE PriorityTier=1
PartitionName=urgent Nodes=ALL MaxTime=INFINITE PriorityTier=10 PreemptMode=off
CONF
munged --force --foreground --key-file="$folder/munge.key" --socket="$folder/munge.socket" --num-threads=2 \
  --pid-file="$folder/munge.pid" --seed-file="$folder/munge.seed" --log-file="$folder/log/munged" > /dev/null 2>&1 &
daemons[munge]=$!
until_true 60 "munge answers" test -S "$folder/munge.socket"
slurmctld -D > /dev/null 2>&1 &
daemons[controller]=$!
node() { # name
  slurmd -D -N "$1" > /dev/null 2>&1 &
  daemons[$1]=$!
}
node one
node two
node_is() { sinfo --noheader --Node --nodes="$1" --partition=work --format=%T | grep -q "^$2"; } # name, state
until_true 300 "node one is idle" node_is one idle
until_true 300 "node two is idle" node_is two idle
say "Slurm $(sinfo --version | cut -d' ' -f2), nodes one and two are idle"

# --- an undisturbed run ---
cat > "$folder/suite.toml" << TOML
name = "slurm-test"
title = "Slurm test"
about = "A few cells of about half a minute each."
seeds = [0, 1]
encodings = ["rope", "cope", "alibi"]

[model]
layers = 2
width = 32
heads = 2

[train]
steps = $steps
batch_size = 8
len = 32

[eval]
lens = [32, 64]
samples = 20

[[workload]]
name = "flip-flop"
task = "flip-flop"

[[workload]]
name = "copy"
task = "copy"
encodings = ["alibi"]
model = { dropout = 0.1 }
TOML
cd "$folder"
"$bench" run suite.toml --jobs 2 --quiet --no-report --out undisturbed
cells=$(find undisturbed/cells -name '*.json' | wc -l)
say "undisturbed run: $cells cells"

sed "s/^name = \"slurm-test\"/name = \"slurm-open\"/; s/^seeds = .*/seeds = [0]/; s/\"cope\", //; s/^steps = .*/steps = $((steps / 4))/" suite.toml > open.toml
"$bench" run open.toml --jobs 2 --quiet --no-report --out undisturbed-open
say "undisturbed run of the second suite: $(find undisturbed-open/cells -name '*.json' | wc -l) cells"

# --- the sweep ---
"$bench" cluster slurm suite.toml --sbatch --time=3 --max 4 --submit -- --out results --threads 2 --checkpoint-seconds 5 \
  --claim-seconds 20 > submitted 2>&1 || { cat submitted; exit 1; }
sed "s|$folder|.|g; s|^|        |" submitted
array=$(sed -n 's/^job \([0-9]*\) runs the workers.*/\1/p' submitted)
report=$(sed -n 's/.*, job \([0-9]*\) writes the report.*/\1/p' submitted)
tasks=$(squeue --noheader --array --jobs="$array" --format=%i | wc -l)
[ "$tasks" -eq 4 ] || { echo "$tasks tasks, expected 4"; exit 1; }
say "array $array has $tasks tasks"

# The task that runs on a node, such as 17_2.
running_on() { squeue --noheader --array --states=RUNNING --nodelist="$1" --partition=work --format=%i | head -1; }
runs_on() { [ -n "$(running_on "$1")" ]; }
state_of() { scontrol show job "$1" | sed -n 's/ *JobState=\([A-Z_]*\).*/\1/p' | head -1; }
is_in_state() { [ "$(state_of "$1")" = "$2" ]; }
has_checkpoints() { find results/checkpoints -name '*.ckpt' | grep -q .; }
said() { grep -qh "$1" results/slurm/*_*.log; }
overview() { "$bench" status results | head -1; }

until_true 300 "a worker runs on both nodes" runs_on two
until_true 300 "there are checkpoints" has_checkpoints
"$bench" status results | sed "s| on $host| on NODE|; s|^|        |" || true

# 1. Preemption.
preempted=$(running_on one)
sbatch --quiet --partition=urgent --nodelist=one --cpus-per-task=2 --output=/dev/null --wrap 'sleep 3'
until_true 300 "task $preempted is preempted" said "task $preempted ended with status 143"
say "task $preempted was preempted and is $(state_of "$preempted"): $(overview)"

# 2. Cancelling one task.
until_true 300 "a worker runs on node one" runs_on one
cancelled=$(running_on one)
sleep 8
scancel "$cancelled"
until_true 300 "task $cancelled is cancelled" is_in_state "$cancelled" CANCELLED
say "task $cancelled was cancelled: $(overview)"

# 3. Loss of a node's daemon.
until_true 300 "a worker runs on node two" runs_on two
lost=$(running_on two)
kill -9 "${daemons[two]}"
until_true 300 "node two is down" node_is two down
say "the daemon of node two was killed while task $lost ran; the node is down, the task is $(state_of "$lost")"
node two
until_true 300 "node two is back" node_is two '\(idle\|mixed\|allocated\)'
say "the daemon of node two is back: $(overview)"

# 4. The time limit, and the end.
until_true 600 "the time limit strikes" said "ended with status 138"
say "the time limit struck: $(grep -h 'ended with status 138' results/slurm/*_*.log | sort | head -1)"
all_ended() { [ "$("$bench" status results --json | sed -n 's/^  "open": \[\],$/none/p')" = none ] && [ "$(find results/cells -name '*.json' | wc -l)" -eq "$cells" ]; }
until_true 900 "every cell has a record" all_ended
say "every cell has a record"
# Tasks that look for open cells again in some minutes need not wait for it here.
for task in $(squeue --noheader --array --states=PENDING --jobs="$array" --format=%i); do
  scontrol update JobId="$task" StartTime=now || true
done
until_true 400 "the report is written" is_in_state "$report" COMPLETED
say "job $report has written the report"

# --- tasks without a cell ---
"$bench" cluster slurm open.toml --sbatch --time=60 --max 3 -- --out open --checkpoint-seconds 5 --claim-seconds 20 > submitted 2>&1 || { cat submitted; exit 1; }
# The script is meant to be changed where it does not fit.
sed -i 's/^most_restarts=.*/most_restarts=1/' open/slurm/slurm-open.sh
bash open/slurm/slurm-open.sh submit > submitted
array=$(sed -n 's/^job \([0-9]*\) runs the workers.*/\1/p' submitted)
report=$(sed -n 's/.*, job \([0-9]*\) writes the report.*/\1/p' submitted)
say "array $array has three tasks for three cells, and one restart for each"
three_run() { [ "$("$bench" status open --json | grep -c '"pid"')" -eq 3 ]; }
until_true 300 "three cells are running" three_run
# The process that trains a cell is a child of the one that claimed it, which goes on renewing the claim.
# The status is 4 while cells are open.
claimed=$({ "$bench" status open --json || true; } | sed -n 's/.*"pid": \([0-9]*\).*/\1/p' | head -1)
until_true 60 "process $claimed has started its cell" pgrep --parent "$claimed"
paused=$(pgrep --parent "$claimed")
kill -STOP "$paused"
busy=$(tr '\0' '\n' < "/proc/$claimed/environ" | sed -n 's/^SLURM_ARRAY_TASK_ID=//p')
busy="${array}_$busy"
say "the cell of task $busy is paused"
found_none() { [ "$(cat open/slurm/"$array"_*.log | grep -c 'ended with status 4$')" -ge "$1" ]; } # times
until_true 600 "two tasks find no cell" found_none 2
# Queued again, with a begin that is some minutes away.
waits() { # task
  local shown begin
  shown=$(scontrol show job "$1")
  begin=$(sed -n 's/.* *StartTime=\([^ ]*\).*/\1/p' <<< "$shown" | head -1)
  grep -q 'JobState=PENDING' <<< "$shown" && grep -q 'Restarts=1 ' <<< "$shown" && [ $(($(date -d "$begin" +%s) - $(date +%s))) -gt 300 ]
}
free=()
for task in "${array}"_{1,2,3}; do [ "$task" = "$busy" ] || free+=("$task"); done
for task in "${free[@]}"; do until_true 60 "task $task waits in the queue" waits "$task"; done
say "tasks ${free[*]} ended with status 4 and wait in the queue for ten minutes: $("$bench" status open | head -1)"
scontrol update JobId="${free[0]}" StartTime=now
until_true 300 "task ${free[0]} finds no cell again" found_none 3
until_true 60 "task ${free[0]} has failed" is_in_state "${free[0]}" FAILED
grep -h 'cells are open after 1 restarts' "open/slurm/${free[0]}.log" > /dev/null
say "task ${free[0]} began again, ended with status 4 and, after its last restart, failed"
scancel "$busy"
# Slurm does this before it asks a task to end; a step that takes long may end by force otherwise.
kill -CONT "$paused" 2> /dev/null || true
until_true 300 "task $busy is cancelled" is_in_state "$busy" CANCELLED
say "task $busy was cancelled: $("$bench" status open | head -1)"
scontrol update JobId="${free[1]}" StartTime=now
until_true 600 "task ${free[1]} completes" is_in_state "${free[1]}" COMPLETED
say "task ${free[1]} began again and finished the cell: $("$bench" status open | head -1)"
until_true 400 "the report is written" is_in_state "$report" COMPLETED

# --- what is left ---
for sweep in results open; do
  undisturbed=undisturbed
  [ "$sweep" = results ] || undisturbed=undisturbed-open
  "$bench" records diff "$undisturbed" "$sweep"
  [ -s "$sweep/index.html" ] || { echo "no report"; exit 1; }
  left=$(find "$sweep/claims" "$sweep/checkpoints" -type f ! -name .lock 2> /dev/null || true)
  [ -z "$left" ] || { echo "files are left over: $left"; exit 1; }
  "$bench" status "$sweep"
done
for expected in PREEMPTED CANCELLED NODE_FAIL FAILED COMPLETED; do
  count=$(grep -c "JobState=$expected" ended.txt || true)
  [ "$count" -gt 0 ] || { echo "no job ended as $expected:"; cat ended.txt; exit 1; }
  echo "$count jobs ended as $expected"
done
for status in 0 4 138 143; do
  echo "$(cat {results,open}/slurm/*_*.log | grep -c "ended with status $status\$" || true) workers ended with status $status"
done
echo "slurm test passed: $((cells + 3)) records equal those of the undisturbed run, $((SECONDS - begin)) s"
