#!/bin/bash
# Puts what NCCL's Inspector left for each process of a job into one text, with the variables that it ran under.
# usage: bash inspector.sh FOLDER LIMIT
#   FOLDER  where the plugin wrote HOST-pidPID.log for each process
#   LIMIT   bytes that are taken at most; every process has the same part of them
# It only copies. A file begins behind a line `== file NAME SIZE TAKEN`; a last line `== end` proves the text complete.
set -u
# Bytes are counted, and names sort alike on every node.
LC_ALL=C
shopt -s nullglob
folder=$1
limit=$2

printf 'harness-inspector 1\n'
for name in $(compgen -e); do
  case $name in
    NCCL_INSPECTOR_*) printf '== set %s=%q\n' "$name" "${!name}" ;;
  esac
done
# Listing the folder makes a network file system look again.
ls "$folder" >/dev/null 2>&1
files=()
for file in "$folder"/*-pid*.log; do
  [[ -f $file && ! -L $file ]] && files+=("$file")
done
part=$((limit / (${#files[@]} > 0 ? ${#files[@]} : 1)))
for file in "${files[@]+"${files[@]}"}"; do
  size=$(wc -c <"$file") || continue
  size=$((size))
  name=${file##*/}
  printf '== file %s %d %d\n' "${name//[^a-zA-Z0-9._-]/_}" "$size" $((size < part ? size : part))
  head -c "$part" "$file"
  # A file that breaks off ends without a line's end: readers see an empty line behind every other.
  printf '\n'
done
printf '== end\n'
