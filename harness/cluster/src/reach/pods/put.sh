mark=$1 path=$2 size=$3 sum=$4 above=$5 own=$6
put() {
  umask 077
  folder=${path%/*}
  mkdir -p -- "${folder:-/}" || return 1
  if [ "$(readlink -f -- "$above")/$own" != "$(readlink -f -- "${folder:-/}")/${path##*/}" ]; then
    echo 'a symbolic link stands in its path' >&2
    return 1
  fi
  # A shell whose stream broke may live for long. It must not end what a later one writes, and leaves nothing.
  part=$path.$mark.part
  for old in "$path".*.part; do
    word=${old#"$path".}
    word=${word%.part}
    case $word in
      *[!0-9a-f]*) ;;
      *) [ "${#word}" -ne "${#mark}" ] || rm -f -- "$old" || return 1 ;;
    esac
  done
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
