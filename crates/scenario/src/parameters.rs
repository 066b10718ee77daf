//! Parameters behind a controller's name, as on the command line: `gcc:beta=0.9:probe_in_alr=false`.

use super::InputError;
use weir_cc::Registry;
use weir_cc::tunable::SetupError;

/// A controller's name, and the parameters behind it. A name that is registered as it is has none: those of learned policies and
/// of other programs have colons themselves.
pub fn split_parameters<'a>(controller: &'a str, registry: &Registry) -> (&'a str, Option<&'a str>) {
    match registry.find(controller) {
        Err(SetupError::UnknownController { .. }) => {
            controller.split_once(':').map_or((controller, None), |(name, params)| (name, Some(params)))
        }
        _ => (controller, None),
    }
}

/// A scenario's text with `PARAMETER=VALUE:...` among the parameters of a controller, in place of its own values.
///
/// # Errors
/// A value that is no TOML, or a text that has something else there.
pub fn with_parameters(text: &str, name: &str, params: &str) -> Result<String, InputError> {
    written(text, name, params).ok_or_else(|| {
        InputError::whole(format!("{name}:{params}"), format!("`{params}` is no PARAMETER=VALUE:..."))
            .help("such as `gcc:beta=0.9:probe_in_alr=false`")
    })
}

fn written(text: &str, name: &str, params: &str) -> Option<String> {
    let mut scenario: toml::Table = text.parse().ok()?;
    let own: toml::Table = params.split(':').map(|p| format!("{p}\n")).collect::<String>().parse().ok()?;
    let table = || toml::Value::Table(toml::Table::new());
    let mut place = &mut scenario;
    for key in ["controllers", name, "params"] {
        place = place.entry(key).or_insert_with(table).as_table_mut()?;
    }
    place.extend(own);
    toml::to_string(&scenario).ok()
}
