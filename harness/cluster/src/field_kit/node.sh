#!/bin/bash
# Prints what a field kit takes of one node; reads only, but for a list of hosts that mpirun reads, which is removed.
# usage: bash node.sh NODE COUNTERS NCCL_TESTS MPIRUN PEER FSDP [NAME=VALUE]...
#   COUNTERS    the folder of the devices, {host} in it is NODE;  NCCL_TESTS  the folder of the programs of nccl-tests
#   MPIRUN      the mpirun that jobs would use;  PEER  a node to reach from here by ssh, or -;  FSDP  a training script
#   NAME=VALUE  what the inventory sets for jobs, and the programs here find set too
# Each line begins with `harness-field`; then, parted by tabs: `section NAME STATUS`, and `line TEXT` for each line of it.
# STATUS is the command's exit status, or `absent` where there is nothing to run or to read. The last line is `end`.
set -u
LC_ALL=C
PATH=$PATH:/usr/sbin:/sbin:/usr/local/bin:/opt/amazon/efa/bin:/opt/amazon/openmpi/bin
shopt -s nullglob

has() { command -v "$1" > /dev/null 2>&1; }

# Nothing here may take long, or wait for input.
bounded() {
  if has timeout; then timeout -k 1 20 "$@" < /dev/null; else "$@" < /dev/null; fi
}

# A section from a text: lines of bounded number and length.
section() {
  local name=$1 status=$2 text=$3 most=${4:-200} row count=0
  printf 'harness-field\tsection\t%s\t%s\n' "$name" "$status"
  [[ -n $text ]] || return 0
  while IFS= read -r row; do
    row=${row//[[:cntrl:]]/ }
    printf 'harness-field\tline\t%s\n' "${row:0:300}"
    count=$((count + 1))
    ((count < most)) || break
  done <<< "$text"
}

# What a command prints, on either stream.
command_of() {
  local name=$1 most=$2 text status
  shift 2
  if ! has "$1"; then
    section "$name" absent "no such program: $1"
    return
  fi
  text=$(
    set -o pipefail
    bounded "$@" 2>&1 | head -c 60000
  )
  status=$?
  section "$name" "$status" "$text" "$most"
}

file_of() {
  local text
  if text=$({ head -c 4000 "$2"; } 2> /dev/null); then section "$1" 0 "$text" 20; else section "$1" absent "not readable: $2"; fi
}

one() {
  text=-
  { read -r text < "$1"; } 2> /dev/null
  [[ -n $text ]] || text=-
}

# A line for each device, parted by `|`: name, vendor, state and rate of its link, and the PCI bridges above it.
devices() {
  local root=$1 device vendor state rate rows=
  if [[ ! -d $root ]]; then
    section devices absent "no such folder: $root"
    section counters absent "no such folder: $root"
    return
  fi
  for device in "$root"/*/; do
    device=${device%/}
    one "$device/device/vendor"; vendor=$text
    one "$device/ports/1/state"; state=$text
    one "$device/ports/1/rate"; rate=$text
    rows+="${device##*/}|$vendor|$state|$rate|$(bridges "$device/device")"$'\n'
  done
  section devices 0 "$rows"
  rows=
  for device in "$root"/*/; do
    device=${device%/}
    one "$device/device/vendor"
    [[ $text == 0x1d0f || $text == - ]] || continue
    rows=$(cd "$device/ports/1/hw_counters" 2> /dev/null && printf '%s\n' *)
    [[ -z $rows ]] || break
  done
  if [[ -n $rows ]]; then section counters 0 "$rows"; else section counters absent 'no device has hw_counters'; fi
}

# A line for each counter of traffic: its name, and its sum over all EFA devices.
traffic() {
  local root=$1 device name rows=
  local -A sums=()
  for device in "$root"/*/; do
    device=${device%/}
    one "$device/device/vendor"
    [[ $text == 0x1d0f || $text == - ]] || continue
    for name in send_bytes rdma_write_bytes rdma_read_bytes rdma_read_resp_bytes tx_bytes; do
      one "$device/ports/1/hw_counters/$name"
      [[ $text =~ ^[0-9]{1,17}$ ]] && sums[$name]=$((${sums[$name]:-0} + 10#$text))
    done
  done
  for name in "${!sums[@]}"; do rows+="$name ${sums[$name]}"$'\n'; done
  if [[ -n $rows ]]; then section traffic 0 "$rows"; else section traffic absent 'no EFA device counts its traffic'; fi
}

# Whether a rank that mpirun starts on this node has what jobs export, by the options that jobs give.
mpirun_options() {
  local mpirun=$1 hosts
  if [[ -n ${SLURM_JOB_ID:-} ]]; then
    section mpirun_options absent 'not tried inside a job of Slurm'
    return
  fi
  # It reads the file more than once: a pipe is not enough.
  if ! hosts=$(mktemp 2> /dev/null); then
    section mpirun_options absent 'no temporary file can be made'
    return
  fi
  trap 'rm -f "$hosts"' EXIT
  printf 'localhost slots=1\n' > "$hosts"
  HARNESS_FIELD_KIT=exported command_of mpirun_options 20 \
    "$mpirun" -np 1 -N 1 --hostfile "$hosts" --bind-to none -x HARNESS_FIELD_KIT printenv HARNESS_FIELD_KIT
  rm -f "$hosts"
  trap - EXIT
}

# The switches that `nsys profile` lists, without what it says of them.
nsys_switches() {
  local text
  if ! has nsys; then
    section nsys_switches absent 'no such program: nsys'
    return
  fi
  text=$(bounded nsys profile --help 2>&1 | head -c 200000 | grep -o -E -e '--[a-z][a-z-]+' | sort -u)
  section nsys_switches 0 "$text" 300
}

# A line for each root port above an EFA device, parted by `|`: address, speed and width of its link.
host_links() {
  local root=$1 device path address speed rows= seen='|'
  for device in "$root"/*/; do
    device=${device%/}
    one "$device/device/vendor"
    [[ $text == 0x1d0f || $text == - ]] || continue
    path=$(bridges "$device/device")
    address=${path%%/*}
    # A device without a bridge above it shows its own link alone.
    [[ $path == */* && $seen != *"|$address|"* ]] || continue
    seen+="$address|"
    one "/sys/bus/pci/devices/$address/current_link_speed"; speed=$text
    one "/sys/bus/pci/devices/$address/current_link_width"
    rows+="$address|$speed|$text"$'\n'
  done
  if [[ -n $rows ]]; then section host_links 0 "$rows"; else section host_links absent 'sysfs shows no root port of a NIC'; fi
}

