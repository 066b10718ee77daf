#!/usr/bin/env bash
# Runs the scenarios of `weir bench` in Debian's ns-3.37, each with and without ns-3's flow monitor, and prints one JSON
# line for each run on standard output.
# usage: run.sh [SCALE]     SCALE multiplies the simulated times (1 takes about 15 seconds of CPU)
# Needs `apt-get install g++ libns3-dev`; exits with 3 and says so where they are missing.
# The program is kept in $WEIR_COMPARE_DIR, by default target/compare, and built anew only when its source changes.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
scale=${1:-1}
out=${WEIR_COMPARE_DIR:-$here/../../target/compare}

if ! command -v g++ >/dev/null || [ ! -e /usr/include/ns3/core-module.h ]; then
    echo "ns-3 is not installed: apt-get install g++ libns3-dev" >&2
    exit 3
fi
mkdir -p "$out"
if [ ! -x "$out/scenarios" ] || [ "$here/scenarios.cc" -nt "$out/scenarios" ]; then
    g++ -O2 -DNDEBUG -std=c++17 -o "$out/scenarios" "$here/scenarios.cc" \
        -lns3-flow-monitor -lns3-applications -lns3-internet -lns3-traffic-control -lns3-point-to-point -lns3-network -lns3-core
fi
times() { awk -v a="$1" -v b="$scale" 'BEGIN { print a * b }'; }
for monitor in "" flow-monitor; do
    "$out/scenarios" udp "$(times 600)" $monitor
    "$out/scenarios" udp-newreno "$(times 600)" $monitor
    "$out/scenarios" gigabit "$(times 3)" $monitor
done
