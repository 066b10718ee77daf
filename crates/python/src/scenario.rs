//! A scenario as a caller gives it.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use std::path::Path;
use weir_cc::Registry;
use weir_lab::scenario::{InputError, ScenarioFile};

/// A scenario by name or path, as TOML text, or as JSON of the same tables.
pub(crate) enum Given {
    Named(String),
    Text { name: String, toml: String },
    Json { name: String, json: String },
}

impl Given {
    pub(crate) fn open(&self, registry: &Registry) -> Result<ScenarioFile, InputError> {
        match self {
            Self::Named(name) => ScenarioFile::open(name, registry),
            Self::Text { name, toml } => ScenarioFile::parse(name, toml, Path::new("."), registry),
            Self::Json { name, json } => {
                let whole = |what: String| InputError::whole(name, what);
                let value: serde_json::Value = serde_json::from_str(json).map_err(|e| whole(e.to_string()))?;
                let toml = toml::to_string(&value).map_err(|e| whole(format!("no scenario: {e}")))?;
                ScenarioFile::parse(name, &toml, Path::new("."), registry)
            }
        }
    }
}

impl<'py> FromPyObject<'_, 'py> for Given {
    type Error = PyErr;
    /// ("name", NAME), ("toml", NAME, TEXT) or ("json", NAME, TEXT).
    fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let parts: Vec<String> = given.extract()?;
        match &parts[..] {
            [kind, name] if kind == "name" => Ok(Self::Named(name.clone())),
            [kind, name, toml] if kind == "toml" => Ok(Self::Text { name: name.clone(), toml: toml.clone() }),
            [kind, name, json] if kind == "json" => Ok(Self::Json { name: name.clone(), json: json.clone() }),
            _ => Err(PyTypeError::new_err("expected a scenario")),
        }
    }
}
