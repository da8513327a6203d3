//! Answers on their way: bytes, a list read piece by piece from its snapshot, a watch, or what somebody else says.

use std::convert::Infallible;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf as _, Bytes};
use http_body::{Frame, SizeHint};
use jiff::Timestamp;
use thiserror::Error;
use tokio::time::Sleep;

use super::elsewhere::Elsewhere;
use super::metrics::Going;
use super::running::{Shared, panic_text};
use crate::api::{self, ListBody, Piece, Question, Reply, Watch, WatchPoll};
use crate::store::Store;

/// The body of an answer. Dropping it ends what it was reading.
pub struct Body {
    kind: Kind,
    going: Option<Box<Going>>,
}

enum Kind {
    Full(Piece),
    List {
        first: Piece,
        rest: Box<ListBody>,
    },
    Watch(Box<WatchBody>),
    Elsewhere(Box<Elsewhere>),
    /// An answer whose beginning could not be written.
    Broken,
}

/// The body of a request, in one piece.
pub(super) struct Once(Option<Bytes>);

impl From<Bytes> for Once {
    fn from(bytes: Bytes) -> Once {
        Once(Some(bytes).filter(|bytes| !bytes.is_empty()))
    }
}

impl http_body::Body for Once {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.take().map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.as_ref().map_or(0, Bytes::len) as u64)
    }
}

/// The server failed while it was writing an answer. The client must not take what it has for the whole.
#[derive(Debug, Error)]
#[error("the answer broke off")]
pub struct Aborted;

impl Body {
    pub(super) fn new(body: api::Body, shared: Arc<Shared>) -> Body {
        Body::from(match body {
            api::Body::Full(bytes) => Kind::Full(bytes.into()),
            api::Body::List(mut rest) => {
                match unless_panics(|| rest.next_piece()) {
                    // A list that fits into one piece can tell its length.
                    Ok(first) if rest.ended() => Kind::Full(first.unwrap_or_default()),
                    Ok(first) => Kind::List { first: first.unwrap_or_default(), rest },
                    Err(Aborted) => Kind::Broken,
                }
            }
            api::Body::Watch(watch) => Kind::Watch(Box::new(WatchBody::new(watch, shared))),
            // They were written before.
            api::Body::Metrics => Kind::Full(Piece::default()),
        })
    }

    /// What is sent is counted there.
    pub(super) fn counted(&mut self, going: Going) {
        self.going = Some(Box::new(going));
    }

    /// What comes from somebody else.
    pub(super) fn elsewhere(elsewhere: Elsewhere) -> Body {
        Body::from(Kind::Elsewhere(Box::new(elsewhere)))
    }
}

impl From<Kind> for Body {
    fn from(kind: Kind) -> Body {
        Body { kind, going: None }
    }
}

impl From<Bytes> for Body {
    fn from(bytes: Bytes) -> Body {
        Body::from(Kind::Full(bytes.into()))
    }
}

