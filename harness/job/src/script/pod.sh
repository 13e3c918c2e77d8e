#!/bin/bash
# Runs the jobs of a case in the pods of a manifest, one pod on each node, and records where Kubernetes put them.
# usage: bash pod.sh FOLDER PODS START_LIMIT_S INDEX   runs one pod's part. INDEX names the variable with its number from 0;
#                                                      where it is `any`, the pod takes the first number that is free
#        bash pod.sh FOLDER PODS START_LIMIT_S wait    runs nothing, and ends as the pods have ended
# FOLDER is that of the case, on a claim that all pods mount. Beside this script lie `record`, `jobs`, and the files that
# `jobs` names. In FOLDER/_pods it leaves, each complete or absent:
#   claim.N      a folder: there is a pod N, and no other may take its number
#   place.N      where pod N is: lines of `node NAME`, `pod NAME` and `ip ADDRESS`
#   record       what the manifest was rendered from
#   ready        the files of the jobs lie in their folders, with the names of the nodes in them
#   ended.JOB.N  how a job ended there: `CODE REASON BEGAN ENDED`, the last two in seconds since 1970. REASON is itself, limit
#                (over its time limit), peer (another pod's part had failed, which it outlived by a minute) or asked (the pod was
#                to end, and had seen no failure of another)
set -u
LC_ALL=C
# A job goes on for so long once its part in another pod has failed.
GRACE_S=${HARNESS_POD_GRACE_S:-60}
# Where the names of the other nodes are looked up.
HOSTS=${HARNESS_POD_HOSTS:-/etc/hosts}
# What a job may take beyond its limit, until its parts in all pods have ended.
SLACK_S=120
leave=

