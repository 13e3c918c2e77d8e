# What `nvidia-smi -q` reports of the health and the settings of GPUs, as facts of probe.sh.

# usage: gpu_health; sets facts from one call, since each takes a second.
gpu_health() {
  local text code=0
  if ! has nvidia-smi; then
    none_of_health 'no nvidia-smi on PATH'
    return
  fi
  text=$(bounded nvidia-smi -q 2>&1 | head -c 4000000; exit "${PIPESTATUS[0]}") || code=$?
  # Without persistence mode each GPU takes seconds, which is no fault of any.
  if ((code == 124 || code == 137)); then
    none_of_health 'nvidia-smi -q did not answer in time'
    none gpu_errors 'nvidia-smi -q did not answer in time'
  elif ((code != 0)); then
    none_of_health "nvidia-smi -q failed: ${text##*$'\n'}"
    list gpu_errors
    item gpu_errors "nvidia-smi -q: ${text##*$'\n'}"
  else
    read_health <<< "$text"
  fi
}

none_of_health() {
  local key
  for key in gpu_persistence gpu_fabric gpu_power_limits gpu_power_reduced gpu_app_clocks sram_errors rows_pending \
    rows_remapped rows_spent ecc_corrected pcie_replays; do
    none "$key" "$1"
  done
}

# Adds a word to a list that parts its words by `|`, once.
# usage: once VARIABLE WORD
once() {
  [[ ${!1} == *"|$2|"* ]] || printf -v "$1" '%s%s|' "${!1}" "$2"
}

