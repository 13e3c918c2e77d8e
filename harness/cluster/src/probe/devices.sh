# What NVSwitches and local drives report of themselves, and DCGM of the GPUs that it watches, as facts of probe.sh.

# usage: switches_and_drives
switches_and_drives() {
  nvswitches /proc/driver/nvidia-nvswitch/devices
  dcgm_health
  smart /sys/class/nvme /dev
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

# What the watches of DCGM have found, on all GPUs. Where no nv-hostengine runs there is no answer, and none is started.
dcgm_health() {
  local text code=0 is='[[:space:]]*:[[:space:]]*' overall
  overall="\"Overall Health\"$is(\\{[^{}]*\"value\"$is)?\"([A-Za-z ]{1,40})\""
  if ! has dcgmi; then
    none dcgm_health 'no dcgmi on PATH'
    return
  fi
  text=$(bounded dcgmi health -g 0 -c -j 2>&1 | head -c 200000; exit "${PIPESTATUS[0]}") || code=$?
  if ((code == 124 || code == 137)); then
    none dcgm_health 'dcgmi health did not answer in time'
  elif [[ $text =~ $overall && (${BASH_REMATCH[2]} == Warning || ${BASH_REMATCH[2]} == Failure) ]]; then
    fact dcgm_health "${BASH_REMATCH[2]}"
  elif ((code == 0)) && [[ $text =~ $overall && ${BASH_REMATCH[2]} == Healthy ]]; then
    fact dcgm_health Healthy
  elif [[ $text == *'watches not enabled'* ]]; then
    none dcgm_health 'DCGM watches no GPU: `dcgmi health -g 0 -s a` turns it on'
  else
    none dcgm_health "dcgmi health ended with $code: ${text%%$'\n'*}"
  fi
}

# What local drives report of themselves by SMART; mostly only root may ask them.
# usage: smart CONTROLLERS DEVICES
smart() {
  local drive name warning errors why='' asked=0
  local -a all=("$1"/nvme[0-9]*/) critical=() media=()
  for drive in ${all[@]+"${all[@]:0:64}"}; do
    drive=${drive%/} name=${drive##*/}
    # Volumes of the network have no cells of their own.
    if first "$drive/model" && [[ $text == *'Elastic Block Store'* ]]; then continue; fi
    asked=1
    if smart_of "$2/$name"; then
      if [[ $warning != 0 ]]; then critical+=("$name critical warning $warning"); fi
      if [[ $errors != 0 ]]; then media+=("$name media errors $errors"); fi
    else
      why=${why:-$name: $text}
      # Further ones would keep the node waiting.
      if [[ $text == *'in time' ]]; then break; fi
    fi
  done
  if ((asked == 0)); then why="no local drive in $1"; fi
  smart_list nvme_critical "$why" ${critical[@]+"${critical[@]}"}
  smart_list nvme_media_errors "$why" ${media[@]+"${media[@]}"}
}

# What some drives report is enough against a node, and not enough for it.
# usage: smart_list KEY WHY_NOT DRIVE...
smart_list() {
  local key=$1 why=$2 row
  shift 2
  if [[ -n $why ]] && (($# == 0)); then
    none "$key" "$why"
    return
  fi
  list "$key"
  for row; do item "$key" "$row"; done
}

# Sets $warning and $errors, or $text to why they are not known.
smart_of() {
  local code=0 number='[[:space:]]*:[[:space:]]*"?([0-9]{1,39})[[:space:]",}]'
  if has nvme; then
    text=$(bounded nvme smart-log -o json "$1" 2>&1 | head -c 100000; exit "${PIPESTATUS[0]}") || code=$?
  elif has smartctl; then
    text=$(bounded smartctl -j -H -A "$1" 2>&1 | head -c 100000; exit "${PIPESTATUS[0]}") || code=$?
  else
    text='no nvme and no smartctl on PATH'
    return 1
  fi
  # Each bit of smartctl's exit code is something that it found; what it printed counts.
  if [[ $text =~ \"critical_warning\"$number ]]; then
    warning=${BASH_REMATCH[1]}
    if [[ $text =~ \"media_errors\"$number ]]; then
      errors=${BASH_REMATCH[1]}
      return 0
    fi
  fi
  if ((code == 124 || code == 137)); then
    text='SMART did not answer in time'
  elif [[ $text =~ \"string\"[[:space:]]*:[[:space:]]*\"([^\"]*)\" ]]; then
    text=${BASH_REMATCH[1]}
  else
    text="ended with $code: ${text%%$'\n'*}"
  fi
  return 1
}
