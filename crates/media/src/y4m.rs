//! Uncompressed video as a byte stream: YUV4MPEG2 (by the mjpegtools' manual page yuv4mpeg(5)) and raw I420.
//!
//! Pictures have 8-bit samples in 4:2:0. Its variants differ in chroma positions, not in the number of samples, and are
//! read alike.

use crate::{FrameRate, MediaError, Picture, PictureSource};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use weir_units::TimeDelta;

const MAGIC: &[u8] = b"YUV4MPEG2";
const FRAME: &[u8] = b"FRAME";
/// Greatest length of a parameter line. Usual ones have less than 200 bytes; comments (X) may be longer.
const MAX_LINE: usize = 4_096;
/// Increment of a picture's memory while its size is not backed by data.
const STEP: usize = 1 << 20;
const HEADER: &str = "YUV4MPEG2 and parameters: is this a Y4M file? ffmpeg -i IN -pix_fmt yuv420p OUT.y4m makes one";
const CONVERT: &str = "ffmpeg -i IN -pix_fmt yuv420p OUT.y4m converts it";

/// A stream that cannot be rewound, such as standard input, for use where rewinding is required.
#[derive(Debug)]
pub struct Unseekable<R>(pub R);

impl<R: Read> Read for Unseekable<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.0.read(buf)
    }
}

impl<R> Seek for Unseekable<R> {
    fn seek(&mut self, _: SeekFrom) -> io::Result<u64> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// Common state of both readers: a name for errors, and the reading of pictures.
#[derive(Debug)]
struct Stream<R> {
    place: String,
    reader: BufReader<R>,
    size: (u32, u32),
    rate: FrameRate,
    frame: u64,
}

impl<R: Read> Stream<R> {
    fn error(
        &self,
        field: &'static str,
        value: impl std::fmt::Display,
        expected: impl std::fmt::Display,
    ) -> MediaError {
        MediaError::new(format!("{}: picture {}", self.place, self.frame), field, value, expected)
    }

    fn failed(&self, e: &io::Error) -> MediaError {
        self.error("reading", e, "bytes")
    }

    /// Reads a picture's samples; `false` at the end of the stream.
    fn samples(&mut self, picture: &mut Picture) -> Result<bool, MediaError> {
        let (width, height) = self.size;
        let length = Picture::len_of(width, height)?;
        let got = if (picture.width(), picture.height()) == self.size {
            let data = picture.as_i420_mut();
            let mut got = 0;
            while got < length {
                match self.reader.read(&mut data[got..]) {
                    Ok(0) => break,
                    Ok(n) => got += n,
                    Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                    Err(e) => return Err(self.failed(&e)),
                }
            }
            got
        } else {
            // A header may claim any size: memory follows the data received.
            let mut data = Vec::new();
            while data.len() < length {
                let step = STEP.max(data.len()).min(length - data.len());
                data.reserve_exact(step);
                let part = (&mut self.reader).take(step as u64).read_to_end(&mut data);
                if part.map_err(|e| self.failed(&e))? < step {
                    break;
                }
            }
            let got = data.len();
            if got == length {
                *picture = Picture::from_i420(width, height, data)?;
            }
            got
        };
        if got == 0 {
            return Ok(false);
        }
        if got < length {
            let expected = format!("{length}: the file is cut short, or its size is not {width}x{height}");
            return Err(self.error("number of bytes", got, expected));
        }
        self.frame += 1;
        Ok(true)
    }

