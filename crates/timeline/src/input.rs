//! Bytes of a file, decompressed, counted and with a bounded look ahead.

use flate2::read::MultiGzDecoder;
use std::io::{self, BufReader, Cursor, ErrorKind, Read};

/// First two bytes of gzip (RFC 1952, section 2.3.1).
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// The decompressed bytes of a file.
pub(crate) struct Input<'a> {
    source: Box<dyn Read + 'a>,
    /// Bytes read ahead, of which the first ones are consumed.
    ahead: Vec<u8>,
    used: usize,
    /// Bytes consumed.
    offset: u64,
    /// Most bytes after decompression.
    most: u64,
    end: bool,
}

/// How much of a wanted range was there.
#[derive(Debug)]
pub(crate) enum Taken {
    /// All of it.
    Whole,
    /// The file ended exactly before it.
    End,
    /// The file ended or broke within it; the reason.
    Cut(String),
}

impl<'a> Input<'a> {
    /// The bytes of a source, at most `most` after decompression.
    pub(crate) fn new(source: impl Read + 'a, most: u64) -> io::Result<Self> {
        let mut source = BufReader::with_capacity(1 << 16, source);
        let mut head = [0; 2];
        let mut held = 0;
        while held < head.len() {
            match source.read(&mut head[held..]) {
                Ok(0) => break,
                Ok(n) => held += n,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        let whole = Cursor::new(head[..held].to_vec()).chain(source);
        let source: Box<dyn Read + 'a> = if head[..held] == GZIP {
            Box::new(BufReader::with_capacity(1 << 16, MultiGzDecoder::new(whole)))
        } else {
            Box::new(whole)
        };
        Ok(Self { source, ahead: Vec::new(), used: 0, offset: 0, most, end: false })
    }

    /// Bytes consumed so far, after decompression.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// Skips the mark of UTF-8 that some editors and shells write before a text (RFC 3629, section 6).
    pub(crate) fn skip_mark(&mut self) -> io::Result<()> {
        if self.peek(3)? == [0xef, 0xbb, 0xbf] {
            self.consume(3);
        }
        Ok(())
    }

    /// At most `n` bytes from here on, without consuming them; fewer at the end of the file.
    pub(crate) fn peek(&mut self, n: usize) -> io::Result<&[u8]> {
        self.fill(n)?;
        let held = self.held();
        Ok(&held[..n.min(held.len())])
    }

    fn held(&self) -> &[u8] {
        &self.ahead[self.used..]
    }

    fn consume(&mut self, n: usize) {
        self.used += n;
        self.offset += n as u64;
    }

    fn fill(&mut self, n: usize) -> io::Result<()> {
        while self.held().len() < n && !self.end {
            let mut part = [0; 8192];
            let want = part.len().min(n - self.held().len());
            // Here alone: moving what is left at each small record would take longer than to read it.
            self.ahead.drain(..self.used);
            self.used = 0;
            match self.source.read(&mut part[..want]) {
                Ok(0) => self.end = true,
                Ok(read) => self.ahead.extend_from_slice(&part[..read]),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
            if self.offset + self.held().len() as u64 > self.most {
                let gib = self.most >> 30;
                let most = if gib << 30 == self.most { format!("{gib} GiB") } else { format!("{} bytes", self.most) };
                return Err(io::Error::other(format!("more than {most}")));
            }
        }
        Ok(())
    }

    /// Replaces `out` with the next `n` bytes. `out` grows with the bytes that come.
    pub(crate) fn take(&mut self, n: usize, out: &mut Vec<u8>) -> Taken {
        out.clear();
        while out.len() < n {
            let want = (n - out.len()).min(1 << 16);
            let broken = self.fill(want).err();
            let here = want.min(self.held().len());
            out.extend_from_slice(&self.held()[..here]);
            self.consume(here);
            if let Some(e) = broken {
                return Taken::Cut(e.to_string());
            }
            if here == 0 {
                return if out.is_empty() {
                    Taken::End
                } else {
                    Taken::Cut(format!("the file ends {} bytes into a record of {n}", out.len()))
                };
            }
        }
        Taken::Whole
    }

    /// Replaces `out` with the next line, without its end; of a line longer than `max` nothing is kept.
    pub(crate) fn line(&mut self, max: usize, out: &mut Vec<u8>) -> Taken {
        out.clear();
        let mut too_long = false;
        loop {
            if self.held().is_empty()
                && let Err(e) = self.fill(1 << 14)
            {
                return Taken::Cut(e.to_string());
            }
            if self.held().is_empty() {
                return match () {
                    () if too_long => Taken::Cut(format!("a line of more than {max} bytes")),
                    () if out.is_empty() => Taken::End,
                    () => Taken::Whole,
                };
            }
            let found = self.held().iter().position(|b| *b == b'\n');
            let here = found.map_or(self.held().len(), |at| at + 1);
            too_long |= out.len() + here > max;
            if !too_long {
                out.extend_from_slice(&self.held()[..here]);
            }
            self.consume(here);
            if found.is_some() {
                while out.last().is_some_and(|b| matches!(b, b'\n' | b'\r')) {
                    out.pop();
                }
                return if too_long { Taken::Cut(format!("a line of more than {max} bytes")) } else { Taken::Whole };
            }
        }
    }

    /// Everything that is left, at most `max` bytes; the reason where there is more, or where it breaks off.
    pub(crate) fn rest(&mut self, max: usize) -> (Vec<u8>, Option<String>) {
        let (mut all, mut part) = (Vec::new(), Vec::new());
        loop {
            let want = (max - all.len()).min(1 << 16);
            if want == 0 {
                let more = self.peek(1).is_ok_and(|b| !b.is_empty());
                return (all, more.then(|| format!("more than {} MiB", max >> 20)));
            }
            let taken = self.take(want, &mut part);
            all.extend_from_slice(&part);
            match taken {
                Taken::Whole => {}
                Taken::End => return (all, None),
                // The end of the file is no damage here.
                Taken::Cut(why) => {
                    let ended = self.end && self.held().is_empty();
                    return (all, (!ended).then_some(why));
                }
            }
        }
    }
}