# One value of all GPUs, or the values; a GPU without one where others have one differs from them.
# usage: alike KEY WORDS
alike() {
  local words=${2#|}
  words=${words%|}
  if [[ -n $words && $words != 'not reported' ]]; then
    fact "$1" "${words//|/ and }"
  else
    none "$1" 'nvidia-smi -q does not report it'
  fi
}

# usage: rows KEY KNOWN ROW...; `none` where no GPU reports what they are about.
rows() {
  local key=$1 known=$2 row
  shift 2
  if ((known == 0)); then none "$key" 'nvidia-smi -q does not report it'; return; fi
  list "$key"
  for row; do item "$key" "$row"; done
}

# What the GPU that ends here reports of the settings that all should have alike.
end_of_gpu() {
  ((gpu >= 0)) || return 0
  if [[ -n $state$status ]]; then fabric_of="${state:-N/A}, ${status:-N/A}"; fi
  once persistence "${persistence_of:-not reported}"
  once fabric "${fabric_of:-not reported}"
  once limits "${limit_of:-not reported}"
  once clocks "${clocks_of:-not reported}"
  persistence_of='' fabric_of='' limit_of='' clocks_of='' state='' status='' now='' graphics=''
}

is_number() { [[ $1 =~ ^[0-9]{1,18}$ ]]; }

read_health() {
  local row depth key value gpu=-1 top='' sub='' minutes=0 most_corrected='' most_remapped='' corrected=0 remapped=0
  local persistence='|' fabric='|' limits='|' clocks='|' state='' status='' now='' usual='' graphics=''
  local persistence_of='' fabric_of='' limit_of='' clocks_of=''
  local sram_known=0 pending_known=0 spent_known=0 replays_known=0 power_known=0
  local -a errors=() sram=() pending=() spent=() replays=() reduced=()
  if first /proc/uptime; then minutes=$((${text%%.*} / 60 + 1)); fi
  while IFS= read -r row; do
    if [[ $row =~ ^GPU\ [0-9A-Fa-f]+: ]]; then
      end_of_gpu
      gpu=$((gpu + 1)) top='' sub=''
      corrected=0 remapped=0
      if ((gpu >= 64)); then gpu=-1; break; fi
      continue
    fi
    case $row in
      *'WARNING: infoROM is corrupted'*) errors+=("${row#"${row%%[! ]*}"}"); continue ;;
    esac
    ((gpu >= 0)) || continue
    depth=${row%%[! ]*}
    depth=${#depth}
    if [[ ! $row =~ ^\ *([^:]*[^:\ ])\ *:\ (.*)$ ]]; then
      row=${row#"${row%%[! ]*}"}
      if ((depth <= 4)); then top=${row%% } sub=''; elif ((depth <= 8)); then sub=${row%% }; fi
      continue
    fi
    key=${BASH_REMATCH[1]} value=${BASH_REMATCH[2]%% }
    if ((depth <= 8)); then sub=''; fi
    if ((depth <= 4)); then top=''; fi
    case $value in
      *ERR!* | *'Unknown Error'* | *'GPU is lost'* | *'requires reset'*) errors+=("gpu$gpu $key: $value"); continue ;;
      N/A | '' | '['*) continue ;;
    esac
    case $top/$sub/$key in
      '//Persistence Mode') persistence_of=$value ;;
      # A GPU that waits for its fabric has no status.
      'Fabric//State') state=$value ;;
      'Fabric//Status') status=$value ;;
      'Fabric/Health/Summary')
        if [[ $value != Healthy && $value != 'Not Supported' ]]; then errors+=("gpu$gpu Fabric Health: $value"); fi ;;
      # Older drivers have no summary of these.
      'Fabric/Health/Bandwidth')
        if [[ $value == Degraded ]]; then errors+=("gpu$gpu Fabric Bandwidth: $value"); fi ;;
      Fabric/Health/'Route '* | 'Fabric/Health/Access Timeout Recovery')
        if [[ $value == True ]]; then errors+=("gpu$gpu Fabric $key: $value"); fi ;;
      'GPU Reset Status//Reset Required' | 'GPU Reset Status//Drain and Reset Recommended' | 'ECC Errors//Unrepairable Memory')
        if [[ $value == Yes ]]; then errors+=("gpu$gpu $key: $value"); fi ;;
      # From driver 565 on, in place of `Reset Required`: `Reset`, `Reboot`, `Drain P2P`, `Drain and Reset`.
      '//GPU Recovery Action')
        if [[ $value != None && $value != 'Requested functionality'* ]]; then errors+=("gpu$gpu $key: $value"); fi ;;
      'ECC Errors//Channel Repair Pending' | 'ECC Errors//TPC Repair Pending')
        pending_known=1
        if [[ $value == Yes ]]; then pending+=("gpu$gpu $key"); fi ;;
      'PCI//Replays Since Reset')
        if is_number "$value"; then
          replays_known=1
          # NVIDIA's DCGM takes more than 8 a minute for a fault.
          if ((minutes > 0 && value > 8 * minutes)); then replays+=("gpu$gpu $value replays in $minutes minutes"); fi
        fi ;;
      'PCI//Replay Number Rollovers')
        if is_number "$value" && ((value > 0)); then replays+=("gpu$gpu $value rollovers"); fi ;;
      'ECC Errors/Aggregate/SRAM Uncorrectable'*)
        if is_number "$value"; then
          sram_known=1
          if ((value > 0)); then sram+=("gpu$gpu ${key#SRAM }: $value"); fi
        fi ;;
      'ECC Errors/Aggregate/SRAM Threshold Exceeded')
        if [[ $value == Yes ]]; then sram+=("gpu$gpu Threshold Exceeded"); fi ;;
      'ECC Errors/Aggregate/SRAM Correctable' | 'ECC Errors/Aggregate/DRAM Correctable')
        if is_number "$value"; then
          corrected=$((corrected + value))
          if ((corrected > ${most_corrected:--1})); then most_corrected=$corrected; fi
        fi ;;
      'Retired Pages//Double Bit ECC' | 'Remapped Rows//Uncorrectable Error')
        if is_number "$value"; then
          remapped=$((remapped + value))
          if ((remapped > ${most_remapped:--1})); then most_remapped=$remapped; fi
        fi ;;
      'Retired Pages//Pending Page Blacklist' | 'Remapped Rows//Pending' | 'Remapped Rows//Remapping Failure Occurred')
        pending_known=1
        if [[ $value == Yes ]]; then pending+=("gpu$gpu $key"); fi ;;
      'Remapped Rows/Bank Remap Availability Histogram/Low' | 'Remapped Rows/Bank Remap Availability Histogram/None')
        if is_number "${value%% *}"; then
          spent_known=1
          if ((${value%% *} > 0)); then spent+=("gpu$gpu ${value%% *} banks: $key"); fi
        fi ;;
      # Until driver 525 it is called so.
      'GPU Power Readings//Current Power Limit' | 'Power Readings//Current Power Limit' | 'Power Readings//Power Limit')
        now=$value ;;
      'GPU Power Readings//Default Power Limit' | 'Power Readings//Default Power Limit')
        if [[ -n $now ]]; then
          power_known=1 usual=$value limit_of=$now
          if [[ ${now%% *} =~ ^[0-9.]{1,9}$ && ${usual%% *} =~ ^[0-9.]{1,9}$ ]] \
            && ((10#${now%%[. ]*} < 10#${usual%%[. ]*})); then
            reduced+=("gpu$gpu $now of $usual")
          fi
        fi ;;
      'Applications Clocks//Graphics') graphics=${value%% *} ;;
      # Newer drivers write here that they have none.
      'Applications Clocks//Memory')
        if is_number "$graphics" && is_number "${value%% *}"; then clocks_of="$graphics/${value%% *}"; fi ;;
    esac
  done
  end_of_gpu
  rows gpu_errors 1 ${errors[@]+"${errors[@]:0:64}"}
  alike gpu_persistence "$persistence"
  alike gpu_fabric "$fabric"
  alike gpu_power_limits "$limits"
  alike gpu_app_clocks "$clocks"
  rows gpu_power_reduced "$power_known" ${reduced[@]+"${reduced[@]}"}
  rows sram_errors "$sram_known" ${sram[@]+"${sram[@]}"}
  rows rows_pending "$pending_known" ${pending[@]+"${pending[@]}"}
  rows rows_spent "$spent_known" ${spent[@]+"${spent[@]}"}
  rows pcie_replays "$replays_known" ${replays[@]+"${replays[@]}"}
  if [[ -n $most_remapped ]]; then fact rows_remapped "$most_remapped"; else none rows_remapped 'nvidia-smi -q does not report it'; fi
  if [[ -n $most_corrected ]]; then fact ecc_corrected "$most_corrected"; else none ecc_corrected 'nvidia-smi -q does not report it'; fi
}