main() {
  [[ $# -eq 4 && $1 == /* && $2 =~ ^[1-9][0-9]{0,4}$ && $3 =~ ^[1-9][0-9]{0,5}$ && -n $4 ]] || usage
  if ! [[ $GRACE_S =~ ^[0-9]{1,5}$ ]]; then fail 'HARNESS_POD_GRACE_S is a number of seconds'; fi
  folder=$1 pods=$2 start_limit=$3
  state=$folder/_pods
  source=$(cd -- "$(dirname -- "$0")" && pwd) || fail "no such folder: $0"
  read_jobs
  umask 022
  mkdir -p -- "$state" || fail "cannot make the folder: $state"
  if [[ $4 == wait ]]; then await_all; fi
  trap 'leave=asked' TERM INT HUP
  take_number "$4"
  meet
  introduce
  if [[ $number == 0 ]]; then prepare; fi
  await ready "the files of the jobs, which pod 0 writes" "$start_limit"
  # What an operator sets for torchrun is not part of the plan.
  unset ${!PET_@}
  # torchrun numbers nodes by this, or else by the names of the pods.
  export PET_LOCAL_ADDR=$node
  local at worst=0
  for at in "${!jobs[@]}"; do
    run "${jobs[at]}" "${limits[at]}"
    if ((code > worst)); then worst=$code; fi
    [[ -z $leave ]] || exit "$worst"
    await_job "${jobs[at]}" "${limits[at]}"
  done
  exit "$worst"
}

usage() {
  echo 'usage: bash pod.sh FOLDER PODS START_LIMIT_S INDEX|any|wait' >&2
  exit 2
}

fail() {
  echo "pod.sh: $1" >&2
  exit 1
}

# Writes a file that is complete or absent.
write() {
  printf '%s\n' "$2" > "$state/$1.part" && mv -f -- "$state/$1.part" "$state/$1" || fail "cannot write: $state/$1"
}

read_jobs() {
  local word name limit
  jobs=() limits=()
  while read -r word name limit; do
    if [[ $word == job ]]; then
      jobs+=("$name")
      limits+=("$limit")
    fi
  done < "$source/jobs" || fail "cannot read: $source/jobs"
  [[ ${#jobs[@]} -gt 0 ]] || fail "it names no job: $source/jobs"
}

# Listing the folder makes a network file system look again.
await() {
  local since=$SECONDS
  until ls -- "$state" > /dev/null; [[ -e $state/$1 ]]; do
    [[ -z $leave ]] || fail "it was to end while it waited for $2"
    if ((SECONDS - since >= $3)); then fail "after $3 s there is not yet: $2"; fi
    sleep 0.5
  done
}

# Only one pod can make the folder: a second attempt, or a job of the same name, measures nothing over an earlier one.
take_number() {
  local taken="an earlier job was here, or this pod is a second attempt; delete $folder, or render under another --name"
  number=
  if [[ $1 == any ]]; then
    for ((number = 0; number < pods; number++)); do
      mkdir -- "$state/claim.$number" 2> /dev/null && break
    done
    ((number < pods)) || fail "all $pods numbers are taken: $taken"
  else
    number=${!1-}
    if ! [[ $number =~ ^(0|[1-9][0-9]{0,4})$ ]] || ((number >= pods)); then
      fail "\$$1 must be a number below $pods: \`$number\`"
    fi
    if ! mkdir -- "$state/claim.$number" 2> /dev/null; then
      [[ -d $state/claim.$number ]] || fail "cannot make the folder: $state/claim.$number"
      fail "number $number is taken: $taken"
    fi
  fi
  local name='^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$'
  node=${HARNESS_POD_NODE-}
  [[ $node =~ $name ]] || fail "HARNESS_POD_NODE names no node: \`$node\`"
  write "place.$number" "node $node"$'\n'"pod ${HARNESS_POD_NAME-}"$'\n'"ip ${HARNESS_POD_IP-}"
}

# Sets $nodes and $addresses to those of all pods, in the order of the ranks.
meet() {
  local at key value
  local -A first=()
  nodes=() addresses=()
  for ((at = 0; at < pods; at++)); do
    await "place.$at" "pod $at of $pods" "$start_limit"
    nodes[at]= addresses[at]=
    while read -r key value; do
      case $key in
        node) nodes[at]=$value ;;
        ip) addresses[at]=$value ;;
      esac
    done < "$state/place.$at"
    [[ -n ${nodes[at]} ]] || fail "it names no node: $state/place.$at"
    value=${nodes[at]}
    if [[ -n ${first[$value]-} ]]; then fail "pods ${first[$value]} and $at are on one node: $value"; fi
    first[$value]=$at
  done
  # Ranks are numbered along the names of their nodes, as torchrun has it.
  local lines
  mapfile -t lines < <(for at in "${!nodes[@]}"; do echo "${nodes[at]} ${addresses[at]}"; done | LC_ALL=C sort)
  [[ ${#lines[@]} -eq $pods ]] || fail 'cannot sort the nodes: the image has no sort'
  for at in "${!lines[@]}"; do
    read -r "nodes[at]" "addresses[at]" <<< "${lines[at]}"
  done
}

# Lets this pod know the others by the names of their nodes: no DNS does.
introduce() {
  local at line
  ((pods > 1)) || return 0
  for at in "${!nodes[@]}"; do
    line="${addresses[at]} ${nodes[at]}"
    grep -qxF -- "$line" "$HOSTS" 2> /dev/null && continue
    printf '%s\n' "$line" >> "$HOSTS" || fail "cannot write $HOSTS, which names the other pods"
  done
}

# The files of the jobs, with the name of each node where its number stood.
prepare() {
  local word key name file text at slot job=
  while read -r word key name; do
    case $word in
      job)
        job=$folder/$key
        mkdir -- "$job" || fail "cannot make the folder, or it is there already: $job"
        ;;
      file) cp -- "$source/$key" "$job/$name" || fail "cannot write: $job/$name" ;;
      template)
        IFS= read -r -d '' text < "$source/$key"
        for at in "${!nodes[@]}"; do
          name_slot "$at"
          text=${text//$slot/${nodes[at]}}
        done
        printf '%s' "$text" > "$job/$name" || fail "cannot write: $job/$name"
        ;;
    esac
  done < "$source/jobs"
  write record "$(< "$source/record")"
  write ready ''
}

# Sets $slot to the word that stands for the node of a pod: its number, with a letter for each digit.
name_slot() {
  local digit letters=abcdefghij
  printf -v slot '%05d' "$1"
  for digit in 0 1 2 3 4 5 6 7 8 9; do
    slot=${slot//$digit/${letters:digit:1}}
  done
  slot=harness-slot-$slot
}

# Sets $code to that of the job's part here.
run() {
  local job=$1 limit=$2 child began ended reason=itself since=$SECONDS failed=
  printf -v began '%(%s)T' -1
  cd -- "$folder/$job" || fail "no such folder: $folder/$job"
  HARNESS_NODE=$node HARNESS_JOB=$node:$folder/$job setsid bash job.sh < /dev/null > "log.$node" 2>&1 &
  child=$!
  while kill -0 "$child" 2> /dev/null; do
    # An operator ends all pods at once where one has failed. A part that has seen the failure goes on all the same: where
    # it fails too, which of them was first is unknown.
    if [[ -z $failed ]] && has_failed "$job"; then failed=$SECONDS; fi
    if ((SECONDS - since >= limit)); then
      reason=limit
    elif [[ -n $leave && -z $failed ]]; then
      reason=asked
    elif [[ -n $failed ]] && ((SECONDS - failed >= GRACE_S)); then
      reason=peer
    fi
    if [[ $reason != itself ]]; then break; fi
    sleep 0.5
  done
  # Leftovers of the script end too, also those that left its group.
  put_down "$child" "$node:$folder/$job"
  wait "$child"
  code=$?
  # A signal ends the wait, not the part.
  if [[ -n $leave ]]; then
    wait "$child"
    code=$?
  fi
  # Neither says what its part came to: it failed while it was to end, or its workload had ended before.
  if [[ $reason == itself && $code != 0 && -n $leave && -z $failed ]]; then reason=asked; fi
  if [[ $reason == peer && -e done.$node ]]; then reason=asked; fi
  printf -v ended '%(%s)T' -1
  write "ended.$job.$number" "$code $reason $began $ended"
  cd / || exit 1
}

# Whether the job's part in another pod has failed.
has_failed() {
  local file code
  ls -- "$state" > /dev/null
  for file in "$state/ended.$1."*; do
    { read -r code _ < "$file"; } 2> /dev/null || continue
    [[ $code == 0 ]] || return 0
  done
  return 1
}

# Asks a group to end, and what has the mark, and ends by force what has not after ten seconds.
put_down() {
  local how=TERM tries
  for ((tries = 0; tries < 100; tries++)); do
    find_strays "$2" "$1"
    kill -0 -- "-$1" 2> /dev/null || [[ -n $strays ]] || return
    if ((tries == 50)); then how=KILL; fi
    if ((tries == 0)) || [[ $how == KILL ]]; then
      kill -"$how" -- "-$1" 2> /dev/null
      if [[ -n $strays ]]; then kill -"$how" $strays 2> /dev/null; fi
    fi
    sleep 0.2
  done
}

await_job() {
  local at
  for ((at = 0; at < pods; at++)); do
    await "ended.$1.$at" "the end of $1 in pod $at" $(($2 + SLACK_S))
  done
}

await_all() {
  local at n word worst=0
  await ready "the files of the jobs, which pod 0 writes" $((2 * start_limit))
  for at in "${!jobs[@]}"; do
    await_job "${jobs[at]}" "${limits[at]}"
    for ((n = 0; n < pods; n++)); do
      read -r word _ < "$state/ended.${jobs[at]}.$n"
      if [[ $word =~ ^[0-9]{1,3}$ ]] && ((word > worst)); then worst=$word; fi
    done
  done
  exit "$worst"
}

main "$@"
