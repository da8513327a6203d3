//! A way to the API server that can be closed: what a node that is cut off says and hears waits, as if its packets were lost.

use futures_util::StreamExt as _;
use http::Request;
use http_body_util::{BodyExt as _, BodyStream, StreamBody};
use kube::client::Body;
use tokio::sync::watch;
use tower::ServiceExt as _;
use windlass_apiserver::front::ApiServer;

/// Whether the way is open. Clones are the same way.
#[derive(Clone)]
pub struct Gate(watch::Sender<bool>);

impl Gate {
    /// One that is open.
    pub fn new() -> Gate {
        Gate(watch::Sender::new(true))
    }

    /// Opens or closes it.
    pub fn set(&self, open: bool) {
        self.0.send_replace(open);
    }

    async fn opened(&self) {
        // It has a sender, which is this one.
        let _ = self.0.subscribe().wait_for(|open| *open).await;
    }

    /// A client in this process, as the administrator, whose requests and answers go through here.
    pub fn client(&self, server: &ApiServer) -> kube::Client {
        let (gate, server) = (self.clone(), server.service());
        let service = tower::service_fn(move |request: Request<Body>| {
            let (gate, server) = (gate.clone(), server.clone());
            async move {
                gate.opened().await;
                let answer = server.oneshot(request).await?;
                gate.opened().await;
                Ok::<_, BoxError>(answer.map(|body| gate.held(body)))
            }
        });
        kube::Client::new(service, "default")
    }

    /// A body whose every piece comes when the way is open.
    fn held<B>(self, body: B) -> http_body_util::combinators::UnsyncBoxBody<B::Data, BoxError>
    where
        B: http_body::Body + Send + Unpin + 'static,
        B::Data: Send,
        B::Error: Into<BoxError> + Send,
    {
        let pieces = BodyStream::new(body).then(move |piece| {
            let gate = self.clone();
            async move {
                gate.opened().await;
                piece.map_err(Into::into)
            }
        });
        StreamBody::new(pieces).boxed_unsync()
    }
}

type BoxError = Box<dyn std::error::Error + Send + Sync>;

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::Namespace;
    use kube::api::{Api, ListParams, WatchParams};
    use std::time::Duration;

    #[tokio::test(start_paused = true)]
    async fn nothing_comes_through_while_it_is_closed() {
        let server = ApiServer::start(windlass_apiserver::front::Options::default());
        let gate = Gate::new();
        let namespaces: Api<Namespace> = Api::all(gate.client(&server));
        let there = namespaces.list(&ListParams::default()).await.unwrap();
        assert!(!there.items.is_empty());
        let mut watched = Box::pin(namespaces.watch(&WatchParams::default(), "0").await.unwrap());
        assert!(watched.next().await.is_some());
        gate.set(false);
        let others: Api<Namespace> = Api::all(kube::Client::new(server.service(), "default"));
        let new = serde_json::from_value(serde_json::json!({"metadata": {"name": "new"}})).unwrap();
        others.create(&Default::default(), &new).await.unwrap();
        let hour = Duration::from_secs(3600);
        let asked = tokio::time::timeout(hour, namespaces.get("new"));
        assert!(asked.await.is_err(), "a request waits");
        let heard = async {
            while let Some(event) = watched.next().await {
                if let kube::core::WatchEvent::Added(namespace) = event.unwrap()
                    && namespace.metadata.name.as_deref() == Some("new")
                {
                    return;
                }
            }
            panic!("the watch has ended");
        };
        let mut heard = Box::pin(heard);
        assert!(tokio::time::timeout(hour, &mut heard).await.is_err(), "a watch says nothing");
        gate.set(true);
        namespaces.get("new").await.unwrap();
        heard.await;
        server.close();
    }
}
