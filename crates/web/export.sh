#!/usr/bin/env bash
# Writes the lab's page into a folder that any web server can serve.
set -euo pipefail

usage() {
    cat <<'TEXT'
usage: crates/web/export.sh [--profile NAME] DIR

Builds the simulator as WebAssembly and writes it with its page into DIR, which is
made if it is missing. Any file server can serve the folder, from any path:

  crates/web/export.sh /tmp/lab
  python3 -m http.server --directory /tmp/lab 8000
  # then open http://localhost:8000/

After a first visit the page works without a network, where browsers allow it:
over https, or from localhost. It cannot be opened as a file:// address.

  --profile NAME  cargo's profile, web unless given
TEXT
}

profile=web
while [ $# -gt 0 ]; do
    case $1 in
    -h | --help) usage; exit ;;
    --profile) profile=${2:?--profile needs a name}; shift 2 ;;
    -*) echo "unknown option $1" >&2; usage >&2; exit 2 ;;
    *) break ;;
    esac
done
[ $# = 1 ] || { usage >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
target=wasm32-unknown-unknown
if ! rustup target list --installed 2>/dev/null | grep -qx "$target" && ! rustup target add "$target" 2>/dev/null; then
    echo "the target $target is not installed: rustup target add $target" >&2
    exit 3
fi
mkdir -p "$1"
dir=$(cd "$1" && pwd)

cd "$here/../.."
# A page may use at most 1 GiB: a scenario that needs more ends in a message, not in a slow machine.
cargo rustc --quiet --locked --profile "$profile" --target "$target" -p weir-web --lib --crate-type cdylib -- \
    -C link-arg=--max-memory=1073741824
built=${CARGO_TARGET_DIR:-target}/$target/$profile/weir_web.wasm

cp "$built" "$dir/weir.wasm"
cp "$here"/assets/page/* "$dir/"
cp "$here/assets/uplot/uPlot.iife.min.js" "$dir/uplot.js"
cp "$here/assets/uplot/uPlot.min.css" "$dir/uplot.css"
cp "$here/assets/uplot/LICENSE" "$dir/uplot-licence.txt"
chmod -R u+w "$dir"

# What the service worker keeps; it is renewed when any of the files has changed.
cd "$dir"
files=$(printf '"%s", ' ./ ./*.html ./*.css ./*.js ./*.txt ./*.wasm | sed 's|"./sw.js", ||; s|, $||')
version=$(cat ./*.html ./*.css ./*.js ./*.wasm | sha256sum | cut -c1-16)
sed -i "s|VERSION|$version|; s|\"FILES\"|$files|" sw.js
echo "$dir: WebAssembly $(stat -c %s weir.wasm) bytes, compressed (gzip -9) $(gzip -9c weir.wasm | wc -c); files of the page $(cat ./*.html ./*.css ./*.js | gzip -9 | wc -c)"