    fn rewind_to(&mut self, start: u64) -> Result<bool, MediaError>
    where
        R: Seek,
    {
        match self.reader.seek(SeekFrom::Start(start)) {
            Ok(_) => {
                self.frame = 0;
                Ok(true)
            }
            Err(e) if e.kind() == io::ErrorKind::Unsupported => Ok(false),
            Err(e) => Err(self.failed(&e)),
        }
    }
}

/// Reads a line without its end; `None` at the end of the stream. More than [`MAX_LINE`] bytes are an error.
fn line<R: Read>(reader: &mut BufReader<R>) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    reader.take(MAX_LINE as u64 + 1).read_until(b'\n', &mut line)?;
    match line.pop() {
        None => Ok(None),
        Some(b'\n') => Ok(Some(line)),
        Some(_) => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// Words of a line after its first.
fn parameters(line: &[u8]) -> impl Iterator<Item = (char, String)> {
    line.split(|&b| b == b' ').skip(1).filter_map(|word| {
        let (&tag, value) = word.split_first()?;
        Some((tag as char, String::from_utf8_lossy(value).into_owned()))
    })
}

/// Reads YUV4MPEG2.
#[derive(Debug)]
pub struct Y4mReader<R> {
    stream: Stream<R>,
    /// Size of the stream's header in bytes.
    header: u64,
}

impl<R: Read> Y4mReader<R> {
    /// Reads the header. `place` names the stream in errors; `reader` is at its beginning.
    ///
    /// # Errors
    /// It is not YUV4MPEG2, not progressive 4:2:0 with 8 bits, or states no size or rate.
    pub fn new(place: impl Into<String>, reader: R) -> Result<Self, MediaError> {
        let place = place.into();
        let mut reader = BufReader::new(reader);
        let wrong = |field, value: &str, expected: &str| MediaError::new(&place, field, format!("{value:?}"), expected);
        let line = match line(&mut reader) {
            Ok(Some(line)) if line.starts_with(MAGIC) && matches!(line.get(MAGIC.len()), None | Some(b' ')) => line,
            Err(e) if e.kind() != io::ErrorKind::InvalidData => {
                return Err(MediaError::new(&place, "reading", e, "bytes"));
            }
            // The file may contain anything: its contents are not repeated.
            Ok(None) => return Err(MediaError::new(&place, "file", "empty", HEADER)),
            _ => return Err(MediaError::new(&place, "first line", "something else", HEADER)),
        };
        let (mut width, mut height, mut rate) = (None, None, None);
        for (tag, value) in parameters(&line) {
            match tag {
                'W' => width = Some(value),
                'H' => height = Some(value),
                'F' => rate = Some(value),
                'I' if matches!(value.as_str(), "p" | "?") => {}
                'I' => {
                    return Err(wrong(
                        "interlacing (I)",
                        &value,
                        &format!("p (whole pictures): ffmpeg -vf yadif -i IN, or {CONVERT}"),
                    ));
                }
                'C' if matches!(value.as_str(), "420" | "420jpeg" | "420mpeg2" | "420paldv") => {}
                'C' => {
                    return Err(wrong("chroma (C)", &value, &format!("420, 420jpeg, 420mpeg2 or 420paldv: {CONVERT}")));
                }
                // Pixel aspect ratio and comments change no sample.
                _ => {}
            }
        }
        let side = |field, value: Option<String>| -> Result<u32, MediaError> {
            let text = value.unwrap_or_default();
            text.parse().map_err(|_| wrong(field, &text, "a number of samples"))
        };
        let size = (side("width (W)", width)?, side("height (H)", height)?);
        Picture::len_of(size.0, size.1).map_err(|e| MediaError { place: place.clone(), ..e })?;
        let text = rate.unwrap_or_default();
        let rate =
            text.parse().map_err(|_| wrong("frame rate (F)", &text, "a fraction as 30:1, up to 1000 a second"))?;
        let header = line.len() as u64 + 1;
        Ok(Self { stream: Stream { place, reader, size, rate, frame: 0 }, header })
    }

    /// Pictures a second, from the header.
    pub fn frame_rate(&self) -> FrameRate {
        self.stream.rate
    }
}

impl<R: Read + Seek> PictureSource for Y4mReader<R> {
    fn size(&self) -> (u32, u32) {
        self.stream.size
    }
    fn interval(&self) -> TimeDelta {
        self.stream.rate.interval()
    }
    fn next_picture(&mut self, picture: &mut Picture) -> Result<bool, MediaError> {
        let s = &mut self.stream;
        let line = match line(&mut s.reader) {
            Ok(None) => return Ok(false),
            Ok(Some(line)) if line.starts_with(FRAME) && matches!(line.get(FRAME.len()), None | Some(b' ')) => line,
            Err(e) if e.kind() != io::ErrorKind::InvalidData => return Err(s.failed(&e)),
            _ => {
                return Err(s.error(
                    "its first line",
                    "something else",
                    "FRAME: bytes are missing or too many before it",
                ));
            }
        };
        if let Some((_, value)) = parameters(&line).find(|(tag, value)| *tag == 'I' && !value.starts_with('p')) {
            return Err(s.error("interlacing (I)", value, "p (whole pictures)"));
        }
        if s.samples(picture)? {
            return Ok(true);
        }
        let length = Picture::len_of(s.size.0, s.size.1)?;
        Err(s.error("number of bytes", 0, format!("{length}: the file is cut short")))
    }
    fn rewind(&mut self) -> Result<bool, MediaError> {
        self.stream.rewind_to(self.header)
    }
}

/// Reads raw I420: concatenated pictures.
#[derive(Debug)]
pub struct RawReader<R> {
    stream: Stream<R>,
}

impl<R: Read> RawReader<R> {
    /// Pictures of this size and rate, which the stream does not state. `place` names it in errors.
    ///
    /// # Errors
    /// A side is zero or above [`MAX_SIDE`](crate::MAX_SIDE).
    pub fn new(place: impl Into<String>, reader: R, size: (u32, u32), rate: FrameRate) -> Result<Self, MediaError> {
        Picture::len_of(size.0, size.1)?;
        Ok(Self { stream: Stream { place: place.into(), reader: BufReader::new(reader), size, rate, frame: 0 } })
    }
}

impl<R: Read + Seek> PictureSource for RawReader<R> {
    fn size(&self) -> (u32, u32) {
        self.stream.size
    }
    fn interval(&self) -> TimeDelta {
        self.stream.rate.interval()
    }
    fn next_picture(&mut self, picture: &mut Picture) -> Result<bool, MediaError> {
        self.stream.samples(picture)
    }
    fn rewind(&mut self) -> Result<bool, MediaError> {
        self.stream.rewind_to(0)
    }
}

/// Writes YUV4MPEG2. For small pictures the writer should be buffered.
#[derive(Debug)]
pub struct Y4mWriter<W> {
    writer: W,
    size: (u32, u32),
}

impl<W: Write> Y4mWriter<W> {
    /// Writes the header.
    ///
    /// # Errors
    /// The writer fails.
    pub fn new(mut writer: W, (width, height): (u32, u32), rate: FrameRate) -> io::Result<Self> {
        let (n, d) = rate.fraction();
        // As written by ffmpeg for yuv420p: chroma between the lines and columns of luma, as in JPEG.
        writeln!(writer, "YUV4MPEG2 W{width} H{height} F{n}:{d} Ip A1:1 C420jpeg")?;
        Ok(Self { writer, size: (width, height) })
    }

    /// Writes a picture.
    ///
    /// # Errors
    /// The writer fails, or the picture does not have the size in the header.
    pub fn write(&mut self, picture: &Picture) -> io::Result<()> {
        let size = (picture.width(), picture.height());
        if size != self.size {
            let text = format!("a picture of {}x{} in a stream of {}x{}", size.0, size.1, self.size.0, self.size.1);
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        self.writer.write_all(b"FRAME\n")?;
        self.writer.write_all(picture.as_i420())
    }

    /// Flushes, and returns the writer.
    ///
    /// # Errors
    /// The writer fails.
    pub fn finish(mut self) -> io::Result<W> {
        self.writer.flush()?;
        Ok(self.writer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Cursor;

    fn rate(n: u32) -> FrameRate {
        FrameRate::new(n, 1).unwrap()
    }

    fn picture(width: u32, height: u32, seed: u8) -> Picture {
        let len = Picture::len_of(width, height).unwrap();
        Picture::from_i420(width, height, (0..len).map(|i| (i as u8).wrapping_mul(31) ^ seed).collect()).unwrap()
    }

    fn open(bytes: &[u8]) -> Result<Y4mReader<Cursor<Vec<u8>>>, MediaError> {
        Y4mReader::new("file.y4m", Cursor::new(bytes.to_vec()))
    }

    fn all(source: &mut dyn PictureSource) -> Result<Vec<Picture>, MediaError> {
        let (mut out, mut p) = (vec![], Picture::new(1, 1)?);
        while source.next_picture(&mut p)? {
            out.push(p.clone());
        }
        Ok(out)
    }

    fn error_of(bytes: &[u8]) -> String {
        open(bytes).and_then(|mut r| all(&mut r)).unwrap_err().to_string()
    }

    #[test]
    fn written_clips_are_read_back_repeatedly() {
        let pictures = [picture(5, 3, 1), picture(5, 3, 2), picture(5, 3, 3)];
        let mut w = Y4mWriter::new(vec![], (5, 3), FrameRate::new(30_000, 1_001).unwrap()).unwrap();
        pictures.iter().for_each(|p| w.write(p).unwrap());
        assert!(w.write(&picture(4, 3, 0)).is_err());
        let bytes = w.finish().unwrap();
        assert!(bytes.starts_with(b"YUV4MPEG2 W5 H3 F30000:1001 Ip A1:1 C420jpeg\nFRAME\n"));
        let mut r = open(&bytes).unwrap();
        assert_eq!((r.size(), r.frame_rate().fraction()), ((5, 3), (30_000, 1_001)));
        assert_eq!(r.interval(), TimeDelta::from_nanos(33_366_667));
        assert_eq!(all(&mut r).unwrap(), pictures);
        assert!(r.rewind().unwrap());
        assert_eq!(all(&mut r).unwrap(), pictures);

        let mut r = Y4mReader::new("-", Unseekable(&bytes[..])).unwrap();
        assert_eq!(all(&mut r).unwrap().len(), 3);
        assert!(!r.rewind().unwrap());
    }

    #[test]
    fn raw_video_has_pictures_alone() {
        let pictures = [picture(4, 4, 1), picture(4, 4, 2)];
        let bytes: Vec<u8> = pictures.iter().flat_map(|p| p.as_i420().to_vec()).collect();
        let mut r = RawReader::new("f.yuv", Cursor::new(&bytes), (4, 4), rate(15)).unwrap();
        assert_eq!(all(&mut r).unwrap(), pictures);
        assert!(r.rewind().unwrap());
        assert_eq!(all(&mut r).unwrap(), pictures);
        let mut r = RawReader::new("f.yuv", Cursor::new(&bytes[..30]), (4, 4), rate(15)).unwrap();
        let e = all(&mut r).unwrap_err().to_string();
        assert!(e.contains("f.yuv: picture 1: number of bytes is 6") && e.contains("4x4"), "{e}");
        assert!(RawReader::new("f.yuv", Cursor::new(&bytes), (0, 4), rate(15)).is_err());
    }

    #[test]
    fn variants_of_420_are_read_alike() {
        for c in ["", " C420", " C420jpeg", " C420mpeg2", " C420paldv"] {
            let mut bytes = format!("YUV4MPEG2 W2 H2 F25:1{c} I? A0:0 Xcomment XMORE=1\nFRAME Ip XY\n").into_bytes();
            bytes.extend([1, 2, 3, 4, 5, 6]);
            let pictures = all(&mut open(&bytes).unwrap()).unwrap();
            assert_eq!(pictures[0].as_i420(), [1, 2, 3, 4, 5, 6], "{c}");
        }
    }

    #[test]
    fn errors_name_place_value_and_remedy() {
        for (bytes, parts) in [
            (&b""[..], ["file.y4m", "YUV4MPEG2"]),
            (b"RIFF1234\n", ["first line", "YUV4MPEG2"]),
            (b"YUV4MPEG2X W1 H1 F1:1\n", ["first line", "YUV4MPEG2"]),
            (b"YUV4MPEG2 W2 H2 F25:1", ["first line", "YUV4MPEG2"]),
            (b"YUV4MPEG2 W2 F25:1\n", ["height (H)", "samples"]),
            (b"YUV4MPEG2 W-2 H2 F25:1\n", ["width (W)", "-2"]),
            (b"YUV4MPEG2 W20000 H2 F25:1\n", ["20000", "16384"]),
            (b"YUV4MPEG2 W0 H2 F25:1\n", ["width is 0", "file.y4m"]),
            (b"YUV4MPEG2 W2 H2\n", ["frame rate (F)", "30:1"]),
            (b"YUV4MPEG2 W2 H2 F0:0\n", ["frame rate (F)", "0:0"]),
            (b"YUV4MPEG2 W2 H2 F25:1 It\n", ["interlacing", "yadif"]),
            (b"YUV4MPEG2 W2 H2 F25:1 C444\n", ["444", "yuv420p"]),
            (b"YUV4MPEG2 W2 H2 F25:1 C420p10\n", ["420p10", "yuv420p"]),
            (b"YUV4MPEG2 W2 H2 F25:1\nFRAME\n", ["picture 0: number of bytes is 0", "6"]),
            (b"YUV4MPEG2 W2 H2 F25:1\nFRAME\n123456FRAME\n123", ["picture 1: number of bytes is 3", "6"]),
            (b"YUV4MPEG2 W2 H2 F25:1\nFRAME\n1234567FRAME\n", ["picture 1", "FRAME"]),
            (b"YUV4MPEG2 W2 H2 F25:1\nFRAME Itxx\n123456", ["interlacing", "txx"]),
        ] {
            let e = error_of(bytes);
            assert!(parts.iter().all(|p| e.contains(p)), "{parts:?} in {e}");
        }
        assert!(!error_of(b"RIFF1234\n").contains("RIFF"), "what another kind of file holds is not printed");
        let long = [b"YUV4MPEG2 X".to_vec(), vec![b'x'; 5_000], b"\n".to_vec()].concat();
        assert!(error_of(&long).contains("first line"));
    }

    #[test]
    fn a_claimed_size_takes_no_memory_before_samples_come() {
        let mut r = open(b"YUV4MPEG2 W16384 H16384 F25:1\nFRAME\n12345").unwrap();
        let mut p = Picture::new(1, 1).unwrap();
        let e = r.next_picture(&mut p).unwrap_err().to_string();
        assert!(e.contains("number of bytes is 5"), "{e}");
        assert_eq!(p.width(), 1);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_to_an_end(start in 0usize..4, bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let starts = ["", "YUV4MPEG2 ", "YUV4MPEG2 W4 H4 F30:1\n", "YUV4MPEG2 W3 H1 F30:1\nFRAME\n"];
            let bytes = [starts[start].as_bytes(), &bytes].concat();
            if let Ok(mut r) = open(&bytes) {
                let n = all(&mut r).map_or(0, |p| p.len());
                prop_assert!(n <= bytes.len() / 6);
            }
        }
    }
}
