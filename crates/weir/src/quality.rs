//! `weir quality` and `weir clip`.

use crate::args::{ClipArgs, QualityArgs};
use crate::output::{Failure, print, print_json, remark};
use crate::session::Session;
use crate::{Done, tables};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use std::fs::File;
use std::io::{self, BufWriter, Cursor, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use weir_lab::measure::scenario::InputError;
use weir_lab::publish::atomic_write::write_atomically;
use weir_media::clip::{Character, Clip, ClipSpec};
use weir_media::quality::{Activity, Comparer, Comparison, Distribution, LumaRange, Measures, PlaneErrors, SiTi};
use weir_media::y4m::{RawReader, Unseekable, Y4mReader, Y4mWriter};
use weir_media::{MediaError, Picture, PictureSource};

/// Pictures of `weir clip` by default: ten seconds at the usual rate.
const CLIP_PICTURES: u64 = 300;

/// A file or a clip, and its number of pictures if that can be known.
struct Input {
    name: String,
    source: Box<dyn PictureSource>,
    pictures: Option<u64>,
}

fn wrong(name: &str, e: impl std::fmt::Display) -> Failure {
    Failure::Input(InputError::whole(name, e.to_string()))
}

impl Input {
    fn open(name: &str, args: &QualityArgs) -> Result<Self, Failure> {
        if name != "-" && !Path::new(name).exists() {
            return Self::clip(name, args);
        }
        let (reader, length): (Box<dyn Read>, _) = if name == "-" {
            (Box::new(io::stdin()), None)
        } else {
            let file = File::open(name).map_err(|e| wrong(name, format!("cannot be read: {e}")))?;
            let length = file.metadata().ok().filter(std::fs::Metadata::is_file).map(|m| m.len());
            (Box::new(file), length)
        };
        Self::read(name, reader, length, args).map_err(|e| wrong(name, e))
    }

    fn read(
        name: &str,
        mut reader: Box<dyn Read>,
        length: Option<u64>,
        args: &QualityArgs,
    ) -> Result<Self, MediaError> {
        // The first bytes distinguish YUV4MPEG2 from raw video.
        let mut start = Vec::new();
        let read = reader.by_ref().take(9).read_to_end(&mut start);
        read.map_err(|e| MediaError::new(name, "reading", e, "bytes"))?;
        let y4m = start == b"YUV4MPEG2";
        let reader = Unseekable(Cursor::new(start).chain(reader));
        let place = if name == "-" { "standard input" } else { name };
        let source: Box<dyn PictureSource> = match args.size {
            Some(size) if !y4m => Box::new(RawReader::new(place, reader, size, args.rate)?),
            None if !y4m => {
                let expected = "YUV4MPEG2; raw I420 has no header: state its size by --size 640x480";
                return Err(MediaError::new(place, "beginning", "something else", expected));
            }
            _ => Box::new(Y4mReader::new(place, reader)?),
        };
        let (width, height) = source.size();
        let each = Picture::len_of(width, height)? as u64 + if y4m { 6 } else { 0 };
        Ok(Self { name: name.to_owned(), source, pictures: length.map(|n| n / each) })
    }

    fn clip(name: &str, args: &QualityArgs) -> Result<Self, Failure> {
        let known = name.split([':', '@']).next().and_then(Character::by_name).is_some();
        if !known {
            let names = Character::ALL.map(Character::name).join(", ");
            let help = format!("a file, - for standard input, or a built-in clip: {names}");
            return Err(InputError::whole(name, "there is no such file").help(help).into());
        }
        let mut spec: ClipSpec = name.parse().map_err(|e| wrong(name, e))?;
        if let (Some((width, height)), false) = (args.size, name.contains(':')) {
            (spec.width, spec.height) = (width, height);
        }
        if !name.contains('@') {
            spec.rate = args.rate;
        }
        let clip = Clip::new(spec).map_err(|e| wrong(name, e))?;
        Ok(Self { name: name.to_owned(), source: Box::new(clip), pictures: None })
    }

    fn next(&mut self, picture: &mut Picture) -> Result<bool, Failure> {
        self.source.next_picture(picture).map_err(|e| wrong(&self.name, e))
    }
}

/// A measure over all pictures.
#[derive(Serialize)]
struct Summary {
    metric: &'static str,
    unit: &'static str,
    mean: Option<f64>,
    sigma: Option<f64>,
    min: Option<f64>,
    p5: Option<f64>,
    median: Option<f64>,
    max: Option<f64>,
    #[serde(skip)]
    spread: Distribution,
}

/// The object printed by `--json`.
#[derive(Serialize)]
struct Report {
    reference: String,
    distorted: String,
    width: u32,
    height: u32,
    pictures: u64,
    /// Which of the two has more pictures, if one has.
    longer: Option<&'static str>,
    /// Pictures that are equal to their reference, whose PSNR is given as 100 dB.
    equal: u64,
    /// PSNR of the mean squared error of all pictures, in dB.
    psnr_of_mse_y: f64,
    psnr_of_mse_average: f64,
    metrics: Vec<Summary>,
}

const METRICS: [(&str, &str); 12] = [
    ("psnr_y", "dB"),
    ("psnr_u", "dB"),
    ("psnr_v", "dB"),
    ("psnr_average", "dB"),
    ("psnr_weighted", "dB"),
    ("ssim_tiled", ""),
    ("ssim_overlapped", ""),
    ("ssim_gaussian", ""),
    ("si_reference", ""),
    ("ti_reference", ""),
    ("si_distorted", ""),
    ("ti_distorted", ""),
];

/// In the order of [`METRICS`].
fn values(c: &Comparison, reference: SiTi, distorted: SiTi) -> [Option<f64>; METRICS.len()] {
    let (p, ssim) = (c.errors.psnr(), c.ssim);
    let psnr = [p.y, p.u, p.v, p.average, p.weighted].map(Some);
    let [y, u, v, average, weighted] = psnr;
    let (tiled, overlapped) = (ssim.map(|s| s.tiled), ssim.map(|s| s.overlapped));
    let (r, d) = (reference, distorted);
    [y, u, v, average, weighted, tiled, overlapped, c.gaussian, Some(r.si), r.ti, Some(d.si), d.ti]
}

struct Measured {
    spreads: Vec<Distribution>,
    errors: PlaneErrors,
    pictures: u64,
    equal: u64,
    longer: Option<&'static str>,
}

/// Compares all pictures, and writes a line of CSV for each.
fn measure(
    session: &Session,
    args: &QualityArgs,
    reference: &mut Input,
    distorted: &mut Input,
    mut csv: Option<&mut dyn Write>,
) -> Result<Measured, Failure> {
    let total = [reference.pictures, distorted.pictures].into_iter().flatten().min();
    let bar = progress(args.quiet, total);
    let mut comparer = Comparer::new(Measures::ALL);
    let mut activity = [Activity::new(args.luma.into()), Activity::new(args.luma.into())];
    let spreads = METRICS.iter().map(|(name, _)| match name.split('_').next() {
        Some("psnr") => Distribution::of_decibels(),
        Some("ssim") => Distribution::of_similarity(),
        _ => Distribution::of_activity(),
    });
    let mut m =
        Measured { spreads: spreads.collect(), errors: PlaneErrors::default(), pictures: 0, equal: 0, longer: None };
    let black = || Picture::new(1, 1).map_err(Failure::work);
    let (mut a, mut b) = (black()?, black()?);
    let write_failed = |e: io::Error| Failure::work(format!("{}: {e}", shown(args.frames.as_deref())));
    if let Some(out) = &mut csv {
        let names: Vec<_> = METRICS.iter().map(|m| m.0).collect();
        writeln!(out, "picture,{}", names.join(",")).map_err(write_failed)?;
    }
    loop {
        if session.stopped() {
            return Err(Failure::Interrupted);
        }
        match (reference.next(&mut a)?, distorted.next(&mut b)?) {
            (true, true) => {}
            (false, false) => break,
            (more, _) => {
                m.longer = Some(if more { "reference" } else { "distorted" });
                break;
            }
        }
        let compared = comparer.compare(&a, &b).map_err(|e| wrong(&distorted.name, e))?;
        let row = values(&compared, activity[0].push(&a), activity[1].push(&b));
        m.spreads.iter_mut().zip(row).for_each(|(spread, v)| v.into_iter().for_each(|v| spread.add(v)));
        m.errors.add(&compared.errors);
        m.equal += u64::from(compared.errors.squared == [0; 3]);
        if let Some(out) = &mut csv {
            let cells: Vec<_> = row.iter().map(|v| v.map_or(String::new(), |v| format!("{v:.6}"))).collect();
            writeln!(out, "{},{}", m.pictures, cells.join(",")).map_err(write_failed)?;
        }
        m.pictures += 1;
        bar.set_position(m.pictures);
    }
    bar.finish_and_clear();
    Ok(m)
}

fn shown(path: Option<&Path>) -> String {
    path.map_or_else(String::new, |p| p.display().to_string())
}

pub(crate) fn quality(session: &Session, args: &QualityArgs) -> Done {
    if args.reference == "-" && args.distorted == "-" {
        return Err(wrong("-", "only one of the two can come from standard input"));
    }
    let (mut reference, mut distorted) = (Input::open(&args.reference, args)?, Input::open(&args.distorted, args)?);
    let (r, d) = (reference.source.size(), distorted.source.size());
    if r != d {
        let message = format!("its pictures are {}x{}, those of {} are {}x{}", d.0, d.1, args.reference, r.0, r.1);
        let help = format!("ffmpeg -i {} -vf scale={}:{} OUT.y4m brings them to one size", args.distorted, r.0, r.1);
        return Err(InputError::whole(&args.distorted, message).help(help).into());
    }
    let measured = match &args.frames {
        None => measure(session, args, &mut reference, &mut distorted, None)?,
        Some(path) => whole(path, |out| measure(session, args, &mut reference, &mut distorted, Some(out)))?,
    };
    if measured.pictures == 0 {
        return Err(wrong(&args.distorted, "there is not one picture to compare"));
    }
    let report = report(args, r, measured);
    if let Some(path) = &args.cdf {
        whole(path, |out| cdf(&report, out).map_err(|e| Failure::work(format!("{}: {e}", path.display()))))?;
    }
    // A clip has no end, and so is always the longer one.
    if let (Some(longer), false) = (report.longer, args.quiet) {
        let name = if longer == "reference" { &args.reference } else { &args.distorted };
        if Path::new(name).exists() || name == "-" {
            remark(&format!("{name} has more pictures than the other: {} compared", report.pictures));
        }
    }
    if args.json { print_json(&report) } else { print(&table(&report)) }
}

/// Writes a file that is created completely or not at all.
fn whole<T>(path: &Path, fill: impl FnOnce(&mut dyn Write) -> Result<T, Failure>) -> Result<T, Failure> {
    let mut done = None;
    let written = write_atomically(path, |out| {
        let result = fill(out);
        let failed = result.is_err();
        done = Some(result);
        if failed { Err(io::Error::other("ended early")) } else { Ok(()) }
    });
    match (done, written) {
        (Some(Err(e)), _) => Err(e),
        (_, Err(e)) => Err(Failure::work(format!("cannot write {}: {e}", path.display()))),
        (Some(Ok(value)), Ok(())) => Ok(value),
        (None, Ok(())) => Err(Failure::work(format!("nothing was written to {}", path.display()))),
    }
}

fn report(args: &QualityArgs, (width, height): (u32, u32), m: Measured) -> Report {
    let psnr = m.errors.psnr();
    let summary = |((metric, unit), spread): ((&'static str, &'static str), Distribution)| Summary {
        metric,
        unit,
        mean: spread.mean(),
        sigma: spread.sigma(),
        min: spread.min(),
        p5: spread.quantile(0.05),
        median: spread.quantile(0.5),
        max: spread.max(),
        spread,
    };
    Report {
        reference: args.reference.clone(),
        distorted: args.distorted.clone(),
        width,
        height,
        pictures: m.pictures,
        longer: m.longer,
        equal: m.equal,
        psnr_of_mse_y: psnr.y,
        psnr_of_mse_average: psnr.average,
        metrics: METRICS.into_iter().zip(m.spreads).map(summary).collect(),
    }
}

fn cdf(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "metric,value,share")?;
    for m in &report.metrics {
        for (value, share) in m.spread.cdf() {
            writeln!(out, "{},{value:.4},{share:.6}", m.metric)?;
        }
    }
    Ok(())
}

