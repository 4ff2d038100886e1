#!/bin/bash
# {{about}}
#
#   bash {{script}} submit    queues the workers, and the report after them
#   bash {{script}} report    writes the report now
#
#SBATCH --job-name={{name}}
#SBATCH --array=1-{{workers}}
#SBATCH --cpus-per-task={{cpus}}
#SBATCH --output={{logs}}/%A_%a.log
#SBATCH --gres={{gres}}
#SBATCH {{option}}
#SBATCH --open-mode=append
#SBATCH --requeue
# The signal leaves time for the last step and the checkpoints before the time limit.
#SBATCH --signal=B:USR1@120

script={{script}}
# Restarts after which a task does not enter the queue again.
most_restarts=100
report_options=({{report_options}} --job-name={{name}}-report --cpus-per-task=2 --output={{quoted_logs}}/report_%j.log)
bench=({{program}})
run=({{run}})
report=({{report}})
cd {{folder}} || exit
{{setup}}

case ${1:-work} in
submit)
  workers=$(sbatch --parsable "$script") || exit
  workers=${workers%%;*}
  report=$(sbatch --parsable --dependency="afterany:$workers" "${report_options[@]}" --wrap "bash $(printf %q "$script") report") || exit
  echo "job $workers runs the workers, job ${report%%;*} writes the report after them"
  exit ;;
report)
  "${bench[@]}" "${report[@]}"
  exit ;;
work) ;;
*) echo "$script: unknown action $1, expected submit, report or work" >&2; exit 2 ;;
esac

# The task of this worker. Its job id would not do: that of the last task is the id of the whole array.
task=${SLURM_ARRAY_JOB_ID:?"run this in an array job: bash $script submit"}_$SLURM_ARRAY_TASK_ID
restart=${SLURM_RESTART_COUNT:-0}
echo "$(date -u +%FT%TZ) task $task on $(hostname), restart $restart"

"${bench[@]}" "${run[@]}" &
worker=$!
# Both make the worker write its checkpoints and give its cells back: USR1 comes before the time limit, TERM when the task
# is cancelled or preempted.
trap 'kill -USR1 "$worker"' USR1
trap 'kill -TERM "$worker"' TERM
# A signal ends `wait`, not the worker.
while wait "$worker"; status=$?; kill -0 "$worker" 2>/dev/null; do :; done
echo "$(date -u +%FT%TZ) task $task ended with status $status"

# 4: other tasks run the cells that are open, and one of them may yet be cancelled. 138: the time limit.
case $status in
4 | 138) ;;
*) exit "$status" ;;
esac
if [ "$restart" -ge "$most_restarts" ]; then
  echo "cells are open after $restart restarts; bash $script submit continues" >&2
  exit "$status"
fi
# Entering the queue again ends this script with TERM, but the task must still get its begin.
trap '' TERM
scontrol requeue "$task" || exit "$status"
if [ "$status" = 4 ]; then scontrol update JobId="$task" StartTime=now+10minutes; fi
exit 0
