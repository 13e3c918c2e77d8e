#!/bin/bash
# Starts a job's script on one node, in a process group of its own, and ends all of it when no heartbeat comes.
# usage: bash supervisor.sh start FOLDER NODE TIMEOUT_S   starts FOLDER/job.sh, once however often it is called
#        bash supervisor.sh look FOLDER NODE            renews the heartbeat
#        bash supervisor.sh end FOLDER NODE SIGNAL      sends TERM or KILL to all that was started
# Each prints one line on how the job is on this node:
#   absent             never started here
#   running
#   ended CODE REASON  REASON is itself, asked (by `end`), heartbeat (no `look` for TIMEOUT_S seconds) or memory (the kernel
#                      ended a process of its control group for memory meanwhile)
#   lost               started, and vanished without an exit status: killed externally, or the node rebooted
#   replaced           started in a container that has ended: its pod was deleted, and another one has its name
# The job's processes are those of its group, and those that left it, such as by setsid: all have HARNESS_JOB in their environment. One
# that clears its environment and leaves the group is not found.
# What it remembers lies in FOLDER/supervisor.NODE: `supervisor` and `group` say which processes, `status` how it ended. Time is
# the kernel's uptime, which no change of the wall clock moves.
set -u
LC_ALL=C

main() {
  [[ $# -ge 3 && $2 == /* && -n $3 && $3 != */* ]] || usage
  folder=$2 node=$3
  state=$folder/supervisor.$node
  case $1 in
    start | keep) [[ $# -eq 4 && $4 =~ ^[1-9][0-9]{0,8}$ ]] || usage ;;
    look) [[ $# -eq 3 ]] || usage ;;
    end) [[ $# -eq 4 && ($4 == TERM || $4 == KILL) ]] || usage ;;
    *) usage ;;
  esac
  "$1" "${@:4}"
}

usage() {
  echo 'usage: bash supervisor.sh start FOLDER NODE TIMEOUT_S | look FOLDER NODE | end FOLDER NODE TERM|KILL' >&2
  exit 2
}

# Only one of several callers can make the folder, and only that one starts anything: an answer that was lost on its
# way can be asked for again.
start() {
  local tries
  if mkdir "$state"; then
    setsid bash "$0" keep "$folder" "$node" "$1" < /dev/null > /dev/null 2>&1 &
  fi 2> /dev/null
  if [[ ! -d $state ]]; then
    echo "supervisor.sh: cannot make the folder: $state" >&2
    exit 1
  fi
  for ((tries = 0; tries < 50; tries++)); do
    [[ -e $state/supervisor ]] && break
    sleep 0.2
  done
  look
}

look() {
  local pid
  if [[ ! -d $state ]]; then
    echo absent
  elif print_status; then
    :
  elif owner supervisor && kill -USR1 "$pid" 2> /dev/null; then
    echo running
  # It may have ended between the two questions.
  elif ! print_status; then
    if replaced; then
      echo replaced
    elif lost_for_memory; then
      echo 'ended 137 memory'
    else
      echo lost
    fi
  fi
}

end() {
  local pid
  if [[ -d $state ]] && [[ ! -e $state/status ]]; then
    : > "$state/asked"
    if owner group; then signal "$1" "$pid"; fi
  fi
  look
}

# Prints how it ended, if it has.
print_status() {
  local line
  { read -r line < "$state/status"; } 2> /dev/null && echo "$line"
}

# Sets $pid to the process that the file names, if the number still means that process: it was not reused, and the
# node was not rebooted. A group outlives its first process.
owner() {
  local begun boot first here
  { read -r pid begun boot first < "$state/$1"; } 2> /dev/null || return 1
  read -r here < /proc/sys/kernel/random/boot_id
  [[ $boot == "$here" ]] || return 1
  begun_at 1
  [[ -z $first || $at == "$first" ]] || return 1
  begun_at "$pid"
  [[ $at == "$begun" || ($1 == group && -z $at) ]]
}

# Whether it was started in another container on this node: the first process there began at another moment, and so
# process numbers mean other processes.
replaced() {
  local begun boot first here
  { read -r _ begun boot first < "$state/supervisor"; } 2> /dev/null || return 1
  read -r here < /proc/sys/kernel/random/boot_id
  begun_at 1
  [[ $boot == "$here" && -n $first && $at != "$first" ]]
}

# Whether the kernel ended the process that keeps the job for memory, or others beside it: the count has grown since the start.
lost_for_memory() {
  local boot here before counter
  { read -r _ _ boot _ < "$state/supervisor" && read -r before counter < "$state/ended_for_memory"; } 2> /dev/null || return
  read -r here < /proc/sys/kernel/random/boot_id
  [[ $boot == "$here" ]] && count "$counter" && ((counted > before))
}

# Sets $counter to the file in which the kernel counts the processes of this control group that it ended for memory; to nothing
# where there is none. A container may see its own group at the top.
find_counter() {
  local line path name
  counter=
  while IFS= read -r line; do
    path=${line#*:*:}
    case $line in
      0::*) name=memory.events ;;
      *:memory:* | *,memory:* | *:memory,*) path=/memory$path name=memory.oom_control ;;
      *) continue ;;
    esac
    for path in "$path" "${path%"${line#*:*:}"}"; do
      if count "/sys/fs/cgroup$path/$name"; then
        counter=/sys/fs/cgroup$path/$name
        return
      fi
    done
  done < /proc/self/cgroup
} 2> /dev/null

# Sets $counted to the number in such a file.
count() {
  local name number
  counted=
  while read -r name number; do
    if [[ $name == oom_kill && $number =~ ^[0-9]{1,15}$ ]]; then counted=$number; fi
  done 2> /dev/null < "$1"
  [[ -n $counted ]]
} 2> /dev/null

# Sets $at to the moment at which a process began, in ticks since the node's start; to nothing where there is none, or
# only a zombie.
begun_at() {
  local words
  at=
  stat "/proc/$1/stat" || return
  [[ ${words[0]} == Z ]] || at=${words[19]}
}

# Writes a file that is complete or absent.
write() {
  echo "$2" > "$state/$1.part" && mv -f "$state/$1.part" "$state/$1"
}

write_owner() {
  local boot first
  read -r boot < /proc/sys/kernel/random/boot_id
  begun_at 1
  first=$at
  begun_at "$2"
  write "$1" "$2 $at $boot $first"
}

# The group may not be there yet, right after its first process began.
signal() {
  kill -"$1" -- "-$2" 2> /dev/null || kill -"$1" "$2" 2> /dev/null
}

# Whether any process of the job is there. What left the group is looked for only when the group is empty.
alive() {
  group_alive "$1" && return 0
  find_strays "$node:$folder" "$1"
  [[ -n $strays ]]
}

# Whether any process of the group is there other than a zombie: a zombie is over.
group_alive() {
  local file words
  kill -0 -- "-$1" 2> /dev/null || return 1
  for file in /proc/[0-9]*/stat; do
    stat "$file" || continue
    [[ ${words[2]} == "$1" && ${words[0]} != Z ]] && return 0
  done
  return 1
}

# Asks all of the job to end, and ends by force what has not after ten seconds.
put_down() {
  local how=TERM limit
  while alive "$1"; do
    # A group without a process may be another's soon.
    if group_alive "$1"; then signal "$how" "$1"; fi
    find_strays "$node:$folder" "$1"
    if [[ -n $strays ]]; then kill -"$how" $strays 2> /dev/null; fi
    uptime
    limit=$((now + 10))
    while ((now < limit)); do
      alive "$1" || return
      sleep 0.2
      uptime
    done
    how=KILL
  done
}

# A container that was started for the job goes on without whoever started it. Its processes have HARNESS_JOB, too; this ends
# what cleared it.
end_container() {
  local runtime id
  { read -r runtime < "$state/runtime" && read -r id < "$state/container"; } 2> /dev/null
  [[ ${runtime-} =~ ^(docker|podman)$ && ${id-} =~ ^[0-9a-f]{12,64}$ ]] || return
  timeout -k 5 60 "$runtime" rm --force "$id" > /dev/null 2>&1
}

uptime() {
  local text
  read -r text _ < /proc/uptime
  now=${text%%.*}
}

# The process that stays as long as the job does, in a session of its own.
keep() {
  local timeout=$1 child code reason=itself looked=0 renewed=yes leave= gone=0 counter counted before
  cd "$folder" || exit 1
  find_counter
  before=$counted
  if [[ -n $counter ]]; then write ended_for_memory "$before $counter"; fi
  trap 'renewed=yes' USR1
  trap 'leave=asked' TERM INT HUP
  HARNESS_NODE=$node HARNESS_JOB=$node:$folder setsid bash job.sh < /dev/null > "log.$node" 2>&1 &
  child=$!
  write_owner group "$child"
  write_owner supervisor "$$"
  while kill -0 "$child" 2> /dev/null; do
    uptime
    if [[ -n $renewed ]]; then
      looked=$now
      renewed=
    elif ((now - looked >= timeout)); then
      leave=heartbeat
    fi
    if [[ -n $leave ]]; then
      reason=$leave
      break
    fi
    sleep 1
  done
  if [[ $reason != itself ]]; then put_down "$child"; fi
  # A signal that comes now cuts the wait short and must not pass for the job's exit code.
  trap '' USR1 TERM INT HUP
  wait "$child"
  code=$?
  # Leftovers of the script end too.
  put_down "$child"
  end_container
  if [[ $reason == itself && -e $state/asked ]]; then reason=asked; fi
  if [[ $reason == itself && $code != 0 && -n $counter ]] && count "$counter" && ((counted > before)); then
    reason=memory
  fi
  # A full disk may have room again. A folder that stays away was removed: its status will not be read.
  until write status "ended $code $reason"; do
    if [[ -d $state ]]; then gone=0; elif ((++gone > 6)); then exit 1; fi
    sleep 5
  done
}

main "$@"
