//! The committed header is the one that cbindgen makes of the sources.

use std::path::Path;

#[test]
fn the_header_is_current() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(here.join("cbindgen.toml")).expect("cbindgen.toml");
    // The sources alone are read: cargo is not asked, which would lock the build.
    let mut builder = cbindgen::Builder::new().with_config(config);
    for file in ["failure", "table", "types", "border/general", "border/controller", "border/fec", "border/lab"] {
        builder = builder.with_src(here.join("src").join(file).with_extension("rs"));
    }
    let mut made = Vec::new();
    builder.generate().expect("the sources have a C interface").write(&mut made);
    let made = String::from_utf8(made).expect("UTF-8");
    let path = here.join("include/weir.h");
    if std::env::var_os("WEIR_BLESS").is_some() {
        std::fs::write(&path, &made).expect("writable");
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    let first = made.lines().zip(kept.lines()).position(|(a, b)| a != b);
    let advice = "WEIR_BLESS=1 cargo test -p weir-capi --test header";
    assert!(made == kept, "include/weir.h is not current, from line {:?}: {advice}", first.map(|l| l + 1));
    // Exported functions are declared: every function of the border.
    let border = ["general", "controller", "fec", "lab"].map(|f| here.join(format!("src/border/{f}.rs")));
    let sources = border.map(|f| std::fs::read_to_string(f).expect("a source")).concat();
    let exported: Vec<&str> = sources.split("extern \"C\" fn ").skip(1).filter_map(|f| f.split('(').next()).collect();
    assert!(exported.len() >= 28, "{exported:?}");
    for name in exported {
        assert!(kept.contains(&format!("{name}(")), "{name} is not in the header");
    }
}
