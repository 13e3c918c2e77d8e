LC_ALL=C
cd -- "$1" || exit 1
node=$2 ras=$3 dump=$4 pipe=$5 ends=$6 port=$7
taken_within=$8 written_within=$9 reported_within=${10} between=${11} most_bytes=${12} asked=${13}
if [[ $node == - ]]; then
  node=${SLURMD_NODENAME:-${HOSTNAME%%.*}}
  [[ $ras == reports ]] && ((${SLURM_NODEID:-0} >= asked)) && ras=addresses
fi
ulimit -n "$(ulimit -Hn)" 2> /dev/null
# Who closes a connection ends nothing here. What is written is new: whatever has its name is taken away first.
trap '' PIPE
set -C

addresses() {
  local line address=
  while read -r line; do
    case $line in
      *'|-- '*) address=${line##* } ;;
      */32\ host\ LOCAL) [[ $address == 127.* ]] || printf 'address %s\n' "$address" ;;
    esac
  done < /proc/net/fib_trie
}

# Whether ranks of this user listen, and no other does.
is_ours() {
  local table at state owner found= hex
  printf -v hex %04X "$port"
  for table in /proc/net/tcp /proc/net/tcp6; do
    [[ -r $table ]] || continue
    while read -r _ at _ state _ _ _ owner _; do
      [[ ${at##*:} == "$hex" && $state == 0A ]] || continue
      [[ $owner == "$EUID" ]] || return 1
      found=yes
    done < "$table"
  done
  [[ $found ]]
}

# Sends one line, and sets $answer to the line that comes back at once, or fails.
say() {
  printf '%s\n' "$1" >&"$fd" && read -r -t 3 -u "$fd" answer
}

# One report: JSON where this NCCL has it. It ends where the server closes.
report() {
  local fd answer=
  exec {fd}<> "/dev/tcp/localhost/$port" || return 1
  say 'CLIENT PROTOCOL 2' && [[ $answer == SERVER\ PROTOCOL\ * ]] || return 1
  say "TIMEOUT $((reported_within - 2))" || return 1
  if [[ $form == json ]]; then
    say 'SET FORMAT json' || return 1
    if [[ $answer != OK* ]]; then
      exec {fd}>&-
      form=text
      report
      return
    fi
  fi
  printf 'VERBOSE STATUS\n' >&"$fd"
  timeout "$reported_within" head -c "$most_bytes" <&"$fd"
  exec {fd}>&-
  echo
}

# Replaces a file of the job's folder by what comes in.
put() {
  rm -f -- "$1.part"
  cat > "$1.part" && mv -fT -- "$1.part" "$1"
}

ask_ras() {
  local form=json
  addresses | put "ras.$node.txt"
  [[ $ras == reports ]] && is_ours || return
  { addresses; report && sleep "$between" && report; } | put "ras.$node.txt"
}

if [[ $ras != off ]]; then ask_ras 2> /dev/null & fi

open=() taken=()
for path in "$pipe"*"$ends"; do
  rank=${path#"$pipe"} rank=${rank%"$ends"}
  [[ $rank =~ ^(0|[1-9][0-9]{0,6})$ && -p $path && ! -L $path ]] || continue
  exec {fd}<> "$path" || continue
  printf 1 >&"$fd" && open[rank]=$fd
done 2> /dev/null
SECONDS=0
while ((${#open[@]} > 0 && SECONDS < taken_within)); do
  sleep 0.2
  for rank in "${!open[@]}"; do
    read -r -t 0 -u "${open[rank]}" && continue
    fd=${open[rank]}
    exec {fd}>&-
    unset "open[rank]"
    taken+=("$rank")
  done
done
before= SECONDS=0
while :; do
  lines= missing=
  for rank in "${taken[@]}"; do
    bytes=$(stat -c %s -- "$dump$rank" 2> /dev/null)
    [[ ${bytes:-0} == 0 ]] && missing=yes
    lines+="rank $rank ${bytes:-0}"$'\n'
  done
  [[ -z $missing && $lines == "$before" ]] && break
  ((SECONDS >= written_within)) && break
  before=$lines
  sleep 0.5
done
printf 'node %s\n%s' "$node" "$lines" | put "fr_request.$node.txt"
wait
