//! Learned policies among the controllers: `onnx:FILE`.

use weir_cc::Registry;

/// A registry with the controllers that files hold.
#[cfg(feature = "onnx")]
pub(crate) fn with_policies(mut registry: Registry) -> Registry {
    weir_onnx::add_to(&mut registry);
    registry
}

/// A registry that says how to get learned policies.
#[cfg(not(feature = "onnx"))]
pub(crate) fn with_policies(mut registry: Registry) -> Registry {
    registry.add_family("onnx:", |name| {
        let why = "this build has no learned policies: cargo build --release --features onnx".into();
        Err(weir_cc::tunable::SetupError::Refused { controller: name.into(), why })
    });
    registry
}
