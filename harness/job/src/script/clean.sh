#!/bin/bash
# Reports the leftovers on one node of the jobs in these folders, and ends processes on request.
# usage: bash clean.sh look|end NODE [--containers docker|podman] FOLDER...
# Prints a line for each thing, its parts parted by tabs: which of the folders, counted from 0; what it is; and which:
#   process    its number; it is of a group that the job's own records name, if the number still means that group, or it has the
#              job's HARNESS_JOB in its environment, which what leaves the group keeps
#   container  the id of one with the label of the job, where containers are looked for; `unasked` why they are not known
#   supervisor the folder's name; the job has no supervisor any more and no exit status
#   secret     the name of a file that the job was given and has not read
#   part       the name of a file that was not written to its end
#   file       the digest and the name of a file that was put there before the job began
#   refused    why nothing of the folder is looked at: it may be somebody else's
# A last line `complete` shows that nothing of the answer is missing. `end` ends processes by their numbers, at first by asking them to,
# and writes how a job without a supervisor ended; then it prints the leftovers. It removes no file.
# A workload can move its folder away and put a link to another there. So a job's folder, the case's and the run's are entered one by
# one, must belong to the user, and must lie where they should; from there all names are relative.
set -u
LC_ALL=C
shopt -s nullglob

main() {
  if [[ $# -lt 2 || ($1 != look && $1 != end) ]]; then
    echo 'usage: bash clean.sh look|end NODE [--containers docker|podman] FOLDER...' >&2
    exit 2
  fi
  local verb=$1 at=0 folder
  node=$2 runtime=
  shift 2
  if [[ ${1-} == --containers && ${2-} =~ ^(docker|podman)$ ]]; then
    runtime=$2
    shift 2
  fi
  read -r boot < /proc/sys/kernel/random/boot_id
  if [[ $verb == end ]]; then end_all "$@"; fi
  census
  for folder in "$@"; do
    report "$at" "$folder"
    at=$((at + 1))
  done
  echo complete
}

# Sets who is there: when each process began, which belong to each group and session, and which of the user's own are
# of which job, by HARNESS_JOB. A zombie is over.
census() {
  local file text words pid
  began=()
  members=()
  declare -gA marked=()
  for file in /proc/[0-9]*/stat; do
    # The process name may hold anything, a parenthesis and a line break too: the whole file is read, to its end, which
    # `read` takes for a failure.
    text=
    { IFS= read -r -d '' text < "$file"; } 2> /dev/null
    [[ -n $text ]] || continue
    pid=${text%% *}
    read -ra words <<< "${text##*) }"
    [[ ${words[0]} == [ZX] ]] && continue
    began[pid]=${words[19]}
    members[words[2]]+=" $pid"
    if [[ ${words[3]} != "${words[2]}" ]]; then members[words[3]]+=" $pid"; fi
    if [[ -O ${file%/stat} ]]; then
      {
        while IFS= read -r -d '' text; do
          [[ $text == HARNESS_JOB=?* ]] || continue
          marked["${text#HARNESS_JOB=}"]+=" $pid"
          break
        done < "${file%stat}environ"
      } 2> /dev/null
    fi
  done
}

# Goes into the folder of a job. Fails without $why where there is none.
enter() {
  local above=${1%/*/*/*} part parts there
  why=
  IFS=/ read -ra parts <<< "${1#"$above"/}"
  if [[ $1 != /* || ${#parts[@]} -ne 3 ]]; then
    why='it is not the folder of a job'
    return 1
  fi
  [[ -e ${above:-/} ]] || return 1
  if ! cd -P -- "${above:-/}" 2> /dev/null; then
    why="\`${above:-/}\` cannot be entered"
    return 1
  fi
  there=$(readlink /proc/self/cwd)
  there=${there%/}
  for part in "${parts[@]}"; do
    if [[ -L ./$part ]]; then
      why="\`$there/$part\` is a symbolic link"
      return 1
    fi
    [[ -e ./$part ]] || return 1
    there+=/$part
    if ! cd -P "./$part" 2> /dev/null; then
      why="\`$there\` cannot be entered"
      return 1
    fi
    if [[ ! -O . ]]; then
      why="\`$there\` belongs to another user"
      return 1
    fi
  done
  # What the kernel says, for a name may have become a link since it was looked at.
  [[ $(readlink /proc/self/cwd) == "$there" ]] && return
  why="\`$there\` was moved or is behind a symbolic link"
  return 1
}

# Goes down into a folder of the job's folder, by the same rules.
descend() {
  local there
  [[ -d ./$1 && ! -L ./$1 ]] || return
  there=$(readlink /proc/self/cwd)/$1
  cd -P "./$1" 2> /dev/null && [[ -O . && $(readlink /proc/self/cwd) == "$there" ]]
}

# Whether the name is that of a file here, and not of a link. The harness gives no file another name than a printable one.
is_file() {
  [[ -f ./$1 && ! -L ./$1 && $1 != *[![:print:]]* ]]
}

# Sets $found to the processes that a record means: the number was not reused, the node was not rebooted, and the
# container is the same. A group outlives its first process, and as long as it does its number is not reused.
meant() {
  local pid=$1 begun=$2 there=$3 first=$4
  found=
  [[ $there == "$boot" && $pid =~ ^[1-9][0-9]*$ ]] || return 1
  # In another container numbers mean other processes.
  [[ -z $first || ${began[1]-} == "$first" ]] || return 1
  if [[ -n ${began[pid]-} && ${began[pid]} != "$begun" ]]; then return 1; fi
  found=${members[pid]-}
  [[ -n $found ]]
}

# Sets $strays to what has the mark of a job: that of this node's supervisor, or that of a job on this machine alone.
find_strays() {
  strays="${marked["$node:$1"]-}${marked[":$1"]-}"
}

# Sets $containers to those with the label of a job on this node; fails where they are not known.
find_containers() {
  containers=
  [[ -n $runtime ]] || return 0
  containers=$(timeout -k 5 20 "$runtime" ps --all --quiet --no-trunc --filter "label=harness.job=$node:$1" 2> /dev/null)
}

# Prints the records of the job on this node, in whose folder we are: a line for each.
records() {
  local name
  record group
  for name in {supervisor,lease}."$node"; do
    (descend "$name" && for name in group supervisor keeper; do record "$name"; done)
  done
}

record() {
  local line
  is_file "$1" && [[ -O ./$1 ]] && { read -r line < "./$1"; } 2> /dev/null && printf '%s\n' "$line"
}

# Sets $all to every leftover process.
gather() {
  local folder pid begun there first
  all=
  census
  for folder in "$@"; do
    find_strays "$folder"
    if ! enter "$folder"; then
      # Processes outlive a folder that was removed.
      if [[ -z $why ]]; then all+=$strays; fi
      continue
    fi
    all+=$strays
    while read -r pid begun there first; do
      if meant "$pid" "$begun" "$there" "$first"; then all+=$found; fi
    done < <(records)
  done
}

end_all() {
  local how tries until folder name
  for folder in "$@"; do
    why=
    (enter "$folder" || [[ -z $why ]]) && find_containers "$folder" && [[ -n $containers ]] || continue
    timeout -k 5 30 "$runtime" rm --force $containers > /dev/null 2>&1
  done
  # By time: where a node has thousands of processes or is busy, a census takes long, and who asked waits for an answer.
  for how in TERM KILL; do
    until=$((SECONDS + 10))
    for ((tries = 0; tries < 2 || SECONDS < until; tries++)); do
      gather "$@"
      [[ -n $all ]] || break
      # Asked once; by force again and again, for what is killed may have begun something just before.
      if [[ $how == KILL || $tries == 0 ]]; then kill -"$how" $all 2> /dev/null; fi
      sleep 0.2
    done
  done
  [[ -z $all ]] || return
  for folder in "$@"; do
    enter "$folder" || continue
    for name in {supervisor,lease}."$node"; do
      (descend "$name" && [[ ! -e status ]] && write_status)
    done
  done
}

# With `set -C` the file is made, or it fails: a link in its place would be followed.
write_status() {
  set -C
  rm -f ./status.part && echo 'ended 137 asked' > ./status.part && mv -fT ./status.part ./status
}

report() {
  local at=$1 folder=$2 pid begun there first name line kept=
  declare -A printed=()
  find_strays "$folder"
  if ! enter "$folder"; then
    if [[ -n $why ]]; then
      say "$at" refused "$why"
    else
      for pid in $strays; do say "$at" process "$pid"; done
      report_containers "$at" "$folder"
    fi
    return
  fi
  report_containers "$at" "$folder"
  while read -r pid begun there first; do
    meant "$pid" "$begun" "$there" "$first" || continue
    kept=yes
    for pid in $found; do
      if [[ -z ${printed[$pid]-} ]]; then say "$at" process "$pid"; fi
      printed[$pid]=yes
    done
  done < <(records)
  for pid in $strays; do
    if [[ -z ${printed[$pid]-} ]]; then say "$at" process "$pid"; fi
    printed[$pid]=yes
  done
  for name in {supervisor,lease}."$node"; do
    if [[ -z $kept ]]; then (descend "$name" && [[ ! -e status ]] && say "$at" supervisor "$name"); fi
  done
  for name in secrets secrets.*; do
    if [[ $name != *.part ]] && is_file "$name"; then say "$at" secret "$name"; fi
  done
  for name in *.part; do
    if is_file "$name"; then say "$at" part "$name"; fi
  done
  for folder in {supervisor,lease}.*; do
    [[ $folder == *[![:print:]]* ]] || (descend "$folder" && for name in *.part; do
      if is_file "$name"; then say "$at" part "$folder/$name"; fi
    done)
  done
  # What was put there before the job began.
  for name in job.sh hostfile {counters,inspector,gpus,flows,links,gpu_state,gpu_allocation,busy,profile}.sh \
    {container,supervisor,lease,agent,allocation}.sh torch_{collective,burn,ddp}.py sitecustomize.py; do
    if is_file "$name"; then
      line=$(sha256sum < "./$name")
      say "$at" file "${line%% *} $name"
    fi
  done
}

report_containers() {
  local id
  if ! find_containers "$2"; then say "$1" unasked "\`$runtime ps\` fails there"; fi
  for id in $containers; do say "$1" container "${id:0:12}"; done
}

# Nothing in a name may look like the end of a line.
say() {
  printf '%s\t%s\t%s\n' "$1" "$2" "${3//[$'\t\n']/?}"
}

main "$@"
