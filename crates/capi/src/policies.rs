//! The controllers by name: built-in ones, and learned policies as `onnx:FILE` in libraries with the feature `onnx`.

use weir_cc::Registry;
#[cfg(any(test, not(feature = "onnx")))]
use weir_cc::tunable::SetupError;

/// Begins the names of learned policies.
pub(crate) const PREFIX: &str = "onnx:";

/// A registry, whose `find` reads the files that names give.
pub(crate) fn registry() -> Registry {
    let mut registry = Registry::builtin();
    #[cfg(feature = "onnx")]
    weir_onnx::add_to(&mut registry);
    #[cfg(not(feature = "onnx"))]
    refuse(&mut registry);
    registry
}

/// Says how to get learned policies.
#[cfg(any(test, not(feature = "onnx")))]
fn refuse(registry: &mut Registry) {
    registry.add_family(PREFIX, |name| {
        let why = "this library has no learned policies: build it by `crates/capi/install.sh --onnx`, with the cargo \
                   feature `onnx`";
        Err(SetupError::Refused { controller: name.into(), why: why.into() })
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_without_policies_names_the_feature() {
        let mut registry = Registry::builtin();
        refuse(&mut registry);
        let said = registry.find("onnx:policy.onnx").expect_err("refused").to_string();
        assert!(said.contains("onnx:policy.onnx") && said.contains("install.sh --onnx"), "{said}");
    }
}
