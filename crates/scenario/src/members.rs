//! Membership of flows on links: their stations on a radio link, and their classes.

use super::error::InputError;
use super::model::{Flow, Link};
use super::spanned::At;
use super::suggest;
use super::tree::Text;
use weir_path::{Dscp, Member, Members, Radio};

/// Most stations of one radio link.
const MAX_STATIONS: usize = 1_000;

/// The code point of a name. Errors: there is none.
pub(super) fn dscp(text: &Text, name: &At<String>) -> Result<Dscp, InputError> {
    Dscp::by_name(&name.value).ok_or_else(|| {
        let known: Vec<&str> = Dscp::names().collect();
        text.error(name.span.clone(), format!("no code point is named `{}`", name.value))
            .help(suggest::help(&name.value, &known))
    })
}

/// Gives each link that distinguishes flows what it has to know of them. Packets of flow `i` are sent by agent `2 i`, its
/// feedback or acknowledgements by agent `2 i + 1`. Errors: more stations than a radio link may have.
pub(super) fn assign(text: &Text, links: &mut [Link], flows: &[Flow]) -> Result<(), InputError> {
    for (l, link) in links.iter_mut().enumerate() {
        let separate = match &link.config.radio {
            Some(Radio::Wifi(w)) => w.separate,
            Some(Radio::Cellular(c)) => c.separate,
            _ => false,
        };
        if !separate && !link.config.discipline.has_classes() {
            continue;
        }
        let (mut members, mut station) = (Vec::with_capacity(2 * flows.len()), 0);
        for flow in flows {
            let crosses = flow.forward.contains(&l) || flow.reverse.contains(&l);
            station += usize::from(crosses);
            if separate && station > MAX_STATIONS {
                let message =
                    format!("{station} flows cross `{}`, whose stations are at most {MAX_STATIONS}", link.name);
                return Err(InputError::whole(&text.file, message).field("links"));
            }
            let of = |to_station| {
                let station = if separate && crosses { station as u16 } else { 0 };
                Member { dscp: flow.dscp, station, to_station }
            };
            // Forward flows come from the station.
            members.extend([of(flow.reversed), of(!flow.reversed)]);
        }
        link.config.members = Members::new(members);
    }
    Ok(())
}
