#!/bin/bash
# What left a job's process group, such as by setsid, and so outlives it: by HARNESS_JOB in the environment of all that the
# job started. One that clears its environment is not found. The scripts that end jobs begin with these functions.

# Sets the caller's $words to what stands behind the process name. The name may hold anything, a parenthesis and a line
# break too: the whole file is read, to its end, which `read` takes for a failure.
stat() {
  local text=
  { IFS= read -r -d '' text < "$1"; } 2> /dev/null
  [[ -n $text ]] || return
  read -ra words <<< "${text##*) }"
}

# usage: find_strays MARK GROUP; sets $strays to the user's processes that have the mark and are of another group
# `grep` chooses, as the shell reads slowly and a node has thousands of processes; a line break in a folder's name would
# make two patterns of one, so the mark is read again.
find_strays() {
  local file words
  strays=
  for file in $(grep -lzsxF -e "HARNESS_JOB=$1" /proc/[0-9]*/environ 2> /dev/null); do
    file=${file%/environ}
    [[ -O $file ]] && has_mark "$file/environ" "$1" && stat "$file/stat" || continue
    if [[ ${words[2]} != "$2" && ${words[0]} != Z ]]; then strays+=" ${file#/proc/}"; fi
  done
}

has_mark() {
  local variable
  {
    while IFS= read -r -d '' variable; do
      [[ $variable == "HARNESS_JOB=$2" ]] && return 0
    done < "$1"
  } 2> /dev/null
  return 1
}

