#!/bin/bash
# What a script runs beside itself, and its end. The scripts that begin with these functions `trap stop TERM`, in each of
# their subshells too.

# Signals reach a shell only between its commands, unless it waits: so whatever takes time runs beside it.
pause() {
  sleep "$1" &
  wait "$!"
}

# Ends what this shell started and is still running; a subshell ends what it started likewise. A signal that comes before a
# subshell has set its trap is lost: each is asked until it is gone.
end_all() {
  local running
  while running=$(jobs -rp) && [[ -n $running ]]; do
    # Unquoted on purpose: one word per process.
    # shellcheck disable=SC2086
    kill $running 2> /dev/null
    sleep 0.05
  done
  wait
}

stop() {
  trap '' TERM INT HUP
  end_all
  exit 143
}

