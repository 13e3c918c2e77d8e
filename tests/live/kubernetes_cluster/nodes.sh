#!/bin/bash
# The nodes of the cluster: each a set of namespaces of this machine, with a containerd and a kubelet of its own; sourced
# by `cluster`. A node's folder is $state/nodes/NAME; `init` in it is its first process, as "PID START".

# All of it within this machine: nodes are 10.240.0.K, the API server 10.240.0.254, and pods of node K 10.244.K.0/24.
network=10.240.0
pods=10.244
bridge=hrnkube0

# Sets $pid to the node's first process, if it lives.
first_process() {
  local begun
  { read -r pid begun <"$state/nodes/$1/init"; } 2>/dev/null || return 1
  begun_at "$pid"
  [[ -n $at && $at == "$begun" ]]
}

# in_node NODE COMMAND...
in_node() {
  local pid at
  first_process "$1" || return 1
  nsenter -t "$pid" -m -u -n -p -- "${@:2}"
}

# start_in_node NAME NODE COMMAND...: a daemon; what is remembered is the daemon itself, which nsenter is the parent of.
start_in_node() {
  local name=$1 node=$2 pid at tries child=
  shift 2
  ! living "$name" || return 0
  first_process "$node"
  start_daemon "$name" nsenter -t "$pid" -m -u -n -p -- "$@"
  living "$name" || return 1
  for ((tries = 0; tries < 100; tries++)); do
    child=$(cat "/proc/$pid/task/$pid/children" 2>/dev/null) || return 1
    child=${child%% *}
    [[ -z $child ]] || break
    sleep 0.02
  done
  begun_at "$child"
  [[ -n $at ]] || return 1
  echo "$child $at" >"$state/processes/$name"
}

# The namespaces and the cable of a node.
make_node() {
  local node=$1 k=$2 folder=$state/nodes/$1 pid at init other
  ! first_process "$node" || return 0
  sweep_cgroups "$node"
  rm -rf "$folder/run" "$folder/ready"
  mkdir -p "$folder"
  start_daemon "node-$node" unshare --pid --mount --uts --net --fork --propagation private \
    bash "$here/node-init" "$node" "$folder"
  until_true 10 test -e "$folder/ready" || fail "$node has no namespaces"
  living "node-$node"
  init=$(cat "/proc/$pid/task/$pid/children")
  init=${init%% *}
  begun_at "$init"
  echo "$init $at" >"$folder/init"
  ip link del "hrnkube$k" 2>/dev/null || true
  ip link add "hrnkube$k" type veth peer name eth0 netns "$init"
  ip link set "hrnkube$k" master "$bridge" up
  in_node "$node" ip addr add "$network.$k/24" dev eth0
  in_node "$node" ip link set eth0 up
  # No way out, at once: the kubelet would wait for the metadata address of a cloud.
  in_node "$node" ip route add unreachable default
  for ((other = 1; other <= nodes; other++)); do
    [[ $other == "$k" ]] || in_node "$node" ip route add "$pods.$other.0/24" via "$network.$other"
  done
  ip route replace "$pods.$k.0/24" via "$network.$k" dev "$bridge"
}

