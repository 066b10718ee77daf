#!/usr/bin/env bash
# Prints the table of docs/security.md: floods at every listener, and the time in s until a newcomer is served.
# Arguments go to cargo, such as --release.
set -euo pipefail
cd "$(dirname "$0")/.."
echo '| listener | flood | addresses | newcomer, s | 100 ms away, s |'
echo '|---|---|---|---|---|'
cargo test --quiet --workspace --features weir/full --locked "$@" --test flood --test dccp_flood --test service --test calls -- \
  --nocapture --test-threads 1 newcomer | sed -n 's/^flood | /| /p; s/^test .* flood | /| /p'
