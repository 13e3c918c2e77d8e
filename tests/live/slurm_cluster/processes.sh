#!/bin/bash
# Remembers daemons by process id and start time, so that nothing but what was started here is ever ended; sourced by
# `cluster`, which says what to start. $state is its folder: one file NAME in $state/processes for each, "PID START".

# Sets $at to the moment at which a process began, in ticks since the machine's start; to nothing where there is none,
# or only what is not reaped yet.
begun_at() {
  local text= words
  at=
  # A process name may hold a line break: the whole file is read, to its end, which `read` takes for a failure.
  { IFS= read -r -d '' text <"/proc/$1/stat"; } 2>/dev/null || true
  [[ -n $text ]] || return 0
  read -ra words <<<"${text##*) }"
  [[ ${words[0]} == Z ]] || at=${words[19]}
}

# Sets $pid to a daemon's process, if it lives.
living() {
  local begun
  { read -r pid begun <"$state/processes/$1"; } 2>/dev/null || return 1
  begun_at "$pid"
  [[ -n $at && $at == "$begun" ]]
}

# start_daemon NAME COMMAND...: in a session of its own, holding nothing of the caller's open.
start_daemon() {
  local name=$1
  shift
  ! living "$name" || return 0
  setsid "$@" </dev/null >>"$state/log/$name.out" 2>&1 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&- &
  begun_at "$!"
  echo "$! $at" >"$state/processes/$name"
}

signal_daemon() {
  ! living "$2" || kill -"$1" "$pid" 2>/dev/null || true
}

# gone NAME SECONDS: waits until it is.
gone() {
  local tries
  for ((tries = $2 * 20; tries > 0; tries--)); do
    living "$1" || return 0
    sleep 0.05
  done
  return 1
}

# stop_daemon NAME SECONDS: asks it to end, and ends it after so long.
stop_daemon() {
  signal_daemon TERM "$1"
  gone "$1" "$2" || signal_daemon KILL "$1"
  gone "$1" 5 || echo "it does not end: $1" >&2
  rm -f "$state/processes/$1"
}

# Each node is a UTS namespace, which a mount on $state/nodes/NODE holds: it gives the node a host name of its own, and it
# marks all its processes, those of jobs too, which leave slurmd's process tree and environment.
make_node() {
  local mark=$state/nodes/$1
  if ! mountpoint -q "$state/nodes"; then
    # A namespace is mounted only where mounts are not shared.
    mount --bind "$state/nodes" "$state/nodes"
    mount --make-private "$state/nodes"
  fi
  ! mountpoint -q "$mark" || return 0
  : >"$mark"
  unshare --uts="$mark" hostname "$1"
}

# The processes of a node, one to a line.
processes_of() {
  local mark=$state/nodes/$1 link
  mountpoint -q "$mark" || return 0
  link="uts:[$(stat -L -c %i "$mark")]"
  find /proc -maxdepth 3 -path '/proc/[0-9]*/ns/uts' -lname "${link//[\[\]]/\\&}" 2>/dev/null | cut -d/ -f3
}

# Ends all processes of a node at once, as a loss of power does.
empty_node() {
  local tries id left
  for ((tries = 0; tries < 100; tries++)); do
    left=
    for id in $(processes_of "$1"); do
      begun_at "$id"
      [[ -n $at ]] || continue
      left=$id
      kill -KILL "$id" 2>/dev/null || true
    done
    [[ -n $left ]] || return 0
    sleep 0.05
  done
  echo "processes of $1 do not end: $left" >&2
}

drop_nodes() {
  local mark
  mountpoint -q "$state/nodes" || return 0
  for mark in "$state"/nodes/*; do
    ! mountpoint -q "$mark" || umount "$mark" || true
  done
  umount "$state/nodes" || true
}
