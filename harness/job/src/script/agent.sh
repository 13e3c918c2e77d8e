#!/bin/bash
# Takes the mpirun of a job's first node to its other nodes where no sshd runs, as in pods: each of these listens for
# commands in the job's folder, and runs them as a part of the job there, which its supervisor ends.
# usage: bash agent.sh mpirun PROGRAM [ARGUMENT...]       runs mpirun on the first node; `find-mpirun` has it looked for
#        bash agent.sh listen                             on every other node, until that mpirun has ended
#        bash agent.sh rsh [OPTION...] HOST COMMAND...    called by mpirun and its daemons as they would call ssh
# Node and folder are those of the job. A node listens at the folder agent/NODE, which only its listener makes:
#   token           a word of this listener; a request without it is refused
#   alive.N         there as long as it listens, with another number every few seconds
#   request.ID      the token on the first line, behind it the command; complete or absent
#   running.ID      what became of a request that was taken; refused.ID, of one that was not
#   stdout.ID stderr.ID ended.ID.CODE    what the command printed, and how it ended
#   closed          mpirun has ended: whoever listens ends too
# Whatever changes is in a name: listing a folder makes a network file system ask its server, reading a known name need not.
set -u
LC_ALL=C
# ssh's own, where it could not connect or lost the connection.
LOST=255
# Where AWS's installer of EFA puts it.
AWS_MPIRUN=/opt/amazon/openmpi/bin/mpirun
# So long a node may take to listen: connections are tried again before its script starts.
START_LIMIT_S=${HARNESS_AGENT_START_LIMIT_S:-120}
# So long a node that listened may give no sign of life.
SILENCE_LIMIT_S=${HARNESS_AGENT_SILENCE_LIMIT_S:-60}
# Between two of them.
BEAT_S=5
# What mpirun left may go on for so long once it has ended.
GRACE_S=10
# Of a command, and of what it prints.
LONGEST_COMMAND=$((1 << 20))
LONGEST_OUTPUT=$((1 << 18))
# Requests with another token, or that are no files of ours: so many are looked at.
MOST_REFUSED=20

