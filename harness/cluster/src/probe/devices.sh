# What NVSwitches report of themselves, as facts of probe.sh.

# usage: devices
devices() {
  nvswitches /proc/driver/nvidia-nvswitch/devices
}

# Which firmware they have, as their driver prints it: `BIOS Version: 96.10.57.00.01`, or `N/A`.
# usage: nvswitches FOLDER
nvswitches() {
  local file row version seen='|'
  local -a files=("$1"/*/information) versions=()
  for file in ${files[@]+"${files[@]:0:64}"}; do
    version=
    while IFS= read -r row; do
      if [[ $row =~ ^(BIOS|Firmware)\ Version:\ *([0-9A-Fa-f.]{1,40})\ *$ ]]; then version=${BASH_REMATCH[2]}; fi
    done 2> /dev/null < "$file"
    # A switch without one where others have one differs from them.
    version=${version:-not reported}
    if [[ $seen != *"|$version|"* ]]; then versions+=("$version"); fi
    seen+="$version|"
  done
  if [[ $seen == '|not reported|'* && ${#versions[@]} == 1 ]]; then versions=(); fi
  some nvswitch_firmware "no NVSwitch reports it in $1" ${versions[@]+"${versions[@]}"}
}
