#!/bin/bash
# Reports what one node is and has; reads only, and decides nothing.
# usage: bash probe.sh NODE SHARED NCCL_TESTS COUNTERS NICS PAUSE_S NSYS PROGRAM...
#   NODE        the node's name
#   SHARED      the folder that all nodes see; the nearest folder above it stands for it while it does not exist
#   NCCL_TESTS  the folder of the programs of nccl-tests;  COUNTERS  the folder of the devices, {host} in it is NODE
#   NICS        how many devices there should be: fewer are looked for again, three times, PAUSE_S seconds apart
#   NSYS        the program, or `find`;  PROGRAM  what jobs run by its path: a program, or a folder of programs
# Each line begins with `harness-probe`; then, parted by tabs: `fact KEY VALUE`; `list KEY` and `item KEY VALUE` for each
# thing in it; `none KEY WHY` where nothing here reports it; `bad KEY WHY` where the source is here and fails;
# `clock begin|end SECONDS`; `host name NAME`. The last line is `end`: without it the answer is cut.
set -u
LC_ALL=C
PATH=$PATH:/usr/sbin:/sbin:/usr/local/bin:/opt/amazon/efa/bin
shopt -s nullglob

# A value is one line of bounded length, whatever was read.
line() {
  local value=${3-}
  value=${value//[[:cntrl:]]/ }
  value=${value#"${value%%[! ]*}"}
  printf 'harness-probe\t%s\t%s\t%s\n' "$1" "$2" "${value:0:240}"
}

fact() { line fact "$1" "$2"; }
item() { line item "$1" "$2"; }
none() { line none "$1" "$2"; }
bad() { line bad "$1" "$2"; }
list() { printf 'harness-probe\tlist\t%s\n' "$1"; }
has() { command -v "$1" > /dev/null 2>&1; }

# Nothing here may take long, or wait for input.
bounded() {
  if has timeout; then timeout -k 1 20 "$@" < /dev/null; else "$@" < /dev/null; fi
}

# Sets $text to the first line of a file.
first() {
  text=
  { read -r text < "$1"; } 2> /dev/null
  [[ -n $text ]]
}

clock() {
  local now=${EPOCHREALTIME:-}
  if [[ -z $now ]]; then now=$(date +%s.%N 2> /dev/null); fi
  line clock "$1" "$now"
}

# From a text, the first version in it: digits and points, and what is glued to them.
version_in() {
  [[ $1 =~ [0-9]+(\.[0-9]+)+[0-9A-Za-z.+_-]* ]] && text=${BASH_REMATCH[0]}
}

gpus() {
  local fields=index,name,driver_version,ecc.mode.current,ecc.errors.uncorrected.volatile.total
  fields+=,clocks.max.sm,clocks.max.memory,clocks_throttle_reasons.active
  local rows code row
  if ! has nvidia-smi; then
    none gpus 'no nvidia-smi on PATH'
    none processes 'no nvidia-smi on PATH'
    return
  fi
  rows=$(bounded nvidia-smi "--query-gpu=$fields" --format=csv,noheader,nounits 2>&1)
  code=$?
  # The newer name of the last field.
  if ((code != 0)) && [[ $rows == *'clocks_throttle_reasons.active" is not a valid'* ]]; then
    rows=$(bounded nvidia-smi "--query-gpu=${fields/throttle/event}" --format=csv,noheader,nounits 2>&1)
    code=$?
  fi
  if ((code != 0)); then
    # Other releases lack some of the fields.
    rows=$(bounded nvidia-smi --query-gpu=index,name,driver_version --format=csv,noheader,nounits 2>&1)
    code=$?
  fi
  if ((code != 0)); then
    bad gpus "nvidia-smi ended with $code: $rows"
  else
    list gpus
    while IFS= read -r row; do
      if [[ $row =~ ^[0-9]+, ]]; then item gpus "$row"; fi
    done <<< "$rows"
  fi
  if rows=$(bounded nvidia-smi --query-compute-apps=pid,process_name --format=csv,noheader 2>&1); then
    list processes
    while IFS= read -r row; do
      if [[ $row =~ ^[0-9]+, ]]; then item processes "$row"; fi
    done <<< "$rows"
  else
    none processes "nvidia-smi cannot list processes: $rows"
  fi
}

# Reports a list where it has something in it.
# usage: some KEY WHY_NOT ITEM...
some() {
  local key=$1 why=$2 row
  shift 2
  if (($# == 0)); then none "$key" "$why"; return; fi
  list "$key"
  for row; do item "$key" "$row"; done
}

# Whether it is a machine's own number, and not what a maker left there.
is_serial() { [[ $1 =~ ^[0-9A-Za-z.-]{5,40}$ && $1 == *[1-9]* && $1 != 0123456789 && $1 != 123456789* ]]; }

# Which hardware this is, whatever the node is called.
identity() {
  local rows index uuid serial vbios seen='|' why
  local -a ids=() versions=()
  if first /sys/class/dmi/id/board_asset_tag && [[ $text =~ ^i-[0-9a-f]{8,17}$ ]]; then
    fact machine "$text"
  elif first /sys/class/dmi/id/product_serial && is_serial "$text"; then
    fact machine "$text"
  else
    none machine 'no instance id in /sys/class/dmi/id/board_asset_tag; product_serial there is for root alone'
  fi
  if ! has nvidia-smi; then
    why='no nvidia-smi on PATH'
  elif ! rows=$(bounded nvidia-smi --query-gpu=index,uuid,serial,vbios_version --format=csv,noheader 2>&1); then
    why="nvidia-smi reports none: $rows"
  else
    why='nvidia-smi reports none'
    while IFS=, read -r index uuid serial vbios; do
      [[ $index =~ ^[0-9]+$ && $uuid == ' GPU-'* ]] || continue
      # What a GPU does not have is printed in brackets.
      ids+=("gpu$index$uuid${serial%% \[*}")
      if [[ -n $vbios && $vbios != *'['* && $seen != *"|$vbios|"* ]]; then versions+=("${vbios# }"); fi
      seen+="$vbios|"
    done <<< "$rows"
  fi
  some gpu_ids "$why" ${ids[@]+"${ids[@]}"}
  some gpu_vbios "$why" ${versions[@]+"${versions[@]}"}
}

# Sets $found and $others: the EFA devices, and those of other makers beside them. Where there is none of the first, or
# no device shows its maker, all are $found.
devices() {
  local device
  local -a efa=() all=("$1"/*/)
  found=() others=()
  for device in ${all[@]+"${all[@]}"}; do
    if ! first "$device/device/vendor"; then
      found+=("$device")
    elif [[ $text == 0x1d0f ]]; then
      found+=("$device") efa+=("$device")
    else
      others+=("$device")
    fi
  done
  if ((${#efa[@]} == 0)); then found=(${all[@]+"${all[@]}"}) others=(); fi
}

nics() {
  local root=${1//\{host\}/"$node"} wanted=$2 pause=$3 tries device states=0
  local -a found others
  if [[ ! -d $root || ! -r $root ]]; then
    none nics "no such folder, or not readable: $root"
    none nics_down "no such folder, or not readable: $root"
    none other_rdma_devices "no such folder, or not readable: $root"
    none nic_ids "no such folder, or not readable: $root"
    none nic_firmware "no such folder, or not readable: $root"
    return
  fi
  # Devices of some instances come up after the node has.
  for ((tries = 0; ; tries++)); do
    devices "$root"
    ((${#found[@]} >= wanted || tries >= 3)) && break
    sleep "$pause"
  done
  list nics
  # For older shells an array without elements is unbound.
  for device in ${found[@]+"${found[@]}"}; do
    device=${device%/}
    item nics "${device##*/}"
    [[ -r $device/ports/1/state ]] && states=$((states + 1))
  done
  nic_ids ${found[@]+"${found[@]}"}
  list other_rdma_devices
  for device in ${others[@]+"${others[@]}"}; do
    device=${device%/}
    item other_rdma_devices "${device##*/}"
  done
  if ((states == 0)); then
    none nics_down 'no device reports its link state'
    return
  fi
  list nics_down
  for device in ${found[@]+"${found[@]}"}; do
    device=${device%/}
    if first "$device/ports/1/state" && [[ $text != *ACTIVE* ]]; then item nics_down "${device##*/} $text"; fi
  done
}

# The GUID and the PCI address of each device, and which firmware they have.
nic_ids() {
  local device guid pci seen='|'
  local -a ids=() versions=()
  for device; do
    device=${device%/} guid=
    if first "$device/node_guid"; then guid=$text; fi
    pci=$(readlink -f "$device/device" 2> /dev/null)
    pci=${pci##*/}
    [[ $pci =~ ^[0-9a-f]{4}:[0-9a-f:.]+$ ]] || pci=
    if [[ -n $guid$pci ]]; then ids+=("${device##*/}${guid:+ $guid}${pci:+ $pci}"); fi
    if first "$device/fw_ver" && [[ $seen != *"|$text|"* ]]; then
      versions+=("$text")
      seen+="$text|"
    fi
  done
  some nic_ids 'no device has one' ${ids[@]+"${ids[@]}"}
  some nic_firmware 'no device reports its version' ${versions[@]+"${versions[@]}"}
}

fabric() {
  if first /sys/module/efa/version; then
    fact efa "$text"
  elif has modinfo && text=$(bounded modinfo -F version efa 2> /dev/null) && [[ -n $text ]]; then
    fact efa "$text"
  else
    none efa 'no module `efa` reports its version'
  fi
  if [[ -r /opt/amazon/efa_installed_packages ]] && version_in "$(head -n 1 /opt/amazon/efa_installed_packages)"; then
    fact efa_installer "$text"
  else
    none efa_installer 'no /opt/amazon/efa_installed_packages'
  fi
  if ! has fi_info; then
    none libfabric 'no fi_info on PATH or in /opt/amazon/efa/bin'
  elif text=$(bounded fi_info --version 2> /dev/null | grep -m 1 '^libfabric:') && version_in "$text"; then
    fact libfabric "$text"
  else
    none libfabric 'fi_info prints no version'
  fi
}

# Sets $folders: where libraries lie, those of the environment first.
library_folders() {
  IFS=: read -r -a folders <<< "${LD_LIBRARY_PATH:-}"
  folders+=("$@" /usr/local/cuda/lib64 /usr/lib/x86_64-linux-gnu /usr/lib/aarch64-linux-gnu /usr/lib64 /usr/local/lib)
}

libraries() {
  local folder file unnumbered=
  local -a folders
  # What was read before is no version of a plugin.
  text=
  library_folders /opt/amazon/ofi-nccl/lib /opt/amazon/ofi-nccl/lib64 /opt/amazon/ofi-nccl/lib/x86_64-linux-gnu \
    /opt/amazon/ofi-nccl/lib/aarch64-linux-gnu /opt/aws-ofi-nccl/lib /opt/aws-ofi-nccl/install/lib
  for folder in "${folders[@]}"; do
    [[ -n $folder ]] || continue
    for file in "$folder"/libnccl-net-ofi.so* "$folder"/libnccl-net.so*; do
      text=$(bounded grep -a -o -m 1 -E 'aws-ofi-nccl [0-9][0-9A-Za-z.+-]*' "$file" 2> /dev/null | head -n 1)
      [[ -n $text ]] && version_in "$text" && break 2
      # One that was built from a checkout bears its commit.
      if [[ -z $unnumbered ]]; then
        text=$(bounded grep -a -o -m 1 -E 'Initializing aws-ofi-nccl [0-9A-Za-z._+-]+' "$file" 2> /dev/null | head -n 1)
        if [[ -n $text ]]; then unnumbered="${text#Initializing } of $file"; fi
      fi
      text=
    done
  done
  if [[ -n ${text:-} ]]; then
    fact ofi_nccl "$text"
  else
    none ofi_nccl "${unnumbered:-no libnccl-net with a version}"
  fi
  library_folders /opt/nccl/build/lib
  text=
  for folder in "${folders[@]}"; do
    [[ -n $folder ]] || continue
    for file in "$folder"/libnccl.so.*.*; do
      version_in "${file##*/libnccl.so.}" && break 2
    done
  done
  if [[ -z $text ]]; then
    for folder in "${folders[@]}"; do
      [[ -n $folder && -r $folder/libnccl.so.2 ]] || continue
      text=$(bounded grep -a -o -m 1 -E 'NCCL version [0-9]+\.[0-9.]+' "$folder/libnccl.so.2" 2> /dev/null | head -n 1)
      [[ -n $text ]] && version_in "$text" && break
      text=
    done
  fi
  if [[ -n $text ]]; then fact nccl "$text"; else none nccl 'no libnccl.so.2 with a version'; fi
}

# The plugin of NCCL's Inspector: the one that the inventory names, else where the loader looks for it.
inspector() {
  local name=libnccl-profiler-inspector.so path folder
  local -a folders
  for path; do
    [[ ${path##*/} == *inspector*.so* ]] || continue
    if [[ -f $path && -r $path ]]; then
      fact nccl_inspector "$path"
    else
      none nccl_inspector "no such file, or not readable: $path"
    fi
    return
  done
  library_folders
  for folder in "${folders[@]}"; do
    if [[ -n $folder && -r $folder/$name ]]; then
      fact nccl_inspector "$folder/$name"
      return
    fi
  done
  text=
  if has ldconfig; then text=$(bounded ldconfig -p 2> /dev/null | grep -m 1 -F "$name"); fi
  if [[ $text == *'=> '* ]]; then
    fact nccl_inspector "${text##*=> }"
  else
    none nccl_inspector "no $name in LD_LIBRARY_PATH or in the loader's folders"
  fi
}

nccl_tests() {
  local program row
  if [[ ! -d $1 ]]; then
    none nccl_tests "no such folder: $1"
    none nccl_tests_missing_libraries "no such folder: $1"
    return
  fi
  list nccl_tests
  for program in "$1"/*_perf; do
    if [[ -x $program ]]; then item nccl_tests "${program##*/}"; fi
  done
  if ! has ldd || ! text=$(bounded ldd "$1/all_reduce_perf" 2> /dev/null); then
    none nccl_tests_missing_libraries "ldd reads no libraries of $1/all_reduce_perf"
    return
  fi
  list nccl_tests_missing_libraries
  while IFS= read -r row; do
    if [[ $row == *'=> not found'* ]]; then item nccl_tests_missing_libraries "${row%% =>*}"; fi
  done <<< "$text"
}

# Tools of the nic-pairs cases: `TOOL`, `TOOL:cuda` where it was built with CUDA, `TOOL:srd` where it goes over SRD.
flow_tools() {
  local tool
  list flow_tools
  if has fi_rma_bw; then
    item flow_tools fi_rma_bw
    # No provider has this name: a build with CUDA looks for it in vain, another one fails before.
    text=$(with_cuda fi_rma_bw -p harness-none -D cuda -i 0 2>&1)
    if [[ $text == *fi_getinfo* && $text != *hmem_init* ]]; then item flow_tools fi_rma_bw:cuda; fi
  fi
  for tool in ib_write_bw ib_read_bw; do
    has "$tool" || continue
    item flow_tools "$tool"
    text=$(with_cuda "$tool" --help 2>&1)
    if [[ $text == *--use_cuda=* ]]; then item flow_tools "$tool:cuda"; fi
    # The kind of connection is checked before the device is looked for, and no device has this name.
    text=$(with_cuda "$tool" -F -c SRD -x 0 -d harness-none 2>&1)
    if [[ -n $text && $text != *SRD* && $text != *'Invalid Command'* ]]; then item flow_tools "$tool:srd"; fi
  done
}

# Programs of cases with `where_installed`, and where AWS's image mounts the local disks.
node_programs() {
  local program folder=/opt/dlami/nvme
  list node_programs
  for program in dcgmi fi_pingpong fio gpu_burn iperf3 nvbandwidth stream stress-ng; do
    has "$program" || continue
    # ImageMagick has a program of this name, which is another.
    if [[ $program == stream && $(readlink -f "$(command -v stream)" 2> /dev/null) == *@(-im[67]*|magick*) ]]; then
      continue
    fi
    item node_programs "$program"
  done
  if [[ -d $folder ]]; then item node_programs "$folder"; fi
  # Only that sentence says that it does not run: whatever else fails is for the case itself to show.
  if has dcgmi && [[ $(bounded dcgmi discovery -l 2>&1 | head -c 20000) != *'nable to connect to host engine'* ]]; then
    item node_programs nv-hostengine
  fi
  # It is found without being loaded, which takes long.
  program='import importlib.util, sys; sys.exit(importlib.util.find_spec("torch") is None)'
  if has python3 && bounded python3 -c "$program" > /dev/null 2>&1; then item node_programs torch; fi
  if has torchrun; then item node_programs torchrun; fi
}

# As flows.sh starts its tool.
with_cuda() { LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}/usr/local/cuda/lib64 bounded "$@"; }

# What starts ranks, and where it lies.
launchers() {
  local program
  list launchers
  for program in mpirun torchrun; do
    if has "$program"; then
      item launchers "$program $(command -v "$program")"
    elif [[ $program == mpirun && -x /opt/amazon/openmpi/bin/mpirun ]]; then
      item launchers "$program /opt/amazon/openmpi/bin/mpirun, not on PATH"
    fi
  done
}

profiler() {
  local nsys=$1 folder plugin
  if [[ $nsys == find ]]; then nsys=$(find_nsys); fi
  if ! has "$nsys"; then
    none nsys "no such program: ${nsys:-nsys}"
    none nsys_plugins 'no nsys'
    return
  fi
  # By the name that a job calls it by: a link may lead to a program that acts by its name.
  nsys=$(command -v "$nsys")
  if version_in "$(bounded "$nsys" --version 2> /dev/null)"; then
    fact nsys "$text"
  else
    none nsys "it prints no version: $nsys"
  fi
  nsys=$(readlink -f "$nsys")
  fact nsys_path "$nsys"
  list nsys_plugins
  folder=${nsys%/*}
  for plugin in "$folder"/../target-linux-*/plugins; do
    [[ -d $folder/plugins ]] || folder=${plugin%/plugins}
  done
  for plugin in "$folder"/plugins/*/; do
    plugin=${plugin%/}
    item nsys_plugins "${plugin##*/}"
  done
}

# Programs, and folders above them, that every user can write. From the top down, and by the names of the inventory first:
# an open folder may hold any name. In a sticky folder no other user can replace what is there.
open_programs() {
  local path at mode seen='|'
  local -a chain above
  if ! has stat || ! has readlink; then
    none open_programs 'no stat or readlink on PATH'
    return
  fi
  list open_programs
  for path; do
    [[ -e $path ]] || continue
    chain=(/)
    for at in "$path" "$(readlink -f -- "${path%/*}")" "$(readlink -f -- "$path")"; do
      above=()
      while [[ -n $at && $at != / ]]; do
        above=("$at" ${above[@]+"${above[@]}"})
        at=${at%/*}
      done
      chain+=(${above[@]+"${above[@]}"})
    done
    while read -r mode at; do
      [[ $mode =~ ^[0-7]+$ ]] && ((8#$mode & 2)) || continue
      if [[ -d $at && -k $at ]]; then continue; fi
      if [[ $seen != *"|$at|"* ]]; then item open_programs "$at"; fi
      seen+="$at|"
      break
    done < <(stat -L -c '%a %n' -- "${chain[@]}" "$path"/*_perf 2> /dev/null)
  done
}

software() {
  text=
  if [[ -r /usr/local/cuda/version.json ]]; then
    version_in "$(grep -A 3 '"cuda"' /usr/local/cuda/version.json | grep '"version"')"
  elif has nvcc; then
    version_in "$(bounded nvcc --version 2> /dev/null | grep release)"
  fi
  if [[ -n $text ]]; then fact cuda "$text"; else none cuda 'no /usr/local/cuda/version.json, and no nvcc on PATH'; fi
  if first /proc/sys/kernel/osrelease; then fact kernel "$text"; else none kernel 'no /proc'; fi
  if [[ -r /etc/os-release ]] && text=$(grep -m 1 '^PRETTY_NAME=' /etc/os-release); then
    text=${text#PRETTY_NAME=}
    fact os "${text//\"/}"
  else
    none os 'no /etc/os-release'
  fi
  if first /sys/class/dmi/id/product_name; then
    fact instance "$text"
  else
    none instance 'no /sys/class/dmi/id/product_name'
  fi
  if [[ ! -d /sys/module ]]; then
    none gdrdrv 'no /sys/module'
  elif [[ -d /sys/module/gdrdrv ]]; then
    fact gdrdrv loaded
  else
    fact gdrdrv 'not loaded'
  fi
  text=
  if has systemctl; then text=$(bounded systemctl is-active nvidia-fabricmanager 2> /dev/null); fi
  if [[ -n $text ]]; then fact fabric_manager "$text"; else none fabric_manager 'systemd says nothing of it'; fi
  list containers
  if has enroot; then item containers "enroot $(bounded enroot version 2> /dev/null)"; fi
  if has srun && bounded srun --help 2> /dev/null | grep -q -- --container-image; then item containers pyxis; fi
}

limits() {
  text=$(ulimit -l)
  if [[ $text == unlimited ]]; then
    fact memlock unlimited
  elif [[ $text =~ ^[0-9]+$ ]]; then
    fact memlock $((text * 1024))
  else
    none memlock 'ulimit does not report it'
  fi
  local key value rest
  text=
  while read -r key value rest; do
    if [[ $key == HugePages_Total: ]]; then text=$value; fi
  done 2> /dev/null < /proc/meminfo
  if [[ -n $text ]]; then fact huge_pages "$text"; else none huge_pages '/proc/meminfo does not report it'; fi
}

# The nearest folder that is there stands for one that the first run will make.
shared() {
  local folder=$1 row
  local -a words
  while [[ ! -e $folder && $folder == */* && -n ${folder%/*} ]]; do folder=${folder%/*}; done
  [[ -e $folder ]] || folder=/
  if [[ ! -d $folder ]]; then
    fact shared "no folder: $folder"
  elif [[ -w $folder && -x $folder ]]; then
    fact shared writable
  else
    fact shared "not writable: $folder"
  fi
  row=$(bounded df -Pk "$folder" 2> /dev/null | tail -n 1)
  read -r -a words <<< "$row"
  if ((${#words[@]} >= 6)) && [[ ${words[3]} =~ ^[0-9]+$ ]]; then
    fact shared_free $((words[3] * 1024))
    fact shared_source "${words[0]}"
  else
    none shared_free 'df does not report it, or hangs'
    none shared_source 'df does not report it, or hangs'
  fi
}

# What NCCL, libfabric and its plugin are set to on this node.
environment() {
  local row
  list environment
  while IFS= read -r row; do item environment "$row"; done < <(
    env | grep -E '^(NCCL|FI|RDMAV|OFI_NCCL)_[A-Z0-9_]+=' | sort
    grep -h -E '^[[:space:]]*NCCL_[A-Z0-9_]+=' /etc/nccl.conf 2> /dev/null
  )
}

main() {
  node=$1
  clock begin
  # Programs name their host so, whatever the inventory calls the node.
  if first /proc/sys/kernel/hostname; then line host name "$text"; fi
  gpus
  identity
  gpu_health
  nvlinks
  switches_and_drives
  host "$4"
  nics "$4" "$5" "$6"
  fabric
  libraries
  inspector "${@:8}"
  nccl_tests "$3"
  flow_tools
  node_programs
  launchers
  profiler "$7"
  open_programs "${@:8}"
  software
  limits
  shared "$2"
  environment
  clock end
  printf 'harness-probe\tend\n'
}
