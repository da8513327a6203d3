//! The text that Prometheus and people read.

use prometheus_client::encoding::text;
use prometheus_client::registry::Registry;

/// How metrics are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Prometheus' own text format, which everything that scrapes can read, and curl.
    Text,
    /// OpenMetrics 1.0, for those who ask for it: Prometheus does.
    OpenMetrics,
}

impl Format {
    /// The format that an `Accept` header asks for.
    pub fn accepted(header: Option<&str>) -> Format {
        match header {
            Some(header) if header.contains("application/openmetrics-text") => Format::OpenMetrics,
            _ => Format::Text,
        }
    }

    /// The `Content-Type` of the text.
    pub fn content_type(self) -> &'static str {
        match self {
            Format::Text => "text/plain; version=0.0.4; charset=utf-8",
            Format::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }

    pub(super) fn render(self, registry: &Registry) -> String {
        let mut rendered = String::new();
        // A metric of the user may fail to write itself; what was written up to there is still true.
        if text::encode(&mut rendered, registry).is_err() {
            tracing::error!("metrics are not complete: one of them could not be written");
        }
        match self {
            Format::OpenMetrics => rendered,
            Format::Text => classic(&rendered),
        }
    }
}

/// OpenMetrics describes a counter without the `_total` that its samples have; the older format describes the samples.
/// The older one has no units, no end, and no exemplars (we write none).
fn classic(open: &str) -> String {
    let mut text = String::with_capacity(open.len());
    let mut lines = open.lines().peekable();
    while let Some(line) = lines.next() {
        if line == "# EOF" || line.starts_with("# UNIT ") {
            continue;
        }
        let described = line.strip_prefix("# HELP ").and_then(|help| help.split_once(' '));
        let kind =
            lines.peek().and_then(|next| next.strip_prefix("# TYPE ")).and_then(|kind| kind.split_once(' '));
        match (described, kind) {
            (Some((name, help)), Some((same, "counter"))) if name == same => {
                text.push_str(&format!("# HELP {name}_total {help}\n# TYPE {name}_total counter\n"));
                lines.next();
            }
            _ => {
                text.push_str(line);
                text.push('\n');
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use prometheus_client::metrics::{counter::Counter, gauge::Gauge};
    use prometheus_client::registry::Unit;

    #[test]
    fn a_counter_has_one_total_in_both_formats() {
        let mut registry = Registry::default();
        registry.register("seen", "What was seen", Counter::<u64>::default());
        registry.register_with_unit("heap", "What is held", Unit::Bytes, Gauge::<i64>::default());
        assert_eq!(
            Format::Text.render(&registry),
            "# HELP seen_total What was seen.\n# TYPE seen_total counter\nseen_total 0\n\
             # HELP heap_bytes What is held.\n# TYPE heap_bytes gauge\nheap_bytes 0\n"
        );
        assert_eq!(
            Format::OpenMetrics.render(&registry),
            "# HELP seen What was seen.\n# TYPE seen counter\nseen_total 0\n\
             # HELP heap_bytes What is held.\n# TYPE heap_bytes gauge\n# UNIT heap_bytes bytes\nheap_bytes 0\n\
             # EOF\n"
        );
    }

    #[test]
    fn prometheus_asks_for_open_metrics_and_curl_does_not() {
        let prometheus =
            "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.1";
        assert_eq!(Format::accepted(Some(prometheus)), Format::OpenMetrics);
        assert_eq!(Format::accepted(Some("*/*")), Format::Text);
        assert_eq!(Format::accepted(None), Format::Text);
    }
}
