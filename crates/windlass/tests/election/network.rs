//! A network between a client and a server that does as it is told.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::Request;
use kube::client::Body;
use tower::BoxError;

/// Clones are the same network.
#[derive(Clone)]
pub struct Network {
    inner: kube::Client,
    mood: Arc<Mutex<Mood>>,
}

#[derive(Clone, Copy, Debug, Default)]
pub enum Mood {
    #[default]
    Works,
    /// Nothing arrives, and the sender is told.
    Fails,
    /// Nothing arrives, and nobody is told.
    Hangs,
    /// Requests arrive, and answers do not.
    LosesAnswers,
    /// Requests and answers arrive after a while, also when the sender has gone.
    Slow(Duration, Duration),
}

impl Network {
    pub fn new(inner: kube::Client) -> Network {
        Network { inner, mood: Arc::default() }
    }

    pub fn set(&self, mood: Mood) {
        *self.mood.lock().unwrap() = mood;
    }

    pub fn heal(&self) {
        self.set(Mood::Works);
    }

    pub fn fail(&self) {
        self.set(Mood::Fails);
    }

    pub fn hang(&self) {
        self.set(Mood::Hangs);
    }

    pub fn lose_answers(&self) {
        self.set(Mood::LosesAnswers);
    }

    /// A client on this side.
    pub fn client(&self) -> kube::Client {
        let network = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let (inner, mood) = (network.inner.clone(), *network.mood.lock().unwrap());
            async move {
                match mood {
                    Mood::Works => Ok(inner.send(request).await?),
                    Mood::Fails => Err(BoxError::from("no route to host")),
                    Mood::Hangs => std::future::pending().await,
                    Mood::LosesAnswers => {
                        inner.send(request).await?;
                        Err(BoxError::from("connection reset"))
                    }
                    Mood::Slow(there, back) => {
                        let arrives = tokio::spawn(async move {
                            tokio::time::sleep(there).await;
                            inner.send(request).await
                        });
                        let answer = arrives.await??;
                        tokio::time::sleep(back).await;
                        Ok(answer)
                    }
                }
            }
        });
        kube::Client::new(service, "default")
    }
}
