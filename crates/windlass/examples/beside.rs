//! What is the operator's own beside its controllers: state, metrics, HTTP routes, and something that runs.
//!
//! ```console
//! $ cargo run -p windlass --example beside
//! ```

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use k8s_openapi::api::core::v1::ConfigMap;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use windlass::core::Outcome;
use windlass::metrics::prometheus_client::metrics::counter::Counter;
use windlass::operator::Beside;
use windlass::{Controller, Env, Operator, Settings};
use windlass_testing::TestCluster;

/// The operator's own state: every pass has it by its type.
#[derive(Clone, Default)]
struct Seen(Counter);

/// Runs beside the controllers, on every replica; with `runs_when_leading`, only on the one that leads. When it ends before
/// it is told to, the operator ends.
async fn tell(beside: Beside) -> Result<(), windlass::Error> {
    loop {
        tokio::select! {
            biased;
            () = beside.stopping.cancelled() => return Ok(()),
            () = beside.env.sleep(Duration::from_millis(50)) => {}
        }
        println!("seen so far: {}", beside.state::<Seen>().0.get());
    }
}

fn operator(seen: &Seen) -> Operator {
    let (counted, shown) = (seen.0.clone(), seen.0.clone());
    let controller = Controller::raw(|ctx, _: Arc<ConfigMap>| async move {
        ctx.state::<Seen>().0.inc();
        Ok(Outcome::AwaitChange)
    });
    Operator::new("counter", "0.1.0")
        .controller(controller)
        .state(seen.clone())
        .metrics(move |registry| registry.register("config_maps_seen", "Passes over ConfigMaps", counted))
        .routes(Router::new().route("/seen", get(async move || shown.get().to_string())))
        .runs("teller", tell)
}

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() -> Result<(), Box<dyn Error>> {
    let cluster = TestCluster::new().await;
    cluster.apply_yaml("{apiVersion: v1, kind: ConfigMap, metadata: {name: one}}").await?;
    let settings =
        Settings { metrics_address: "127.0.0.1:0".to_owned(), ..Settings::for_tests(Env::system()) };
    let seen = Seen::default();
    let running = operator(&seen).start(cluster.client(), settings).await?;
    while seen.0.get() == 0 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }

    let address = running.metrics_address().ok_or("it serves metrics")?;
    for (path, says) in
        [("/seen", seen.0.get().to_string()), ("/metrics", "config_maps_seen_total ".to_owned())]
    {
        let mut stream = tokio::net::TcpStream::connect(address).await?;
        stream
            .write_all(format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").as_bytes())
            .await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        let line = answer.lines().find(|line| line.starts_with(&says)).ok_or("the answer says it")?;
        println!("http://{address}{path}: {line}");
    }
    running.stop().await?;
    Ok(())
}
