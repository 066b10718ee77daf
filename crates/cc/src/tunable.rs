//! Parameters that can be set by name.

mod nearest;

pub use nearest::hint;

use weir_units::{DataRate, DataSize, TimeDelta};

/// A value that can be set from a number in a named unit.
pub trait Tunable: Copy {
    /// The unit of the number, as written in scenario files and help.
    const UNIT: &'static str;
    /// The value of a number in [`Self::UNIT`].
    fn from_number(n: f64) -> Self;
    /// The number in [`Self::UNIT`].
    fn to_number(self) -> f64;
}

impl Tunable for f64 {
    const UNIT: &'static str = "1";
    fn from_number(n: f64) -> Self {
        n
    }
    fn to_number(self) -> f64 {
        self
    }
}
impl Tunable for u32 {
    const UNIT: &'static str = "count";
    fn from_number(n: f64) -> Self {
        n as Self
    }
    fn to_number(self) -> f64 {
        f64::from(self)
    }
}
impl Tunable for bool {
    const UNIT: &'static str = "0 or 1";
    fn from_number(n: f64) -> Self {
        n != 0.0
    }
    fn to_number(self) -> f64 {
        f64::from(u8::from(self))
    }
}
impl Tunable for TimeDelta {
    const UNIT: &'static str = "ms";
    fn from_number(n: f64) -> Self {
        Self::from_millis_f64(n)
    }
    fn to_number(self) -> f64 {
        self.as_millis_f64()
    }
}
impl Tunable for DataRate {
    const UNIT: &'static str = "kbit/s";
    fn from_number(n: f64) -> Self {
        Self::from_bps_f64(n * 1e3)
    }
    fn to_number(self) -> f64 {
        self.as_kbps_f64()
    }
}
impl Tunable for DataSize {
    const UNIT: &'static str = "bytes";
    fn from_number(n: f64) -> Self {
        Self::from_bytes(n as u64)
    }
    fn to_number(self) -> f64 {
        self.as_bytes() as f64
    }
}

/// Description of one parameter.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ParamInfo {
    /// Name in scenario files.
    pub name: &'static str,
    /// Meaning, and source of the default.
    pub doc: &'static str,
    /// Unit of the values below.
    pub unit: &'static str,
    /// Value when it is not set.
    pub default: f64,
    /// Least value allowed.
    pub min: f64,
    /// Greatest value allowed.
    pub max: f64,
}

/// Whether a value lies between a parameter's bounds, which are rounded as the value's type rounds.
pub fn is_within<T: Tunable>(value: T, param: &ParamInfo) -> bool {
    let rounded = |bound| T::from_number(bound).to_number();
    (rounded(param.min)..=rounded(param.max)).contains(&value.to_number())
}

/// Why a controller could not be made.
#[derive(Clone, PartialEq, Debug)]
pub enum SetupError {
    /// No controller has this name.
    UnknownController {
        /// The name requested.
        name: String,
    },
    /// The controller has no such parameter.
    UnknownParam {
        /// The controller.
        controller: String,
        /// The name requested.
        name: String,
        /// The existing names.
        known: Vec<&'static str>,
    },
    /// The value lies outside the parameter's range.
    OutOfRange {
        /// The controller.
        controller: String,
        /// The parameter.
        param: ParamInfo,
        /// The value requested.
        value: f64,
    },
    /// The controller's source is at fault, such as a file that its name gives.
    Refused {
        /// The controller.
        controller: String,
        /// The fault, and what is expected.
        why: String,
    },
}

impl core::fmt::Display for SetupError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::UnknownController { name } => write!(f, "no controller is named `{name}`"),
            Self::UnknownParam { controller, name, known } if known.is_empty() => {
                write!(f, "controller `{controller}` has no parameter `{name}`: it has none at all")
            }
            Self::UnknownParam { controller, name, known } => {
                write!(f, "controller `{controller}` has no parameter `{name}`; it has {}", known.join(", "))
            }
            Self::OutOfRange { controller, param: p, value } => {
                // Shares, counts and switches are plain numbers.
                let unit = match p.unit {
                    unit @ ("ms" | "kbit/s" | "bytes") => format!(" {unit}"),
                    _ => String::new(),
                };
                write!(
                    f,
                    "parameter `{}` of controller `{controller}` is {value}{unit}; it must lie between {} and {}{unit}",
                    p.name, p.min, p.max,
                )
            }
            Self::Refused { controller, why } => write!(f, "controller `{controller}`: {why}"),
        }
    }
}
impl std::error::Error for SetupError {}

