//! Preference of a call of a real encoder's pictures and of speech.

use crate::error::InputError;
use crate::media::{Source, Video};
use crate::model::{RtpStream, StreamSource};
use crate::raw::flow::RawRtp;
use crate::raw::stream::RawPreference;
use crate::resolve::flow::Flows;
use crate::resolve::streams::RTP_HEADER;
use weir_media::audio::AudioLimits;
use weir_media::utility::{Preference, Utility};
use weir_session::allocation::{Demand, MediaKind};
use weir_units::{DataRate, DataSize};

impl RawPreference {
    fn preference(self) -> Option<Preference> {
        match self {
            Self::Motion => Some(Preference::Motion),
            Self::Sharpness => Some(Preference::Sharpness),
            Self::Sound => Some(Preference::Sound),
            Self::None => None,
        }
    }
}

/// The utility of a call of this video.
fn utility(video: &Video, preference: Preference) -> Option<Utility> {
    Some(Utility { preference, size: video.clip.size()?, frame_rate: video.fps })
}

impl Flows<'_> {
    /// The preference of a flow, and its streams: the pictures of its source, and speech. None if the file has none.
    pub(crate) fn preferred(
        &self,
        f: &RawRtp,
        source: &Source,
        ceiling: DataRate,
        headers: DataSize,
    ) -> Result<(Option<Utility>, Vec<RtpStream>), InputError> {
        let Some(prefer) = &f.prefer else { return Ok((None, Vec::new())) };
        let Source::Encoder(video) = source else {
            let message = "`prefer` decides on the pictures of a real encoder";
            return Err(self.text.error(prefer.span.clone(), message).help("use source = \"encoder\""));
        };
        let other = f.streams.first().map(|s| &s.span).or(f.dccp.as_ref().map(|d| &d.span));
        if let Some(at) = other.or(f.multipath.as_ref().map(|m| &m.span)) {
            let message = "a call with `prefer` has two streams, its pictures and speech, over one path without DCCP";
            return Err(self.text.error(at.clone(), message).help("leave `streams`, `multipath` and `dccp` out"));
        }
        let utility = prefer.value.preference().and_then(|p| utility(video, p));
        let limits = AudioLimits::default();
        let overhead = headers + RTP_HEADER;
        let stream =
            |name: &str, demand, source| RtpStream { name: name.into(), demand, has_default_most: false, source };
        let pictures =
            Demand { least: utility.map_or(DataRate::ZERO, |u| u.least()), most: ceiling, ..Demand::default() };
        let speech = Demand {
            least: limits.least(overhead),
            most: limits.most(overhead).min(ceiling),
            media: MediaKind::Audio,
            ..Demand::default()
        };
        let all =
            vec![stream("pictures", pictures, StreamSource::Pictures), stream("speech", speech, StreamSource::Speech)];
        Ok((utility, all))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{RtpFlow, ScenarioFile};
    use weir_cc::Registry;

    fn flow(options: &str) -> Result<RtpFlow, InputError> {
        let text = format!(
            "title = \"t\"\nduration = \"1 s\"\n[links.a]\nrate = \"1 Mbps\"\ndelay = \"1 ms\"\n[rtp.v]\n\
             controller = \"fixed\"\nstart_rate = \"1 Mbps\"\nplayout_deadline = \"400 ms\"\n{options}\n"
        );
        let registry = Registry::builtin();
        let file = ScenarioFile::parse("t", &text, ".".as_ref(), &registry)?;
        Ok(file.scenario(None, None, &registry)?.flows[0].rtp().expect("rtp").clone())
    }

    #[test]
    fn a_call_with_a_preference_has_pictures_and_speech() {
        let all = flow("source = { model = \"encoder\", picture = \"320x240\", fps = 15 }\nprefer = \"sharpness\"")
            .expect("sound");
        let utility = all.sending.utility.expect("a preference");
        assert_eq!((utility.preference, utility.size, utility.frame_rate), (Preference::Sharpness, (320, 240), 15.0));
        assert_eq!((all.streams[0].source, all.streams[1].source), (StreamSource::Pictures, StreamSource::Speech));
        assert_eq!(all.streams[0].demand.least, utility.least());
        let none = flow("source = \"encoder\"\nprefer = \"none\"").expect("sound");
        assert_eq!((none.sending.utility, none.streams.len()), (None, 2));
        assert_eq!(flow("source = \"encoder\"").expect("sound").streams.len(), 0);
    }

    #[test]
    fn what_does_not_go_with_a_preference_is_refused() {
        for (options, word) in [
            ("prefer = \"motion\"", "a real encoder"),
            ("source = \"encoder\"\nprefer = \"colour\"", "colour"),
            ("source = \"encoder\"\nprefer = \"motion\"\nstreams = [{ name = \"a\" }]", "two streams"),
        ] {
            let error = flow(options).expect_err(word).to_string();
            assert!(error.contains(word), "{error}");
        }
    }
}
