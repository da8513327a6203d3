//! The task that speaks with the sandbox's process, and who waits for its words.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::process::Child;
use tokio::sync::{Notify, mpsc, oneshot, watch};

use crate::error::Failure;
use crate::spec::Exit;
use crate::wire::{Answer, Inbox, Outgoing, Word};

/// What every process of a sandbox ends with when the sandbox does.
const KILLED: Exit = Exit { code: 128 + 9, signal: Some(9), oom: false };

/// What came of a request.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) answer: Answer,
    pub(crate) fds: Vec<OwnedFd>,
}

type ReplySender = oneshot::Sender<Result<Reply, Failure>>;

/// Who waits for what.
#[derive(Debug)]
pub(crate) struct Line {
    waiting: Mutex<Waiting>,
    hang_up: Notify,
    ended: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct Waiting {
    replies: BTreeMap<u64, ReplySender>,
    exits: BTreeMap<u64, watch::Sender<Option<Exit>>>,
    /// Nobody who comes now is answered.
    over: bool,
}

impl Default for Line {
    fn default() -> Line {
        Line { waiting: Mutex::default(), hang_up: Notify::new(), ended: watch::Sender::new(false) }
    }
}

impl Line {
    /// Ends the sandbox.
    pub(crate) fn hang_up(&self) {
        self.hang_up.notify_one();
    }

    /// Waits for its end.
    pub(crate) async fn ended(&self) {
        // The sender is in `self`, so the channel is open as long as anybody waits.
        let _ = self.ended.subscribe().wait_for(|ended| *ended).await;
    }

    /// The reply comes here; the channel closes when none will.
    pub(crate) fn expect_reply(&self, serial: u64) -> oneshot::Receiver<Result<Reply, Failure>> {
        let (sender, receiver) = oneshot::channel();
        let mut waiting = self.waiting();
        if !waiting.over {
            waiting.replies.insert(serial, sender);
        }
        receiver
    }

    /// The exit of what this request starts comes here.
    pub(crate) fn expect_exit(&self, serial: u64) -> watch::Receiver<Option<Exit>> {
        let mut waiting = self.waiting();
        let sender = watch::Sender::new(waiting.over.then_some(KILLED));
        let receiver = sender.subscribe();
        if !waiting.over {
            waiting.exits.insert(serial, sender);
        }
        receiver
    }

    /// Nothing was started.
    pub(crate) fn forget_exit(&self, serial: u64) {
        self.waiting().exits.remove(&serial);
    }

    fn deliver(&self, word: Word, fds: Vec<OwnedFd>) {
        match word {
            Word::Reply { serial, result } => {
                let sender = self.waiting().replies.remove(&serial);
                if let Some(sender) = sender {
                    // Whoever asked may have gone away; the answer goes with them.
                    let _ = sender.send(result.map(|answer| Reply { answer, fds }));
                }
            }
            Word::Exited { serial, exit } => {
                let sender = self.waiting().exits.remove(&serial);
                if let Some(sender) = sender {
                    sender.send_replace(Some(exit));
                }
            }
            Word::Ready(_) | Word::Refused(_) => tracing::warn!("the sandbox's process started twice"),
        }
    }

    fn close(&self) {
        let (replies, exits) = {
            let mut waiting = self.waiting();
            waiting.over = true;
            (std::mem::take(&mut waiting.replies), std::mem::take(&mut waiting.exits))
        };
        drop(replies);
        for sender in exits.into_values() {
            sender.send_replace(Some(KILLED));
        }
        self.ended.send_replace(true);
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The first word of the sandbox's process, or none when it ended without.
pub(crate) async fn first_word(socket: &UnixStream, inbox: &mut Inbox) -> io::Result<Option<Word>> {
    loop {
        if let Some((word, _)) = inbox.next()? {
            return Ok(Some(word));
        }
        if receive(socket, inbox).await? == 0 {
            return Ok(None);
        }
    }
}

/// Speaks with the sandbox's process until either side ends, then waits until it is gone.
pub(crate) async fn run(
    socket: UnixStream,
    mut inbox: Inbox,
    mut queue: mpsc::Receiver<Outgoing>,
    line: std::sync::Arc<Line>,
    mut child: Child,
) {
    if let Err(error) = converse(&socket, &mut inbox, &mut queue, &line).await {
        tracing::error!(error = %error, "the sandbox's process cannot be reached and is ended");
    }
    // The end of the socket is what ends the process, and with it everything inside.
    drop(socket);
    if let Err(error) = child.wait().await {
        tracing::warn!(error = %error, "the sandbox's process cannot be awaited");
    }
    line.close();
}

async fn converse(
    socket: &UnixStream,
    inbox: &mut Inbox,
    queue: &mut mpsc::Receiver<Outgoing>,
    line: &Line,
) -> io::Result<()> {
    let mut outgoing: Option<Outgoing> = None;
    loop {
        while let Some((word, fds)) = inbox.next()? {
            line.deliver(word, fds);
        }
        tokio::select! {
            biased;
            () = line.hang_up.notified() => return Ok(()),
            read = receive(socket, inbox) => if read? == 0 { return Ok(()) },
            ready = socket.writable(), if outgoing.is_some() => {
                ready?;
                if let Some(message) = &mut outgoing
                    && attempt(socket, Interest::WRITABLE, || message.send(socket).map(|all| all.then_some(())))?.is_some()
                {
                    outgoing = None;
                }
            }
            next = queue.recv(), if outgoing.is_none() => match next {
                Some(next) => outgoing = Some(next),
                // The last handle was dropped.
                None => return Ok(()),
            },
        }
    }
}

/// Reads once when there is something. Dropping it loses nothing: it waits before it reads.
async fn receive(socket: &UnixStream, inbox: &mut Inbox) -> io::Result<usize> {
    loop {
        socket.readable().await?;
        if let Some(read) = attempt(socket, Interest::READABLE, || inbox.receive(socket))? {
            return Ok(read);
        }
    }
}

/// Tries now. None when the socket is not ready after all, which tokio is told.
fn attempt<T>(
    socket: &UnixStream,
    interest: Interest,
    mut act: impl FnMut() -> io::Result<Option<T>>,
) -> io::Result<Option<T>> {
    let result = socket.try_io(interest, || act()?.ok_or_else(|| io::ErrorKind::WouldBlock.into()));
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(error),
    }
}
