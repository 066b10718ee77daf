use weir_media::{ModelCodec, ParamError};

const KIND: &str = "preference";

/// An application's preferences for codec and source, as left by capability negotiation.
///
/// ```
/// use weir_session::system::Preferences;
/// let p = Preferences::from_pairs([("codec", "trace"), ("source", "chat_720p"), ("frame_rate", "25")])?;
/// assert_eq!((p.frame_rate, p.resolution), (25.0, (1_280, 720)));
/// # Ok::<(), weir_media::ParamError>(())
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct Preferences {
    /// The codec's name: one of [`ModelCodec::NAMES`].
    pub codec: String,
    /// Expected frames per second.
    pub frame_rate: f64,
    /// The source of pictures: `synthetic`, or `chat_720p` for the codec `trace`.
    pub source: String,
    /// Width and height of the display. A model's frames have a size in bytes and no picture: the receiver's display
    /// uses the resolution, the model does not.
    pub resolution: (u16, u16),
}

impl Default for Preferences {
    /// 1280 x 720 at 30 frames per second from a source that follows its target exactly.
    fn default() -> Self {
        Self { codec: "perfect".into(), frame_rate: 30.0, source: "synthetic".into(), resolution: (1_280, 720) }
    }
}

impl Preferences {
    /// The names accepted by [`Self::set`].
    pub const NAMES: [&'static str; 4] = ["codec", "frame_rate", "source", "resolution"];

    /// Preferences from name-value pairs; others have their defaults.
    ///
    /// # Errors
    /// As [`Self::set`] and [`Self::check`].
    pub fn from_pairs<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self, ParamError> {
        let mut p = Self::default();
        for (name, value) in pairs {
            p.set(name, value)?;
        }
        p.check()?;
        Ok(p)
    }

    /// Sets one by name: `codec`, `frame_rate`, `source`, or `resolution` as in `1280x720`.
    ///
    /// # Errors
    /// An unknown name, or an unsupported value. Nothing changes then.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), ParamError> {
        let wrong = |expected: &str| ParamError::value(KIND, name, value, expected);
        match name {
            "codec" => self.codec = value.into(),
            "source" => self.source = value.into(),
            "frame_rate" => self.frame_rate = value.parse().map_err(|_| wrong("frames a second"))?,
            "resolution" => {
                let parts = value.split_once('x').map(|(w, h)| (w.parse().ok(), h.parse().ok()));
                let Some((Some(width), Some(height))) = parts else {
                    return Err(wrong("width and height, as in 1280x720"));
                };
                self.resolution = (width, height);
            }
            _ => return Err(ParamError::unknown(KIND, name, &Self::NAMES)),
        }
        Ok(())
    }

    /// Checks the fields. Errors: the first invalid one.
    pub fn check(&self) -> Result<(), ParamError> {
        if !ModelCodec::NAMES.contains(&&self.codec[..]) {
            return Err(ParamError::value(KIND, "codec", &self.codec, ModelCodec::NAMES.join(", ")));
        }
        let source = if self.codec == "trace" { "chat_720p" } else { "synthetic" };
        if self.source != source {
            let expected = format!("{source} for the codec {}", self.codec);
            return Err(ParamError::value(KIND, "source", &self.source, expected));
        }
        if !(1.0..=240.0).contains(&self.frame_rate) {
            return Err(ParamError::value(KIND, "frame_rate", self.frame_rate, "1 to 240 frames a second"));
        }
        if self.resolution.0 == 0 || self.resolution.1 == 0 {
            let value = format!("{}x{}", self.resolution.0, self.resolution.1);
            return Err(ParamError::value(KIND, "resolution", value, "a width and a height above zero"));
        }
        Ok(())
    }
}
