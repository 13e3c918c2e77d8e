#!/bin/bash
# Reads the EFA counters of one node before, during and after a workload, with bash's own means alone.
# usage: bash counters.sh ROOT OUT READY STOP INTERVAL_S LIMIT_S [NODE]
#   ROOT        folder of the devices; {host} in it, in OUT and in READY is the node's name
#   OUT         what was read, one line per reading and device; a last line `end` proves it complete
#   READY       made once the counters rest; STOP ends the sampling once it exists
#   INTERVAL_S  seconds between two readings; LIMIT_S of uptime end the sampling without STOP
#   NODE        the node's name; Slurm's or else the host's where it is not given
# It only records. What the numbers mean, and whether they may be believed, is decided by who reads OUT.
set -u
# Bytes sort alike on every node, and numbers have a point.
LC_ALL=C
shopt -s nullglob

columns=(
  tx_bytes rx_bytes tx_pkts rx_pkts rx_drops
  send_bytes send_wrs recv_bytes recv_wrs
  rdma_read_bytes rdma_read_wrs rdma_read_wr_err rdma_read_resp_bytes
  rdma_write_bytes rdma_write_wrs rdma_write_wr_err rdma_write_recv_bytes
  retrans_bytes retrans_pkts retrans_timeout_events
  unresponsive_remote_events impaired_remote_conn_events
)

usage() {
  printf 'counters.sh: %s\nusage: bash counters.sh ROOT OUT READY STOP INTERVAL_S LIMIT_S [NODE]\n' "$1" >&2
  exit 2
}

