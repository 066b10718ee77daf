//! Admission to a listener that strangers reach: who gets a place, and who gives way for it. Sans-IO: time is an argument.
//!
//! A bound that refuses the newest locks newcomers out for whoever fills the places; one that closes the oldest does so for
//! whoever connects fast enough. Here a newcomer always gets a place, and the one that gives way is of the source
//! that holds most places, so that many places cost their holder many addresses, and a newcomer from an address
//! of its own keeps its place while any other source holds more.
//!
//! There are two bounds. *Strangers* have proved nothing yet; the bound on them never touches the others. Who has *proved*
//! something (a token, data, a return path: what it is, the listener decides) moves to places that strangers cannot take. Of
//! those places, one in use gives way only where its source holds more than a stated share.

mod doors;
mod hall;
mod source;

pub use doors::{Doors, Limits, Proof, Ticket};
pub use hall::{Guest, Hall};
pub use source::Source;

#[cfg(test)]
mod tests;
