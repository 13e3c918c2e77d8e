#!/bin/bash
# Reports the leftovers on one node of the jobs in these folders, and ends them on request.
# usage: bash clean.sh look|end NODE FOLDER...
# Prints a line for each thing, its parts parted by tabs: which of the folders, counted from 0; what it is; and which:
#   process    its number; it is of a group that the job's own records name, if the number still means that group
#   supervisor the folder's name; the job has no supervisor any more and no exit status
#   secret     the name of a file that the job was given and has not read
#   part       the name of a file that was not written to its end
#   file       the digest and the name of a file that was put there before the job began
# A last line `complete` shows that nothing of the answer is missing. `end` ends processes by their numbers, at first by asking them to, and
# removes the files of the other kinds but the last; then it prints the leftovers.
set -u
LC_ALL=C
shopt -s nullglob

main() {
  if [[ $# -lt 2 || ($1 != look && $1 != end) ]]; then
    echo 'usage: bash clean.sh look|end NODE FOLDER...' >&2
    exit 2
  fi
  local verb=$1 at=0 folder
  node=$2
  shift 2
  read -r boot < /proc/sys/kernel/random/boot_id
  if [[ $verb == end ]]; then end_all "$@"; fi
  census
  for folder in "$@"; do
    report "$at" "$folder"
    at=$((at + 1))
  done
  echo complete
}

# Sets who is there: when each process began, and which belong to each group and session. A zombie
# is over.
census() {
  local file text words pid
  began=()
  members=()
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
  done
}

# Sets $found to the processes that a record means: the number was not reused, the node was not rebooted, and the
# container is the same. A group
# outlives its first process, and as long as it does its number is not reused.
meant() {
  local pid begun there first
  found=
  { read -r pid begun there first < "$1"; } 2> /dev/null || return 1
  [[ $there == "$boot" && $pid =~ ^[1-9][0-9]*$ ]] || return 1
  # In another container numbers mean other processes.
  [[ -z $first || ${began[1]-} == "$first" ]] || return 1
  if [[ -n ${began[pid]-} && ${began[pid]} != "$begun" ]]; then return 1; fi
  found=${members[pid]-}
  [[ -n $found ]]
}

# The records of a job on this node.
records() {
  local name
  for name in "$1/group" "$1"/{supervisor,lease}."$node"/{group,supervisor,keeper}; do
    if [[ -f $name ]]; then echo "$name"; fi
  done
}

# Sets $all to every leftover process.
gather() {
  local folder record
  all=
  census
  for folder in "$@"; do
    while read -r record; do
      if meant "$record"; then all+=$found; fi
    done < <(records "$folder")
  done
}

end_all() {
  local how tries folder pid name
  for how in TERM KILL; do
    for ((tries = 0; tries < 50; tries++)); do
      gather "$@"
      [[ -n $all ]] || break
      # Asked once; by force again and again, for what is killed may have begun something just before.
      if [[ $how == KILL || $tries == 0 ]]; then kill -"$how" $all 2> /dev/null; fi
      sleep 0.2
    done
  done
  [[ -z $all ]] || return
  for folder in "$@"; do
    for name in "$folder"/{supervisor,lease}."$node"; do
      if [[ -d $name && ! -e $name/status ]]; then
        echo 'ended 137 asked' > "$name/status.part" && mv -f "$name/status.part" "$name/status"
      fi
    done
    for name in "$folder"/secrets "$folder"/secrets.* "$folder"/*.part "$folder"/{supervisor,lease}.*/*.part \
      "$folder"/agent/*/*.part; do
      if [[ -f $name ]]; then rm -f -- "$name"; fi
    done
  done
}

report() {
  local at=$1 folder=$2 record pid name kept=
  declare -A printed=()
  while read -r record; do
    meant "$record" || continue
    kept=yes
    for pid in $found; do
      if [[ -z ${printed[$pid]-} ]]; then say "$at" process "$pid"; fi
      printed[$pid]=yes
    done
  done < <(records "$folder")
  for name in "$folder"/{supervisor,lease}."$node"; do
    if [[ -z $kept && -d $name && ! -e $name/status ]]; then say "$at" supervisor "${name##*/}"; fi
  done
  for name in "$folder"/secrets "$folder"/secrets.*; do
    if [[ -f $name && $name != *.part ]]; then say "$at" secret "${name##*/}"; fi
  done
  for name in "$folder"/*.part "$folder"/{supervisor,lease}.*/*.part "$folder"/agent/*/*.part; do
    if [[ -f $name ]]; then say "$at" part "${name#"$folder"/}"; fi
  done
  for name in job.sh hostfile counters.sh gpus.sh flows.sh profile.sh supervisor.sh lease.sh agent.sh allocation.sh; do
    if [[ -f $folder/$name ]]; then
      record=$(sha256sum < "$folder/$name")
      say "$at" file "${record%% *} $name"
    fi
  done
}

# Nothing in a name may look like the end of a line.
say() {
  printf '%s\t%s\t%s\n' "$1" "$2" "${3//[$'\t\n']/?}"
}

main "$@"
