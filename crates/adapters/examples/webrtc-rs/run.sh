#!/usr/bin/env bash
# webrtc-rs's own example `bandwidth-estimation-from-disk`, as published in its package, with a controller of Weir's in place of its
# estimator: three lines, one of them in Cargo.toml. Pion receives for a while, and its feedback moves the server between three films.
#
#     crates/adapters/examples/webrtc-rs/run.sh [CONTROLLER] [SECONDS]
#
# With `theirs` for a controller the example is left as it is.
# Their file is taken from cargo's registry, and changed below the target folder. Needs go and ffmpeg.
set -euo pipefail
cd "$(dirname "$0")/../../../.."
controller=${1:-nada} seconds=${2:-20} version=0.21.1
root=$PWD
work=${CARGO_TARGET_DIR:-$root/target}/webrtc-rs
example=bandwidth-estimation-from-disk
mkdir -p "$work/src"

# 1: the dependency, after those that the example has.
cat >"$work/Cargo.toml" <<TOML
[package]
name = "$example"
version = "0.0.0"
edition = "2024"
[dependencies]
anyhow = "1"
bytes = "1"
chrono = "0.4"
clap = { version = "4", features = ["derive"] }
ctrlc = "3"
env_logger = "0.11"
log = "0.4"
rand = "0.9"
rtc = "=$version"
serde_json = "1"
signal = { package = "rtc-signal", version = "=$version" }
tokio = { version = "1", features = ["full"] }
weir-adapters = { path = "$root/crates/adapters" }
[workspace]
TOML
[ -f "$work/Cargo.lock" ] || cp Cargo.lock "$work/Cargo.lock"
touch "$work/src/main.rs"
cargo fetch --quiet --manifest-path "$work/Cargo.toml"
source=$(compgen -G "${CARGO_HOME:-$HOME/.cargo}/registry/src/*/rtc-$version/examples/$example/$example.rs" | head -n 1)

# 2 and 3: the import that is no longer used, and the estimator.
sed -e 's/^use rtc::interceptor::{BandwidthEstimator, EstimatorStats, Gcc, PacketReport, Registry};/use rtc::interceptor::{BandwidthEstimator, EstimatorStats, PacketReport, Registry};/' \
    -e "s/ReportingEstimator::new(Gcc::new(INITIAL_BITRATE, MIN_BITRATE, MAX_BITRATE));/ReportingEstimator::new(weir_adapters::Estimator::new(\"$controller\", \&weir_adapters::Settings::default())?);/" \
    "$source" >"$work/src/main.rs"
[ "$controller" != theirs ] || cp "$source" "$work/src/main.rs"
diff "$source" "$work/src/main.rs" || true
[ "$controller" = theirs ] || [ "$(diff "$source" "$work/src/main.rs" | grep -c '^>')" = 2 ] || { echo "the example is not the one that is known" >&2; exit 1; }
CARGO_TARGET_DIR=$work/target cargo build --quiet --manifest-path "$work/Cargo.toml"

films=$work/films
mkdir -p "$films"
rate() { # rate NAME KBPS: a film of so many kbit/s
    [ -f "$films/$1.ivf" ] || ffmpeg -v error -f lavfi -i testsrc2=size=640x360:rate=30:duration=20 -pix_fmt yuv420p \
        -c:v libvpx -deadline realtime -cpu-used 8 -b:v "$2k" -minrate "$2k" -maxrate "$2k" -g 15 "$films/$1.ivf"
}
rate low 300; rate med 1000; rate high 2500

(cd crates/peer/examples/interop/pion && go build -o "$work/pion" .)
rm -f "$work/offer" "$work/answer" "$work/log"
job() { printf '{"way": "files", "codec": "vp8", "feedback": "twcc", "seconds": %s, "size": [640, 360], "service": "%s"}' "$seconds" "$work"; }
timeout $((seconds + 40)) "$work/pion" "$(job)" >"$work/said" &
receiver=$!
until [ -s "$work/offer" ]; do sleep 0.1; done
timeout $((seconds + 20)) "$work/target/debug/$example" --input-sdp-file "$work/offer" --video-dir "$films" >"$work/log" 2>&1 &
server=$!
until line=$(grep -E '^[A-Za-z0-9+/]{200,}=*$' "$work/log"); do sleep 0.1; done
printf '%s' "$line" >"$work/answer.part" && mv "$work/answer.part" "$work/answer"
wait "$receiver"
kill "$server" 2>/dev/null || true
grep -E 'Switching|Peer Connection State has changed: connected' "$work/log"
tail -n 1 "$work/said" | sed -E 's/"(offer|answer)":"[^"]*",//g'
