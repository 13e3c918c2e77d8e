# Whether a file that a job left may be read, by the rule of `left_file.rs`: no link in what is the run's own of its path, a
# regular file with one name, it and the run's folders of the user or root. Says why not, and ends with 1; sets $size.
# usage: check_left_file PATH ABOVE OWN   PATH is ABOVE/OWN; an administrator's links may stand in ABOVE alone
refuse() {
  echo "$1" >&2
  return 1
}
check_left_file() {
  if [ -L "$1" ]; then refuse 'it is a symbolic link'; return; fi
  if ! [ -f "$1" ]; then refuse 'it is not a regular file, but a folder, a pipe or a device'; return; fi
  above=$(readlink -f -- "$2") || return 1
  if [ "${above%/}/$3" != "$(readlink -f -- "$1")" ]; then refuse 'a symbolic link stands in its path'; return; fi
  user=$(id -u) && facts=$(stat -c '%h %u %s' -- "$1") || return 1
  links=${facts%% *} size=${facts##* }
  owner=${facts#* } && owner=${owner% *}
  if [ "$owner" != 0 ] && [ "$owner" != "$user" ]; then refuse "it belongs to user $owner, not to $user"; return; fi
  if [ "$links" != 1 ]; then refuse "it has $links hard links, so it may be a file from elsewhere"; return; fi
  folder=${1%/*} names=$3
  while [ "$names" != "${names%/*}" ]; do
    owner=$(stat -c %u -- "$folder") || return 1
    if [ "$owner" != 0 ] && [ "$owner" != "$user" ]; then refuse "the folder \`$folder\` belongs to user $owner"; return; fi
    folder=${folder%/*} names=${names%/*}
  done
}
