//! The fields that flows of every kind have.

use serde::Deserialize;

/// Direction of a flow.
#[derive(Deserialize, Clone, Copy, PartialEq, Eq, Default, Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", schemars(rename = "Direction"))]
pub(crate) enum RawDirection {
    /// Along the links.
    #[default]
    Forward,
    /// Against them.
    Reverse,
}

macro_rules! flow {
    ($(#[$meta:meta])* $name:ident as $schema:literal { $($(#[$fmeta:meta])* $field:ident : $ty:ty,)* }) => {
        $(#[$meta])*
        #[derive(Deserialize, Clone, Debug)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(deny_unknown_fields, expecting = "a table such as { start = \"10 s\", count = 2 }")]
        #[cfg_attr(feature = "schema", schemars(rename = $schema))]
        pub(crate) struct $name {
            /// When it starts; at once if absent.
            pub(crate) start: Option<At<Time>>,
            /// When it stops; at the end of the run if absent.
            pub(crate) stop: Option<At<Time>>,
            /// Number of flows of this kind, named `name-1`, `name-2` and so on; one if absent.
            pub(crate) count: Option<At<u32>>,
            /// Time between the starts of those flows; none if absent.
            pub(crate) stagger: Option<Time>,
            /// "forward" if absent.
            #[serde(default)]
            pub(crate) direction: RawDirection,
            /// Links that it crosses, neighbours in the order of the file (in a network any, in the order given here); all of them if absent.
            pub(crate) path: Option<At<Vec<At<String>>>>,
            /// Differentiated services code point of its packets, feedback and acknowledgements included, for queue
            /// disciplines by class: "EF", "AF41", "CS1", "LE" and so on (RFC 8837, table 1); "DF" if absent.
            pub(crate) dscp: Option<At<String>>,
            /// Total one-way delay of its own access links; the file's `access.delay` if absent.
            pub(crate) access_delay: Option<Time>,
            /// Rate of its own access links; the file's `access.rate` if absent.
            pub(crate) access_rate: Option<At<Rate>>,
            $($(#[$fmeta])* pub(crate) $field: $ty,)*
        }
    };
}
pub(crate) use flow;