impl Body {
    fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Piece, Aborted>>> {
        let piece = match &mut self.kind {
            Kind::Full(piece) => Ok(Some(std::mem::take(piece)).filter(Piece::has_remaining)),
            Kind::List { first, .. } if first.has_remaining() => Ok(Some(std::mem::take(first))),
            Kind::List { rest, .. } => unless_panics(|| rest.next_piece()),
            Kind::Watch(watch) => ready!(watch.poll(context)).map(|bytes| bytes.map(Piece::from)),
            Kind::Elsewhere(elsewhere) => match ready!(elsewhere.poll_piece(context)) {
                Some(Ok(bytes)) => Ok(Some(Piece::from(bytes))),
                Some(Err(error)) => {
                    tracing::debug!(%error, "an answer from elsewhere broke off");
                    Err(Aborted)
                }
                None => Ok(None),
            },
            Kind::Broken => Err(Aborted),
        };
        if let Some(going) = &mut self.going {
            match &piece {
                Ok(Some(piece)) => going.sent(piece.remaining(), piece.chunk()),
                Ok(None) => {}
                Err(Aborted) => going.abort(),
            }
        }
        Poll::Ready(piece.transpose())
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Aborted;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Aborted>>> {
        let piece = ready!(self.poll_piece(context));
        Poll::Ready(piece.map(|piece| Ok(Frame::data(piece?.into_bytes()))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(&self.kind, Kind::Full(piece) if !piece.has_remaining())
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Full(piece) => SizeHint::with_exact(piece.remaining() as u64),
            _ => SizeHint::default(),
        }
    }
}

/// The same body for the network: its pieces are sent from where they lie, and its watch is [paced](Pace).
pub(super) struct Remote(Body);

impl From<Body> for Remote {
    fn from(mut body: Body) -> Remote {
        if let Kind::Watch(watch) = &mut body.kind {
            watch.pace = Some(Pace::default());
        }
        Remote(body)
    }
}

impl http_body::Body for Remote {
    type Data = Piece;
    type Error = Aborted;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Piece>, Aborted>>> {
        self.0.poll_piece(context).map(|piece| piece.map(|piece| piece.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.0.size_hint()
    }
}

/// What is waited for.
type Coming<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// A watch that waits for the store to change, or for its own next deadline.
struct WatchBody {
    watch: Box<Watch>,
    shared: Arc<Shared>,
    /// The store it reads from; let go of while it waits, so that writers need not copy for it.
    store: Option<Arc<Store>>,
    /// The revision up to which it has read.
    seen: u64,
    change: Coming<Option<Arc<Store>>>,
    alarm: Option<(Timestamp, Pin<Box<Sleep>>)>,
    /// A conversion that it waits for.
    asking: Option<Coming<(Question, Reply)>>,
    pace: Option<Pace>,
}

/// How soon after events a watch looks for more. Under a stream of commits the next ones then go out together, and each
/// costs its share of an encrypted record and of a packet, not one of its own; the first after a quiet moment goes at
/// once. The more went out, the longer is the rest: a few events are hardly held up, a flood goes in large pieces.
#[derive(Default)]
struct Pace {
    /// How many bytes went out since the last rest.
    sent: usize,
    resting: Option<Pin<Box<Sleep>>>,
}

/// The shortest and the longest rest of a watch, and the piece that is worth the longest.
const REST_MIN: Duration = Duration::from_millis(1);
const REST_MAX: Duration = Duration::from_millis(4);
const REST_BYTES: usize = 16 << 10;

impl Pace {
    /// The watch has nothing more to send.
    fn idle(&mut self) {
        let sent = std::mem::take(&mut self.sent);
        if sent > 0 {
            let rest = if sent < REST_BYTES { REST_MIN } else { REST_MAX };
            self.resting = Some(Box::pin(tokio::time::sleep(rest)));
        }
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if let Some(resting) = &mut self.resting {
            ready!(resting.as_mut().poll(context));
            self.resting = None;
        }
        Poll::Ready(())
    }
}

impl WatchBody {
    fn new(watch: Box<Watch>, shared: Arc<Shared>) -> WatchBody {
        let change = Box::pin(shared.clone().after(0));
        WatchBody { watch, shared, store: None, seen: 0, change, alarm: None, asking: None, pace: None }
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Aborted>> {
        loop {
            if let Some(asking) = &mut self.asking {
                let (question, reply) = ready!(asking.as_mut().poll(context));
                self.asking = None;
                self.watch.converted(question, reply);
            }
            let store = match self.store.take() {
                Some(store) => store,
                None => match ready!(self.poll_store(context)) {
                    Some(store) => store,
                    None => return Poll::Ready(Ok(None)),
                },
            };
            let now = self.shared.clock.now();
            match unless_panics(|| self.watch.poll(&store, now)) {
                Ok(WatchPoll::Data(bytes)) => {
                    self.store = Some(store);
                    if let Some(pace) = &mut self.pace {
                        pace.sent += bytes.len();
                    }
                    return Poll::Ready(Ok(Some(bytes)));
                }
                Ok(WatchPoll::Convert(wanted)) => {
                    self.store = Some(store);
                    self.asking = Some(Box::pin(self.shared.clone().convert(wanted)));
                }
                Ok(WatchPoll::Idle(wake_at)) => {
                    self.seen = store.revision();
                    self.change = Box::pin(self.shared.clone().after(self.seen));
                    self.arm(wake_at);
                    if let Some(pace) = &mut self.pace {
                        pace.idle();
                    }
                }
                Ok(WatchPoll::End) => return Poll::Ready(Ok(None)),
                Err(aborted) => return Poll::Ready(Err(aborted)),
            }
        }
    }

    /// The store as soon as there is a reason to look at it; `None` when the server is closed.
    fn poll_store(&mut self, context: &mut Context<'_>) -> Poll<Option<Arc<Store>>> {
        if let Some(pace) = &mut self.pace {
            ready!(pace.poll(context));
        }
        loop {
            if let Poll::Ready(store) = self.change.as_mut().poll(context) {
                return Poll::Ready(store);
            }
            match &mut self.alarm {
                Some((_, sleep)) => ready!(sleep.as_mut().poll(context)),
                None => return Poll::Pending,
            }
            // It is time: look at the store as it is.
            self.alarm = None;
            self.change = Box::pin(self.shared.clone().after(0));
        }
    }

    /// Most events change nothing about when the watch wants to be woken: its timer is kept then.
    fn arm(&mut self, wake_at: Timestamp) {
        match &mut self.alarm {
            Some((at, _)) if *at == wake_at => {}
            Some((at, sleep)) => {
                *at = wake_at;
                sleep.as_mut().reset(self.shared.clock.instant(wake_at));
            }
            None => {
                let sleep = tokio::time::sleep_until(self.shared.clock.instant(wake_at));
                self.alarm = Some((wake_at, Box::pin(sleep)));
            }
        }
    }
}

/// One answer that cannot be written ends its own connection or stream, and nothing else.
fn unless_panics<T>(write: impl FnOnce() -> T) -> Result<T, Aborted> {
    // Whatever state the panic left is not looked at again: the answer is over.
    catch_unwind(AssertUnwindSafe(write)).map_err(|panic| {
        tracing::error!(reason = panic_text(&*panic), "an answer panicked while it was written");
        Aborted
    })
}
