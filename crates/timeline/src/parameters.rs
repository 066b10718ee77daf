//! Parameters behind a controller's name: `gcc:beta=0.9:probe_in_alr=false`.

use weir_cc::Registry;

/// A controller's name, and what is behind it. A name that is registered as it is has nothing behind it.
pub(crate) fn split<'a>(controller: &'a str, registry: &Registry) -> (&'a str, Option<&'a str>) {
    match controller.split_once(':') {
        Some((name, params)) if registry.get(controller).is_none() => (name, Some(params)),
        _ => (controller, None),
    }
}

/// The parameters, each in its unit.
///
/// # Errors
/// One that is no name and number, `true` or `false`.
pub(crate) fn read(params: Option<&str>) -> Result<Vec<(String, f64)>, String> {
    let one = |text: &str| {
        let (name, value) = text.split_once('=')?;
        let number = match value.trim() {
            "true" => 1.0,
            "false" => 0.0,
            value => value.parse().ok().filter(|v: &f64| v.is_finite())?,
        };
        Some((name.trim().to_owned(), number))
    };
    let known = |text| one(text).ok_or_else(|| format!("`{text}` is no PARAMETER=NUMBER, such as `gcc:beta=0.9`"));
    params.map_or(Ok(Vec::new()), |params| params.split(':').map(known).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_are_told_apart() {
        let registry = Registry::builtin();
        assert_eq!(split("gcc", &registry), ("gcc", None));
        assert_eq!(split("gcc:beta=0.9:x=true", &registry), ("gcc", Some("beta=0.9:x=true")));
        let read_ = read(Some("beta=0.9:x=true:y=false")).expect("three");
        assert_eq!(read_, [("beta".into(), 0.9), ("x".into(), 1.0), ("y".into(), 0.0)]);
        assert_eq!(read(None), Ok(vec![]));
        for wrong in ["beta", "beta=", "beta=fast", "beta=inf", ""] {
            assert!(read(Some(wrong)).is_err_and(|e| e.contains("PARAMETER=NUMBER")), "{wrong}");
        }
    }
}
