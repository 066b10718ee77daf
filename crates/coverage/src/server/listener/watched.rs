//! A connection on which something has to move from time to time.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

/// Fails with [`io::ErrorKind::TimedOut`] once nothing was read and nothing written for a while: against clients that do not
/// read what they asked for, and those that are gone.
pub(super) struct Watched<T> {
    inner: T,
    idle: Duration,
    end: Pin<Box<Sleep>>,
}

impl<T> Watched<T> {
    pub(super) fn new(inner: T, idle: Duration) -> Self {
        Self { inner, idle, end: Box::pin(sleep(idle)) }
    }

    fn check<R>(&mut self, cx: &mut Context<'_>, done: Poll<io::Result<R>>) -> Poll<io::Result<R>> {
        match done {
            Poll::Ready(done) => {
                let next = Instant::now() + self.idle;
                // Moving the end costs as much as the read itself: a second more or less does not matter.
                if next > self.end.deadline() + Duration::from_secs(1).min(self.idle / 4) {
                    self.end.as_mut().reset(next);
                }
                Poll::Ready(done)
            }
            Poll::Pending => match self.end.as_mut().poll(cx) {
                Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
                Poll::Pending => Poll::Pending,
            },
        }
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Watched<T> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, to: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let done = Pin::new(&mut self.inner).poll_read(cx, to);
        self.check(cx, done)
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Watched<T> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, from: &[u8]) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.inner).poll_write(cx, from);
        self.check(cx, done)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let done = Pin::new(&mut self.inner).poll_flush(cx);
        match done {
            Poll::Pending => self.check(cx, done),
            // Flushing an empty buffer is no sign of life.
            Poll::Ready(done) => Poll::Ready(done),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}
