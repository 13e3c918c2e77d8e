#!/bin/bash
# What the scripts share that run on two nodes at once, in one folder: which node this is, marks for the other one, and which
# of its NICs are EFA.
sys=/sys
# The installer of the fabric's driver puts its programs where only login shells look.
PATH=$PATH:/opt/amazon/efa/bin
node=${HARNESS_NODE:-${SLURMD_NODENAME:-${HOSTNAME:-$(uname -n)}}}

is_node() {
  [[ $node == "$1" || ${node%%.*} == "$1" ]]
}

is_efa() {
  local vendor=$sys/class/infiniband/$1/device/vendor
  if [[ -r $vendor ]]; then
    [[ $(< "$vendor") == 0x1d0f ]]
  else
    [[ $1 == rdmap* || $1 == efa_* ]]
  fi
}

# A mark appears with its text or not at all.
announce() {
  local part=$1.$node.$BASHPID.tmp
  echo "$2" > "$part" && mv -f "$part" "$1"
}

# Listing the folder makes a network file system look again instead of remembering that the file was absent.
seen() {
  ls . > /dev/null 2>&1
  [[ -e $1 ]]
}

