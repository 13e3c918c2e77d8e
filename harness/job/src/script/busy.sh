#!/bin/bash
# Runs a program, and once while it runs prints which processes beside it use the processors of this node most.
# usage: bash busy.sh AFTER_S PROGRAM [ARGUMENT...]
#   AFTER_S  seconds from the start of the program to the look, which takes two more
# Up to three lines `busy: PERCENT NAME`: hundredths of one processor, of all processes of that name together. Those of the
# program's own session are left out. The program has the streams and the exit code of this script; what cannot be read
# changes nothing.
set -u
LC_ALL=C

# Sets $ticks, by process: what it has had of the processors; and $names.
look() {
  local file line rest name own=$1
  local -a field
  ticks=()
  for file in /proc/[0-9]*/stat; do
    { IFS= read -r line <"$file"; } 2>/dev/null || continue
    # A name may have blanks and parentheses in it.
    name=${line#*\(}
    name=${name%\)*}
    # A letter and numbers behind the name.
    rest=${line##*\) }
    # shellcheck disable=SC2206
    field=($rest)
    [[ ${#field[@]} -gt 19 && ${field[11]}${field[12]}${field[3]}${field[19]} =~ ^[0-9]+$ ]] || continue
    # Without a session that is visible here, its workers are known by their names.
    if ((own > 0)); then
      ((field[3] == own)) && continue
    elif [[ $name == "${program:0:15}"* ]]; then
      continue
    fi
    name=${name//[!A-Za-z0-9._\/:+-]/_}
    ticks[${file//[!0-9]/}]=$((field[11] + field[12]))
    names[${file//[!0-9]/}]=${name:-_}:${field[19]}
  done
}

uptime_cs() {
  local up
  read -r up _ 2>/dev/null </proc/uptime && up=${up/./} && [[ $up =~ ^[0-9]+$ ]] && now=$((10#$up))
}

# The program has the number of this script. One that has ended and was not waited for yet still has it.
is_running() {
  local line
  kill -0 $$ 2>/dev/null || return
  { IFS= read -r line </proc/$$/stat; } 2>/dev/null || return 0
  [[ ${line##*\) } != [ZX]* ]]
}

busiest() {
  local after=$1 own=0 line name process at now=0 begun hertz best rank
  local -a ticks=() names=() before=() born=()
  local -A had=()
  for ((at = 0; at < after; at++)); do
    sleep 1
    is_running || return
  done
  if { IFS= read -r line </proc/$$/stat; } 2>/dev/null; then
    read -r _ _ _ own _ <<<"${line##*\) }"
    [[ $own =~ ^[0-9]+$ ]] || own=0
  fi
  uptime_cs || return
  begun=$now
  look "$own"
  before=(${ticks[@]+"${!ticks[@]}"})
  born=()
  for process in ${before[@]+"${before[@]}"}; do born[process]="${ticks[process]} ${names[process]}"; done
  sleep 2
  is_running || return
  uptime_cs && ((now > begun)) || return
  look "$own"
  for process in ${ticks[@]+"${!ticks[@]}"}; do
    # A process that began in between, under the same number or a new one, has had all that it shows.
    at=0
    [[ ${born[process]-} == *" ${names[process]}" ]] && at=${born[process]%% *}
    name=${names[process]%:*}
    had[$name]=$((${had[$name]:-0} + ticks[process] - at))
  done
  hertz=$(getconf CLK_TCK 2>/dev/null)
  [[ $hertz =~ ^[1-9][0-9]*$ ]] || hertz=100
  for rank in 1 2 3; do
    best=
    for name in ${had[@]+"${!had[@]}"}; do
      if [[ -z $best ]] || ((${had[$name]} > ${had[$best]})); then best=$name; fi
    done
    [[ -n $best ]] || return
    at=$((had[$best] * 10000 / (hertz * (now - begun))))
    # Less than a twentieth of one processor is no load.
    ((at >= 5)) || return
    printf 'busy: %d %s\n' "$at" "$best"
    unset "had[$best]"
  done
}

after=$1
shift
program=${1##*/}
# No child of the program, which may wait for all that it has.
(busiest "$after" &)
exec "$@"
