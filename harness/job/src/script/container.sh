#!/bin/bash
# Runs a part of a job on one node in a container of docker or podman.
# usage: bash container.sh pull RUNTIME IMAGE NODE
#        bash container.sh run RUNTIME IMAGE FOLDER VARIABLES MOUNT... -- PROGRAM [ARGUMENT...]
# `pull` fetches the image where the node does not have it, writes its digest into image.NODE and prints it as its last line.
# `run` has the program in FOLDER, which is the job's as the container sees it. VARIABLES are names by comma, or `-`: values
# never stand in an argument. A MOUNT is OUTSIDE:INSIDE, OUTSIDE:INSIDE:ro, or `~` for the home folder. The exit code is the
# program's; 125 where it did not begin, with a line on stderr that begins with `container.sh: `.
# A container is no child of what starts it: it is known by its label harness.job, and all that runs in it by HARNESS_JOB.
set -u
LC_ALL=C

main() {
  local verb=${1-}
  [[ $# -ge 4 && ${2-} =~ ^(docker|podman)$ && $3 != -* ]] || usage
  runtime=$2 image=$3
  shift 3
  case $verb in
    pull) [[ $# -eq 1 && $1 != */* ]] || usage ;;
    run) [[ $# -ge 4 ]] || usage ;;
    *) usage ;;
  esac
  node=${HARNESS_NODE-$1}
  type -P "$runtime" > /dev/null || fail "$runtime is not installed" "install it, or change \`runtime\` of [container]" 127
  "$verb" "$@"
}

usage() {
  echo 'usage: bash container.sh pull RUNTIME IMAGE NODE | run RUNTIME IMAGE FOLDER VARIABLES MOUNT... -- PROGRAM [ARGUMENT...]' >&2
  exit 2
}

# What is wrong, and the next command.
fail() {
  echo "container.sh: $node: $1; next: $2" >&2
  exit "${3:-125}"
}

# Fails for the reason that the runtime printed, or with the line itself.
explain() {
  local text=$1 what=$2 next=$3 line said=
  while IFS= read -r line; do
    if [[ -n $line && $line != *' --help'* ]]; then said=${line:0:300}; fi
  done <<< "$text"
  case $text in
    *'permission denied'*sock* | *'permission denied'*daemon*)
      fail "this user may not use $runtime (permission denied on its socket)" "\`sudo usermod -aG $runtime \$USER\` there, and a new login"
      ;;
    *'Cannot connect to the Docker daemon'* | *'failed to connect to the docker API'* | *'Is the docker daemon running'*)
      fail "$runtime's daemon does not answer" "\`systemctl status $runtime\` there"
      ;;
    *'could not select device driver'* | *'unresolvable CDI devices'* | *nvidia-container-cli*)
      fail "$runtime cannot give GPUs to containers: $said" "NVIDIA's container toolkit there: \`nvidia-ctk --version\`"
      ;;
    *rlimit* | *RLIMIT_*)
      fail "$runtime may not raise the limits of the container's processes: $said" "\`ulimit -a\` there, and the limits of its service"
      ;;
  esac
  fail "$what: $said" "$next"
}

pull() {
  local text
  if ! digest; then
    text=$("$runtime" pull --quiet "$image" 2>&1) ||
      explain "$text" "cannot pull the image $image" "\`$runtime pull $image\` there: name, login, free space"
    digest || fail "the image $image has no digest" "\`$runtime image inspect $image\` there"
  fi
  cd -- "$(dirname -- "$0")" && echo "$found" > "image.$1.part" && mv -f -- "image.$1.part" "image.$1" || exit 1
  echo "$found"
}

