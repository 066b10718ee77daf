#!/bin/sh
# Builds the C library and installs it: headers, shared and static library, pkg-config file.
#
#   crates/capi/install.sh [--prefix DIR] [--lab] [--onnx] [--from DIR]
#
#   --prefix DIR  where to: DIR/include, DIR/lib (default /usr/local)
#   --lab         with the simulator, weir_run_json
#   --onnx        with learned policies, the controllers onnx:FILE
#   --from DIR    installs libweir_capi.so and libweir_capi.a from DIR instead of building them
set -eu

prefix=/usr/local
features=
from=
while [ $# -gt 0 ]; do
    case $1 in
        --prefix | --from)
            [ $# -gt 1 ] || { echo "$0: $1 needs a folder" >&2; exit 2; }
            if [ "$1" = --prefix ]; then prefix=$2; else from=$2; fi
            shift
            ;;
        --lab) features="$features lab" ;;
        --onnx) features="$features onnx" ;;
        -h | --help)
            sed -n '2,9s/^# \{0,1\}//p' "$0"
            exit 0
            ;;
        *)
            echo "$0: unknown argument $1: expected --prefix DIR, --lab, --onnx or --from DIR" >&2
            exit 2
            ;;
    esac
    shift
done

here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
if [ -z "$from" ]; then
    target=${CARGO_TARGET_DIR:-$here/../../target}
    cargo build --release --locked --manifest-path "$here/Cargo.toml" --no-default-features --features "$features" \
        --target-dir "$target"
    from=$target/release
fi
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' "$here/../../Cargo.toml")
abi=$(sed -n 's/^#define WEIR_ABI_VERSION //p' "$here/include/weir.h")

mkdir -p "$prefix/include" "$prefix/lib/pkgconfig"
prefix=$(CDPATH= cd -- "$prefix" && pwd)
cp "$here"/include/weir.h "$here"/include/weir_network_controller.hpp "$prefix/include/"
cp "$from/libweir_capi.a" "$prefix/lib/libweir.a"
cp "$from/libweir_capi.so" "$prefix/lib/libweir.so.$version"
ln -sf "libweir.so.$version" "$prefix/lib/libweir.so.$abi"
ln -sf "libweir.so.$abi" "$prefix/lib/libweir.so"
# What Rust's standard library needs, as `rustc --print native-static-libs` has it.
sed -e "s|@prefix@|$prefix|" -e "s|@version@|$version|" -e "s|@private@|-lgcc_s -lutil -lrt -lpthread -lm -ldl|" \
    "$here/weir.pc.in" >"$prefix/lib/pkgconfig/weir.pc"
echo "installed in $prefix; pkg-config finds it with PKG_CONFIG_PATH=$prefix/lib/pkgconfig"
