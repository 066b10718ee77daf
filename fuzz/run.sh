#!/usr/bin/env bash
# Builds every fuzz target and runs each for a fixed number of inputs: fuzz/run.sh [runs].
# Needs a nightly toolchain; takes cargo-fuzz from crates.io where it is missing. A failing input stays in fuzz/artifacts.
set -euo pipefail
cd "$(dirname "$0")/.."
runs=${1:-10000}

toolchain=$(rustup toolchain list | grep -o '^nightly[^ ]*' | head -n 1 || true)
if [ -z "$toolchain" ]; then
    echo "fuzz: no nightly toolchain; skipped (rustup toolchain install nightly)" >&2
    exit 0
fi
if ! cargo "+$toolchain" fuzz --version >/dev/null 2>&1; then
    tools=$PWD/target/tools
    if [ ! -x "$tools/bin/cargo-fuzz" ]; then
        echo "fuzz: installing cargo-fuzz into target/tools"
        cargo install --quiet --locked --root "$tools" cargo-fuzz@0.13.2
    fi
    export PATH=$tools/bin:$PATH
fi

corpus=$(mktemp -d)
trap 'rm -rf "$corpus"' EXIT
# Its own target folder, so that it never waits for another cargo.
export CARGO_TARGET_DIR=$PWD/fuzz/target
# Without the address sanitizer, since the targets reach safe Rust, and optimised little: building takes longer than so few inputs.
export CARGO_PROFILE_RELEASE_OPT_LEVEL=${CARGO_PROFILE_RELEASE_OPT_LEVEL:-1} CARGO_PROFILE_RELEASE_DEBUG=0
cargo "+$toolchain" fuzz build --sanitizer none
for target in fuzz/targets/*.rs; do
    name=$(basename "$target" .rs)
    mkdir "$corpus/$name"
    seeds=()
    [ -d "fuzz/seeds/$name" ] && seeds=("fuzz/seeds/$name")
    count=$runs
    # Handshakes, and whole files that are read, judged and redacted: one input takes as long as dozens of others.
    case $name in peer | recording) count=$((runs / 4)) ;; esac
    echo "fuzz: $name, $count inputs"
    # A fixed seed gives every run the same inputs; new ones go to the temporary corpus.
    cargo "+$toolchain" fuzz run --sanitizer none "$name" "$corpus/$name" "${seeds[@]}" -- \
        -runs="$count" -seed=1 -max_len=1500 -timeout=5 -rss_limit_mb=1024 -print_final_stats=0 2>"$corpus/$name.log" ||
        { cat "$corpus/$name.log" >&2; exit 1; }
done
echo "fuzz: all targets passed"
