# What the host of the GPUs is and how it is set up, as facts of probe.sh; all of it can be read without root.

# usage: text_of KEY FILE; its first line.
text_of() {
  if first "$2"; then fact "$1" "$text"; else none "$1" "$2 cannot be read"; fi
}

# Sets $log to the kernel's messages since the boot. An empty log is one that may not be read.
kernel_log() {
  log=
  has grep || return
  log=$(bounded dmesg 2> /dev/null | tail -c 4000000)
  if [[ -z $log ]] && has journalctl; then log=$(bounded journalctl -k -b -q --no-pager 2> /dev/null | tail -c 4000000); fi
  [[ -n $log ]]
}

# Of each GPU and number the newest line about an Xid, a fatal one apart; and lines in which the kernel reports broken hardware.
kernel_messages() {
  local log row at key
  local -A newest=()
  local -a order=()
  if ! kernel_log; then
    none xid 'the kernel log is not readable'
    none kernel_errors 'the kernel log is not readable'
    return
  fi
  while IFS= read -r row; do
    [[ $row =~ NVRM:\ Xid\ (\([^\)]*\)):\ ([0-9]+) ]] || continue
    key="${BASH_REMATCH[1]} ${BASH_REMATCH[2]}"
    if [[ $row == *' Fatal '* ]]; then key+=' fatal'; fi
    newest[$key]=$row
    order+=("$key")
  done < <(printf '%s\n' "$log" | grep 'NVRM: Xid' | tail -n 2000)
  list xid
  local -a lines=()
  for ((at = ${#order[@]} - 1; at >= 0 && ${#lines[@]} < 64; at--)); do
    key=${order[at]}
    [[ -n ${newest[$key]:-} ]] || continue
    lines+=("${newest[$key]}")
    newest[$key]=
  done
  for ((at = ${#lines[@]} - 1; at >= 0; at--)); do item xid "${lines[at]}"; done
  list kernel_errors
  while IFS= read -r row; do item kernel_errors "$row"; done < <(
    printf '%s\n' "$log" | grep -E "$BROKEN" | grep -v -E "$NO_DISK" | tail -n 16
  )
}

BROKEN='SXid \([^)]*\): [0-9]+, Fatal|EDAC MC[0-9]+: [0-9]+ UE |AER: .*(Uncorrect|Fatal)|mce: Uncorrected'
BROKEN+='|I/O error, dev |Buffer I/O error on dev|md/raid.*: Disk failure on |EXT4-fs error|EXT4-fs \(.*\): Remounting filesystem read-only'
BROKEN+='|nvme nvme[0-9]+: (controller is down|Device not ready|Removing after probe failure|I/O .*timeout, reset)'
BROKEN+='|XFS \(.*\): ([Mm]etadata (corruption|CRC error|I/O error)|[Cc]orruption|log I/O error|Filesystem has been shut down|I/O error detected)'
# The kernel writes `[Hardware Error]` before corrected errors, too, which healthy hosts have.
BROKEN+='|\[Hardware Error\].*(Uncorrected|event severity: (fatal|recoverable)|_STATUS\[[^]]*\|UE\||[Pp]rocessor context corrupt)'
# Lines with an Xid are a list of their own.
BROKEN+='|NVRM: (GPU .*)?(fallen off the bus|RmInitAdapter failed|rm_init_adapter failed)'
# Of devices that hold no data.
NO_DISK='dev (loop|sr|fd)[0-9]'

processors() {
  local row model='' cores=0 governor sockets='|' rest
  while IFS= read -r row; do
    case $row in
      processor*:*) cores=$((cores + 1)) ;;
      'model name'*) model=${row#*: } ;;
      'physical id'*) once sockets "${row##*: }" ;;
    esac
  done 2> /dev/null < /proc/cpuinfo
  if ((cores > 0)); then fact cpus "$cores"; else none cpus 'no /proc/cpuinfo'; fi
  if [[ -n $model ]]; then fact cpu_model "$model"; else none cpu_model '/proc/cpuinfo names no model'; fi
  sockets=${sockets#|}
  sockets=${sockets//[^|]/}
  if [[ -n $sockets ]]; then fact sockets "${#sockets}"; else none sockets '/proc/cpuinfo names no sockets'; fi
  local -a nodes=(/sys/devices/system/node/node[0-9]*)
  if ((${#nodes[@]} > 0)); then fact numa_nodes "${#nodes[@]}"; else none numa_nodes 'no /sys/devices/system/node'; fi
  local governors='|'
  for row in /sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor; do
    if first "$row"; then once governors "$text"; fi
  done
  governors=${governors#|}
  governors=${governors%|}
  if [[ -n $governors ]]; then
    fact cpu_governor "${governors//|/ and }"
  else
    none cpu_governor 'no cpufreq: the hypervisor or the firmware chooses clocks'
  fi
  if first /sys/devices/system/cpu/cpu0/cpufreq/scaling_max_freq && [[ $text =~ ^[0-9]{4,9}$ ]]; then
    fact cpu_max_mhz $((text / 1000))
  else
    none cpu_max_mhz 'no cpufreq: the hypervisor or the firmware chooses clocks'
  fi
  text_of clock_source /sys/devices/system/clocksource/clocksource0/current_clocksource
  text_of numa_balancing /proc/sys/kernel/numa_balancing
}

host_memory() {
  local key value rest
  text=
  while read -r key value rest; do
    if [[ $key == MemTotal: && $value =~ ^[0-9]{1,15}$ ]]; then text=$((value * 1024)); fi
  done 2> /dev/null < /proc/meminfo
  if [[ -n $text ]]; then fact memory "$text"; else none memory '/proc/meminfo does not report it'; fi
  if [[ -r /proc/swaps ]]; then
    list swap
    while read -r key rest; do
      if [[ $key == /* ]]; then item swap "$key"; fi
    done < /proc/swaps
  else
    none swap 'no /proc/swaps'
  fi
  local controller bad=0
  local -a controllers=(/sys/devices/system/edac/mc/mc[0-9]*/)
  if ((${#controllers[@]} == 0)); then
    none host_ecc 'no memory controller in /sys/devices/system/edac: the hypervisor keeps it'
    return
  fi
  list host_ecc
  for controller in "${controllers[@]}"; do
    controller=${controller%/}
    if first "$controller/ue_count" && [[ $text != 0 ]]; then
      item host_ecc "${controller##*/}: $text errors not corrected"
    fi
  done
}

# usage: width_of FOLDER; sets $width to ` xN`, where the device has a link.
width_of() {
  width=
  if first "$1/current_link_width" && [[ $text =~ ^[1-9][0-9]?$ ]]; then width=" x$text"; fi
}

# GPUs, NVSwitches, NICs of the fabric and local drives, each with its place and the width of its link.
pci() {
  local device vendor id class width key value place
  local -a devices=(/sys/bus/pci/devices/*/) map=() lost=() errors=()
  local counted=0 read=0
  if ((${#devices[@]} == 0)); then
    none pci_devices 'no /sys/bus/pci/devices'
    none pci_lost 'no /sys/bus/pci/devices'
    none pcie_errors 'no /sys/bus/pci/devices'
    none iommu_groups 'no /sys/bus/pci/devices'
    return
  fi
  for device in "${devices[@]:0:2000}"; do
    device=${device%/} place=${device##*/}
    first "$device/vendor" && vendor=${text#0x} || continue
    first "$device/device" && id=${text#0x} || continue
    first "$device/class" && class=${text#0x} || class=
    # A device that is gone answers each read with ones.
    value=$(od -An -tx1 -N4 "$device/config" 2> /dev/null)
    value=${value// /}
    if [[ -n $value ]]; then read=1; fi
    if [[ $value == ffffffff ]]; then lost+=("$place $vendor:$id"); fi
    case $vendor:$id:$class in
      10de:*:0[36]* | 1d0f:efa*:* | 1d0f:cd0*:* | 15b3:*:02*)
        width_of "$device"
        map+=("$place $vendor:$id$width")
        ;;
    esac
    for key in fatal nonfatal; do
      [[ -r $device/aer_dev_$key ]] || continue
      counted=1
      while read -r value text; do
        if [[ $value == TOTAL_ERR_* && $text =~ ^[1-9] ]]; then errors+=("$place $vendor:$id: $text $key errors"); fi
      done < "$device/aer_dev_$key"
    done
  done
  some pci_devices 'no GPU, NVSwitch, NIC or local drive on PCI' ${map[@]+"${map[@]}"}
  if ((read == 0)); then
    none pci_lost 'no configuration in /sys/bus/pci/devices can be read'
  else
    list pci_lost
    for value in ${lost[@]+"${lost[@]}"}; do item pci_lost "$value"; done
  fi
  if ((counted == 0)); then
    none pcie_errors 'no device counts errors (aer_dev_fatal)'
  else
    list pcie_errors
    for value in ${errors[@]+"${errors[@]}"}; do item pcie_errors "$value"; done
  fi
  local -a groups=(/sys/kernel/iommu_groups/*/)
  fact iommu_groups "${#groups[@]}"
}

# Local drives; network volumes are not counted.
drives() {
  local drive model bytes=0 count=0 space
  local -a all=(/sys/class/nvme/nvme[0-9]*/) broken=() spaces
  if [[ ! -d /sys/class/nvme ]]; then
    none nvme_drives 'no /sys/class/nvme'
    none nvme_bytes 'no /sys/class/nvme'
    none nvme_broken 'no /sys/class/nvme'
    return
  fi
  for drive in ${all[@]+"${all[@]}"}; do
    drive=${drive%/} model=
    if first "$drive/model"; then model=${text%%  *}; fi
    if first "$drive/state" && [[ $text != live ]]; then broken+=("${drive##*/} $text"); fi
    [[ $model == *'Elastic Block Store'* ]] && continue
    count=$((count + 1))
    spaces=("$drive"/nvme*n[0-9]*/size)
    for space in ${spaces[@]+"${spaces[@]}"}; do
      if first "$space" && [[ $text =~ ^[0-9]{1,15}$ ]]; then bytes=$((bytes + text * 512)); break; fi
    done
  done
  fact nvme_drives "$count"
  fact nvme_bytes "$bytes"
  list nvme_broken
  for drive in ${broken[@]+"${broken[@]}"}; do item nvme_broken "$drive"; done
}

# Interfaces with a device behind them, and how often one of them or a port of the fabric has lost its link.
interfaces() {
  local root=${1//\{host\}/"$node"} link driver state mtu most='' file rates='|'
  local -a up=()
  for link in /sys/class/net/*/; do
    link=${link%/}
    [[ -e $link/device ]] || continue
    driver=$(readlink -f "$link/device/driver" 2> /dev/null)
    first "$link/operstate" && state=$text || state=unknown
    first "$link/mtu" && mtu=$text || mtu=unknown
    up+=("${link##*/} ${driver##*/} $state mtu $mtu")
  done
  some ethernet 'no interface in /sys/class/net has a device' ${up[@]+"${up[@]}"}
  for file in /sys/class/net/*/carrier_down_count "$root"/*/ports/1/counters/link_downed; do
    [[ $file == "$root"/* || -e ${file%/*}/device ]] || continue
    if first "$file" && [[ $text =~ ^[0-9]{1,15}$ ]] && ((text > ${most:--1})); then most=$text; fi
  done
  if [[ -n $most ]]; then fact link_losses "$most"; else none link_losses 'nothing counts them'; fi
  for file in "$root"/*/ports/1/rate; do
    if first "$file"; then once rates "$text"; fi
  done
  rates=${rates#|}
  rates=${rates%|}
  if [[ -n $rates ]]; then fact nic_rates "${rates//|/ and }"; else none nic_rates 'no device reports its rate'; fi
}

# A service that a timer starts, such as a look for updates, fails by chance: the next start mends it.
failed_services() {
  local row text key unit=''
  local -a units=()
  local -A timed=()
  if ! has systemctl || ! row=$(bounded systemctl list-units --failed --plain --no-legend --no-pager 2> /dev/null); then
    none services_failed 'systemd does not answer'
    return
  fi
  while read -r text _; do
    if [[ -n $text ]]; then units+=("$text"); fi
  done < <(printf '%s\n' "$row" | head -n 64)
  row=
  if ((${#units[@]} > 0)) && ! row=$(bounded systemctl show --no-pager -p Id -p TriggeredBy -- "${units[@]}" 2> /dev/null); then
    none services_failed 'systemd does not report what starts the services that have failed'
    return
  fi
  # Of each unit its name first, and an empty line behind it.
  while IFS='=' read -r key text; do
    case $key in
      Id) unit=$text ;;
      TriggeredBy) if [[ -n $unit && $text == *.timer* ]]; then timed[$unit]=1; fi ;;
      '') unit= ;;
    esac
  done < <(printf '%s\n' "$row")
  list services_failed
  for unit in ${units[@]+"${units[@]}"}; do
    if [[ -z ${timed[$unit]:-} ]]; then item services_failed "$unit"; fi
  done
}

# usage: file_systems MOUNTS FSTAB; as /proc/self/mounts and /etc/fstab have them.
file_systems() {
  local used source target type rest row root measured=0
  local -a automatic=() full=() mounts=()
  local -A declared=() served=()
  while read -r _ target rest; do
    if [[ $target == /* ]]; then declared[$target]=1; fi
  done 2> /dev/null < "$2"
  while read -r source target type rest; do
    if [[ $type == nfs || $type == nfs4 ]] && [[ $source == ?*:* ]]; then served[${source%/}]=1; fi
  done 2> /dev/null < "$1"
  while read -r source target type rest; do
    # Of single pods and packages, other ones on each node.
    case $target in /var/lib/kubelet/* | /run/* | /snap/* | /proc/*) continue ;; esac
    # What is mounted when somebody looks, such as a home, is there on some nodes and not on others.
    if [[ $type == autofs ]]; then automatic+=("$target"); fi
    for root in ${automatic[@]+"${automatic[@]}"}; do
      if [[ $target == "$root" || $target == "$root"/* ]]; then continue 2; fi
    done
    if [[ -z ${declared[$target]:-} ]]; then
      case $type in
        # So is a file system below another one of its server, which Linux mounts by itself.
        nfs | nfs4)
          root=${source%/}
          while [[ $root == ?*/* ]]; do
            root=${root%/*}
            if [[ -n ${served[$root]:-} ]]; then continue 2; fi
          done
          ;;
        # Users and their containers mount these.
        fuse.*) continue ;;
      esac
    fi
    case $type in
      ext[234] | xfs | btrfs | lustre | nfs | nfs4 | gpfs | beegfs | wekafs | ceph | fuse.*) mounts+=("$target $type") ;;
      *) continue ;;
    esac
    case $type in
      ext[234] | xfs | btrfs)
        used=$(bounded df -P "$target" 2> /dev/null | tail -n 1)
        [[ $used =~ \ ([0-9]{1,3})%\  ]] || continue
        measured=1
        if ((BASH_REMATCH[1] > 90)); then full+=("$target ${BASH_REMATCH[1]} % used"); fi
        ;;
    esac
    ((${#mounts[@]} < 64)) || break
  done 2> /dev/null < "$1"
  some mounts 'no file system of disks or of the network is mounted' ${mounts[@]+"${mounts[@]}"}
  if ((measured == 0)); then
    none disks_full 'df measures no local file system'
  else
    list disks_full
    for row in ${full[@]+"${full[@]}"}; do item disks_full "$row"; done
  fi
}

# Before systemd 243 timedatectl reports `no` where chrony leaves the hardware's clock alone (systemd/systemd, pull 13245):
# then chrony's own word counts, unless it follows nothing but this clock.
clock_state() {
  local row=
  text=
  if has timedatectl; then text=$(bounded timedatectl show -p NTPSynchronized --value 2> /dev/null); fi
  if [[ $text != yes ]] && has chronyc; then row=$(bounded chronyc -n tracking 2> /dev/null | head -c 4000); fi
  if [[ $row =~ Leap\ status\ *:\ (Normal|Insert\ second|Delete\ second) && $row != *7F7F01* && $row != *127.127.1.1* ]]; then
    text=yes
  elif [[ $row =~ Leap\ status\ *: ]]; then
    text=no
  fi
  if [[ $text == yes || $text == no ]]; then
    fact clock_synchronised "$text"
  else
    none clock_synchronised 'neither timedatectl nor chronyc reports it'
  fi
}

# What boots and keeps a node: image, services, clock, names, file systems.
services() {
  if [[ -r /run/cloud-init/instance-data.json ]] \
    && text=$(grep -o -m 1 -E '"ami[-_]id": "ami-[0-9a-f]{8,17}"' /run/cloud-init/instance-data.json) && [[ -n $text ]]; then
    text=${text%\"}
    fact os_image "${text##*\"}"
  else
    none os_image 'no image id in /run/cloud-init/instance-data.json'
  fi
  text=
  # It ends with 1 or 2 where something failed.
  if has cloud-init; then text=$(bounded cloud-init status 2> /dev/null); fi
  if [[ $text == *'status: '* ]]; then
    text=${text##*status: }
    fact cloud_init "${text%%$'\n'*}"
  else
    none cloud_init 'no cloud-init reports its status'
  fi
  failed_services
  clock_state
  if ! has getent || ! has hostname; then
    none name_resolves 'no getent or no hostname on PATH'
  elif bounded getent ahosts "$(hostname)" > /dev/null 2>&1; then
    fact name_resolves yes
  else
    fact name_resolves no
  fi
  file_systems /proc/self/mounts /etc/fstab
  text=$(ulimit -n)
  if [[ $text =~ ^[0-9]{1,15}$ ]]; then fact open_files "$text"; else none open_files "ulimit reports $text"; fi
}

# usage: host COUNTERS
host() {
  kernel_messages
  processors
  host_memory
  pci
  drives
  interfaces "$1"
  services
}
