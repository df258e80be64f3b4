#!/usr/bin/env bash
# Sets up (Debian packages, build) and passes the tests. Arguments go to ctest: ./tests/run.sh -R placement
set -euo pipefail
cd "$(dirname "$0")/.."
./deploy/install-deps.sh
cmake --preset release >/dev/null
cmake --build --preset release -j "$(nproc)"
exec ctest --preset release -j "$(nproc)" --no-tests=error "$@"
