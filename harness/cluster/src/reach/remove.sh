# Removes files of a job's folder. Whoever can write there may put links to other folders in its place: nothing is removed but in a
# folder of the user's own that lies where it should.
# usage: sh remove.sh FOLDER ABOVE OWN NAME...   FOLDER is ABOVE/OWN; an administrator's links may stand in ABOVE alone
folder=$1 above=$2 own=$3
shift 3
fail() {
  echo "$1" >&2
  exit 1
}
# What the kernel says of where we are counts: a name may have become a link since it was looked at.
enter() {
  cd "$1" || exit 1
  [ "$(readlink /proc/self/cwd)" = "$2" ] || fail "a symbolic link stands in the path \`$2\`"
  [ -O . ] || fail "\`$2\` belongs to another user"
}
drop() {
  if [ -L "./$1" ]; then fail "\`$1\` is a symbolic link"; fi
  [ -e "./$1" ] || return 0
  [ -f "./$1" ] || fail "\`$1\` is not a regular file, but a folder, a pipe or a device"
  rm -f -- "./$1"
}
[ -e "$folder" ] || [ -L "$folder" ] || exit 0
cd "$above" || exit 1
there=$(readlink /proc/self/cwd)
there=${there%/}/$own
enter "$folder" "$there"
up=. names=$own
while :; do
  case $names in
    */*) names=${names#*/} up=$up/.. ;;
    *) break ;;
  esac
  [ -O "$up" ] || fail "a folder above \`$there\` belongs to another user"
done
failed=0
for name; do
  case $name in
    */*/*) (fail "\`$name\` is not a name") || failed=1 ;;
    */*)
      within=${name%%/*}
      if [ -e "./$within" ] || [ -L "./$within" ]; then
        (enter "./$within" "$there/$within" && drop "${name#*/}") || failed=1
      fi
      ;;
    *) (drop "$name") || failed=1 ;;
  esac
done
exit "$failed"
