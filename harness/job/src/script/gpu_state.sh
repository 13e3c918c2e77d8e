#!/bin/bash
# Runs a program, and reads the state of this node's GPUs before, during and after it with nvidia-smi, the links of its NICs
# and what the memory of the host is used for.
# usage: bash gpu_state.sh INTERVAL_S[@SOAKED_S] OUT PROGRAM [ARGUMENT...]
#   INTERVAL_S  seconds between two readings while the program runs; 0 reads before and after it alone
#   SOAKED_S    seconds of the soak before this program, where it is a window of one
#   OUT         what was read: lines whose first word says what they are; a last line `end` proves it complete
# The program has the streams and the exit code of this script. What cannot be read is noted and changes nothing.
set -u
LC_ALL=C
interval=${1%@*}
soaked=
[[ $1 == *@* ]] && soaked=${1#*@}
out=$2
shift 2

fields=(
  index pcie.link.gen.current pcie.link.gen.max pcie.link.width.current pcie.link.width.max clocks.current.sm
  temperature.gpu power.draw clocks_event_reasons.active ecc.errors.uncorrected.volatile.total
  ecc.errors.corrected.volatile.total retired_pages.pending remapped_rows.pending remapped_rows.failure memory.used
  clocks.max.sm
)

# Runs a command and sets $text to what it prints. nvidia-smi can hang with a GPU that is off the bus, and then nothing ends
# it: it is left behind, and not asked again. One that could be ended is, until the third time in a row.
gone=
hung=0
ask() {
  local part=$out.$BASHPID pid tries code
  text=
  [[ -n $gone ]] && return 124
  "$@" >"$part" 2>&1 </dev/null &
  pid=$!
  for ((tries = 0; tries < 300; tries++)); do
    kill -0 "$pid" 2>/dev/null || break
    sleep 0.1
  done
  if kill -0 "$pid" 2>/dev/null; then
    kill -9 "$pid" 2>/dev/null
    for ((tries = 0; tries < 20; tries++)); do
      kill -0 "$pid" 2>/dev/null || break
      sleep 0.1
    done
    hung=$((hung + 1))
    if ((hung >= 3)) || kill -0 "$pid" 2>/dev/null; then gone=1; fi
    text="no answer of $1 in 30 s"
    code=124
  else
    wait "$pid"
    code=$?
    hung=0
    text=$(head -c 262144 "$part" 2>/dev/null)
  fi
  rm -f "$part"
  return "$code"
}

query() { ask nvidia-smi "--query-gpu=$1" --format=csv,noheader,nounits; }

# Drivers differ in the fields that they know, and one that is unknown fails the whole query, which names it.
known_fields() {
  local field known named
  for ((;;)); do
    list=$(IFS=,; echo "${fields[*]}")
    query "$list" && return
    named=
    [[ $text =~ Field\ \"([a-z0-9_.]+)\"\ is\ not\ a\ valid ]] && named=${BASH_REMATCH[1]}
    # One GPU is lost, and the others are listed.
    [[ -z $named ]] && grep -qE '^[0-9]+, ' <<<"$text" && return
    known=()
    for field in "${fields[@]}"; do
      if [[ $field != "$named" ]]; then
        known+=("$field")
      elif [[ $field == clocks_event_reasons.active ]]; then
        # Its name in older drivers.
        known+=(clocks_throttle_reasons.active)
      fi
    done
    if [[ -z $named || ${#known[@]} -eq 0 || "${known[*]}" == "${fields[*]}" ]]; then
      list=
      return
    fi
    fields=("${known[@]}")
  done
}

# $text, each line behind a word.
marked() { printf '%s\n' "$text" | sed "s/^/$1 /"; }

# How often the link of a NIC went down, where the driver counts it: InfiniBand for the port, others for the interface.
downed() {
  local count sum=- path
  for path in "$1"/ports/1/counters/link_downed "$1"/device/net/*/carrier_down_count; do
    if [[ -r $path ]] && read -r count <"$path" && [[ $count =~ ^[0-9]+$ ]]; then
      [[ $path == */link_downed ]] && sum=$count && break
      sum=$((${sum#-} + count))
    fi
  done
  printf '%s' "$sum"
}

nics() {
  local path state
  for path in /sys/class/infiniband/*; do
    [[ -r $path/ports/1/state ]] || continue
    read -r state <"$path/ports/1/state" || state=
    state=${state#*: }
    [[ $state =~ ^[A-Z_a-z]+$ ]] || state=unknown
    printf '%s %s %s\n' "${path##*/}" "$state" "$(downed "$path")"
  done
}

# A line for each NIC whose link is not as it was at the last reading. EFA's driver shows every link up: a NIC that fails
# there is not listed any more.
declare -A was=() listed=() now=()
blind=
links() {
  # A NIC whose driver hangs must not keep nvidia-smi from being asked.
  local gone=$blind hung=2 device state
  now=()
  if ask nics; then
    while read -r device state; do
      [[ -z $device ]] && continue
      now[$device]=1 listed[$device]=1
      [[ ${was[$device]-} == "$state" ]] && continue
      was[$device]=$state
      printf 'nic %s %s\n' "$device" "$state"
    done <<<"$text"
    for device in "${!listed[@]}"; do
      [[ -n ${now[$device]-} || ${was[$device]-} == 'GONE -' ]] && continue
      was[$device]='GONE -'
      printf 'nic %s GONE -\n' "$device"
    done
  else
    printf 'nicsunread\n'
  fi
  blind=$gone
}

memory() {
  local key value pairs=
  while read -r key value _; do
    case $key in
      MemTotal: | MemFree: | Buffers: | Cached: | SReclaimable: | AnonPages: | HugePages_Total: | Hugepagesize:)
        pairs+=" ${key%:}=$value"
        ;;
    esac
  done </proc/meminfo
  printf 'memory%s\n' "$pairs"
}

reading() {
  local uptime code=0 rest
  read -r uptime _ </proc/uptime || uptime=0
  printf 'at %s %s\n' "$1" "$uptime"
  links
  query "$list" || code=$?
  # Where one GPU is lost, nvidia-smi says which and goes on with the others.
  rest=$(grep -vE '^[0-9]+, |^$' <<<"$text")
  text=$(grep -E '^[0-9]+, ' <<<"$text")
  [[ -n $text ]] && marked row
  if ((code != 0)) || [[ $rest == *'Unable to determine'* || $rest == *' is lost'* ]]; then
    text=${rest:-nvidia-smi ended with $code}
    text=${text:0:2000}
    marked failed
  fi
}

# What is read twice alone: links, memory and the kernel's messages.
around() {
  was=()
  reading "$1"
  memory
  if ask nvidia-smi nvlink -s; then marked link; fi
  if ask nvidia-smi nvlink -e; then marked link; fi
  kernel
}

kernel() {
  if ask bash -c 'set -o pipefail; dmesg | { grep -E "NVRM: Xid|SXid" || (($? == 1)); } | tail -n 200'; then
    printf 'kernellog\n'
    [[ -n $text ]] && marked xid
  else
    text=${text:0:200}
    marked nokernellog
  fi
}

sampler=
program=
# A signal that comes before the sampler has set its trap is lost: it is asked until it is gone.
end_sampler() {
  local tries
  for ((tries = 0; tries < 100; tries++)); do
    kill "$sampler" 2>/dev/null || return
    sleep 0.05
  done
  kill -9 "$sampler" 2>/dev/null
}

stop() {
  [[ -n $sampler ]] && end_sampler
  if [[ -n $program ]]; then
    kill "$program" 2>/dev/null
    wait "$program"
  fi
  exit 143
}
trap stop TERM INT

list=
text='nvidia-smi is not on PATH'
if command -v nvidia-smi >/dev/null 2>&1; then known_fields; fi
{
  printf 'harness-gpu-state 1\n'
  [[ $soaked =~ ^[0-9]+$ ]] && printf 'soaked %s\n' "$soaked"
  if [[ -n $list ]]; then
    printf 'every %s\n' "$interval"
    printf 'fields %s\n' "$list"
    around before
  else
    text=${text:0:500}
    marked absent
    printf 'at before 0\n'
    kernel
  fi
} >"$out"

# Neither a keyword nor a builtin of this shell.
(exec "$@") <&0 &
program=$!
if [[ -n $list && $interval != 0 ]]; then
  (
    pause=
    trap '[[ -n $pause ]] && kill "$pause" 2>/dev/null; exit' TERM
    # `$$` is the script itself, which may be killed.
    while [[ -z $gone ]] && kill -0 "$$" 2>/dev/null; do
      sleep "$interval" &
      pause=$!
      wait "$pause"
      pause=
      reading during >>"$out"
    done
  ) </dev/null >/dev/null 2>&1 &
  sampler=$!
fi
wait "$program"
status=$?
program=
if [[ -n $sampler ]]; then
  end_sampler
  wait "$sampler" 2>/dev/null
  sampler=
fi
{
  if [[ -n $list ]]; then
    around after
  else
    printf 'at after 0\n'
    kernel
  fi
  printf 'end\n'
} >>"$out"
exit "$status"
