mark=$1 path=$2 limit=$3 above=$4 own=$5
fail() {
  echo "$1" >&2
  return 1
}
get() {
  if [ -L "$path" ]; then fail 'it is a symbolic link'; return; fi
  [ -e "$path" ] || return 44
  if ! [ -f "$path" ]; then fail 'it is not a regular file, but a folder, a pipe or a device'; return; fi
  if [ "$(readlink -f -- "$above")/$own" != "$(readlink -f -- "$path")" ]; then
    fail 'a symbolic link stands in its path'
    return
  fi
  facts=$(stat -c '%h %s' -- "$path") || return 1
  links=${facts% *} size=${facts#* }
  if [ "$links" != 1 ]; then fail "it has $links hard links, so it may be a file from elsewhere"; return; fi
  if [ "$size" -gt "$limit" ]; then fail "it has $size bytes, the limit is $limit"; return; fi
  printf 'size %s\n' "$size"
  head -c "$size" < "$path"
  sum=$(head -c "$size" < "$path" | sha256sum)
  printf '\nsum %s\n' "${sum%% *}"
}
printf '\001harness begins %s\n' "$mark"
get
printf '\001harness ends %s %d\n' "$mark" "$?"
exit 0
