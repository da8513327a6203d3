//! Where the logs go: to standard error, as text for people or as JSON for machines.

use std::fmt;
use std::io::{self, IsTerminal as _};
use std::panic;
use std::str::FromStr;

use thiserror::Error;
use tracing::Subscriber;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::ParseError;
use tracing_subscriber::fmt::MakeWriter;

use crate::env::panic_message;

/// How a line of the log looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// One object a line: the fields of the event beside its message, and the span it happened in.
    Json,
}

/// What is logged, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// How a line looks.
    pub format: Format,
    /// What is logged: `debug`, or `info,windlass::source=trace`. Unless given, `$RUST_LOG` says so, and `info` unless that
    /// is set either.
    pub filter: Option<String>,
}

/// Why nothing is logged.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LogError {
    /// The filter cannot be read.
    #[error("{filter:?} does not say what to log: a level like \"debug\", or \"info,some::module=trace\"")]
    Filter {
        /// The filter.
        filter: String,
        /// Why not.
        source: ParseError,
    },
    /// Something in this process logs already.
    #[error("the log of this process is set up already")]
    SetUp(#[source] tracing::subscriber::SetGlobalDefaultError),
}

/// Starts to log, for the whole process. Panics are logged too, where they happen: the lines that Rust prints of them would
/// break a log in JSON.
///
/// # Errors
/// When the filter cannot be read, or when something logs already.
pub fn init(settings: &Settings) -> Result<(), LogError> {
    let colour =
        io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let filter = settings.filter.clone().or_else(|| std::env::var("RUST_LOG").ok());
    let subscriber = subscriber(settings.format, filter.as_deref(), colour, io::stderr)?;
    tracing::subscriber::set_global_default(subscriber).map_err(LogError::SetUp)?;
    panic::set_hook(Box::new(|info| {
        let location = info.location().map(ToString::to_string);
        tracing::error!(panic = panic_message(info.payload()), location, "panicked");
    }));
    Ok(())
}

type AnySubscriber = Box<dyn Subscriber + Send + Sync>;

fn subscriber<W>(format: Format, filter: Option<&str>, colour: bool, to: W) -> Result<AnySubscriber, LogError>
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    let filter = filter.map(str::trim).filter(|filter| !filter.is_empty()).unwrap_or("info");
    let parsed = EnvFilter::try_new(filter);
    let parsed = parsed.map_err(|source| LogError::Filter { filter: filter.to_owned(), source })?;
    let text = tracing_subscriber::fmt().with_env_filter(parsed).with_writer(to).with_ansi(colour);
    Ok(match format {
        Format::Text => Box::new(text.finish()),
        Format::Json => Box::new(text.json().flatten_event(true).with_span_list(false).finish()),
    })
}

/// `text` or `json`; zap's `console` is text as well.
impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Format, String> {
        match text {
            "text" | "console" => Ok(Format::Text),
            "json" => Ok(Format::Json),
            other => Err(format!("{other:?} is neither \"text\" nor \"json\"")),
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Format::Text => "text",
            Format::Json => "json",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::sync::{Arc, Mutex};

    #[derive(Clone, Default)]
    struct Paper(Arc<Mutex<Vec<u8>>>);

    impl Write for Paper {
        fn write(&mut self, text: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(text);
            Ok(text.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn logged(format: Format, filter: Option<&str>, colour: bool) -> String {
        let paper = Paper::default();
        let writer = paper.clone();
        let subscriber = subscriber(format, filter, colour, move || writer.clone()).unwrap();
        tracing::subscriber::with_default(subscriber, || {
            let span = tracing::info_span!("reconcile", object = "default/one");
            let _inside = span.enter();
            tracing::debug!(count = 1, "looked");
            tracing::info!(count = 2, "done");
        });
        String::from_utf8(paper.0.lock().unwrap().clone()).unwrap()
    }

    #[test]
    fn text_is_for_people() {
        let text = logged(Format::Text, None, false);
        assert!(text.ends_with("done count=2\n"), "{text}");
        assert!(text.contains("INFO reconcile{object=\"default/one\"}: "), "{text}");
        assert_eq!(text.lines().count(), 1, "info unless told otherwise: {text}");
        assert!(!text.contains('\u{1b}'), "no colour: {text}");
        assert!(logged(Format::Text, None, true).contains('\u{1b}'));
    }

    #[test]
    fn json_is_for_machines() {
        let text = logged(Format::Json, Some("debug"), false);
        let lines: Vec<serde_json::Value> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[1]["message"], "done");
        assert_eq!(lines[1]["level"], "INFO");
        assert_eq!(lines[1]["count"], 2);
        assert_eq!(lines[1]["span"]["object"], "default/one");
    }

    #[test]
    fn filters_are_those_of_rust_log() {
        assert_eq!(logged(Format::Text, Some("error"), false), "");
        assert_eq!(logged(Format::Text, Some("error,windlass=debug"), false).lines().count(), 2);
        let Err(error) = subscriber(Format::Text, Some("a=b=c"), false, io::sink) else {
            panic!("it is none")
        };
        assert!(error.to_string().starts_with("\"a=b=c\" does not say what to log"), "{error}");
        assert_eq!("console".parse(), Ok(Format::Text));
        assert!("xml".parse::<Format>().is_err());
    }
}
