//! Media sources of a flow, looked up and checked.

use crate::checks::positive;
use crate::error::InputError;
use crate::media::{Source, Statistical};
use crate::quantity::Time;
use crate::raw::source::*;
use crate::resolve::flow::Flows;
use crate::spanned::At;
use crate::traces::Traces;
use std::ops::{Range, RangeInclusive};
use weir_media::{Caps, MaterialConfig, ScenesConfig};
use weir_units::{DataSize, TimeDelta};

impl Flows<'_> {
    pub(crate) fn source(&self, raw: Option<&At<RawSource>>, traces: &mut Traces) -> Result<Source, InputError> {
        let Some(raw) = raw else { return Ok(Source::PerfectPackets) };
        let (model, o) = (raw.value.model, &raw.value.options);
        if o.model.is_none() && raw.value.is_table {
            return Err(self.text.error(raw.span.clone(), "a media source needs a `model`"));
        }
        let (statistical, encoder) = (model == RawModel::Statistical, model == RawModel::Encoder);
        let scenes = model == RawModel::Scenes;
        let rules = [
            ("fps", o.fps.as_ref().map(|f| &f.span), model != RawModel::PerfectPackets),
            ("rise", o.rise.as_ref().map(|t| &t.span), model == RawModel::PerfectFrames),
            ("reaction", o.reaction.as_ref().map(|f| &f.span), statistical),
            ("burst_frames", o.burst_frames.as_ref().map(|f| &f.span), statistical),
            ("burst_size", o.burst_size.as_ref().map(|f| &f.span), statistical),
            ("interval_scale", o.interval_scale.as_ref().map(|f| &f.span), statistical),
            ("size_scale", o.size_scale.as_ref().map(|f| &f.span), statistical),
            ("key_interval", o.key_interval.as_ref().map(|f| &f.span), statistical || scenes),
            ("file", o.file.as_ref().map(|f| &f.span), model == RawModel::Trace),
            ("codec", o.codec.as_ref().map(|f| &f.span), encoder),
            ("library", o.library.as_ref().map(|f| &f.span), encoder),
            ("clip", o.clip.as_ref().map(|f| &f.span), encoder),
            ("picture", o.picture.as_ref().map(|f| &f.span), encoder),
            ("grain", o.grain.as_ref().map(|f| &f.span), encoder),
            ("gop", o.gop.as_ref().map(|f| &f.span), encoder),
            ("rate_change", o.rate_change.as_ref().map(|f| &f.span), encoder || scenes),
            ("slice_size", o.slice_size.as_ref().map(|f| &f.span), encoder),
            ("vmaf", o.vmaf.as_ref().map(|f| &f.span), encoder),
            ("material", o.material.as_ref().map(|f| &f.span), scenes),
            ("usual", o.usual.as_ref().map(|f| &f.span), scenes),
            ("peak", o.peak.as_ref().map(|f| &f.span), scenes),
            ("scene_length", o.scene_length.as_ref().map(|f| &f.span), scenes),
            ("titles", o.titles.as_ref().map(|f| &f.span), scenes),
            ("title_rate", o.title_rate.as_ref().map(|f| &f.span), scenes),
            ("frame_noise", o.frame_noise.as_ref().map(|f| &f.span), scenes),
            ("key_ratio", o.key_ratio.as_ref().map(|f| &f.span), scenes),
            ("coarsest", o.coarsest.as_ref().map(|f| &f.span), scenes),
            ("balance", o.balance.as_ref().map(|f| &f.span), scenes),
            ("rate_control", o.rate_control.as_ref().map(|f| &f.span), scenes),
            ("draw", o.draw.as_ref().map(|f| &f.span), scenes),
            ("read_ahead", o.read_ahead.as_ref().map(|f| &f.span), model != RawModel::PerfectPackets),
            ("demand", o.demand.as_ref().map(|f| &f.span), true),
        ];
        let model_name = MODELS.iter().find(|m| m.1 == model).map_or("", |m| m.0);
        for (name, span, allowed) in rules {
            if let (Some(span), false) = (span, allowed) {
                let takes: Vec<_> = rules.iter().filter(|r| r.2).map(|r| r.0).collect();
                let help = format!("it has: {}", takes.join(", "));
                let message = format!("the model \"{model_name}\" has no option `{name}`");
                return Err(self.text.error(span.clone(), message).help(help));
            }
        }
        let fps = self.bounded(&o.fps, if scenes { 25.0 } else { 30.0 }, 1.0..=1_000.0)?;
        Ok(match model {
            RawModel::PerfectPackets => Source::PerfectPackets,
            RawModel::PerfectFrames => Source::PerfectFrames { fps, rise: self.rise(o.rise.as_ref())? },
            RawModel::Statistical => Source::Statistical(Statistical {
                fps,
                // RFC 8867, section 4.3, requires 100 ms where RFC 8593 has 200 ms as an example.
                reaction: o.reaction.as_ref().map_or(TimeDelta::from_millis(100), |t| t.value.0),
                burst_frames: o.burst_frames.as_ref().map_or(8, |n| n.value),
                burst_size: o.burst_size.as_ref().map_or(DataSize::from_bytes(13_500), |s| s.value.0),
                interval_scale: self.bounded(&o.interval_scale, 0.15, 0.0..=1.0)?,
                size_scale: self.bounded(&o.size_scale, 0.15, 0.0..=1.0)?,
                key_interval: o.key_interval.as_ref().map(|t| positive(self.text, t)).transpose()?,
            }),
            RawModel::Trace => {
                let file = o.file.as_ref().ok_or_else(|| {
                    self.text.error(raw.span.clone(), "the model \"trace\" needs a `file` of frame sizes")
                })?;
                Source::Trace { fps, file: file.value.clone(), sizes: traces.frame_sizes(self.text, file)? }
            }
            RawModel::Scenes => Source::Scenes(Box::new(self.scenes(o, fps, &raw.span)?)),
            RawModel::Encoder => Source::Encoder(Box::new(crate::resolve::video::encoder(self.text, o, fps, traces)?)),
        })
    }

    /// The time constant of a rise, at most a minute: slower ones would not reach their target in a run.
    pub(crate) fn rise(&self, raw: Option<&At<Time>>) -> Result<TimeDelta, InputError> {
        let Some(time) = raw else { return Ok(TimeDelta::ZERO) };
        let most = TimeDelta::from_secs(60);
        match time.value.0 {
            t if t <= most => Ok(t),
            t => Err(self.text.error(time.span.clone(), format!("expected at most {most}, found {t}"))),
        }
    }

    /// How far the source may be read ahead, if it is stored.
    pub(crate) fn read_ahead(&self, raw: Option<&At<RawSource>>) -> Result<Option<TimeDelta>, InputError> {
        let Some(time) = raw.and_then(|r| r.value.options.read_ahead.as_ref()) else { return Ok(None) };
        // A receiver keeps 16 MB of content, and a run the pictures until they are compared.
        let has_content = raw.is_some_and(|r| r.value.model == RawModel::Encoder);
        let most = TimeDelta::from_secs(if has_content { 30 } else { 120 });
        match positive(self.text, time)? {
            ahead if ahead <= most => Ok(Some(ahead)),
            ahead => Err(self.text.error(time.span.clone(), format!("expected at most {most}, found {ahead}"))),
        }
    }

    /// Returns the greatest rate that the application has to send, if the source states it.
    pub(crate) fn demand(&self, raw: Option<&At<RawSource>>) -> Result<Option<Caps>, InputError> {
        let Some(demand) = raw.and_then(|r| r.value.options.demand.as_ref()) else { return Ok(None) };
        let RawDemand { steps, repeat } = &demand.value;
        let starts: Vec<_> = steps.value.iter().map(|s| At { value: s.value.at, span: s.span.clone() }).collect();
        let period = crate::steps::check(self.text, &steps.span, &starts, repeat.as_ref())?;
        let caps = steps.value.iter().map(|s| (s.value.at.0, s.value.rate.0)).collect();
        Caps::new(caps, period).map(Some).map_err(|e| self.text.error(steps.span.clone(), e.to_string()))
    }

    pub(crate) fn bounded(
        &self,
        v: &Option<At<f64>>,
        default: f64,
        range: RangeInclusive<f64>,
    ) -> Result<f64, InputError> {
        match v {
            Some(v) if !range.contains(&v.value) => {
                let message =
                    format!("expected a number between {} and {}, found {}", range.start(), range.end(), v.value);
                Err(self.text.error(v.span.clone(), message))
            }
            Some(v) => Ok(v.value),
            None => Ok(default),
        }
    }

    /// The encoder model of a source's options.
    fn scenes(&self, o: &RawSourceTable, fps: f64, span: &Range<usize>) -> Result<ScenesConfig, InputError> {
        let mut material = match o.material.as_ref().map(|m| m.value) {
            None | Some(RawMaterial::Movie) => MaterialConfig::movie(),
            Some(RawMaterial::Conference) => MaterialConfig::conference(),
        };
        if let Some(usual) = &o.usual {
            material.usual = (usual.value[0].0, usual.value[1].0);
        }
        let rate = |raw: &Option<At<crate::quantity::Rate>>, default| raw.as_ref().map_or(default, |r| r.value.0);
        let time = |raw: &Option<At<crate::quantity::Time>>, default| raw.as_ref().map_or(default, |t| t.value.0);
        material.peak = rate(&o.peak, material.peak);
        material.title_rate = rate(&o.title_rate, material.title_rate);
        material.scene_length = time(&o.scene_length, material.scene_length);
        material.titles = self.bounded(&o.titles, material.titles, 0.0..=1.0)?;
        material.frame_noise = self.bounded(&o.frame_noise, material.frame_noise, 0.0..=0.5)?;
        let mut config = ScenesConfig::new(material);
        config.frame_interval = TimeDelta::from_secs_f64(1.0 / fps);
        config.key_ratio = self.bounded(&o.key_ratio, config.key_ratio, 1.0..=100.0)?;
        config.coarsest = self.bounded(&o.coarsest, config.coarsest, 0.0..=1.0)?;
        config.balance = time(&o.balance, config.balance);
        if let Some(t) = &o.key_interval {
            config.key_interval = Some(positive(self.text, t)?);
        }
        if let Some(change) = &o.rate_change {
            config.rate_change = change.value.rate_change();
        }
        if let Some(control) = &o.rate_control {
            config.rate_control = control.value.rate_control();
        }
        config.draw = o.draw.as_ref().map(|d| d.value);
        config.check().map_err(|e| self.text.error(span.clone(), e.to_string()))?;
        Ok(config)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ScenarioFile;
    use weir_cc::Registry;
    use weir_media::{Material, RateChange, RateControl};
    use weir_units::DataRate;

    fn source(options: &str) -> Result<Source, InputError> {
        let text = format!(
            "title = \"t\"\nduration = \"1 s\"\n[links.a]\nrate = \"1 Mbps\"\ndelay = \"1 ms\"\n[rtp.v]\n\
             controller = \"fixed\"\nstart_rate = \"1 Mbps\"\nsource = {options}\n"
        );
        let registry = Registry::builtin();
        let file = ScenarioFile::parse("t", &text, ".".as_ref(), &registry)?;
        Ok(file.scenario(None, None, &registry)?.flows[0].rtp().expect("rtp").source.clone())
    }

    #[test]
    fn scenes_are_read_with_their_defaults_and_their_options() {
        let Ok(Source::Scenes(c)) = source("\"scenes\"") else { panic!("no scenes") };
        assert_eq!(*c, ScenesConfig::new(MaterialConfig::movie()));
        assert_eq!((c.frame_interval, c.rate_change), (TimeDelta::from_millis(40), RateChange::Restart));
        let all = "{ model = \"scenes\", material = \"conference\", fps = 50, usual = [\"1 Mbps\", \"2 Mbps\"], peak = \"3 Mbps\", \
                   scene_length = \"9 s\", titles = 0.1, title_rate = \"5 kbps\", frame_noise = 0.2, key_ratio = 5, \
                   key_interval = \"4 s\", coarsest = 0.1, balance = \"1 s\", rate_change = \"seamless\" }";
        let Ok(Source::Scenes(c)) = source(all) else { panic!("no scenes") };
        let (material, mbps) = (c.material, DataRate::from_mbps);
        assert_eq!(
            (material.material, material.usual, material.peak),
            (Material::Conference, (mbps(1), mbps(2)), mbps(3))
        );
        assert_eq!((material.scene_length, material.titles), (TimeDelta::from_secs(9), 0.1));
        assert_eq!((material.title_rate, material.frame_noise), (DataRate::from_kbps(5), 0.2));
        assert_eq!((c.frame_interval, c.key_ratio, c.coarsest), (TimeDelta::from_millis(20), 5.0, 0.1));
        assert_eq!((c.key_interval, c.balance), (Some(TimeDelta::from_secs(4)), TimeDelta::from_secs(1)));
        assert_eq!((c.rate_control, c.draw), (RateControl::Exact, None));
        assert_eq!((c.rate_change, Source::Scenes(c).frame_rate()), (RateChange::Seamless, Some(50.0)));
        let Ok(Source::Scenes(c)) = source("{ model = \"scenes\", rate_control = \"one-pass\", draw = 3 }") else {
            panic!("no scenes")
        };
        assert_eq!((c.rate_control, c.draw), (RateControl::OnePass, Some(3)));
    }

    #[test]
    fn the_rise_of_frames_is_read_and_bounded() {
        let (ms, frames) = (TimeDelta::from_millis, "{ model = \"perfect-frames\"");
        let read = |options: &str| source(&format!("{frames}{options} }}"));
        assert_eq!(read("").expect("absent"), Source::PerfectFrames { fps: 30.0, rise: TimeDelta::ZERO });
        assert_eq!(read(", rise = \"750 ms\"").expect("read"), Source::PerfectFrames { fps: 30.0, rise: ms(750) });
        let error = read(", rise = \"2 min\"").expect_err("too long").to_string();
        assert!(error.contains("expected at most"), "{error}");
        let error = source("{ model = \"statistical\", rise = \"1 s\" }").expect_err("not its").to_string();
        assert!(error.contains("has no option `rise`"), "{error}");
    }

    #[test]
    fn a_demand_is_read_and_its_faults_are_reported_at_their_position() {
        let demand = |options: &str| {
            let text = format!("{{ model = \"perfect-frames\", demand = {{ {options} }} }}");
            let file = format!(
                "title = \"t\"\nduration = \"1 s\"\n[links.a]\nrate = \"1 Mbps\"\ndelay = \"1 ms\"\n[rtp.v]\n\
                 controller = \"fixed\"\nstart_rate = \"1 Mbps\"\nsource = {text}\n"
            );
            let registry = Registry::builtin();
            let file = ScenarioFile::parse("t", &file, ".".as_ref(), &registry)?;
            Ok::<_, InputError>(file.scenario(None, None, &registry)?.flows[0].rtp().expect("rtp").demand.clone())
        };
        let (ms, kbps) = (TimeDelta::from_millis, DataRate::from_kbps);
        let steps = "steps = [{ at = \"0 s\", rate = \"500 kbps\" }, { at = \"2 s\", rate = \"0 kbps\" }]";
        let expected = Caps::new(vec![(ms(0), kbps(500)), (ms(2_000), kbps(0))], Some(ms(5_000))).expect("sound");
        assert_eq!(demand(&format!("{steps}, repeat = \"5 s\"")).expect("reads"), Some(expected));
        for (options, word) in [
            ("steps = []", "at least one step"),
            ("steps = [{ at = \"1 s\", rate = \"1 Mbps\" }]", "must be at"),
            (&format!("{steps}, repeat = \"2 s\""), "after the last step"),
            ("steps = [{ at = \"0 s\" }]", "rate"),
        ] {
            let error = demand(options).expect_err(word).to_string();
            assert!(error.contains(word), "{error}");
        }
    }

    #[test]
    fn invalid_scene_options_are_reported_at_their_position() {
        for (options, word) in [
            ("{ model = \"scenes\", material = \"cartoon\" }", "cartoon"),
            ("{ model = \"scenes\", titles = 3 }", "between 0 and 1"),
            ("{ model = \"scenes\", key_interval = \"0 s\" }", "above zero"),
            ("{ model = \"scenes\", usual = [\"9 Mbps\", \"8 Mbps\"] }", "the lower rate first"),
            ("{ model = \"scenes\", rate_control = \"one-pass\", rate_change = \"seamless\" }", "rate_control"),
            ("{ model = \"scenes\", draw = -1 }", "draw"),
            ("{ model = \"scenes\", burst_frames = 3 }", "has no option `burst_frames`"),
            ("{ model = \"statistical\", peak = \"1 Mbps\" }", "has no option `peak`"),
        ] {
            let error = source(options).expect_err(word).to_string();
            assert!(error.contains(word), "{error}");
        }
    }
}
