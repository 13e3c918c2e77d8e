#!/bin/bash
# One flow per device between two nodes, each by itself; what the rates mean is decided by who reads them.
# usage: bash flows.sh TOOL OP SERVER CLIENT BASE_PORT MESSAGE_BYTES ITERATIONS LIMIT_S MEMORY DEVICE=GPU...
# Runs on both nodes at once, in one folder that they share. TOOL is fi_rma_bw or ib_write_bw, OP write or read.
#   write: data leaves CLIENT and arrives at SERVER.  read: data leaves SERVER and arrives at CLIENT.
#   MEMORY: gpu: each flow moves the memory of the GPU behind its device's PCIe switch, and all flows run at once.
#           host: flows move the host's memory, and one device of each switch runs at a time: its link to the CPU is
#           slower than its devices together.  auto: gpu where the tool of both nodes can, else host.
#   GPU is the one behind the device's switch where sysfs does not show it.  LIMIT_S holds for each turn.
# Leaves DEVICE.out and DEVICE.err of the client, DEVICE.server.out and DEVICE.server.err of the server, and the
# marks servers.ready and clients.done. The first line of DEVICE.out says by which path data went: `path gpu GPU
# sysfs|profile`, or `path host TURN/TURNS WHY`.
# exit: 0 every flow was tried (a flow without a rate is for the reader to find), 2 usage, 3 the tool is not
# installed here, 4 this node is neither of the two, 5 the tool refused every flow, 143 ended from outside.
set -u
# By device: the GPU behind its switch, who says so, and its turn.
declare -A gpu_of=() gpu_by=() turn_of=()

main() {
  if (($# < 10)); then
    echo "flows.sh: too few arguments: $#" >&2
    exit 2
  fi
  tool=$1 op=$2 server=$3 client=$4 base_port=$5 message=$6 iterations=$7 limit=$8 memory=$9
  shift 9
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
  case $memory in auto | gpu | host) ;; *)
    echo "flows.sh: memory is none of auto, gpu, host: $memory" >&2
    exit 2
    ;;
  esac
  case $tool in
    fi_rma_bw) program=fi_rma_bw ;;
    ib_write_bw) program=ib_${op}_bw ;;
    *)
      echo "flows.sh: unknown tool: $tool" >&2
      exit 2
      ;;
  esac
  local word
  devices=()
  for word in "$@"; do
    if ! [[ $word =~ ^[^=]+=[0-9]+$ ]]; then
      echo "flows.sh: not DEVICE=GPU: $word" >&2
      exit 2
    fi
    devices+=("${word%=*}")
    gpu_of[${word%=*}]=${word##*=}
    gpu_by[${word%=*}]=profile
  done
  # fabtests opens CUDA's library by its name when it starts.
  if [[ -d /usr/local/cuda/lib64 ]]; then
    export LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}/usr/local/cuda/lib64
  fi
  # Indices of GPUs follow their PCI addresses, as below.
  export CUDA_DEVICE_ORDER=PCI_BUS_ID
  # Tools built for libfabric before 1.18 turn writes into messages on these devices unless this is set.
  export FI_EFA_USE_DEVICE_RDMA=${FI_EFA_USE_DEVICE_RDMA:-1}
  trap stop TERM INT HUP
  map_gpus
  set_turns
  if is_node "$server"; then
    serve
  elif is_node "$client"; then
    connect
  else
    echo "flows.sh: node is neither $server nor $client: $node" >&2
    exit 4
  fi
}

