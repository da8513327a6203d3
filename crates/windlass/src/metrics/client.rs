//! Of the client.

use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::controller::SECONDS;
use super::family::Family;

/// The metrics of requests to API servers. Clones are the same metrics.
#[derive(Clone, Debug)]
pub struct ClientMetrics(ClientFamilies);

impl ClientMetrics {
    /// A request was answered, or not: then there is no code. The method is an HTTP method.
    pub fn answered(&self, method: &str, host: &str, code: Option<u16>, took: Duration) {
        self.0.requests.of([&text(code), host, method]).inc();
        self.0.duration.of([method, host]).observe(took.as_secs_f64());
    }

    /// A request is sent again after this answer.
    pub fn retried(&self, method: &str, host: &str, code: Option<u16>) {
        self.0.retries.of([&text(code), method, host]).inc();
    }
}

/// What client-go writes where there was no answer.
fn text(code: Option<u16>) -> String {
    code.map_or_else(|| "<error>".to_owned(), |code| code.to_string())
}

#[derive(Clone, Debug)]
pub(super) struct ClientFamilies {
    requests: Family<3, Counter>,
    duration: Family<2, Histogram>,
    retries: Family<3, Counter>,
}

impl ClientFamilies {
    pub(super) fn register(to: &mut Registry) -> ClientFamilies {
        let all = ClientFamilies {
            requests: Family::new(["code", "host", "method"], Counter::default),
            duration: Family::new(["verb", "host"], || Histogram::new(SECONDS)),
            retries: Family::new(["code", "verb", "host"], Counter::default),
        };
        let shown = all.clone();
        to.register("rest_client_requests", "Requests by status code, host and method", shown.requests);
        to.register("rest_client_request_duration_seconds", "How long requests take", shown.duration);
        to.register("rest_client_request_retries", "Requests that were sent again", shown.retries);
        all
    }

    pub(super) fn handle(&self) -> ClientMetrics {
        ClientMetrics(self.clone())
    }
}