/// Declares a controller's configuration: a struct with documented public fields, its `Default`, the list of its
/// parameters and a setter by name. Values are in the unit of the field's type ([`Tunable::UNIT`]).
///
/// A parameter has the name of its field, or that after `as`. Fields without a value are groups: structs that were
/// declared in the same module by this macro, whose parameters are those of the whole.
///
/// ```
/// weir_cc::tunables! {
///     /// Configuration of an example.
///     pub struct Config {
///         /// Response to losses.
///         loss: LossConfig;
///     }
/// }
/// weir_cc::tunables! {
///     /// Response to losses.
///     pub struct LossConfig {
///         /// Share of the estimate that is kept on congestion (draft-ietf-rmcat-gcc-02, section 5.5).
///         decrease as beta: f64 = 0.85, 0.5 => 0.99;
///     }
/// }
/// assert_eq!(Config::params()[0].name, "beta");
/// let config = Config::from_params("example", &[("beta".into(), 0.9)]).unwrap();
/// assert_eq!(config.loss.decrease, 0.9);
/// ```
#[macro_export]
macro_rules! tunables {
    (@name $field:ident) => { stringify!($field) };
    (@name $field:ident $param:ident) => { stringify!($param) };
    (@setters $name:ident) => {
        impl $name {
            /// The defaults with these parameters replaced. Errors: as [`Self::set_all`].
            pub fn from_params(controller: &str, params: &[(String, f64)]) -> Result<Self, $crate::tunable::SetupError> {
                let mut config = Self::default();
                config.set_all(controller, params)?;
                Ok(config)
            }
            /// Sets parameters by name. Errors: an unknown name, a value outside its range.
            pub fn set_all(&mut self, controller: &str, params: &[(String, f64)]) -> Result<(), $crate::tunable::SetupError> {
                use $crate::tunable::SetupError;
                for (name, value) in params {
                    let known = Self::params();
                    let Some(info) = known.iter().find(|p| p.name == name) else {
                        return Err(SetupError::UnknownParam {
                            controller: controller.into(), name: name.clone(),
                            known: known.iter().map(|p| p.name).collect(),
                        });
                    };
                    if !(info.min..=info.max).contains(value) {
                        return Err(SetupError::OutOfRange { controller: controller.into(), param: *info, value: *value });
                    }
                    self.set_checked(name, *value);
                }
                Ok(())
            }
        }
    };
    ($(#[$meta:meta])* pub struct $name:ident {
        $($(#[doc = $doc:literal])+ $field:ident $(as $param:ident)? : $ty:ty = $default:expr, $min:expr => $max:expr;)*
    }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Debug)]
        pub struct $name { $($(#[doc = $doc])+ pub $field: $ty,)* }

        impl Default for $name {
            fn default() -> Self {
                Self { $($field: <$ty as $crate::tunable::Tunable>::from_number(f64::from($default)),)* }
            }
        }
        impl $name {
            /// The parameters that a scenario may set.
            pub fn params() -> Vec<$crate::tunable::ParamInfo> {
                vec![$($crate::tunable::ParamInfo {
                    name: $crate::tunables!(@name $field $($param)?),
                    doc: concat!($($doc),+).trim_ascii(),
                    unit: <$ty as $crate::tunable::Tunable>::UNIT,
                    default: f64::from($default), min: f64::from($min), max: f64::from($max),
                },)*]
            }
            /// Checks every field. Errors: a value outside its range; the error names both.
            pub fn check(&self, controller: &str) -> Result<(), $crate::tunable::SetupError> {
                use $crate::tunable::{SetupError, is_within};
                let [$($field),*] = Self::params()[..] else { return Ok(()) };
                $(if !is_within(self.$field, &$field) {
                    let value = $crate::tunable::Tunable::to_number(self.$field);
                    return Err(SetupError::OutOfRange { controller: controller.into(), param: $field, value });
                })*
                Ok(())
            }
            /// Sets the parameter of this name, if there is one, to a value within its range.
            fn set_checked(&mut self, name: &str, value: f64) {
                $(if name == $crate::tunables!(@name $field $($param)?) {
                    self.$field = <$ty as $crate::tunable::Tunable>::from_number(value);
                })*
            }
        }
        $crate::tunables!(@setters $name);
    };
    ($(#[$meta:meta])* pub struct $name:ident {
        $($(#[doc = $doc:literal])+ $group:ident : $ty:ident;)*
    }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Debug, Default)]
        pub struct $name { $($(#[doc = $doc])+ pub $group: $ty,)* }

        impl $name {
            /// The parameters that a scenario may set, group by group.
            pub fn params() -> Vec<$crate::tunable::ParamInfo> {
                [$($ty::params()),*].concat()
            }
            /// Checks every field. Errors: a value outside its range; the error names both.
            pub fn check(&self, controller: &str) -> Result<(), $crate::tunable::SetupError> {
                $(self.$group.check(controller)?;)*
                Ok(())
            }
            /// Sets the parameter of this name, if there is one, to a value within its range.
            fn set_checked(&mut self, name: &str, value: f64) {
                $(self.$group.set_checked(name, value);)*
            }
        }
        $crate::tunables!(@setters $name);
    };
}