# Sets $cs: hundredths of a second, since bash counts in whole numbers and /proc/uptime has two decimals.
hundredths() {
  local part=00
  [[ $1 == *.* ]] && part=${1#*.}00
  cs=$((10#${1%%.*}${part:0:2}))
}

# Sets $uptime as the kernel writes it, and $cs. It passes evenly, whatever is done to the wall clock.
now() {
  read -r uptime _ </proc/uptime && [[ $uptime =~ ^[0-9]+\.[0-9]+$ ]] && hundredths "$uptime"
}

# Sets $wall. Older shells know whole seconds only, which is enough to see a clock that jumped.
wall_clock() {
  if [[ -n ${EPOCHREALTIME-} ]]; then wall=$EPOCHREALTIME; else printf -v wall '%(%s)T' -1; fi
}

# Sets $escaped: one word of plain characters; every other byte as %XX, and nothing at all as a lone %.
escape() {
  local at byte number
  escaped=
  for ((at = 0; at < ${#1}; at++)); do
    byte=${1:at:1}
    if [[ $byte == [a-zA-Z0-9_./:+-] ]]; then
      escaped+=$byte
    else
      printf -v number '%d' "'$byte"
      # Some shells take a byte above 127 for a negative number.
      printf -v byte '%%%02X' $((number & 255))
      escaped+=$byte
    fi
  done
  escaped=${escaped:-%}
}

# Waits so many hundredths of a second without a process: the other end is never written to.
rest() {
  local seconds
  printf -v seconds '%d.%02d' $(($1 / 100)) $(($1 % 100))
  read -r -t "$seconds" _ <&"$pause"
}

# Sets $ms from what `times` prints, such as 0m0.012s.
milliseconds() {
  local seconds=${1#*m}
  seconds=${seconds%s}
  ms=$((10#${1%%m*} * 60000 + 10#${seconds/./}))
}

# Writes the last line and leaves. `times` reports only its own shell's cost, so its words go through the pipe that
# is held open: a substitution would be another shell.
finish() {
  local reason=$1 whose user system word cost=0
  trap '' TERM INT HUP
  times >&"$pause"
  for whose in own children; do
    read -r -t 1 user system <&"$pause"
    for word in "${user:-0m0.000s}" "${system:-0m0.000s}"; do
      milliseconds "$word"
      ((cost += ms))
    done
  done
  wall_clock
  now || uptime=0.00
  printf 'end wall=%s uptime=%s cost_s=%d.%03d reason=%s\n' \
    "$wall" "$uptime" $((cost / 1000)) $((cost % 1000)) "$reason" >&"$out"
  [[ $reason == signal ]] && exit 143
  exit 0
}

# Says once for a device and counter what is wrong with it; the readings then hold `-`.
declare -A reported=()
report_once() {
  local key="$2 $3"
  [[ -n ${reported[$key]-} ]] && return
  reported[$key]=1
  if [[ $1 == bad ]]; then
    escape "${4:0:64}"
    printf 'bad %s %s %s\n' "$2" "$3" "$escaped" >&"$out"
  else
    printf 'missing %s %s\n' "$2" "$3" >&"$out"
  fi
}

# Reads every counter of every device once. Sets $payload: all that must stand still before traffic is at rest.
sweep() {
  local at column value line
  payload=
  for ((at = 0; at < ${#names[@]}; at++)); do
    now || finish no-uptime
    line=
    for column in "${columns[@]}"; do
      value=
      read -r value <"${folders[at]}/$column"
      if [[ -z $value ]]; then
        report_once missing "${names[at]}" "$column"
        value=-
      elif [[ $value == *[!0-9]* || ${#value} -gt 20 ||
        (${#value} -eq 20 && $value > 18446744073709551615) ]]; then
        report_once bad "${names[at]}" "$column" "$value"
        value=-
      fi
      line+=" $value"
      [[ $column == *_bytes ]] && payload+=" $value"
    done
    printf '%s %s %s%s\n' "$1" "$uptime" "${names[at]}" "$line" >&"$out"
  done 2>/dev/null # A file that is not there is reported above.
}

# Reads until two readings are equal; where traffic does not rest, it says so and goes on.
until_quiet() {
  local tries last=
  for ((tries = 0; tries < 10; tries++)); do
    rest "$quiet"
    sweep "$1"
    ((tries > 0)) && [[ $payload == "$last" ]] && return
    last=$payload
  done
  printf 'not-quiet %s\n' "$1" >&"$out"
}

# Reads at the interval until STOP is there or the limit has passed. Sets $reason.
until_stopped() {
  local next left
  while :; do
    now || finish no-uptime
    # Counted from the start of the last sweep and never caught up: a late sweep must not make the next one early.
    next=$((cs + interval))
    while ((cs < next)); do
      if [[ -e $stop ]]; then reason=stop; return; fi
      if ((cs - begin >= limit)); then reason=limit; return; fi
      left=$((next - cs))
      rest $((left < 50 ? left : 50))
      now || finish no-uptime
    done
    sweep during
  done
}

[[ $# -eq 6 || $# -eq 7 ]] || usage "expected 6 or 7 arguments, got $#"
node=${7:-${SLURMD_NODENAME:-${HOSTNAME:-}}}
root=${1//\{host\}/"$node"}
out_file=${2//\{host\}/"$node"}
ready=${3//\{host\}/"$node"}
stop=$4
number='^[0-9]{1,9}(\.[0-9]+)?$'
[[ $5 =~ $number ]] || usage "INTERVAL_S is not a number: $5"
[[ $6 =~ $number ]] || usage "LIMIT_S is not a number: $6"
hundredths "$5"
interval=$cs
hundredths "$6"
limit=$cs
# Five readings a second at most: each costs the device five commands of its own.
quiet=20
# Bash says itself why it cannot; the workload is not held up by that either.
exec {out}>"$out_file" || { : >"$ready"; exit 1; }
# A pipe held open at both ends: nothing ever comes, so a read with a time-out on it is a pause. The one process of
# the whole script is the empty one that bash starts here to get a pipe without a file.
exec {pause}<> <(:) || { : >"$ready"; exit 1; }
trap 'finish signal' TERM INT HUP

# Whether the maker of a device is known, and is Amazon (`efa`) or somebody else (`other`).
is_of() {
  local vendor=
  { read -r vendor <"$2/device/vendor"; } 2>/dev/null
  case $vendor in
    '') false ;;
    0x1d0f) [[ $1 == efa ]] ;;
    *) [[ $1 == other ]] ;;
  esac
}

folders=()
names=()
lifespans=()
if [[ -d $root && -r $root && -x $root ]]; then
  # Where there are EFA devices, those of other makers beside them are not sampled.
  efa=
  for device in "$root"/*; do
    if is_of efa "$device"; then efa=yes; fi
  done
  for device in "$root"/*; do
    [[ -d $device ]] || continue
    if [[ -n $efa ]] && is_of other "$device"; then continue; fi
    folders+=("$device/ports/1/hw_counters")
    escape "${device##*/}"
    names+=("$escaped")
    lifespan=
    { read -r lifespan <"$device/ports/1/hw_counters/lifespan"; } 2>/dev/null
    [[ $lifespan =~ ^[0-9]{1,9}$ ]] || lifespan=-
    lifespans+=("$lifespan")
    # The driver answers from a cache for so long, and two readings from one cache look like rest. A lifespan
    # beyond five seconds is not waited for; who reads OUT sees it.
    if [[ $lifespan != - ]] && ((10#$lifespan <= 5000 && quiet * 10 < 2 * 10#$lifespan)); then
      quiet=$((10#$lifespan / 5 + 1))
    fi
  done
fi
((interval < quiet)) && interval=$quiet

wall_clock
has_uptime=yes
now || { has_uptime=; uptime=0.00; cs=0; }
begin=$cs
escape "$node"
printf 'harness-counters 1\nnode %s\n' "$escaped" >&"$out"
escape "$root"
printf 'root %s\ninterval_s %d.%02d\ncolumns %s\nbegin wall=%s uptime=%s\n' \
  "$escaped" $((interval / 100)) $((interval % 100)) "${columns[*]}" "$wall" "$uptime" >&"$out"
for ((at = 0; at < ${#names[@]}; at++)); do
  printf 'device %s lifespan_ms=%s\n' "${names[at]}" "${lifespans[at]}" >&"$out"
done
[[ -d $root && -r $root && -x $root ]] || printf 'unreadable %s\n' "$escaped" >&"$out"
if [[ -z $has_uptime ]]; then
  : >"$ready"
  finish no-uptime
fi

until_quiet before
# The workload is not held up by counters that cannot be read.
: >"$ready"
reason=stop
until_stopped
until_quiet after
finish "$reason"
