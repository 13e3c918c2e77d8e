#!/bin/bash
# One flow per device between two nodes, each by itself; what the rates mean is decided by who reads them.
# usage: bash flows.sh TOOL OP SERVER CLIENT BASE_PORT MESSAGE_BYTES ITERATIONS LIMIT_S DEVICE...
# Runs on both nodes at once, in one folder that they share. TOOL is fi_rma_bw or ib_write_bw, OP write or read.
#   write: data leaves CLIENT and arrives at SERVER.  read: data leaves SERVER and arrives at CLIENT.
# Leaves DEVICE.out and DEVICE.err of the client, DEVICE.server.out and DEVICE.server.err of the server,
# and the marks servers.ready and clients.done.
# exit: 0 every flow was tried (a flow without a rate is for the reader to find), 2 usage, 3 the tool is not
# installed here, 4 this node is neither of the two, 143 told to stop.
set -u

main() {
  if (($# < 9)); then
    echo "flows.sh: too few arguments: $#" >&2
    exit 2
  fi
  tool=$1 op=$2 server=$3 client=$4 base_port=$5 message=$6 iterations=$7 limit=$8
  shift 8
  for number in "$base_port" "$message" "$iterations" "$limit"; do
    if ! [[ $number =~ ^[1-9][0-9]*$ ]]; then
      echo "flows.sh: not a whole number above zero: $number" >&2
      exit 2
    fi
  done
  case $op in write | read) ;; *)
    echo "flows.sh: op is neither write nor read: $op" >&2
    exit 2
    ;;
  esac
  case $tool in
    fi_rma_bw) program=fi_rma_bw ;;
    ib_write_bw) program=ib_${op}_bw ;;
    *)
      echo "flows.sh: tool is not known: $tool" >&2
      exit 2
      ;;
  esac
  # The installer of the fabric's driver puts its programs where only login shells look.
  PATH=$PATH:/opt/amazon/efa/bin
  node=${HARNESS_NODE:-${SLURMD_NODENAME:-${HOSTNAME:-$(uname -n)}}}
  deadline=$(($(date +%s) + limit))
  trap stop TERM INT HUP
  if [[ $node == "$server" || ${node%%.*} == "$server" ]]; then
    serve "$@"
  elif [[ $node == "$client" || ${node%%.*} == "$client" ]]; then
    connect "$@"
  else
    echo "flows.sh: node is neither $server nor $client: $node" >&2
    exit 4
  fi
}

serve() {
  rm -f servers.ready clients.done
  if ! command -v "$program" > /dev/null; then
    # The client learns from this mark that waiting is in vain, and writes it into each flow's output.
    announce servers.ready "tool-missing $program $node"
    exit 3
  fi
  local index=0 device
  for device in "$@"; do
    serve_one "$device" $((base_port + index)) &
    index=$((index + 1))
  done
  announce servers.ready "ready $node"
  # A server whose client never came would stay until the limit; once the clients are done nobody will come.
  while [[ -n $(jobs -rp) ]] && ! seen clients.done; do pause 0.2; done
  local grace=25
  while [[ -n $(jobs -rp) ]] && ((grace > 0)); do
    pause 0.2
    grace=$((grace - 1))
  done
  end_flows
}

# The tools serve one client and end. A client that failed half-way comes again, so the server must too.
serve_one() {
  trap stop TERM
  local device=$1 port=$2 left
  while left=$((deadline - $(date +%s))) && ((left > 0)); do
    bounded "$left" "$device" "$port" > "$device.server.out" 2>> "$device.server.err" && return
    pause 0.2
  done
}

connect() {
  local device flow index=0 mark here=yes flows=()
  if ! command -v "$program" > /dev/null; then
    here=no
    for device in "$@"; do echo "tool-missing $program $node" > "$device.out"; done
  fi
  until seen servers.ready; do
    if (($(date +%s) >= deadline)); then
      if [[ $here == no ]]; then exit 3; fi
      for device in "$@"; do echo "not-started server $server was not ready after $limit s" > "$device.out"; done
      exit 0
    fi
    pause 0.2
  done
  if [[ $here == no ]]; then
    announce clients.done "done $node"
    exit 3
  fi
  if grep -q '^tool-missing ' servers.ready; then
    for device in "$@"; do cat servers.ready > "$device.out"; done
    exit 0
  fi
  # All flows begin at one moment, so that each is measured while all others load the node too.
  mark=$(($(date +%s%N) + 2000000000))
  for device in "$@"; do
    connect_one "$device" $((base_port + index)) "$mark" &
    flows+=("$!")
    index=$((index + 1))
  done
  for flow in "${flows[@]}"; do wait "$flow"; done
  announce clients.done "done $node"
}

connect_one() {
  trap stop TERM
  local device=$1 port=$2 mark=$3 left status=0 attempts=0
  left=$((mark - $(date +%s%N)))
  if ((left > 0)); then pause "$(printf '%d.%09d' $((left / 1000000000)) $((left % 1000000000)))"; fi
  while left=$((deadline - $(date +%s))) && ((left > 0)); do
    attempts=$((attempts + 1))
    bounded "$left" "$device" "$port" "$server" > "$device.out" 2>> "$device.err"
    status=$?
    if ((status == 0)); then return; fi
    pause 1
  done
  echo "not-connected no rate in $limit s, attempts: $attempts, last status: $status" >> "$device.out"
}

# Runs the tool on one device: with a host as the client, without as the server.
bounded() {
  local seconds=$1 device=$2 port=$3 host=${4:-} words=()
  if [[ $program == fi_rma_bw ]]; then
    # With `write` both ends of this tool write at once; with `writedata` only the client does. For reads it has
    # no such form: the server reads too, and what the client prints is the rate of its own reads.
    local rma=writedata
    if [[ $op == read ]]; then rma=read; fi
    words=(-e rdm -o "$rma" -S "$message" -I "$iterations" -m "-E=$port")
    if is_efa "$device"; then
      words+=(-p efa -d "$device-rdm")
    else
      words+=(-p "verbs;ofi_rxm" -d "$device")
    fi
  else
    words=(-F -d "$device" -p "$port" -s "$message" -n "$iterations")
    # This fabric has no reliable connection of the usual kind.
    if is_efa "$device"; then words+=(-c SRD -x 0); fi
  fi
  if [[ -n $host ]]; then words+=("$host"); fi
  timeout -k 5 "$seconds" "$program" "${words[@]}" &
  wait "$!"
}

is_efa() {
  local vendor=/sys/class/infiniband/$1/device/vendor
  if [[ -r $vendor ]]; then
    [[ $(< "$vendor") == 0x1d0f ]]
  else
    [[ $1 == rdmap* || $1 == efa_* ]]
  fi
}

# Signals reach a shell only between its commands, unless it waits: so whatever takes time runs beside it.
pause() {
  sleep "$1" &
  wait "$!"
}

# Ends what this shell started and is still running; each flow is a shell of its own and ends its tool likewise.
end_flows() {
  # Unquoted on purpose: one word per process.
  # shellcheck disable=SC2046
  kill $(jobs -rp) 2> /dev/null
  wait
}

stop() {
  end_flows
  exit 143
}

# A mark appears with its text or not at all.
announce() {
  echo "$2" > "$1.$node.tmp" && mv -f "$1.$node.tmp" "$1"
}

# Listing the folder makes a network file system look again instead of remembering that the file was absent.
seen() {
  ls . > /dev/null 2>&1
  [[ -e $1 ]]
}

main "$@"
