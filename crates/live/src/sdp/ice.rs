//! ICE in descriptions (RFC 8839): credentials and candidates of the one component that RTP and RTCP share.

use super::lines::Block;
use crate::ice::{Candidate, Credentials, MAX_CANDIDATES};

/// One end's part in ICE.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IceDescription {
    /// Its credentials.
    pub credentials: Credentials,
    /// The addresses at which it may be reached. More may follow in-band.
    pub candidates: Vec<Candidate>,
}

/// The part of a section, by its own attributes or the session's. `None` if it names no credentials. Candidates that are
/// not for UDP and this component, or that no end can be at, are left out, and those beyond [`MAX_CANDIDATES`]. Credentials
/// that agents here cannot use are as good as none: the end is taken at its default address.
pub(super) fn read_ice(session: &Block<'_>, block: &Block<'_>) -> Option<IceDescription> {
    let of = |name| block.attribute(name).or(session.attribute(name));
    let credentials = Credentials::new(of("ice-ufrag")?.1.trim(), of("ice-pwd")?.1.trim())?;
    let mut candidates: Vec<Candidate> = Vec::new();
    for candidate in block.attributes("candidate").filter_map(|(_, value)| Candidate::parse(value)) {
        if candidates.len() < MAX_CANDIDATES && !candidates.iter().any(|c| c.address == candidate.address) {
            candidates.push(candidate);
        }
    }
    Some(IceDescription { credentials, candidates })
}

/// The values of `a=`.
pub(super) fn ice_lines(ice: &IceDescription) -> Vec<String> {
    let c = &ice.credentials;
    let mut lines = vec![format!("ice-ufrag:{}", c.fragment()), format!("ice-pwd:{}", c.password())];
    lines.push("ice-options:trickle".into());
    lines.extend(ice.candidates.iter().map(|c| format!("candidate:{c}")));
    lines
}