main() {
  local verb=${1-}
  [[ $# -ge 1 ]] && shift
  case $verb in
    mpirun) [[ $# -ge 1 ]] || usage ;;
    listen) [[ $# -eq 0 ]] || usage ;;
    rsh) ;;
    *) usage ;;
  esac
  if ! [[ $START_LIMIT_S$SILENCE_LIMIT_S =~ ^[0-9]{2,10}$ ]]; then
    fail 'HARNESS_AGENT_START_LIMIT_S and HARNESS_AGENT_SILENCE_LIMIT_S are numbers of seconds'
  fi
  if [[ -z ${HARNESS_NODE-} || $HARNESS_NODE == */* ]]; then fail 'HARNESS_NODE names no node'; fi
  folder=$(cd -- "$(dirname -- "$0")" && pwd) || fail "no such folder: ${0%/*}"
  "$verb" "$@"
}

usage() {
  echo 'usage: bash agent.sh mpirun PROGRAM [ARGUMENT...] | listen | rsh [OPTION...] HOST COMMAND...' >&2
  exit 2
}

fail() {
  echo "agent.sh: $1" >&2
  exit "${2:-1}"
}

# Sets $names to what is in these folders.
list() {
  local text
  text=$(ls -A -- "$@" 2> /dev/null) || return 1
  IFS=$'\n' read -r -d '' -a names <<< "$text"
  return 0
}

# Whether there is such a name among them.
has() {
  local name
  for name in ${names[@]+"${names[@]}"}; do
    [[ $name == "$1" ]] && return 0
  done
  return 1
}

# A word that cannot be guessed.
word() {
  local text
  text=$(head -c 16 /dev/urandom | od -An -v -tx1) || fail 'no random numbers'
  text=${text//[$' \n']/}
  [[ ${#text} -eq 32 ]] || fail 'no random numbers'
  echo "$text"
}

# Writes a file of this name that is complete or absent, and that only its owner reads.
write() {
  (umask 077 && printf '%s' "$2" > "$1.part") 2> /dev/null && mv -f -- "$1.part" "$1" 2> /dev/null
}

# --- on the first node

mpirun() {
  local program=$1 looked="it is not at $1" status
  shift
  if [[ $program == find-mpirun ]]; then
    program=$(type -P mpirun || echo "$AWS_MPIRUN")
    looked="it is neither on PATH nor at $AWS_MPIRUN"
  fi
  if ! program=$(type -P "$program"); then
    close
    fail "tool-missing mpirun: $looked" 127
  fi
  hand_on
  # Images run as root.
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  export PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1
  "$program" "$@"
  status=$?
  close
  exit "$status"
}

# Shows Open MPI 4 and 5 how to reach nodes, and has them leave names as they are. Daemons may start further daemons.
hand_on() {
  if [[ $folder == *[[:space:]]* ]]; then
    fail "Open MPI takes no blank in the path of its launch agent: $folder"
  fi
  local agent="bash $folder/agent.sh rsh"
  export OMPI_MCA_plm_rsh_agent=${OMPI_MCA_plm_rsh_agent-$agent} PRTE_MCA_plm_ssh_agent=${PRTE_MCA_plm_ssh_agent-$agent}
  export OMPI_MCA_orte_keep_fqdn_hostnames=1 PRTE_MCA_prte_keep_fqdn_hostnames=1
}

# A node that begins to listen later finds its folder closed.
close() {
  local node
  mkdir -p -m 0700 -- "$folder/agent"
  while read -r node _; do
    [[ $node == "$HARNESS_NODE" ]] && continue
    mkdir -m 0700 -- "$folder/agent/$node" 2> /dev/null
    : > "$folder/agent/$node/closed"
  done < "$folder/hostfile"
}

# --- on the other nodes

listen() {
  box=$folder/agent/$HARNESS_NODE
  refused=0
  local name beat=0 beaten=$SECONDS heard=$SECONDS closed= pause=0.3
  mkdir -p -m 0700 -- "$folder/agent"
  if ! mkdir -m 0700 -- "$box" 2> /dev/null; then
    sleep 1
    if list "$box" && has closed; then exit 0; fi
    fail "cannot make the folder, or it is not ours: $box"
  fi
  owner=$(stat -c %u -- "$box") || fail "no such folder: $box"
  if [[ -L $folder/agent || $(stat -c %u -- "$folder/agent") != "$owner" ]]; then
    fail "it is not ours: $folder/agent"
  fi
  mark=$(word) || exit 1
  hand_on
  : > "$box/alive.0"
  write "$box/token" "$mark"$'\n' || fail "cannot write: $box/token"
  while :; do
    if list "$box"; then
      heard=$SECONDS
      for name in ${names[@]+"${names[@]}"}; do
        case $name in
          *.part) ;;
          request.*) if [[ -z $closed ]]; then take "${name#request.}" && pause=1; fi ;;
          closed) closed=${closed:-$SECONDS} ;;
        esac
      done
    elif ((SECONDS - heard > SILENCE_LIMIT_S)); then
      fail "it is gone: $box"
    fi
    if [[ -n $closed ]]; then
      [[ -n $(jobs -pr) ]] || exit 0
      # The supervisor ends what goes on.
      if ((SECONDS - closed >= GRACE_S)); then fail 'mpirun has ended, and what it started here has not' 0; fi
    fi
    if ((SECONDS - beaten >= BEAT_S)); then
      beaten=$SECONDS
      mv -f -- "$box/alive.$beat" "$box/alive.$((beat + 1))" 2> /dev/null && beat=$((beat + 1))
    fi
    sleep "$pause"
  done
}

# Runs the command of a request, once. Ranks are measured from then on: what listens must not be in their way.
take() {
  local id=$1 file=$box/request.$1 command= word= facts
  if ! [[ $id =~ ^[0-9a-f]{32}$ ]]; then
    refuse "$id" 'it has no number'
    return 1
  fi
  facts=$(stat -c '%u %h %a %F' -- "$file" 2> /dev/null)
  if [[ $facts != "$owner 1 600 regular file" ]]; then
    refuse "$id" "it is no file of this job: ${facts:-gone}"
    return 1
  fi
  if (($(stat -c %s -- "$file") > LONGEST_COMMAND)); then
    refuse "$id" 'it is too long'
    return 1
  fi
  if ! { IFS= read -r word && { IFS= read -r -d '' command || true; }; } < "$file" || [[ $word != "$mark" ]]; then
    refuse "$id" 'its token is not that of this job'
    return 1
  fi
  # What cannot be renamed would be run again.
  mv -f -- "$file" "$box/running.$id" || fail "cannot write in $box"
  run "$id" "$command" < /dev/null > "$box/stdout.$id" 2> "$box/stderr.$id" &
}

run() {
  local status
  bash -c "$2"
  status=$?
  : > "$box/ended.$1.$status"
}

refuse() {
  echo "agent.sh: request refused: $2: ${1:0:40}" >&2
  if ((++refused > MOST_REFUSED)); then fail 'too many requests of strangers'; fi
  mv -f -- "$box/request.$1" "$box/refused.$1" || fail "cannot write in $box"
}

# --- between them

# As ssh takes its arguments.
rsh() {
  local host node
  while [[ ${1-} == -* ]]; do
    case $1 in
      --) shift && break ;;
      # Those that have a value, as the next argument.
      -[BbcDEeFIiJLlmOoPpQRSWw]) shift ;;
    esac
    shift || usage
  done
  [[ $# -ge 2 ]] || usage
  host=${1#*@}
  shift
  node=$(member "$host") || fail "no node of this job: $host" "$LOST"
  if [[ $node == "$HARNESS_NODE" ]]; then exec bash -c "$*"; fi
  ask "$node" "$*"
}

# The node of this name; or of this first part of a name, where only one has it.
member() {
  local node found=
  while read -r node _; do
    if [[ $node == "$1" ]]; then
      echo "$node"
      return 0
    fi
    if [[ ${node%%.*} == "$1" ]]; then found+=" $node"; fi
  done < "$folder/hostfile"
  [[ $found == ' '* && ${found# } != *' '* ]] || return 1
  echo "${found# }"
}

ask() {
  local node=$1 box=$folder/agent/$1 since=$SECONDS begin name id alive= before= closed= code
  until list "$box" && has token; do
    if has closed; then fail "$node: mpirun has ended" "$LOST"; fi
    if ((SECONDS - since >= START_LIMIT_S)); then
      fail "$node: its part of the job has not started within $START_LIMIT_S s" "$LOST"
    fi
    list "$folder/agent"
    sleep 0.5
  done
  id=$(word) || exit "$LOST"
  write "$box/request.$id" "$(head -c 64 -- "$box/token")"$'\n'"$2" || fail "$node: cannot write in $box" "$LOST"
  since=$SECONDS begin=$SECONDS
  while :; do
    names=()
    list "$box"
    for name in ${names[@]+"${names[@]}"}; do
      case $name in
        "ended.$id."*)
          code=${name##*.}
          head -c "$LONGEST_OUTPUT" -- "$box/stdout.$id"
          head -c "$LONGEST_OUTPUT" -- "$box/stderr.$id" >&2
          exit "$code"
          ;;
        closed) closed=yes ;;
        "refused.$id") fail "$node: it refuses the command, see log.$node" "$LOST" ;;
        alive.*) alive=$name ;;
      esac
    done
    # The answer is not waited for any more.
    [[ -z $closed ]] || exit "$LOST"
    if [[ $alive != "$before" ]]; then
      before=$alive
      since=$SECONDS
    elif ((SECONDS - since >= SILENCE_LIMIT_S)); then
      fail "$node: no sign of life for $SILENCE_LIMIT_S s, its pod is gone or does not answer" "$LOST"
    fi
    if ((SECONDS - begin < 10)); then sleep 0.5; else sleep 2; fi
  done
}

main "$@"