# Sets $found to the digest by which registries know the image, or to its id where it is of none.
digest() {
  local text id repository
  text=$("$runtime" image inspect --format '{{.Id}} {{range .RepoDigests}}{{.}} {{end}}' "$image" 2> /dev/null) || return 1
  read -r id repository _ <<< "$text"
  found=sha256:${id#sha256:}
  if [[ -n $repository ]]; then found=${repository##*@}; fi
  [[ $found =~ ^sha256:[0-9a-f]{64}$ ]]
}

run() {
  local folder=$1 variables=$2 name mount parts device code
  shift 2
  if [[ -z ${HARNESS_NODE-} || -z ${HARNESS_JOB-} || ! -d supervisor.$node ]]; then
    fail 'not started by supervisor.sh' 'no command: this is a bug of the harness'
  fi
  IFS=/ read -ra parts <<< "${HARNESS_JOB#*:}"
  local case=${parts[-2]}.${parts[-1]} of_run=${parts[-3]}
  name=harness-$of_run.$case.$node
  options=(--rm --pull never --name "${name//[^a-zA-Z0-9_.-]/-}" --label "harness.run=$of_run" --label "harness.job=$HARNESS_JOB")
  options+=(--cidfile "supervisor.$node/container" --log-driver none --network host --ipc host --workdir "$folder")
  options+=(--cap-add SYS_PTRACE --cap-add IPC_LOCK --security-opt label=disable --env HOME=/tmp --env "USER=$(id -un)")
  limits
  user
  devices
  for name in ${variables//[,-]/ } HARNESS_{NODE,JOB} NNODES {,NODE_,LOCAL_}RANK {,LOCAL_}WORLD_SIZE MASTER_{ADDR,PORT}; do
    if [[ -v $name ]]; then options+=(--env "$name"); fi
  done
  while [[ $# -gt 0 && $1 != -- ]]; do
    mount=$1
    shift
    if [[ $mount == '~' ]]; then
      mount=$HOME:$HOME
      options+=(--env "HOME=$HOME")
    fi
    IFS=: read -ra parts <<< "$mount"
    if [[ $mount == *[,\"]* || ${#parts[@]} -lt 2 ]]; then fail "not a mount: $mount" '`mounts` of [container]'; fi
    mount=type=bind,source=${parts[0]},target=${parts[1]}
    if [[ ${parts[2]-} == ro ]]; then mount+=,readonly; fi
    options+=(--mount "$mount")
  done
  [[ $# -ge 2 ]] || usage
  shift
  rm -f -- "began.$node"
  echo "$runtime" > "supervisor.$node/runtime" || exit 1
  # Not the image's own entry point. The shell stays as the first process, to which a signal without a handler does nothing.
  "$runtime" run "${options[@]}" --entrypoint sh "$image" -c 'm=$1; shift; : > "$m" || exit 125; "$@"; exit $?' sh "$folder/began.$node" "$@"
  code=$?
  # What lost its client goes on.
  { read -r name < "supervisor.$node/container" && timeout -k 5 60 "$runtime" rm --force "$name"; } > /dev/null 2>&1
  rm -f -- "supervisor.$node/container"
  if [[ ! -e began.$node ]]; then
    explain "$(tail -c 4000 "/proc/$$/fd/2" 2> /dev/null)" "$runtime did not start the container" "\`$runtime run --rm $image true\` there"
  fi
  exit "$code"
}

# RDMA locks memory. Who may not lift the limit keeps what there is.
limits() {
  if [[ $runtime == podman ]] && ! (ulimit -l unlimited) 2> /dev/null; then
    options+=(--ulimit host)
  else
    options+=(--ulimit memlock=-1 --ulimit stack=67108864)
  fi
}

# Files belong to the user, as those of the host's programs do.
user() {
  local group security own
  own=$(id -u):$(id -g)
  if [[ $runtime == podman ]]; then
    if [[ $(id -u) != 0 ]]; then options+=(--userns keep-id); fi
  else
    security=$("$runtime" info --format '{{.SecurityOptions}}' 2> /dev/null)
    case $security in
      # Root in the container is the user.
      *name=rootless*) own=0:0 ;;
      *name=userns*) options+=(--userns host) ;;
    esac
    if [[ $own != 0:0 ]]; then
      for group in $(id -G); do options+=(--group-add "$group"); done
    fi
  fi
  options+=(--user "$own")
}

devices() {
  local device
  if [[ -e /dev/nvidiactl ]]; then
    if [[ $runtime == docker ]]; then options+=(--gpus all); else options+=(--device nvidia.com/gpu=all); fi
  fi
  for device in /dev/infiniband/* /dev/gdrdrv; do
    if [[ -c $device ]]; then options+=(--device "$device"); fi
  done
}

main "$@"
