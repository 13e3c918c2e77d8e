# What NVSwitches report of themselves, and DCGM of the GPUs that it watches, as facts of probe.sh.

# usage: devices
devices() {
  nvswitches /proc/driver/nvidia-nvswitch/devices
  dcgm_health
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
