//! A program at the other end of a connection: exec and attach.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc;

use super::containers::{Process, Refused, Size};
use super::spdy::{self, Accepted};
use super::streams::{Gone, Incoming, Outgoing, together};
use super::upgrade::{Agreed, Carrier};
use super::websocket;

/// Which streams a client wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Wanted {
    pub stdin: bool,
    pub stdout: bool,
    pub stderr: bool,
    pub tty: bool,
}

/// The streams of a session.
#[derive(Default)]
struct Streams {
    stdin: Option<Incoming>,
    stdout: Option<Outgoing>,
    stderr: Option<Outgoing>,
    resize: Option<Incoming>,
    error: Option<Outgoing>,
}

/// How long a client may take to open its streams.
const OPENING: Duration = Duration::from_secs(30);

/// Serves a program on a connection, from its start to its end. The program is started when the streams are there.
pub(super) async fn serve(
    io: impl AsyncRead + AsyncWrite + Send + Unpin,
    agreed: Agreed,
    wanted: Wanted,
    command: &[String],
    start: impl Future<Output = Result<Process, Refused>>,
) {
    match agreed.carrier {
        Carrier::Channels(how) => {
            let (channels, drive) = websocket::channels(io, how, 5).await;
            let session = async {
                let streams = of_channels(channels, wanted);
                // An empty message tells the client that it is connected.
                let first = streams.stdout.as_ref().or(streams.stderr.as_ref()).or(streams.error.as_ref());
                if let Some(first) = first
                    && first.send("").await.is_err()
                {
                    return;
                }
                run(streams, agreed.status, command, start).await;
            };
            together(drive, session).await;
        }
        Carrier::Spdy => {
            let (accepting, drive) = spdy::accept(io);
            together(drive, over_spdy(accepting, agreed, wanted, command, start)).await;
        }
        Carrier::Tunnel => {
            let (io, tunnel) = websocket::tunnel(io).await;
            let (accepting, drive) = spdy::accept(io);
            let connection = async { tokio::join!(tunnel, drive).0 };
            together(connection, over_spdy(accepting, agreed, wanted, command, start)).await;
        }
    }
}

/// The connection goes on until the session is over, not until its streams are opened.
async fn over_spdy(
    mut accepting: spdy::Accepting,
    agreed: Agreed,
    wanted: Wanted,
    command: &[String],
    start: impl Future<Output = Result<Process, Refused>>,
) {
    let opening = of_spdy(&mut accepting, wanted, agreed.resize);
    match tokio::time::timeout(OPENING, opening).await {
        Ok(Some(streams)) => run(streams, agreed.status, command, start).await,
        Ok(None) => {}
        Err(_) => tracing::warn!("a client did not open the streams that it asked for"),
    }
}

fn of_channels(channels: Vec<websocket::Channel>, wanted: Wanted) -> Streams {
    let mut channels = channels.into_iter();
    let mut next = || channels.next().map(|channel| (channel.incoming, channel.outgoing)).unzip();
    let (stdin, _) = next();
    let (_, stdout) = next();
    let (_, stderr) = next();
    let (_, error) = next();
    let (resize, _) = next();
    Streams {
        stdin: stdin.filter(|_| wanted.stdin),
        stdout: stdout.filter(|_| wanted.stdout),
        stderr: stderr.filter(|_| wanted.stderr),
        resize: resize.filter(|_| wanted.tty),
        error,
    }
}

/// Waits for the streams; `None` when the client has gone before.
async fn of_spdy(accepting: &mut spdy::Accepting, wanted: Wanted, resize: bool) -> Option<Streams> {
    let mut streams = Streams::default();
    while streams.error.is_none()
        || wanted.stdin && streams.stdin.is_none()
        || wanted.stdout && streams.stdout.is_none()
        || wanted.stderr && streams.stderr.is_none()
        || wanted.tty && resize && streams.resize.is_none()
    {
        let Accepted { headers, incoming, outgoing, .. } = accepting.next().await?;
        match headers.get("streamtype").map(String::as_str).unwrap_or_default() {
            "error" => streams.error = Some(outgoing),
            "stdin" => streams.stdin = Some(incoming),
            "stdout" => streams.stdout = Some(outgoing),
            "stderr" => streams.stderr = Some(outgoing),
            "resize" => streams.resize = Some(incoming),
            other => tracing::debug!(stream = other, "a stream of an unknown type was opened"),
        }
    }
    Some(streams)
}