# Sets gpu_of for each device whose GPU sysfs shows: the one with the longest common path of PCI bridges.
map_gpus() {
  local slot class vendor device own at depth best tied gpu base
  gpu_paths=()
  for slot in "$sys"/bus/pci/devices/*; do
    { read -r vendor < "$slot/vendor" && read -r class < "$slot/class"; } 2> /dev/null || continue
    if [[ $vendor == 0x10de && $class == 0x030[02]* ]]; then gpu_paths+=("$(cd -P "$slot" && pwd)"); fi
  done
  base=$(cd -P "$sys/devices" 2> /dev/null && pwd)
  for device in "${devices[@]}"; do
    own=$(cd -P "$sys/class/infiniband/$device/device" 2> /dev/null && pwd)
    [[ -n $own && -n $base ]] || continue
    best=0 tied=0 gpu=
    for ((at = 0; at < ${#gpu_paths[@]}; at++)); do
      common "${own#"$base"}" "${gpu_paths[at]#"$base"}"
      if ((depth > best)); then
        best=$depth tied=1 gpu=$at
      elif ((depth == best)); then
        tied=$((tied + 1))
      fi
    done
    # A device that is as near to every GPU has none of its own.
    if [[ -n $gpu ]] && ((tied == 1 || tied < ${#gpu_paths[@]})); then
      gpu_of[$device]=$gpu
      gpu_by[$device]=sysfs
    fi
  done
}

# Sets $depth: how many folders two paths have in common from their beginning.
common() {
  local one other at
  IFS=/ read -r -a one <<< "${1#/}"
  IFS=/ read -r -a other <<< "${2#/}"
  depth=0
  for ((at = 0; at < ${#one[@]} && at < ${#other[@]}; at++)); do
    [[ ${one[at]} == "${other[at]}" ]] || break
    depth=$((depth + 1))
  done
}

# Sets turn_of and $turns: one device of each switch at a time.
set_turns() {
  local device gpu
  declare -A used=()
  turns=1
  for device in "${devices[@]}"; do
    gpu=${gpu_of[$device]}
    turn_of[$device]=$((${used[$gpu]:-0} + 1))
    used[$gpu]=${turn_of[$device]}
    if ((turns < turn_of[$device])); then turns=${turn_of[$device]}; fi
  done
}

# Sets $path, gpu or host, and $why for host.
choose_memory() {
  path=gpu why=
  if [[ $memory == host ]]; then
    path=host why='the case asks for it'
  elif ((${#gpu_paths[@]} == 0)) && ! command -v nvidia-smi > /dev/null; then
    path=host why="$node has no NVIDIA GPU"
  elif ! knows_cuda; then
    path=host why="$program on $node cannot use CUDA"
  fi
}

knows_cuda() {
  local text
  case $program in
    fi_rma_bw)
      # No provider has this name: a build with CUDA looks for it in vain, another one fails before.
      text=$(timeout -k 5 20 fi_rma_bw -p harness-none -D cuda -i 0 2>&1 < /dev/null)
      [[ $text == *fi_getinfo* && $text != *hmem_init* ]]
      ;;
    *)
      help=$(timeout -k 5 20 "$program" --help 2>&1 < /dev/null)
      [[ $help == *--use_cuda=* ]]
      ;;
  esac
}

serve() {
  rm -f servers.ready clients.done refused.server
  if ! command -v "$program" > /dev/null; then
    # The client sees by this mark that it need not wait, and writes it into each flow's output.
    announce servers.ready "tool-missing $program $node"
    exit 3
  fi
  choose_memory
  if [[ $memory == gpu && $path == host ]]; then
    announce servers.ready "tool-refused $why"
    exit 5
  fi
  deadline=$(($(date +%s) + limit * turns))
  local index=0 device
  for device in "${devices[@]}"; do
    serve_one "$device" $((base_port + index)) &
    index=$((index + 1))
  done
  announce servers.ready "ready $path $why"
  # A server whose client never came would stay until the limit; once the clients are done none will come.
  while [[ -n $(jobs -rp) ]] && ! seen clients.done; do pause 0.2; done
  local grace=25
  while [[ -n $(jobs -rp) ]] && ((grace > 0)); do
    pause 0.2
    grace=$((grace - 1))
  done
  end_all
  if [[ -e refused.server ]]; then exit 5; fi
}

# The tools serve one client and end. A client that failed half-way comes again, so the server must too.
serve_one() {
  trap stop TERM
  local device=$1 port=$2 left began quick=0
  while left=$((deadline - $(date +%s))) && ((left > 0)); do
    began=$(date +%s)
    bounded "$left" "$device" "$port" > "$device.server.out" 2>> "$device.server.err" && return
    if (($(date +%s) - began > 1)); then quick=0; else quick=$((quick + 1)); fi
    if ((quick >= 3)) && refusal_in "$device.server.err" "$device.server.out"; then
      announce refused.server "$program on $node: $words"
      return
    fi
    pause 0.2
  done
}

connect() {
  local mark word
  if ! command -v "$program" > /dev/null; then
    write_all "tool-missing $program $node"
    until_ready || exit 3
    announce clients.done "done $node"
    exit 3
  fi
  choose_memory
  if [[ $memory == gpu && $path == host ]]; then
    write_all "tool-refused $why"
    until_ready && announce clients.done "done $node"
    exit 5
  fi
  if ! until_ready; then
    write_all "not-started server $server was not ready after $limit s"
    exit 0
  fi
  read -r word mark < servers.ready
  case $word in
    tool-missing)
      write_all "tool-missing $mark"
      exit 0
      ;;
    tool-refused)
      write_all "tool-refused $mark"
      exit 5
      ;;
  esac
  if [[ $path == gpu && $mark == host* ]]; then path=host why=${mark#host }; fi
  if [[ $path == gpu ]]; then
    turns=1
    all_at_once
  fi
  local turn device
  for ((turn = 1; turn <= turns; turn++)); do take_turn; done
  announce clients.done "done $node"
  for device in "${devices[@]}"; do
    grep -q '^tool-refused ' "$device.out" || exit 0
  done
  exit 5
}

all_at_once() {
  local device
  for device in "${devices[@]}"; do turn_of[$device]=1; done
}

# All flows of a turn begin at one moment, so that each is measured while the others load the node too.
take_turn() {
  local mark index=0 device flow flows=()
  deadline=$(($(date +%s) + limit))
  mark=$(($(date +%s%N) + 2000000000))
  together=0
  for device in "${devices[@]}"; do
    if ((turn_of[$device] == turn)); then together=$((together + 1)); fi
  done
  for device in "${devices[@]}"; do
    if ((turn_of[$device] == turn)); then
      connect_one "$device" $((base_port + index)) "$mark" &
      flows+=("$!")
    fi
    index=$((index + 1))
  done
  for flow in ${flows[@]+"${flows[@]}"}; do wait "$flow"; done
}

connect_one() {
  trap stop TERM
  local device=$1 port=$2 mark=$3 left status=0 attempts=0 began quick=0 alike
  left=$((mark - $(date +%s%N)))
  if ((left > 0)); then pause "$(printf '%d.%09d' $((left / 1000000000)) $((left % 1000000000)))"; fi
  while left=$((deadline - $(date +%s))) && ((left > 0)); do
    attempts=$((attempts + 1))
    case $path in
      gpu) echo "path gpu ${gpu_of[$device]} ${gpu_by[$device]}" ;;
      host) echo "path host $turn/$turns $why" ;;
    esac > "$device.out"
    began=$(date +%s)
    bounded "$left" "$device" "$port" "$server" >> "$device.out" 2>> "$device.err"
    status=$?
    if ((status == 0)); then return; fi
    if (($(date +%s) - began > 1)); then quick=0; else quick=$((quick + 1)); fi
    if seen refused.server; then
      read -r words < refused.server
      echo "tool-refused $words" > "$device.out"
      return
    fi
    if ((quick >= 3)); then
      if refusal_in "$device.err" "$device.out"; then
        echo "tool-refused $program on $node: $words" > "$device.out"
        return
      fi
      # What ends every flow of a turn at once, and has nothing to do with a device or a connection, is the tool's.
      if last_of "$device.err"; then
        : > "refused.$turn.$device"
        alike=(refused."$turn".*)
        if ((${#alike[@]} >= together && together > 1)); then
          echo "tool-refused $program on $node: $words" > "$device.out"
          return
        fi
      fi
    fi
    pause 1
  done
  echo "not-connected no rate in $limit s, attempts: $attempts, last status: $status" >> "$device.out"
}

# Sets $words to the line in which a tool says that it does not take its arguments.
refusal_in() {
  local pattern='Invalid Command or flag|invalid option|unrecognized option|requires an argument|Parser function exited'
  pattern+='|SRD connection only|not detected in libibverbs|Invalid Connection type|Unsupported interface|hmem_init'
  pattern+='|Failed to dlopen|cudaSetDevice|Function not implemented|CUDA.*(fail|error|not )'
  words=$(grep -h -m 1 -E "$pattern" "$@" 2> /dev/null)
  words=${words%%$'\n'*}
  words=${words#"${words%%[! ]*}"}
  words=${words:0:160}
  [[ -n $words ]]
}

# Sets $words to the last line of a file, where it speaks neither of a connection nor of a device.
last_of() {
  local line
  words=
  while IFS= read -r line; do
    if [[ -n ${line// /} ]]; then words=$line; fi
  done < "$1"
  words=${words#"${words%%[! ]*}"}
  words=${words:0:160}
  [[ -n $words ]] && ! grep -q -i -E 'connect|refused|timed out|route|device|state| port' "$1"
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
    if [[ $path == gpu ]]; then words+=(-D cuda -i "${gpu_of[$device]}"); fi
  else
    words=(-F -d "$device" -p "$port" -s "$message" -n "$iterations")
    # This fabric has no reliable connection of the usual kind.
    if is_efa "$device"; then words+=(-c SRD -x 0); fi
    if [[ $path == gpu ]]; then
      words+=("--use_cuda=${gpu_of[$device]}")
      # Without a module that opens GPU memory to NICs the tool has to hand it over as a DMA buffer.
      if [[ $help == *--use_cuda_dmabuf* && ! -d $sys/module/efa_nv_peermem && ! -d $sys/module/nvidia_peermem ]]; then
        words+=(--use_cuda_dmabuf)
      fi
    fi
  fi
  if [[ -n $host ]]; then words+=("$host"); fi
  timeout -k 5 "$seconds" "$program" "${words[@]}" &
  wait "$!"
}

# Writes one line as the output of every flow.
write_all() {
  local device
  for device in "${devices[@]}"; do echo "$1" > "$device.out"; done
}

# Waits for the server, until the limit.
until_ready() {
  local deadline=$(($(date +%s) + limit))
  until seen servers.ready; do
    if (($(date +%s) >= deadline)); then return 1; fi
    pause 0.2
  done
}

main "$@"
