mark=$1 path=$2 limit=$3 above=$4 own=$5
get() {
  [ -e "$path" ] || [ -L "$path" ] || return 44
  check_left_file "$path" "$above" "$own" || return 1
  if [ "$size" -gt "$limit" ]; then refuse "it has $size bytes, the limit is $limit"; return; fi
  printf 'size %s\n' "$size"
  head -c "$size" < "$path"
  sum=$(head -c "$size" < "$path" | sha256sum)
  printf '\nsum %s\n' "${sum%% *}"
}
printf '\001harness begins %s\n' "$mark"
get
printf '\001harness ends %s %d\n' "$mark" "$?"
exit 0
