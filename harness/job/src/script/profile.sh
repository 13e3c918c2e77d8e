#!/bin/bash
# Runs the command of one rank: under nsys where the rank is among those to be profiled, bare where it is not.
# usage: bash profile.sh NSYS VERSION TASKS RANKS NODE_RANKS NAME EXPORT TABLES [WINDOW] SWITCH... -- NODE_SWITCH... -- COMMAND...
#   NSYS        the program, or `find`: the newest in the vendor's folders, else on the folder that all nodes see, else
#               CUDA's, else the one on PATH
#   VERSION     the release that the switches are written for; an older nsys is not used
#   TASKS       ranks of the whole job
#   RANKS       which are profiled: none, all, local:0, every:N, or a list 0,8
#   NODE_RANKS  which of those sample what belongs to the node as a whole, in the same words
#   NAME        what reports are called; step, restart, rank and node are put behind it
#   EXPORT      parquetdir, arrow or sqlite, by comma: the first that nsys takes;  TABLES  which tables, by comma; `all` for all
#   WINDOW      what opens and closes the collection, where neither nsys nor the command does: hook:FIRST..LAST, by the python
#               module beside this script; or watch:FIRST..LAST:FROM:LINE, by the command's output, where the first group of
#               the expression LINE is the number of the step that has ended, and FROM the number of the first
# A profiled rank leaves profile.rankN.txt, its account: one fact a line, the last line is `end`.
# exit: the command's own; nothing that goes wrong with the profiler changes it.
set -u
LC_ALL=C

