mark=$1 path=$2 size=$3 sum=$4 above=$5 own=$6
put() {
  umask 077
  folder=${path%/*}
  mkdir -p -- "${folder:-/}" || return 1
  if [ "$(readlink -f -- "$above")/$own" != "$(readlink -f -- "${folder:-/}")/${path##*/}" ]; then
    echo 'a symbolic link stands in its path' >&2
    return 1
  fi
  part=$path.part
  rm -f -- "$part" || return 1
  (set -C && head -c "$size" > "$part") || return 1
  got=$(sha256sum < "$part") || return 1
  if [ "${got%% *}" != "$sum" ]; then
    rm -f -- "$part"
    return 9
  fi
  mv -fT -- "$part" "$path"
}
printf '\001harness begins %s\n' "$mark"
put
printf '\001harness ends %s %d\n' "$mark" "$?"
exit 0
