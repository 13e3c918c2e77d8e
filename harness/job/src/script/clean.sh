#!/bin/bash
# Tells what is left on one node of the jobs that lie in these folders, and ends it where it is asked to.
# usage: bash clean.sh look|end NODE FOLDER...
# Prints a line for each thing, its parts parted by tabs: which of the folders, counted from 0; what it is; and which:
#   process  its number; it is of a group that the job's own records name, if the number still means that group
#   lease    the folder's name; the job is kept by nobody any more, and nobody has told how it ended
#   secret   the name of a file that the job was given and has not read
#   part     the name of a file that was not written to its end
#   file     the digest and the name of a file that was put there before the job began
# A last line `told` proves the answer whole. `end` ends processes by their numbers, at first by asking them to, and
# removes the files of the other kinds but the last; what it prints is what is left then.
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
    tell "$at" "$folder"
    at=$((at + 1))
  done
  echo told
}

# Sets who is there: when each process began, and which belong to each group and session. One that nobody has reaped
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

# Sets $found to the processes that a record means: nobody else has taken the number, and the node was not started
# anew. A group outlives its first process, and as long as it does nobody else can take its number.
meant() {
  local pid begun there
  found=
  { read -r pid begun there < "$1"; } 2> /dev/null || return 1
  [[ $there == "$boot" && $pid =~ ^[1-9][0-9]*$ ]] || return 1
  if [[ -n ${began[pid]-} && ${began[pid]} != "$begun" ]]; then return 1; fi
  found=${members[pid]-}
  [[ -n $found ]]
}

# The records of a job on this node.
records() {
  local name
  for name in "$1/group" "$1/lease.$node/group" "$1/lease.$node/keeper"; do
    if [[ -f $name ]]; then echo "$name"; fi
  done
}

# Sets $all to every process that is left.
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
    if [[ -d $folder/lease.$node && ! -e $folder/lease.$node/status ]]; then
      echo 'ended 137 asked' > "$folder/lease.$node/status.part" &&
        mv -f "$folder/lease.$node/status.part" "$folder/lease.$node/status"
    fi
    for name in "$folder"/secrets "$folder"/secrets.* "$folder"/*.part "$folder"/lease.*/*.part; do
      if [[ -f $name ]]; then rm -f -- "$name"; fi
    done
  done
}

tell() {
  local at=$1 folder=$2 record pid name kept=
  declare -A told=()
  while read -r record; do
    meant "$record" || continue
    kept=yes
    for pid in $found; do
      if [[ -z ${told[$pid]-} ]]; then say "$at" process "$pid"; fi
      told[$pid]=yes
    done
  done < <(records "$folder")
  if [[ -z $kept && -d $folder/lease.$node && ! -e $folder/lease.$node/status ]]; then
    say "$at" lease "lease.$node"
  fi
  for name in "$folder"/secrets "$folder"/secrets.*; do
    if [[ -f $name && $name != *.part ]]; then say "$at" secret "${name##*/}"; fi
  done
  for name in "$folder"/*.part "$folder"/lease.*/*.part; do
    if [[ -f $name ]]; then say "$at" part "${name#"$folder"/}"; fi
  done
  for name in job.sh hostfile counters.sh gpus.sh flows.sh profile.sh lease.sh allocation.sh; do
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
