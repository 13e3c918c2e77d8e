# Lets a file of hosts name each pod by its node. A line of ours for a pod that another has replaced goes: the first one of a
# name holds. The file cannot be replaced, and is only rewritten where it must be: jobs may read it.
# usage: FILE LINE...
file=$1
shift
[ -e "$file" ] || : > "$file" || exit 1
all='' stale=''
while IFS= read -r old || [ -n "$old" ]; do
  keep=1
  for line; do
    case $old in
      "$line") ;;
      *" ${line#* }") keep='' stale=1 ;;
    esac
  done
  if [ -n "$keep" ]; then
    all="$all$old
"
  fi
done < "$file"
if [ -n "$stale" ]; then
  printf %s "$all" > "$file" || exit 1
fi
for line; do
  grep -qxF -- "$line" "$file" || printf '%s\n' "$line" >> "$file" || exit 1
done
