#!/bin/bash
# Makes Slurm run from a tree of its own (a chroot or unpacked packages), beside the machine's: its programs by their names
# in a folder, each started by that tree's loader with that tree's libraries. Nothing is mounted, and what jobs run is the
# machine's. Sourced by `cluster`, whose folder is $here.

# What a cluster or its users call; of these munged may also be the machine's own.
slurm_programs=(slurmctld slurmd slurmstepd sbatch srun salloc squeue scontrol scancel sinfo sacct munged)

# Sets $found to a file of a tree, whose links are those of the tree's own root; fails where there is none.
resolve() {
  local root=$1 tries
  found=$root$2
  for ((tries = 0; tries < 10; tries++)); do
    [[ -L $found ]] || break
    local target
    target=$(readlink "$found")
    if [[ $target == /* ]]; then found=$root$target; else found=${found%/*}/$target; fi
  done
  [[ -f $found ]]
}

# Sets $found to a program of a tree; fails where there is none.
program_of() {
  local folder
  for folder in /usr/bin /usr/sbin /bin /sbin /usr/local/bin /usr/local/sbin /opt/slurm/bin /opt/slurm/sbin; do
    ! resolve "$1" "$folder/$2" || return 0
  done
  return 1
}

# Sets $loader to what starts programs of a tree: its own, or the machine's where it has brought none.
loader_of() {
  local root name
  name=$(uname -m)
  case $name in
    x86_64) name=ld-linux-x86-64.so.2 ;;
    aarch64) name=ld-linux-aarch64.so.1 ;;
  esac
  for root in "$1" ''; do
    for loader in "$root"/{lib64,lib,usr/lib64,usr/lib}/"$name"; do
      # A link of the tree to another place of the tree.
      if resolve "$root" "${loader#"$root"}"; then
        loader=$found
        return 0
      fi
    done
  done
  return 1
}

# Sets $libraries to the folders in which a tree has its libraries, and $plugins to that of Slurm's plugins.
libraries_of() {
  local root=$1 folder file
  libraries= plugins=
  for file in "$root"/{usr/,opt/slurm/,usr/local/,}lib{,64}/{,*-linux-gnu/}{slurm,slurm-wlm}/auth_munge.so; do
    if [[ -f $file ]]; then
      plugins=${file%/*}
      break
    fi
  done
  [[ -n $plugins ]] || return 1
  for folder in "$plugins" "$root"/{usr/,opt/slurm/,usr/local/,}lib{64,}{/*-linux-gnu,}; do
    [[ ! -d $folder ]] || libraries+=${libraries:+:}$folder
  done
}

# A loader before glibc 2.33 cannot name a program otherwise than by its file. What such a tree holds is older than the
# machine's libraries, which run it: those come first then, and the tree has only what the machine lacks.
name_programs() {
  [[ $("$loader" --help 2>/dev/null) != *--argv0* ]] || return 0
  loader_of /
  libraries=$plugins:$(machine_libraries):$libraries
}

machine_libraries() {
  local found=() folder
  for folder in {/usr,}/lib{/*-linux-gnu,64}; do
    [[ ! -d $folder ]] || found+=("$folder")
  done
  (
    IFS=:
    echo "${found[*]}"
  )
}

# make_programs ROOT FOLDER: fills the folder; says why where it cannot.
make_programs() {
  local root=${1%/} folder=$2 name words
  if [[ ! -d $root ]]; then
    echo "no such folder: $root"
    return 1
  fi
  if ! libraries_of "$root"; then
    echo "no plugins of Slurm with munge's (auth_munge.so) below $root"
    return 1
  fi
  if ! loader_of "$root"; then
    echo "no loader for programs of $root"
    return 1
  fi
  name_programs
  mkdir -p "$folder"
  cc -O1 -Wall -o "$folder/slurmctld" "$here/start.c" || return 1
  for name in "${slurm_programs[@]}"; do
    if ! program_of "$root" "$name"; then
      # Not every client comes along everywhere, and a munged of another tree answers as well.
      case $name in
        munged | sacct | salloc) continue ;;
      esac
      echo "no $name below $root"
      return 1
    fi
    # By its own name, by which it starts itself over again.
    words=("$loader" --argv0 "$folder/$name" --library-path "$libraries" "$found")
    # It would start the machine's slurmstepd otherwise.
    [[ $name != slurmd ]] || words+=(-d "$folder/slurmstepd")
    printf '%s\0' "${words[@]}" >"$folder/$name.words"
    [[ $name == slurmctld ]] || cp "$folder/slurmctld" "$folder/$name"
  done
}