async fn run(
    streams: Streams,
    status: bool,
    command: &[String],
    start: impl Future<Output = Result<Process, Refused>>,
) {
    let Streams { stdin, stdout, stderr, resize, error } = streams;
    let outcome = match start.await {
        Ok(process) => {
            let Process {
                stdin: input,
                stdout: output,
                stderr: errors,
                resize: sizes,
                ends_with_input,
                exit,
            } = process;
            let feeding = async {
                let feeding = async {
                    feed(stdin, input).await;
                    if !ends_with_input {
                        std::future::pending::<()>().await;
                    }
                };
                tokio::select! {
                    () = feeding => {}
                    () = async { resizes(resize, sizes).await; std::future::pending().await } => {}
                }
            };
            let outcome = async {
                let (code, out, err) = tokio::join!(exit, drain(output, stdout), drain(errors, stderr));
                out.and(err).map(|()| code)
            };
            tokio::select! {
                biased;
                outcome = outcome => match outcome {
                    Ok(outcome) => outcome,
                    Err(Gone) => return,
                },
                () = feeding => Ok(0),
            }
        }
        Err(refused) => {
            for stream in [stdout, stderr].into_iter().flatten() {
                stream.end().await;
            }
            Err(refused)
        }
    };
    let Some(error) = error else { return };
    let outcome = status_of(outcome, command);
    let text = match (status, outcome["status"] == "Success") {
        (true, _) => outcome.to_string(),
        (false, true) => String::new(),
        (false, false) => outcome["message"].as_str().unwrap_or_default().to_owned(),
    };
    // An older client takes any text for a failure, and its absence for success.
    if text.is_empty() || error.send(text).await.is_ok() {
        error.end().await;
    }
}

/// What a client sends becomes the program's input.
async fn feed(from: Option<Incoming>, to: Option<Box<dyn AsyncWrite + Send + Unpin>>) {
    let (Some(mut from), Some(mut to)) = (from, to) else { return };
    while let Some(bytes) = from.next().await {
        if to.write_all(&bytes).await.is_err() || to.flush().await.is_err() {
            // The program reads no more. What still comes is read here, so that the connection goes on.
            while from.next().await.is_some() {}
            return;
        }
    }
    // The program may have gone; then nobody misses the end of its input.
    let _ = to.shutdown().await;
}

/// What the program writes goes to the client, and so does the end of it. What nobody wants to hear is read all the same:
/// a program that nobody reads from is killed.
async fn drain(from: Option<Box<dyn AsyncRead + Send + Unpin>>, to: Option<Outgoing>) -> Result<(), Gone> {
    let Some(to) = to else {
        if let Some(mut from) = from {
            // The end of a terminal is an error.
            let _ = tokio::io::copy(&mut from, &mut tokio::io::sink()).await;
        }
        return Ok(());
    };
    if let Some(mut from) = from {
        to.send_all(&mut from).await?;
    }
    to.end().await;
    Ok(())
}

/// The sizes of a client's terminal: JSON documents one after the other, cut anywhere.
async fn resizes(from: Option<Incoming>, to: Option<mpsc::Sender<Size>>) {
    let (Some(mut from), Some(to)) = (from, to) else { return };
    let mut text = Vec::new();
    while let Some(bytes) = from.next().await {
        text.extend_from_slice(&bytes);
        let mut sizes = serde_json::Deserializer::from_slice(&text).into_iter::<Size>();
        let mut last = None;
        while let Some(Ok(size)) = sizes.next() {
            last = Some(size);
        }
        let read = sizes.byte_offset();
        text.drain(..read);
        if text.len() > 1024 {
            return;
        }
        if let Some(size) = last
            && to.send(size).await.is_err()
        {
            return;
        }
    }
}

/// How a program ended, as a `Status`.
fn status_of(outcome: Result<i32, Refused>, command: &[String]) -> Value {
    match outcome {
        Ok(0) => json!({ "metadata": {}, "status": "Success" }),
        Ok(code) => {
            let command = command.join(" ");
            let what = format!("error executing command [{command}], exit code {code}");
            json!({
                "metadata": {},
                "status": "Failure",
                "message": format!("command terminated with non-zero exit code: {what}"),
                "reason": "NonZeroExitCode",
                "details": { "causes": [{ "reason": "ExitCode", "message": code.to_string() }] },
            })
        }
        Err(refused) => {
            let what = format!("error executing command in container: {refused}");
            json!({
                "metadata": {},
                "status": "Failure",
                "message": format!("Internal error occurred: {what}"),
                "reason": "InternalError",
                "details": { "causes": [{ "message": what }] },
                "code": 500,
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_are_told_as_kubelet_tells_them() {
        let command = ["sh".to_owned(), "-c".to_owned(), "exit 3".to_owned()];
        assert_eq!(status_of(Ok(0), &command)["status"], "Success");
        let failed = status_of(Ok(3), &command);
        assert_eq!(failed["reason"], "NonZeroExitCode");
        assert_eq!(failed["details"]["causes"][0], json!({ "reason": "ExitCode", "message": "3" }));
        let refused = status_of(Err(Refused::Failed("no such program".into())), &command);
        assert_eq!(
            refused["message"],
            "Internal error occurred: error executing command in container: no such program"
        );
    }

    #[tokio::test]
    async fn sizes_are_read_however_they_arrive() {
        let (to, from) = Incoming::new();
        let (sizes, mut seen) = mpsc::channel(8);
        let text = br#"{"Width":80,"Height":24}{"Width":100,"Height":30}"#;
        for piece in [&text[..10], &text[10..30], &text[30..]] {
            to.send(bytes::Bytes::copy_from_slice(piece)).await.unwrap();
        }
        drop(to);
        resizes(Some(from), Some(sizes)).await;
        let mut all = Vec::new();
        while let Some(size) = seen.recv().await {
            all.push((size.width, size.height));
        }
        assert_eq!(all, [(80, 24), (100, 30)]);
    }
}
