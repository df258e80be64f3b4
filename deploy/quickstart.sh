#!/usr/bin/env bash
# A whole Closeknit cluster on this machine, and a real PyTorch job on it.
#
#   deploy/quickstart.sh         install, build, start knitd and four agents (four "hosts" in two racks, on loopback), run an
#                                eight-rank all-reduce as a gang, show what happened; leaves the cluster running
#   deploy/quickstart.sh stop    stop it
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
state=$root/build/quickstart
bin=$root/build/release/bin
hosts=(host1 host2 host3 host4)

say() { printf '\n\033[1m== %s\033[0m\n' "$*"; }

# Ends what an earlier run started, by its pid files. A pid that now belongs to another program is left alone.
stop_cluster() {
  local file pid name
  for file in "$state"/*.pid; do
    [[ -e "$file" ]] || continue
    pid=$(<"$file")
    name=$(basename "$(readlink "/proc/$pid/exe" 2>/dev/null || true)")
    if [[ "$name" == knitd* || "$name" == knit-agent* ]]; then
      kill "$pid" 2>/dev/null || true
      for _ in {1..100}; do
        [[ -e "/proc/$pid" ]] || break
        sleep 0.1
      done
    fi
    rm -f "$file"
  done
}

# start NAME COMMAND...: in the background, with a pid file and a log.
start() {
  local name=$1
  shift
  setsid "$@" >>"$state/$name.log" 2>&1 </dev/null &
  echo $! >"$state/$name.pid"
}

# wait_until SECONDS WHAT COMMAND...: until the command succeeds.
wait_until() {
  local deadline=$((SECONDS + $1)) what=$2
  shift 2
  until "$@" >/dev/null 2>&1; do
    if ((SECONDS >= deadline)); then
      echo "quickstart.sh: $what did not happen in time; see $state/*.log" >&2
      exit 1
    fi
    sleep 0.1
  done
}

if [[ "${1:-}" == stop ]]; then
  stop_cluster
  echo "stopped"
  exit 0
elif [[ $# -gt 0 ]]; then
  echo "usage: deploy/quickstart.sh [stop]" >&2
  exit 2
fi

say "1. Packages and build (the first time takes minutes)"
./deploy/install-deps.sh
cmake --preset release >/dev/null
cmake --build --preset release -j "$(nproc)" --target knitd knit-agent knit-shim knit knit-plan

say "2. A scheduler, and four agents as four hosts in two racks"
stop_cluster
rm -rf "$state"
mkdir -p "$state"
start knitd "$bin/knitd" --listen 127.0.0.1:0 --port-file "$state/port" --metrics off --data "$state/data" \
  --topology deploy/topologies/loopback.yaml
wait_until 30 "knitd's start" test -s "$state/port"
export KNIT_SCHEDULER=127.0.0.1:$(<"$state/port")
for i in "${!hosts[@]}"; do
  host=${hosts[$i]}
  start "$host" "$bin/knit-agent" --scheduler "$KNIT_SCHEDULER" --node "$host" --address "127.0.1.$((i + 1))" --gpus 2 \
    --spool "$state/$host"
done
four_idle() { [[ $("$bin/knit" nodes -N --no-headers | grep -c idle) == 4 ]]; }
wait_until 30 "the agents' arrival" four_idle
"$bin/knit" nodes -N

say "3. A real job: eight ranks of PyTorch (gloo) sum a tensor, placed and started as one gang"
job=$("$bin/knit" submit --parsable -J allreduce -N 4 --gpus-per-node 2 --parallelism dp=8 -t 5 --chdir "$root" \
  -- /usr/bin/python3 deploy/examples/allreduce.py)
echo "submitted as job $job"
"$bin/knit" queue
wait_until 120 "the end of job $job" bash -c "'$bin/knit' show job $job -o json | grep -q '\"end_time\"'"

say "4. Where it ran and what that costs the fabric"
"$bin/knit" show job "$job"

say "5. What its ranks said"
"$bin/knit" logs "$job"
sums=$("$bin/knit" logs "$job" | grep -c 'sum = 36, as expected' || true)
if [[ $sums != 8 ]]; then
  echo "quickstart.sh: $sums of 8 ranks printed the right sum" >&2
  exit 1
fi

cat <<END

All 8 ranks agree. The cluster goes on running; try it:

  export KNIT_SCHEDULER=$KNIT_SCHEDULER PATH=$bin:\$PATH
  knit run -N 2 --gpus-per-node 2 -- sh -c 'echo rank \$RANK of \$WORLD_SIZE on \$KNIT_NODE'
  knit submit -N 1 --array 0-3 -- sleep 20 ; knit queue
  knit plan --topology deploy/topologies/roce-24576.yaml --nodes 384 --parallelism tp=8,pp=16,dp=24
  knit --help

Stop it:

  ./deploy/quickstart.sh stop
END
