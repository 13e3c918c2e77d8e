#!/bin/bash
# Sends messages between the NICs of two nodes, one NIC at a time, or from each NIC of one node to itself; or TCP from node to
# node.
# usage: bash links.sh nic PROGRAM SERVER CLIENT BASE_PORT ITERATIONS BYTES[,BYTES...] LIMIT_S DEVICE...
#        bash links.sh tcp PROGRAM SERVER CLIENT PORT SECONDS STREAMS LIMIT_S
# Runs on both nodes at once, in one folder that they share. For `nic` SERVER and CLIENT may be one node.
#   PROGRAM is fi_pingpong, or iperf3 for `tcp`.  LIMIT_S holds for each device and size.
# The client prints for each device and size a line `device DEVICE` and what PROGRAM printed, or
# `not-connected DEVICE WHY`; for `tcp` what PROGRAM printed last. The server prints `server NODE`. The marks are
# links.ready and links.done.
# exit: 0 each device was tried, 2 usage, 4 this node is neither of the two, 127 PROGRAM is not installed here,
# 143 ended from outside.
set -u

main() {
  if (($# < 8)) || [[ $1 != nic && $1 != tcp ]] || { [[ $1 == nic ]] && (($# == 8)); }; then
    echo "links.sh: wrong arguments: $*" >&2
    exit 2
  fi
  # `tcp` has one device, which is none, and one size: the number of streams. Its iterations are seconds.
  kind=$1 program=$2 server=$3 client=$4 base_port=$5 iterations=$6 limit=$8
  IFS=, read -r -a sizes <<< "$7"
  shift 8
  devices=("$@")
  if [[ $kind == tcp ]]; then devices=(tcp); fi
  for number in "$base_port" "$iterations" "$limit" "${sizes[@]}"; do
    if ! [[ $number =~ ^[1-9][0-9]*$ ]]; then
      echo "links.sh: not a whole number above zero: $number" >&2
      exit 2
    fi
  done
  trap stop TERM INT HUP
  if ! command -v "$program" > /dev/null; then
    echo "links.sh: line $LINENO: exec: $program: not found" >&2
    exit 127
  fi
  if [[ $server == "$client" ]]; then
    # Else the fabric's library moves data within a node through memory, past the NIC.
    export FI_EFA_ENABLE_SHM_TRANSFER=0
    begin_servers
    connect
    end_all
  elif is_node "$server"; then
    begin_servers
    until seen links.done || (($(date +%s) >= deadline)); do pause 0.2; done
    end_all
    echo "server $node"
  elif is_node "$client"; then
    connect
  else
    echo "links.sh: node is neither $server nor $client: $node" >&2
    exit 4
  fi
}

# One server for each device and size; it only listens until its client comes.
begin_servers() {
  rm -f links.ready links.done
  deadline=$(($(date +%s) + 60 + limit * ${#devices[@]} * ${#sizes[@]}))
  local port=$base_port device bytes
  for device in "${devices[@]}"; do
    for bytes in "${sizes[@]}"; do
      serve "$device" "$bytes" "$port" &
      port=$((port + 1))
    done
  done
  announce links.ready "$node"
}

# The program serves one client and ends. A client that failed half-way comes again.
serve() {
  trap stop TERM
  local left
  while left=$((deadline - $(date +%s))) && ((left > 0)); do
    bounded "$left" "$1" "$2" "$3" > /dev/null 2> "$1.$2.server.err"
    pause 0.2
  done
}

connect() {
  local port=$base_port device bytes
  if ! until_ready; then
    echo "not-started server $server was not ready after $patience s"
    return
  fi
  for device in "${devices[@]}"; do
    for bytes in "${sizes[@]}"; do
      measure "$device" "$bytes" "$port"
      port=$((port + 1))
    done
  done
  announce links.done "$node"
}

measure() {
  local device=$1 bytes=$2 port=$3 out=$1.$2.out left attempts=0 status=0 until side
  until=$(($(date +%s) + limit))
  while left=$((until - $(date +%s))) && ((left > 0)); do
    attempts=$((attempts + 1))
    bounded "$left" "$device" "$bytes" "$port" "$server" > "$out" 2> "$device.$bytes.client.err"
    status=$?
    if ((status == 0)); then
      if [[ $kind == nic ]]; then echo "device $device"; fi
      cat "$out"
      return
    fi
    pause 0.5
  done
  # It says why, in its own form.
  if [[ $kind == tcp && -s $out ]]; then
    cat "$out"
    return
  fi
  local why="no answer in $limit s, attempts: $attempts, last status: $status"
  for side in client server; do
    last_line "$device.$bytes.$side.err"
    if [[ -n $last ]]; then why+="; $side: $last"; fi
  done
  echo "not-connected $device $why"
}

# Sets $last: what a program complained of last, such as of a port that another process has.
last_line() {
  local row
  last=
  ls . > /dev/null 2>&1
  [[ -r $1 ]] || return
  while IFS= read -r row || [[ -n $row ]]; do
    if [[ $row == *[![:space:]]* ]]; then last=$row; fi
  done < "$1"
  last=${last//[[:cntrl:]]/ }
  last=${last:0:200}
}

# Runs the program for one device: with a host as the client, without as the server.
bounded() {
  local seconds=$1 device=$2 bytes=$3 port=$4 host=${5:-} words
  if [[ $kind == tcp ]]; then
    words=(-s -1 -p "$port")
    # Without intervals: those of a day would be more than is read.
    if [[ -n $host ]]; then words=(-c "$host" -p "$port" -t "$iterations" -P "$bytes" -i 0 -J); fi
    run_bounded
    return
  fi
  words=(-e rdm -I "$iterations" -S "$bytes")
  if [[ -n $host ]]; then words+=(-P "$port"); else words+=(-B "$port"); fi
  if is_efa "$device"; then
    words+=(-p efa -d "$device-rdm")
  else
    words+=(-p "verbs;ofi_rxm" -d "$device")
  fi
  if [[ -n $host ]]; then words+=("$host"); fi
  run_bounded
}

run_bounded() {
  timeout -k 5 "$seconds" "$program" "${words[@]}" < /dev/null &
  wait "$!"
}

# Waits for the server; a launcher may start it a minute later than this node.
until_ready() {
  patience=$((limit > 60 ? limit : 60))
  local until=$(($(date +%s) + patience))
  until seen links.ready; do
    if (($(date +%s) >= until)); then return 1; fi
    pause 0.2
  done
}

main "$@"
