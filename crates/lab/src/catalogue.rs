//! Lists of the controllers, with their parameters, and of the scenarios that ship with Weir, for programs outside Rust.

use super::scenario::{InputError, ScenarioFile, builtin_scenarios};
use serde::Serialize;
use weir_cc::{Registry, Spec};

/// A parameter of a controller.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Parameter {
    /// Name in scenario files.
    pub name: &'static str,
    /// Unit of the numbers below; empty if it has none.
    pub unit: &'static str,
    /// Value unless another is given.
    pub default: f64,
    /// Least value.
    pub min: f64,
    /// Greatest value.
    pub max: f64,
    /// Its effect, and its source.
    pub doc: &'static str,
}

/// A controller.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Controller {
    /// Name in scenario files.
    pub name: String,
    /// One line for lists.
    pub summary: String,
    /// The specification that it follows.
    pub source: String,
    /// Whether it adapts its rate to the path.
    pub adapts: bool,
    /// Its parameters.
    pub params: Vec<Parameter>,
}

/// A scenario that ships with Weir.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Shipped {
    /// Full name, `folder/stem`.
    pub name: String,
    /// One line for lists.
    pub title: String,
    /// Its purpose, and its source.
    pub doc: String,
    /// The controllers that it compares; none if it names its own.
    pub controllers: Vec<String>,
    /// Its variants; none if it has no others.
    pub variants: Vec<String>,
    /// The file.
    pub text: String,
}

/// The controllers of a registry, in its order.
pub fn controllers(registry: &Registry) -> Vec<Controller> {
    let entry = |s: &Spec| Controller {
        name: s.name.clone(),
        summary: s.summary.clone(),
        source: s.source.clone(),
        adapts: s.adapts,
        params: (s.params.iter())
            .map(|p| Parameter { name: p.name, unit: p.unit, default: p.default, min: p.min, max: p.max, doc: p.doc })
            .collect(),
    };
    registry.specs().map(entry).collect()
}

/// The scenarios that ship with Weir, in the order of their names. Errors: one requires a controller that the registry
/// lacks.
pub fn scenarios(registry: &Registry) -> Result<Vec<Shipped>, InputError> {
    let entry = |(name, text): (&str, &str)| {
        let file = ScenarioFile::builtin(name, registry)?;
        Ok(Shipped {
            name: name.to_owned(),
            title: file.title().to_owned(),
            doc: file.doc().to_owned(),
            controllers: file.controllers().to_vec(),
            variants: file.variants().into_iter().flatten().map(str::to_owned).collect(),
            text: text.to_owned(),
        })
    };
    builtin_scenarios().map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_name_what_can_be_run() {
        let registry = Registry::builtin();
        let all = controllers(&registry);
        let gcc = all.iter().find(|c| c.name == "gcc").expect("listed");
        assert!(gcc.adapts && gcc.params.len() > 10);
        assert!(gcc.params.iter().all(|p| p.min <= p.default && p.default <= p.max));
        let shipped = scenarios(&registry).expect("sound");
        assert_eq!(shipped.len(), builtin_scenarios().count());
        let one = shipped.iter().find(|s| s.name.ends_with("/responsiveness")).expect("listed");
        assert_eq!(one.controllers, ["gcc", "nada", "scream"]);
        assert!(one.text.contains(&one.title) && one.variants.is_empty());
    }
}