fn table(r: &Report) -> String {
    let mut t = tables::table(&["metric", "mean", "sigma", "min", "5 %", "median", "max"], 1);
    for m in &r.metrics {
        let digits = if m.metric.starts_with("ssim") { 4 } else { 2 };
        let show = |v: Option<f64>| v.map_or("-".to_owned(), |v| format!("{v:.digits$}"));
        let unit = if m.unit.is_empty() { String::new() } else { format!(" ({})", m.unit) };
        let numbers = [m.mean, m.sigma, m.min, m.p5, m.median, m.max].map(show);
        t.add_row([vec![format!("{}{unit}", m.metric)], numbers.to_vec()].concat());
    }
    let equal = if r.equal == 0 { String::new() } else { format!(", {} equal (100 dB)", r.equal) };
    format!(
        "{} beside {}: {} pictures of {}x{}{equal}\n{t}\nPSNR of the mean squared error: luma {:.2} dB, all samples {:.2} dB\n",
        r.distorted, r.reference, r.pictures, r.width, r.height, r.psnr_of_mse_y, r.psnr_of_mse_average
    )
}

/// A bar for this many pictures, or a count of them.
fn progress(quiet: bool, total: Option<u64>) -> ProgressBar {
    let bar = match (quiet, total) {
        (true, _) => ProgressBar::hidden(),
        (_, Some(n)) => ProgressBar::new(n),
        _ => ProgressBar::no_length(),
    };
    let template = match total {
        Some(_) => "{bar:40} {pos}/{len} pictures {elapsed} (about {eta} left)",
        None => "{pos} pictures {elapsed}",
    };
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar
}

