//! Rules of RTP and RTCP that a recording breaks, each with the packet and what a receiver makes of it.
//!
//! A rule is broken by what stands in the recording, never by what it does not hold: RTCP that is encrypted, for example,
//! breaks none. Of each rule the first packets are named and all are counted.

mod feedback;
mod repair;
mod requests;
mod streams;

use crate::Recording;
use crate::schema::Direction;
use serde::Serialize;
use std::collections::BTreeMap;
use weir_units::Timestamp;

/// Most packets named of one rule, in one direction.
const NAMED: usize = 5;

/// A rule, and what follows where it is broken.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Rule {
    name: &'static str,
    section: &'static str,
    effect: &'static str,
}

/// A broken rule.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Finding {
    /// Name of the recording.
    pub path: String,
    /// The rule.
    pub rule: &'static str,
    /// Document and section.
    pub section: &'static str,
    /// Effect at a receiver.
    pub effect: &'static str,
    /// Whether the recording end sent or received the packets.
    pub direction: &'static str,
    /// Times the rule was broken.
    pub count: u64,
    /// The first packets that break it.
    pub packets: Vec<Named>,
}

/// A packet that breaks a rule.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Named {
    /// Its number in a capture, else the number of its row in order of time, from 1.
    pub number: u32,
    /// Whether it is RTCP, whose rows count apart where it is no capture.
    pub rtcp: bool,
    /// Its time, in ms.
    pub at_ms: i64,
    /// Detail of the fault.
    pub text: String,
}

/// Findings by rule and direction.
#[derive(Default)]
struct Findings(BTreeMap<(Rule, Direction), (u64, Vec<Named>)>);

impl Findings {
    fn rtp(&mut self, rule: Rule, direction: Direction, (number, at): (u32, Timestamp), text: impl FnOnce() -> String) {
        self.add(rule, direction, false, (number, at), text);
    }

    fn rtcp(
        &mut self,
        rule: Rule,
        direction: Direction,
        (number, at): (u32, Timestamp),
        text: impl FnOnce() -> String,
    ) {
        self.add(rule, direction, true, (number, at), text);
    }

    fn add(
        &mut self,
        rule: Rule,
        direction: Direction,
        rtcp: bool,
        (number, at): (u32, Timestamp),
        text: impl FnOnce() -> String,
    ) {
        let (count, named) = self.0.entry((rule, direction)).or_default();
        *count += 1;
        if named.len() < NAMED {
            named.push(Named { number, rtcp, at_ms: at.as_millis(), text: text() });
        }
    }
}

/// The rules that a recording breaks, by name.
pub fn lint(recording: &Recording) -> Vec<Finding> {
    let mut found = Findings::default();
    streams::lint(recording, &mut found);
    feedback::lint(recording, &mut found);
    requests::lint(recording, &mut found);
    repair::lint(recording, &mut found);
    let finding = |((rule, direction), (count, packets)): ((Rule, Direction), (u64, Vec<Named>))| Finding {
        path: recording.name.clone(),
        rule: rule.name,
        section: rule.section,
        effect: rule.effect,
        direction: match direction {
            Direction::Sent => "sent",
            Direction::Received => "received",
            Direction::Passing => "passing",
        },
        count,
        packets,
    };
    found.0.into_iter().map(finding).collect()
}

#[cfg(test)]
mod tests;
