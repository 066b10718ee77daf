//! Parses untrusted descriptions.

use super::lines::{Block, split};
use super::section::{read_mid, read_section};
use super::{Description, MAX_SECTIONS, SdpError, Section, wrong};
use weir_session::Label;

impl Description {
    /// Parses a description. Sections that Weir does not support are returned as refused ones.
    ///
    /// # Errors
    /// It violates the grammar, has too many sections or encodings, has a field with an invalid value, or Weir
    /// supports none of its sections.
    pub fn parse(text: &str) -> Result<Self, SdpError> {
        let (session, blocks) = split(text)?;
        if let Some(block) = blocks.get(MAX_SECTIONS) {
            return Err(wrong("number of sections (m=)", block.line, blocks.len(), format!("{MAX_SECTIONS} at most")));
        }
        let bundle = read_bundle(&session, &blocks)?;
        let (mut sections, mut useless) = (Vec::new(), Vec::new());
        for block in &blocks {
            let (section, why) = read_section(&session, block, &bundle)?;
            sections.push(section);
            useless.extend(why);
        }
        let mut d = Self {
            session: session.first(b'o').and_then(|o| o.1.split(' ').nth(1)?.parse().ok()).unwrap_or(0),
            cname: blocks.iter().find_map(read_cname),
            controller: read_controller(&session, &blocks),
            bundle,
            is_bundle_only: blocks.iter().any(|b| b.has("bundle-only")),
            sections,
        };
        if d.media().next().is_none() && useless.is_empty() && d.sections.is_empty() {
            return Err(SdpError::Missing {
                field: "a media description (m=)",
                line: 0,
                way_out: "a call has a stream",
            });
        }
        if d.media().next().is_none()
            && let Some(why) = useless.into_iter().next()
        {
            return Err(why);
        }
        d.share_transport();
        Ok(d)
    }

    /// Bundled sections of one address have one transport, described by the first of them.
    fn share_transport(&mut self) {
        let place = |mid: &Label| self.sections.iter().position(|s| s.mid() == Some(*mid));
        let bundled: Vec<usize> = self.bundle.iter().filter_map(place).collect();
        let mut first = None;
        for index in bundled {
            let Section::Media(m) = &mut self.sections[index] else { continue };
            match (&first, &m.transport) {
                (None, Some(t)) => first = Some(t.address),
                (Some(address), Some(t)) if t.address == *address => m.transport = None,
                _ => {}
            }
        }
    }
}

/// The names of the sections of the first BUNDLE group (RFC 9143, section 7), as far as such sections exist.
fn read_bundle(session: &Block<'_>, blocks: &[Block<'_>]) -> Result<Vec<Label>, SdpError> {
    let mut names: Vec<Label> = Vec::new();
    for block in blocks {
        if let Some(mid) = read_mid(block)? {
            if names.contains(&mid) {
                return Err(wrong("a=mid", block.attribute("mid").map_or(0, |a| a.0), mid, "a name of one section"));
            }
            names.push(mid);
        }
    }
    let group = session.attributes("group").find_map(|(_, v)| {
        let mut words = v.split_whitespace();
        (words.next() == Some("BUNDLE")).then_some(words)
    });
    let mut bundle: Vec<Label> = Vec::new();
    for word in group.into_iter().flatten().take(MAX_SECTIONS) {
        if let Some(mid) = names.iter().find(|n| n.as_bytes() == word.as_bytes())
            && !bundle.contains(mid)
        {
            bundle.push(*mid);
        }
    }
    Ok(bundle)
}

fn read_cname(block: &Block<'_>) -> Option<String> {
    block.numbered("ssrc").find_map(|(_, _, rest)| Some(rest.strip_prefix("cname:")?.chars().take(255).collect()))
}

fn read_controller(session: &Block<'_>, blocks: &[Block<'_>]) -> Option<String> {
    let all = blocks.iter().chain([session]);
    let mut named = all.filter_map(|b| b.attribute("x-weir-controller")).map(|(_, name)| name);
    named.next().filter(|name| name.len() <= 64).map(str::to_owned)
}
