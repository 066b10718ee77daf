//! The name under which programs look for the shared library: it changes with the ABI.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let os = std::env::var("CARGO_CFG_TARGET_OS").unwrap_or_default();
    if os == "linux" {
        // As WEIR_ABI_VERSION.
        println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libweir.so.1");
    }
}