# The addresses on the way from the root of PCI to a device.
bridges() {
  local path
  path=$(readlink -f "$1" 2> /dev/null)
  path=${path#*/pci}
  [[ $path == *:* ]] && printf '%s' "${path#*/}"
}

gpus() {
  local address rows=
  if ! has nvidia-smi; then
    section gpus absent 'no such program: nvidia-smi'
    return
  fi
  while IFS=, read -r address model driver; do
    address=${address,,}
    [[ $address == *:*:* ]] || continue
    rows+="${address#0000}|${model# }|${driver# }|$(bridges "/sys/bus/pci/devices/${address#0000}")"$'\n'
  done < <(bounded nvidia-smi --query-gpu=pci.bus_id,name,driver_version --format=csv,noheader 2> /dev/null)
  section gpus 0 "$rows"
}

# The module, and its device: in a container the one may be loaded without the other.
gdrdrv() {
  local module=absent device=absent
  if [[ -d /sys/module/gdrdrv ]]; then module=loaded; fi
  if [[ -c /dev/gdrdrv ]]; then
    device=refused
    if { : <> /dev/gdrdrv; } 2> /dev/null; then device=open; fi
  fi
  section gdrdrv 0 "module $module device $device"
}

# The options of a training script and of what lies beside it, the data set that it names, and the line of a step.
options_of() {
  local text
  if [[ ! -r $1 ]]; then
    section fsdp_options absent "not readable: $1"
    return
  fi
  text=$(
    bounded grep -r -h -o -E --include='*.py' -e '--[a-z][a-z0-9_]+' -e 'allenai/c4' \
      -e 'Loss: [^,]+, Speed: [^,]*[a-z]/s[a-z]*' "${1%/*}" 2> /dev/null |
      head -c 60000 | sort -u
  )
  section fsdp_options 0 "$text" 400
}

# The help of a program, and whether it was built with CUDA.
flow_tool() {
  local path
  command_of "$1" 120 "$1" --help
  if path=$(command -v "$1"); then
    section "$1-cuda" 0 "$(grep -a -o -m 1 -E 'libcudart\.so|libcuda\.so|cuMemAlloc' "$path" 2> /dev/null | head -n 1)"
  fi
}

main() {
  local node=$1 root=$2 nccl_tests=$3 mpirun=$4 peer=$5 fsdp=$6
  section environment 0 "$(env | grep -E '^(NCCL|FI|OFI_NCCL|OMPI|RDMAV|PMIX|UCX|LD_LIBRARY_PATH|SLURM_MPI)[A-Za-z0-9_]*=' | sort)"
  shift 6
  (($# == 0)) || export "$@"
  section bash 0 "$BASH_VERSION"
  file_of product /sys/class/dmi/id/product_name
  file_of os /etc/os-release
  file_of efa_packages /opt/amazon/efa_installed_packages
  file_of efa_module /sys/module/efa/version
  devices "${root//\{host\}/"$node"}"
  traffic "${root//\{host\}/"$node"}"
  host_links "${root//\{host\}/"$node"}"
  gpus
  command_of fi_info_version 5 fi_info --version
  command_of fi_info 400 fi_info -p efa -t FI_EP_RDM
  flow_tool fi_rma_bw
  flow_tool ib_write_bw
  if [[ -x $mpirun ]]; then command_of mpirun 5 "$mpirun" --version; else command_of mpirun 5 mpirun --version; fi
  if [[ -x $mpirun ]]; then mpirun_options "$mpirun"; else mpirun_options mpirun; fi
  section mpirun_path 0 "$(command -v "$mpirun" || command -v mpirun)"
  section nccl_tests 0 "$(cd "$nccl_tests" 2> /dev/null && printf '%s\n' *_perf)"
  command_of nccl_tests_help 60 "$nccl_tests/all_reduce_perf" -h
  command_of nccl_tests_libraries 60 ldd "$nccl_tests/all_reduce_perf"
  command_of nsys 3 nsys --version
  nsys_switches
  command_of torchrun 3 torchrun --help
  if [[ -r $fsdp ]]; then section fsdp 0 "$fsdp"; else section fsdp absent "not readable: $fsdp"; fi
  options_of "$fsdp"
  section interfaces 0 "$(cd /sys/class/net 2> /dev/null && printf '%s\n' *)"
  section memlock 0 "$(ulimit -l)"
  gdrdrv
  if [[ $peer != - ]]; then command_of peer 5 ssh -o BatchMode=yes -o ConnectTimeout=10 "$peer" true; fi
  printf 'harness-field\tend\n'
}

main "$@"
