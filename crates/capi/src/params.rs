//! Controllers by name, with parameters as text.

use crate::failure::{Failure, Status};
use crate::policies::PREFIX;
use weir_cc::Registry;
use weir_cc::tunable::SetupError;
use weir_cc::tunable::hint;

/// Most bytes of the text of parameters.
const MAX_TEXT: usize = 16 << 10;

/// `name = value` pairs, separated by commas, semicolons or line ends; true and false are 1 and 0, `#` begins a comment.
/// A flat TOML table is of this form.
pub(crate) fn parse(text: &str) -> Result<Vec<(String, f64)>, Failure> {
    if text.len() > MAX_TEXT {
        return Err(Failure::value("length of the parameters", text.len(), "at most 16384 bytes"));
    }
    let mut params: Vec<(String, f64)> = Vec::new();
    for line in text.lines() {
        let line = line.split('#').next().unwrap_or_default();
        for pair in line.split([',', ';']).map(str::trim).filter(|p| !p.is_empty()) {
            let (name, value) = pair.split_once('=').ok_or_else(|| {
                Failure::new(Status::BadValue, format!("parameter `{pair}` has no value: expected name=number"))
            })?;
            let (name, value) = (name.trim(), value.trim());
            let number = match value {
                "true" => Some(1.0),
                "false" => Some(0.0),
                _ => value.parse().ok().filter(|n: &f64| n.is_finite()),
            };
            let number = number.ok_or_else(|| {
                Failure::value(
                    &format!("parameter `{name}`"),
                    format_args!("`{value}`"),
                    "a finite number, true or false",
                )
            })?;
            if params.iter().any(|(known, _)| known == name) {
                return Err(Failure::new(
                    Status::BadValue,
                    format!("parameter `{name}` is given twice: leave one out"),
                ));
            }
            params.push((name.into(), number));
        }
    }
    Ok(params)
}

/// Why a controller could not be made, with the nearest name.
pub(crate) fn refused(e: &SetupError, registry: &Registry) -> Failure {
    match e {
        SetupError::UnknownController { name } => {
            let known = registry.specs().map(|s| s.name.as_str());
            Failure::new(Status::UnknownName, format!("{e}{}", hint(name, known)))
        }
        SetupError::UnknownParam { controller, name, known } if !known.is_empty() => {
            let hint = hint(name, known.iter().copied());
            Failure::new(Status::UnknownName, format!("controller `{controller}` has no parameter `{name}`{hint}"))
        }
        SetupError::UnknownParam { .. } => Failure::new(Status::UnknownName, e.to_string()),
        SetupError::Refused { controller, .. } if !cfg!(feature = "onnx") && controller.starts_with(PREFIX) => {
            Failure::new(Status::Unsupported, e.to_string())
        }
        SetupError::OutOfRange { .. } | SetupError::Refused { .. } => Failure::new(Status::BadValue, e.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_pairs_on_one_line_or_several() {
        let two = vec![("beta".to_owned(), 0.8), ("probing".to_owned(), 1.0)];
        assert_eq!(parse("beta=0.8, probing = true").as_ref(), Ok(&two));
        assert_eq!(parse("# TOML\nbeta = 0.8  # less\nprobing = 1\n").as_ref(), Ok(&two));
        assert_eq!(parse(" ;;, \n"), Ok(vec![]));
    }

    #[test]
    fn faults_name_the_pair() {
        for (text, says) in [
            ("beta", "parameter `beta` has no value: expected name=number"),
            ("beta=fast", "parameter `beta` is `fast`: expected a finite number, true or false"),
            ("beta=nan", "parameter `beta` is `nan`: expected a finite number, true or false"),
            ("a=1,a=2", "parameter `a` is given twice: leave one out"),
        ] {
            assert_eq!(parse(text).expect_err(text).text, says);
        }
        assert!(parse(&" ".repeat(MAX_TEXT + 1)).is_err());
    }
}
