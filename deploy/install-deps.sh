#!/usr/bin/env bash
# Installs what Closeknit needs to build, test and run its quickstart on Debian 12: Debian packages, nothing else.
# Idempotent, and quick when nothing is missing: packages that are installed are not asked for again.
#
#   deploy/install-deps.sh          everything (what quickstart.sh and tests/run.sh call)
#   deploy/install-deps.sh --list   print the packages, install nothing
set -euo pipefail

packages=(
  # build tools
  g++ cmake ninja-build pkg-config ccache mold git
  # the stack
  libgrpc++-dev protobuf-compiler protobuf-compiler-grpc libprotobuf-dev libprotoc-dev
  libabsl-dev librocksdb-dev prometheus-cpp-dev libyaml-cpp-dev libcli11-dev
  # tests and benches
  libgtest-dev libgmock-dev libbenchmark-dev clang-format
  # jobs of the quickstart, the Python client test
  python3 python3-torch python3-grpcio python3-protobuf
)

if [[ "${1:-}" == "--list" ]]; then
  printf '%s\n' "${packages[@]}"
  exit 0
fi

missing=()
for package in "${packages[@]}"; do
  status=$(dpkg-query -W -f='${Status}' "$package" 2>/dev/null || true)
  [[ "$status" == "install ok installed" ]] || missing+=("$package")
done
if ((${#missing[@]} == 0)); then
  exit 0
fi

sudo=()
if [[ $EUID -ne 0 ]]; then
  command -v sudo >/dev/null || { echo "install-deps.sh: run as root, or install sudo" >&2; exit 1; }
  sudo=(sudo)
fi
echo "install-deps.sh: installing ${missing[*]}" >&2
export DEBIAN_FRONTEND=noninteractive
"${sudo[@]}" apt-get update -qq
"${sudo[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
