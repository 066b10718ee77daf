//! YUV4MPEG2 files: parsed files must be written unchanged, and a claimed size must not allocate memory.
#![no_main]

use std::io::Cursor;
use weir_media::y4m::{RawReader, Y4mReader, Y4mWriter};
use weir_media::{FrameRate, Picture, PictureSource};

fn pictures(source: &mut dyn PictureSource) -> Vec<Picture> {
    let (mut out, mut picture) = (vec![], Picture::new(1, 1).expect("a size"));
    while let Ok(true) = source.next_picture(&mut picture) {
        assert_eq!((picture.width(), picture.height()), source.size());
        out.push(picture.clone());
    }
    out
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    if let Ok(mut reader) = Y4mReader::new("fuzz", Cursor::new(data)) {
        let (size, rate) = (reader.size(), reader.frame_rate());
        assert!(reader.interval().as_nanos() > 0);
        let read = pictures(&mut reader);
        assert!(read.iter().map(|p| p.as_i420().len()).sum::<usize>() <= data.len());
        assert!(reader.rewind().expect("a cursor can be rewound"));
        assert!(pictures(&mut reader) == read);
        let mut writer = Y4mWriter::new(vec![], size, rate).expect("memory takes all");
        read.iter().for_each(|p| writer.write(p).expect("memory takes all"));
        let written = writer.finish().expect("memory takes all");
        let mut again = Y4mReader::new("fuzz", Cursor::new(&written)).expect("what is written can be read");
        assert_eq!((again.size(), again.frame_rate()), (size, rate));
        assert!(pictures(&mut again) == read);
    }
    let rate = FrameRate::new(30, 1).expect("a rate");
    let side = |at: usize| data.get(at).map_or(1, |&v| u32::from(v % 16) + 1);
    let mut raw = RawReader::new("fuzz", Cursor::new(data), (side(0), side(1)), rate).expect("a size");
    assert!(pictures(&mut raw).len() <= data.len());
    let text = String::from_utf8_lossy(data);
    if let Ok(rate) = text.parse::<FrameRate>() {
        assert_eq!(rate.to_string().parse::<FrameRate>().ok(), Some(rate));
    }
});