# How many NVLinks run at which speed.
nvlinks() {
  local text row rate gpu='' seen='|'
  local -A count=() linkless=()
  local -a links=()
  if ! has nvidia-smi || ! text=$(bounded nvidia-smi nvlink -s 2> /dev/null | head -c 1000000); then
    none nvlinks 'nvidia-smi reports no NVLinks'
    return
  fi
  while IFS= read -r row; do
    if [[ $row =~ ^GPU\ ([0-9]+): ]]; then gpu=${BASH_REMATCH[1]}; fi
    if [[ -n $gpu && $row == *'ll links are in'* && ${#linkless[@]} -lt 64 ]]; then linkless[$gpu]=1; fi
    [[ $row =~ ^[[:space:]]*Link\ [0-9]+:\ (.+)$ ]] || continue
    rate=${BASH_REMATCH[1]%% }
    count[$rate]=$((${count[$rate]:-0} + 1))
    ((${#count[@]} > 16)) && break
  done <<< "$text"
  for rate in ${count[@]+"${!count[@]}"}; do links+=("${count[$rate]} at $rate"); done
  # Where no GPU has links, none misses any.
  if ((${#count[@]} > 0)); then
    for gpu in ${linkless[@]+"${!linkless[@]}"}; do
      links+=("gpu$gpu has none")
      item gpu_errors "gpu$gpu: all NVLinks are inactive"
    done
  fi
  some nvlinks 'nvidia-smi reports no NVLinks' ${links[@]+"${links[@]}"}
}
