#!/usr/bin/env bash
# Format and lint.
#   tests/lint.sh format          all sources are as clang-format would have them
#   tests/lint.sh tidy [BASE]     clang-tidy on the sources changed since BASE (default: main), with the release build's compile commands
set -euo pipefail
cd "$(dirname "$0")/.."
case "${1:-}" in
  format)
    git ls-files '*.cc' '*.h' | xargs -r clang-format --dry-run -Werror
    ;;
  tidy)
    git diff --name-only --diff-filter=d "${2:-main}" -- '*.cc' | xargs -r clang-tidy --quiet -p build/release
    ;;
  *)
    echo "usage: tests/lint.sh format | tidy [BASE]" >&2
    exit 2
    ;;
esac
