#!/bin/bash
# Runs the scripts of several jobs in one allocation of Slurm, one after the other, each when its
# slot comes.
# usage: bash allocation.sh IDLE_S FOLDER LIMIT_S [FOLDER LIMIT_S]...
# In the folder that it is started in it looks for `turn.1`, then for `turn.2` and so on: each holds the number of the job
# whose turn it is, counted from 1. With `close` there, or after IDLE_S seconds without a turn, it ends.
# In the job's folder it writes `began`, and when the job is over `ended`:
#   exited CODE   its script came to its end
#   signal N      its script was killed
#   asked         there was a file `cancel`; at a file `interrupt` its steps were sent INT before
#   limit         after LIMIT_S seconds
# Time is the kernel's uptime, which no change of the wall clock moves.
set -u
# Each job has a process group of its own.
set -m
LC_ALL=C

main() {
  [[ $# -ge 3 && $(($# % 2)) -eq 1 && $1 =~ ^[1-9][0-9]{0,8}$ ]] || usage
  local idle=$1 turn=1 since number seen
  shift
  jobs=("$@")
  uptime
  since=$now
  while :; do
    # Re-reading a folder shows files of other machines.
    seen=(turn.*)
    if { read -r number < "turn.$turn"; } 2> /dev/null; then
      [[ $number =~ ^[1-9][0-9]{0,5}$ && $number -le $((${#jobs[@]} / 2)) ]] || usage
      run "${jobs[number * 2 - 2]}" "${jobs[number * 2 - 1]}"
      turn=$((turn + 1))
      uptime
      since=$now
    elif [[ -e close ]]; then
      exit 0
    elif uptime && ((now - since >= idle)); then
      exit 0
    else
      sleep 0.5
    fi
  done
}

usage() {
  echo 'usage: bash allocation.sh IDLE_S FOLDER LIMIT_S [FOLDER LIMIT_S]...' >&2
  exit 2
}

uptime() {
  local text
  read -r text _ < /proc/uptime
  now=${text%%.*}
}

# Where a job cannot be ended, what follows it would run beside it: the allocation ends with it.
run() {
  local folder=$1 limit=$2 child code how=exited begun interrupted=
  # An allocation that was put back into the queue starts again, and no job runs twice.
  [[ ! -e $folder/began ]] || return
  write began '' "$folder" || exit 3
  uptime
  begun=$now
  (cd "$folder" && HARNESS_JOB=:$folder exec bash job.sh < /dev/null > batch.out 2> batch.err) &
  child=$!
  while kill -0 "$child" 2> /dev/null; do
    if [[ -z $interrupted && -e $folder/interrupt ]]; then
      interrupted=yes
      end_steps --signal=INT
    fi
    uptime
    if [[ -e $folder/cancel ]]; then
      how=asked
      break
    elif ((now - begun >= limit)); then
      how=limit
      break
    fi
    sleep 0.5
  done
  if [[ $how != exited ]]; then put_down "$child" ":$folder"; fi
  wait "$child" 2> /dev/null
  code=$?
  # Leftovers of the script end too.
  put_down "$child" ":$folder"
  if [[ $how == exited && -e $folder/exit_code ]]; then
    how="exited $code"
  elif [[ $how == exited ]]; then
    # A script that comes to its end has written its exit code.
    if ((code > 128)); then how="signal $((code - 128))"; else how="exited $code"; fi
  fi
  write ended "$how" "$folder" || exit 3
  if [[ -n $stuck ]]; then
    echo "allocation.sh: not ended after its job: $stuck" >&2
    exit 3
  fi
}

# A file that is complete or absent; a folder that cannot be written to is given five minutes.
write() {
  local tries
  for ((tries = 0; tries < 60; tries++)); do
    echo "$2" > "$3/$1.part" && mv -f "$3/$1.part" "$3/$1" && return
    sleep 5
  done
  return 1
}

# Sets $steps to what runs on the nodes: of one job at a time, so all of them are the job's.
look() {
  local step
  steps=()
  while read -r step; do
    if [[ $step =~ ^[0-9]+\.[0-9]+$ ]]; then steps+=("$step"); fi
  done < <(squeue --noheader --all --steps --jobs="$SLURM_JOB_ID" --format=%i 2> /dev/null)
}

end_steps() {
  look
  if ((${#steps[@]})); then scancel "$@" "${steps[@]}" 2> /dev/null; fi
}

# Whether any process of the group is there other than a zombie: a zombie is over.
alive() {
  local file words
  kill -0 -- "-$1" 2> /dev/null || return 1
  for file in /proc/[0-9]*/stat; do
    stat "$file" || continue
    [[ ${words[2]} == "$1" && ${words[0]} != Z ]] && return 0
  done
  return 1
}

# Ends the steps of a job, the group of its script, and what left that on this node: asks at first, and uses force after
# ten seconds. Sets $stuck to what is there after a minute.
put_down() {
  local how=TERM tries
  stuck=
  for ((tries = 0; tries < 60; tries++)); do
    look
    find_strays "$2" "$1"
    alive "$1" || ((${#steps[@]})) || [[ -n $strays ]] || return
    if ((tries == 10)); then how=KILL; fi
    if ((tries % 10 == 0)); then
      if ((${#steps[@]})); then scancel ${how/#/--signal=} "${steps[@]}" 2> /dev/null; fi
      kill -"$how" -- "-$1" 2> /dev/null
      if [[ -n $strays ]]; then kill -"$how" $strays 2> /dev/null; fi
    fi
    sleep 1
  done
  stuck=${steps[*]:-"process group $1$strays"}
}

main "$@"