pub(crate) fn clip(session: &Session, args: &ClipArgs) -> Done {
    let mut spec: ClipSpec = args.name.parse().map_err(|e| wrong(&args.name, e))?;
    if let Some((width, height)) = args.size {
        (spec.width, spec.height) = (width, height);
    }
    spec.rate = args.rate.unwrap_or(spec.rate);
    spec.pictures = Some(args.frames.unwrap_or(CLIP_PICTURES));
    spec.seed = args.seed;
    let mut clip = Clip::new(spec).map_err(|e| wrong(&args.name, e))?;
    let out = args.out.clone().unwrap_or_else(|| PathBuf::from(format!("{}.y4m", spec.character)));
    if out.as_os_str() == "-" {
        let stdout = BufWriter::new(io::stdout().lock());
        return draw(session, args, &mut clip, stdout).map(|_| ());
    }
    let pictures = whole(&out, |file| draw(session, args, &mut clip, file))?;
    if !args.quiet {
        let (w, h) = (spec.width, spec.height);
        remark(&format!("{pictures} pictures of {w}x{h} at {} a second: {}", spec.rate, out.display()));
    }
    Ok(())
}

fn draw(session: &Session, args: &ClipArgs, clip: &mut Clip, out: impl Write) -> Result<u64, Failure> {
    let failed = |e: io::Error| match e.kind() {
        ErrorKind::BrokenPipe => Failure::Closed,
        _ => Failure::work(format!("cannot write {}: {e}", shown(args.out.as_deref()))),
    };
    let spec = *clip.spec();
    let bar = progress(args.quiet, spec.pictures);
    let mut picture = Picture::new(spec.width, spec.height).map_err(Failure::work)?;
    let mut writer = Y4mWriter::new(out, clip.size(), spec.rate).map_err(failed)?;
    let mut pictures = 0;
    while clip.next_picture(&mut picture).map_err(Failure::work)? {
        if session.stopped() {
            return Err(Failure::Interrupted);
        }
        writer.write(&picture).map_err(failed)?;
        pictures += 1;
        bar.set_position(pictures);
    }
    writer.finish().map_err(failed)?;
    bar.finish_and_clear();
    Ok(pictures)
}

impl From<crate::args::Luma> for LumaRange {
    fn from(luma: crate::args::Luma) -> Self {
        match luma {
            crate::args::Luma::Stored => Self::Stored,
            crate::args::Luma::Stretched => Self::Stretched,
        }
    }
}