configure_node() {
  local folder=$1 k=$2
  mkdir -p "$folder"/{cni,var/lib/kubelet/device-plugins}
  # A kubelet that finds no record of device plugins takes its node for a new one, and sets its devices to 0.
  [[ -s $folder/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint ]] \
    || echo '{}' >"$folder/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint"
  cat >"$folder/pods.part" <<END
{"cniVersion": "0.4.0", "name": "pods", "plugins": [{"type": "bridge", "bridge": "cni0", "isGateway": true, "ipMasq": false,
 "ipam": {"type": "host-local", "ranges": [[{"subnet": "$pods.$k.0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]}}]}
END
  mv "$folder/pods.part" "$folder/cni/10-pods.conflist"
  cat >"$folder/containerd.toml" <<END
version = 2
[plugins."io.containerd.internal.v1.opt"]
  path = "/var/lib/containerd/opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "localhost/pause:1"
  disable_apparmor = true
  restrict_oom_score_adj = true
  stream_server_address = "127.0.0.1"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "$root/usr/lib/cni"
    conf_dir = "$folder/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        BinaryName = "$root/usr/sbin/runc"
END
}

# Starts what does not run of a node. It is ready some seconds later.
start_node() {
  local node=$1 k=${1#n} folder=$state/nodes/$1 image listed
  make_node "$node" "$k"
  configure_node "$folder" "$k"
  start_in_node "containerd-$node" "$node" containerd -c "$folder/containerd.toml" || fail "$node: no containerd"
  until_true 30 in_node "$node" ctr version || fail "containerd of $node does not answer"
  listed=$(in_node "$node" ctr -n k8s.io images ls -q)
  for image in pause node; do
    grep -qx "localhost/$image:1" <<<"$listed" \
      || in_node "$node" ctr -n k8s.io images import "$state/images/$image.tar" >/dev/null
  done
  start_kubelet "$node"
}

start_kubelet() {
  start_in_node "kubelet-$1" "$1" "$bin/kubelet" --kubeconfig="$state/kubeconfig" --hostname-override="$1" \
    --address="$network.${1#n}" --node-ip="$network.${1#n}" --node-labels=node.kubernetes.io/instance-type=p5.48xlarge \
    --container-runtime=remote --container-runtime-endpoint=unix:///run/containerd/containerd.sock \
    --cgroup-driver=cgroupfs --cgroups-per-qos=false --enforce-node-allocatable= \
    --fail-swap-on=false --make-iptables-util-chains=false --node-status-update-frequency=2s \
    --anonymous-auth=true --authorization-mode=AlwaysAllow --healthz-port=0 --read-only-port=0 \
    --volume-plugin-dir=/var/lib/kubelet/volume-plugins --eviction-hard= --image-gc-high-threshold=100 --pod-max-pids=-1 \
    || fail "$1: no kubelet"
}

# Gives a node its GPUs and EFA devices, as device plugins would.
give_devices() {
  local devices='{"nvidia.com/gpu":"8","vpc.amazonaws.com/efa":"32"}'
  until_true 60 api GET "/api/v1/nodes/$1" || fail "$1 did not register"
  api PATCH "/api/v1/nodes/$1/status" -o /dev/null -H 'Content-Type: application/merge-patch+json' \
    -d "{\"status\":{\"capacity\":$devices,\"allocatable\":$devices}}"
}

# A loss of power.
crash_node() {
  local pid at tries name
  if first_process "$1"; then
    kill -KILL "$pid" 2>/dev/null || true
    for ((tries = 0; tries < 400; tries++)); do
      first_process "$1" || break
      sleep 0.05
    done
  fi
  for name in kubelet containerd node; do
    signal_daemon KILL "$name-$1"
    gone "$name-$1" 5 || echo "it does not end: $name-$1" >&2
    rm -f "$state/processes/$name-$1"
  done
  rm -f "$state/nodes/$1/init"
  sweep_cgroups "$1"
}

# Removes leftovers of a dead node's containers, as a boot would.
sweep_cgroups() {
  local folder
  for folder in "$state/nodes/$1"/{run/containerd,var/lib/containerd}/io.containerd.runtime.v2.task/k8s.io/*; do
    [[ -d $folder ]] || continue
    find /sys/fs/cgroup -maxdepth 3 -depth -type d -path "*/k8s.io/${folder##*/}" -exec rmdir {} + 2>/dev/null || true
  done
}

# What runs in pods of a node, one to a line: NODE PID COMMAND. `pause` holds a pod's namespaces, and is no work.
processes_in_pods() {
  local pid at first id line
  first_process "$1" || return 0
  first=$(readlink "/proc/$pid/ns/pid")
  for id in $(descendants "$pid"); do
    [[ $(readlink "/proc/$id/ns/pid" 2>/dev/null) != "$first" ]] || continue
    line=$(tr '\0' ' ' <"/proc/$id/cmdline" 2>/dev/null) || continue
    [[ -z $line || $line == *'sleep 100000'* || $line == *'sleep 3600'* ]] || echo "$1 $id $line"
  done
}

descendants() {
  local open="$1" next id
  while [[ -n ${open// /} ]]; do
    next=
    for id in $open; do
      next+=" $(cat "/proc/$id"/task/*/children 2>/dev/null || true)"
    done
    [[ -z ${next// /} ]] || printf '%s\n' $next
    open=$next
  done
}