main() {
  nsys=$1 version=$2 tasks=$3 ranks=$4 node_ranks=$5 name=$6 export=$7 tables=$8
  shift 8
  window=''
  if [[ $# -gt 0 && ($1 == hook:* || $1 == watch:*) ]]; then window=$1 && shift; fi
  local -a switches=() node_switches=()
  while [[ $# -gt 0 && $1 != -- ]]; do switches+=("$1") && shift; done
  shift
  while [[ $# -gt 0 && $1 != -- ]]; do node_switches+=("$1") && shift; done
  shift
  if (($# == 0)); then
    echo 'profile.sh: no command to run' >&2
    exit 2
  fi
  if ! find_rank; then
    echo "profile.sh: rank unknown: not set by torchrun, mpirun or srun; running without nsys" >&2
    exec "$@"
  fi
  among "$ranks" || exec "$@"
  node=${HARNESS_NODE:-${SLURMD_NODENAME:-${HOSTNAME:-$(uname -n)}}}
  account=profile.rank$rank.txt
  : > "$account"
  say profile 1
  say rank "$rank" "$local"
  say node "$node"
  if [[ $nsys == find ]]; then nsys=$(find_nsys); fi
  if ! command -v "$nsys" > /dev/null; then
    say bare nsys-missing "${nsys:-nsys}"
    run_bare "$@"
  fi
  [[ $("$nsys" --version 2> /dev/null) =~ [0-9]{4}(\.[0-9]+)+ ]]
  local found=${BASH_REMATCH[0]:-0}
  say nsys "$found"
  if older "$found" "$version"; then
    say bare nsys-old "$found is older than $version"
    run_bare "$@"
  fi
  # Whoever is first on a node samples what belongs to it, should ranks lie on the nodes otherwise than planned.
  if ((${#node_switches[@]} > 0)) && among "$node_ranks" && mkdir "profile.node.$node" 2> /dev/null; then
    switches+=("${node_switches[@]}")
    say node-sampling yes
  fi
  # Slurm and torchrun leave these unset as often as not, and an unset name in nsys's own pattern is an empty one.
  local step=${SLURM_STEP_ID:-0} restart=${SLURM_RESTART_COUNT:-${TORCHELASTIC_RESTART_COUNT:-0}}
  local report=$name.step$step.try$restart.rank$rank.$node
  report=${report//[^A-Za-z0-9._-]/_}
  say report "$report"
  local begin status
  mark=$PWD/window.rank$rank.json
  rm -f "$mark" "$mark.lead"
  hundredths
  begin=$cs
  case $window in
    hook:*)
      hook "${window#hook:}"
      "$nsys" profile ${switches[@]+"${switches[@]}"} "--output=$report" "$@"
      status=$?
      ;;
    watch:*)
      watched "$report" "$@"
      status=$?
      ;;
    *)
      "$nsys" profile ${switches[@]+"${switches[@]}"} "--output=$report" "$@"
      status=$?
      ;;
  esac
  hundredths
  say seconds "$(((cs - begin) / 100)).$((((cs - begin) % 100) / 10))$(((cs - begin) % 10))"
  say exit "$status"
  if [[ -s $mark ]]; then say window "$(tr -d '\n' < "$mark")"; fi
  recover "$report"
  if [[ -e $report.nsys-rep ]]; then
    say_file report-file "$report.nsys-rep"
    export_report "$report"
  else
    say missing "nsys left no $report.nsys-rep"
  fi
  say end
  exit "$status"
}

# Every python below imports the module beside this script, and the lowest rank of this session opens the window in it: it
# has to know which variables of ranks were there before.
hook() {
  local name known=''
  for name in LOCAL_RANK OMPI_COMM_WORLD_LOCAL_RANK MPI_LOCALRANKID PALS_LOCAL_RANKID SLURM_LOCALID; do
    if [[ -n ${!name+set} ]]; then known+="$name "; fi
  done
  export HARNESS_WINDOW=$1 HARNESS_WINDOW_MARK=$mark HARNESS_WINDOW_KNOWN=$known
  export PYTHONPATH=$PWD${PYTHONPATH:+:$PYTHONPATH}
}

# Runs the command in a session that collects nothing yet, and looks at all that it prints. A copy of that lies in a file:
# whatever becomes of the watcher, the command can go on writing.
watched() {
  local report=$1 word watcher status
  shift
  local session=h$rank.$$ log=$mark.log
  local -a launch=() start=()
  for word in ${switches[@]+"${switches[@]}"}; do
    # What is said to a session when it is made, and what when it begins to collect.
    case ${word%%=*} in
      --sample | --force-overwrite | --enable | --gpu-metrics-* | --nic-metrics | --cpuctxsw | --gpuctxsw | --stop-on-exit)
        start+=("$word")
        ;;
      *) launch+=("$word") ;;
    esac
  done
  rm -f "$log.over"
  : > "$log"
  watch "$session" "$report" &
  watcher=$!
  # What is kept back in a buffer is seen too late.
  export PYTHONUNBUFFERED=1
  "$nsys" launch "--session-new=$session" ${launch[@]+"${launch[@]}"} "$@" > >(exec tee -a "$log") 2> >(exec tee -a "$log" >&2)
  status=$?
  : > "$log.over"
  wait "$watcher"
  rm -f "$log" "$log.over"
  return "$status"
}

# Follows the log, starts the collection behind the step before the first, and stops it behind the last. Most programs
# print their steps on one rank: a rank that sees steps reports the two that matter and its last one, in a
# file beside the script, and who sees none looks there.
watch() {
  local session=$1 report=$2 over='' rest='' part='' tries
  local steps_file=$PWD/window.steps.step$step.try$restart
  opened=null closed=null error=null seen=-1 printed=-1
  : >> "$steps_file"
  local asked=${window#watch:}
  local steps=${asked%%:*}
  asked=${asked#*:}
  first=${steps%%..*} last=${steps##*..} from=${asked%%:*} line=${asked#*:}
  exec < "$log"
  if ((first == 0)); then open_window; fi
  while :; do
    # Asked before the rest is read: what is printed was printed by then.
    if [[ -e $log.over ]]; then over=yes; fi
    while IFS= read -r part; do
      look_at "$rest$part"
      rest=''
    done
    # A bar of progress ends no line; an incomplete number is a smaller one.
    rest+=$part
    look_at "$rest"
    rest=${rest##*$'\r'}
    if ((printed < 0)); then hear; fi
    if [[ -n $over ]]; then break; fi
    if [[ $closed == null ]]; then sleep 0.1; else sleep 1; fi
  done
  if ((printed >= 0)); then echo "$printed" >> "$steps_file"; fi
  # Others end a moment later, and report then.
  for ((tries = 0; tries < 30 && seen < 0; tries++)); do
    sleep 0.1
    hear
  done
  printf '{"way":"watch","opened":%s,"closed":%s,"steps":%s,"error":%s}\n' \
    "$opened" "$closed" "$((seen + 1))" "$error" > "$mark"
}

# A line, or several that a bar of progress wrote over each other.
look_at() {
  local text=$1 piece number
  while [[ -n $text ]]; do
    piece=${text%%$'\r'*}
    if [[ $text == *$'\r'* ]]; then text=${text#*$'\r'}; else text=''; fi
    [[ $piece =~ $line ]] || continue
    number=${BASH_REMATCH[1]:-}
    [[ $number =~ ^[0-9]{1,15}$ ]] || continue
    number=$((10#$number - from))
    if ((number <= printed)); then continue; fi
    if ((printed < first - 1 && number >= first - 1 || printed < last && number >= last)); then
      echo "$number" >> "$steps_file"
    fi
    printed=$number
    step_ended "$number"
  done
}

# What others saw. The file is reopened each time: a folder on the network shows no more otherwise.
hear() {
  local number
  while read -r number; do
    if [[ $number =~ ^[0-9]{1,15}$ ]]; then step_ended "$number"; fi
  done < "$steps_file"
}

step_ended() {
  if (($1 <= seen)); then return; fi
  seen=$1
  # There is no session any more.
  if [[ -n $over ]]; then return; fi
  if [[ $opened == null && $error == null ]] && ((seen >= first - 1 && seen < last)); then open_window; fi
  if [[ $opened != null && $closed == null ]] && ((seen >= last)); then close_window; fi
}

open_window() {
  local tries
  # A session may not be there yet when its command begins to print.
  for ((tries = 0; tries < 50; tries++)); do
    if "$nsys" start "--session=$session" "--output=$report" ${start[@]+"${start[@]}"} >&2; then
      opened=$((seen + 1))
      return
    fi
    if [[ -e $log.over ]]; then break; fi
    sleep 0.2
  done
  error='"nsys start failed"'
}

close_window() {
  if "$nsys" stop "--session=$session" >&2; then
    closed=$seen
  else
    error='"nsys stop failed"'
  fi
}

say() { printf '%s\n' "$*" >> "$account"; }

# One file of this rank: its bytes, its digest, its name.
say_file() {
  local bytes digest
  bytes=$(wc -c < "$2")
  digest=$(sha256sum < "$2")
  say "$1" "$((bytes))" "${digest%% *}" "$2"
}

run_bare() {
  "$@"
  local status=$?
  say exit "$status"
  say end
  exit "$status"
}

# Sets $rank and $local. The launcher nearest to the command is asked first: torchrun and mpirun under srun see
# srun's variables too, and there they number nodes.
find_rank() {
  rank='' local=''
  if [[ -n ${TORCHELASTIC_RUN_ID:-} ]]; then
    rank=${RANK:-} local=${LOCAL_RANK:-}
  elif [[ -n ${OMPI_COMM_WORLD_RANK:-} ]]; then
    rank=$OMPI_COMM_WORLD_RANK local=${OMPI_COMM_WORLD_LOCAL_RANK:-}
  elif [[ -n ${PMI_RANK:-} && -n ${MPI_LOCALRANKID:-} ]]; then
    rank=$PMI_RANK local=$MPI_LOCALRANKID
  elif [[ -n ${SLURM_PROCID:-} ]]; then
    rank=$SLURM_PROCID local=${SLURM_LOCALID:-}
  elif [[ -n ${RANK:-} ]]; then
    rank=$RANK local=${LOCAL_RANK:-}
  fi
  if [[ -z $rank && $tasks == 1 ]]; then rank=0 local=0; fi
  [[ $rank =~ ^[0-9]+$ && $local =~ ^[0-9]+$ ]]
}

among() {
  case $1 in
    none) return 1 ;;
    all) return 0 ;;
    local:*) ((local == ${1#local:})) ;;
    every:*) ((rank % ${1#every:} == 0)) ;;
    *) [[ ,$1, == *",$rank,"* ]] ;;
  esac
}

# Whether the version $1 comes before $2, by number.
older() {
  local -a one two
  local part
  IFS=. read -r -a one <<< "$1"
  IFS=. read -r -a two <<< "$2"
  for part in 0 1 2; do
    if ((10#${one[part]:-0} != 10#${two[part]:-0})); then
      ((10#${one[part]:-0} < 10#${two[part]:-0}))
      return
    fi
  done
  return 1
}

find_nsys() {
  local path best='' best_version=0 folder=$PWD
  newest_below "${NSYS_VENDOR_FOLDER:-/opt/nvidia}"
  # The job's folder lies on one that all nodes see, and so may an nsys.
  while [[ -z $best && -n $folder ]]; do
    newest_below "$folder"
    folder=${folder%/*}
  done
  if [[ -z $best ]]; then
    for path in /usr/local/cuda/bin/nsys /usr/local/cuda-*/bin/nsys; do
      if [[ -x $path ]] && path=$(trusted "$path"); then best=$path && break; fi
    done
  fi
  printf '%s\n' "${best:-nsys}"
}

# The newest by number into $best, as the vendor's packages and `harness provision` lay them down; only one that no other
# user can have put there.
newest_below() {
  local path found
  for path in "$1"/nsight-systems*/*/bin/nsys "$1"/nsight-systems*/*/target-linux-*/nsys; do
    [[ -x $path && $path =~ /([0-9]{4}(\.[0-9]+)+)/ ]] || continue
    found=${BASH_REMATCH[1]}
    older "$best_version" "$found" || continue
    path=$(trusted "$path") || continue
    best=$path best_version=$found
  done
}

# Prints the path of a program without links above it, if the program and all folders above it, and above what it links
# to, belong to root or the user, and neither their group nor others may write to them. The sticky bit is not enough: it
# lets everybody add a folder. A link of the program itself stays: some programs act by their names.
trusted() {
  local path real at facts owner mode who
  path=$(readlink -f -- "${1%/*}")/${1##*/} && real=$(readlink -f -- "$1") || return 1
  local -a chain=(/)
  for at in "${path%/*}" "$real"; do
    while [[ -n $at ]]; do
      chain+=("$at")
      at=${at%/*}
    done
  done
  facts=$(stat -c '%u %a %n' -- "${chain[@]}") || return 1
  while read -r owner mode who; do
    if [[ $owner != 0 && $owner != "$EUID" ]]; then
      echo "profile.sh: not using $real: $who belongs to user $owner" >&2
      return 1
    elif ((8#$mode & 8#22)); then
      echo "profile.sh: not using $real: $who is writable by its group or by others" >&2
      return 1
    fi
  done <<< "$facts"
  printf '%s\n' "$path"
}

# Uptime in hundredths of a second: it passes evenly, whatever is done to the wall clock.
hundredths() {
  local uptime
  read -r uptime _ < /proc/uptime
  cs=$((10#${uptime/./}))
}

# A collection that was cut off leaves what it had in a form of its own; the importer beside nsys makes a report of it.
recover() {
  [[ ! -e $1.nsys-rep && -e $1.qdstrm ]] || return 0
  local program folder importer
  program=$(readlink -f "$(command -v "$nsys")")
  folder=${program%/*}
  for importer in "$folder"/../host-linux-*/QdstrmImporter "$folder"/QdstrmImporter; do
    [[ -x $importer ]] || continue
    if ! importer=$(trusted "$importer"); then
      say unrecovered "$1.qdstrm: the importer beside nsys is not trusted"
      return
    fi
    if "$importer" --input-file "$1.qdstrm" >&2 && [[ -e $1.nsys-rep ]]; then
      say recovered "$1.qdstrm"
      return
    fi
    say unrecovered "$1.qdstrm: the importer beside nsys failed"
    return
  done
  say unrecovered "$1.qdstrm: no importer beside nsys"
}

export_report() {
  local output file form status
  # No recipe reads its tables.
  if [[ $export == none ]]; then
    say export none 0
    return
  fi
  for form in ${export//,/ }; do
    local -a words=(export "--type=$form" --lazy=true --force-overwrite=false)
    if [[ $tables != all ]]; then words+=("--tables=$tables"); fi
    case $form in
      parquetdir) output=$1_pqtdir ;;
      arrow) output=$1.arrows ;;
      *) output=$1.sqlite ;;
    esac
    status=0
    "$nsys" "${words[@]}" "--output=$output" "$1.nsys-rep" >&2 || status=$?
    if [[ $status == 0 && -e $output ]]; then break; fi
  done
  say export "$form" "$status"
  if [[ -d $output ]]; then
    for file in "$output"/*; do
      if [[ -f $file ]]; then say_file table "$file"; fi
    done
  elif [[ -e $output ]]; then
    say_file table "$output"
  fi
}

# Read completely before anything runs, so that a changed file cannot change a run.
main "$@"
