#!/usr/bin/env bash
# quickstart.sh ends 0 with eight right sums, on hosts that are contiguous in the fabric, and its stop leaves no process.
set -euo pipefail
cd "$(dirname "$0")/../.."
trap './deploy/quickstart.sh stop' EXIT
output=$(./deploy/quickstart.sh)
echo "$output"
[[ $(grep -c 'sum = 36, as expected' <<<"$output") == 8 ]]
grep -Eq 'host\[1-4\]|host\[3-4,1-2\]' <<<"$output"
pids=$(cat build/quickstart/*.pid)
./deploy/quickstart.sh stop
for pid in $pids; do
  [[ ! -e /proc/$pid ]] || { echo "process $pid is left"; exit 1; }
done
