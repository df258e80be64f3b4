#!/usr/bin/env bash
# Fuzzes each target for a while, from the seeds in tests/data/fuzz and what earlier runs found (kept in build/fuzz/corpus).
#   tests/fuzz/run.sh [SECONDS]      for each target; default 60
# An input that fails is written to build/fuzz/ and named; once fixed, put it into tests/data/fuzz/TARGET, where fuzz_replay_test replays it.
set -euo pipefail
cd "$(dirname "$0")/../.."
seconds=${1:-60}
cmake --preset fuzz >/dev/null
cmake --build --preset fuzz --target fuzz_fabric fuzz_host_list
for target in fabric host_list; do
  mkdir -p "build/fuzz/corpus/$target"
  seeds=("tests/data/fuzz/$target")
  [[ $target != fabric ]] || seeds+=(deploy/topologies)
  "build/fuzz/fuzz/fuzz_$target" -max_total_time="$seconds" -max_len=4096 -timeout=30 -rss_limit_mb=4096 -print_final_stats=1 \
    -artifact_prefix="build/fuzz/$target-" "build/fuzz/corpus/$target" "${seeds[@]}"
done
