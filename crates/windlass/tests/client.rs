//! The client gives up in time, repeats only what is safe to repeat, and asks before it writes.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Empty, Full, StreamBody};
use jiff::Timestamp;
use k8s_openapi::api::authorization::v1::SelfSubjectAccessReview;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchParams};
use kube::client::Body;
use serde_json::json;
use tower::{BoxError, ServiceExt as _};
use windlass::client::{self, Fence, Refused, Settings, TimedOut, refusal};
use windlass::metrics::{Format, Metrics};
use windlass::{Env, Rules};
use windlass_testing::TestCluster;

fn settings() -> Settings {
    Settings::new(&Env::seeded(7, Timestamp::UNIX_EPOCH), &Metrics::new())
}

/// A server that answers as it is told, the last for ever, and how often it was asked.
#[derive(Clone)]
struct Script(Arc<(Mutex<VecDeque<Answer>>, AtomicUsize)>);

#[derive(Clone)]
enum Answer {
    Code(u16),
    CodeAfter(u16, u64),
    Breaks,
    Silence,
    SilenceInTheMiddle,
}

impl Script {
    fn new(answers: impl IntoIterator<Item = Answer>) -> Script {
        Script(Arc::new((Mutex::new(answers.into_iter().collect()), AtomicUsize::new(0))))
    }

    fn asked(&self) -> usize {
        self.0.1.load(Ordering::SeqCst)
    }

    fn client(&self, settings: Settings) -> kube::Client {
        let script = self.clone();
        let service = tower::service_fn(move |_: Request<Body>| {
            script.0.1.fetch_add(1, Ordering::SeqCst);
            let mut answers = script.0.0.lock().unwrap();
            let answer = if answers.len() > 1 { answers.pop_front() } else { answers.front().cloned() };
            answer.unwrap().give()
        });
        client::layered(kube::Client::new(service, "default"), settings)
    }
}

type Reply = Response<http_body_util::combinators::UnsyncBoxBody<Bytes, BoxError>>;

impl Answer {
    async fn give(self) -> Result<Reply, BoxError> {
        let text = |code: u16| match code {
            200 => json!({"metadata": {"name": "one"}, "items": []}),
            code => {
                json!({"kind": "Status", "status": "Failure", "message": "no", "reason": "No", "code": code})
            }
        };
        let full = |code| Full::new(Bytes::from(text(code).to_string())).map_err(Into::into).boxed_unsync();
        match self {
            Answer::Code(code) => Ok(Response::builder().status(code).body(full(code)).unwrap()),
            Answer::CodeAfter(code, after) => {
                Ok(Response::builder().status(code).header("retry-after", after).body(full(code)).unwrap())
            }
            Answer::Breaks => Err("connection reset".into()),
            Answer::Silence => std::future::pending().await,
            Answer::SilenceInTheMiddle => {
                let silence = futures_util::stream::pending::<Result<http_body::Frame<Bytes>, BoxError>>();
                Ok(Response::new(StreamBody::new(silence).boxed_unsync()))
            }
        }
    }
}

fn maps(client: kube::Client) -> Api<ConfigMap> {
    Api::namespaced(client, "default")
}

fn map(name: &str) -> ConfigMap {
    serde_json::from_value(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}))
        .unwrap()
}

fn cause<E: std::error::Error + 'static>(error: &kube::Error) -> Option<&E> {
    let mut error: &(dyn std::error::Error + 'static) = error;
    loop {
        match error.downcast_ref() {
            Some(found) => return Some(found),
            None => error = error.source()?,
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_read_is_tried_again_until_it_is_answered() {
    use Answer::{Breaks, Code, CodeAfter};
    let script = Script::new([Breaks, Code(503), Code(429), CodeAfter(504, 1), Code(200)]);
    let settings = settings();
    let env = settings.env.clone();
    let metrics = settings.metrics.clone();
    maps(script.client(settings)).get("one").await.unwrap();
    assert_eq!(script.asked(), 5);
    let took = env.moment().since_start().as_millis();
    assert!(
        (1700..2100).contains(&took),
        "took {took} ms: 100, 200 and 400 with jitter, and the second asked for"
    );
    let text = metrics.render(Format::Text);
    assert!(
        text.contains("rest_client_requests_total{code=\"<error>\",host=\"\",method=\"GET\"} 1\n"),
        "{text}"
    );
    assert!(text.contains("rest_client_requests_total{code=\"200\",host=\"\",method=\"GET\"} 1\n"), "{text}");
    assert!(
        text.contains("rest_client_request_retries_total{code=\"503\",verb=\"GET\",host=\"\"} 1\n"),
        "{text}"
    );
    assert!(
        text.contains("rest_client_request_duration_seconds_count{verb=\"GET\",host=\"\"} 5\n"),
        "{text}"
    );
}

#[tokio::test(start_paused = true)]
async fn tries_have_an_end() {
    let script = Script::new([Answer::Code(503)]);
    maps(script.client(settings())).get("one").await.unwrap_err();
    assert_eq!(script.asked(), 5);
    let script = Script::new([Answer::CodeAfter(503, 60)]);
    maps(script.client(settings())).get("one").await.unwrap_err();
    assert_eq!(script.asked(), 1, "a minute is longer than it is tried for");
    let script = Script::new([Answer::Code(404)]);
    maps(script.client(settings())).get("one").await.unwrap_err();
    assert_eq!(script.asked(), 1, "no answer is better than another here");
}

#[tokio::test(start_paused = true)]
async fn a_write_is_sent_again_only_if_the_server_says_that_it_was_turned_away() {
    for answer in [
        Answer::Breaks,
        Answer::Code(429),
        Answer::Code(500),
        Answer::Code(503),
        Answer::CodeAfter(503, 1),
        Answer::Code(504),
        Answer::CodeAfter(500, 1),
    ] {
        let script = Script::new([answer.clone()]);
        let maps = maps(script.client(settings()));
        maps.create(&PostParams::default(), &map("one")).await.unwrap_err();
        maps.replace("one", &PostParams::default(), &map("one")).await.unwrap_err();
        maps.patch("one", &PatchParams::apply("me"), &Patch::Apply(map("one"))).await.unwrap_err();
        maps.delete("one", &DeleteParams::default()).await.unwrap_err();
        assert_eq!(script.asked(), 4);
    }
    let script = Script::new([Answer::CodeAfter(429, 1), Answer::CodeAfter(429, 1), Answer::Code(200)]);
    maps(script.client(settings())).create(&PostParams::default(), &map("one")).await.unwrap();
    assert_eq!(script.asked(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_write_that_found_no_server_is_tried_again() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let config = kube::Config::new(format!("http://127.0.0.1:{port}").parse().unwrap());
    let settings = settings();
    let metrics = settings.metrics.clone();
    let client = client::connect(&config, settings).unwrap();
    maps(client).create(&PostParams::default(), &map("one")).await.unwrap_err();
    let text = metrics.render(Format::Text);
    let line = format!(
        "rest_client_requests_total{{code=\"<error>\",host=\"127.0.0.1:{port}\",method=\"POST\"}} 5\n"
    );
    assert!(text.contains(&line), "{text}");
}

#[tokio::test(start_paused = true)]
async fn every_request_ends_in_time() {
    for (answer, asked) in [(Answer::Silence, 1), (Answer::SilenceInTheMiddle, 1)] {
        let script = Script::new([answer]);
        let settings = settings();
        let env = settings.env.clone();
        let maps = maps(script.client(settings));
        let answer = env.within(Duration::from_secs(3600), maps.get("one")).await.expect("it ends");
        let error = answer.unwrap_err();
        let timed_out = cause::<TimedOut>(&error).unwrap();
        assert_eq!(timed_out.to_string(), "get configmaps default/one was not answered in 30 s");
        assert_eq!(env.moment().since_start(), Duration::from_secs(30));
        assert_eq!(script.asked(), asked, "whoever waited for half a minute does not begin anew");
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_begins_in_time_and_then_goes_on() {
    let settings = settings();
    let env = settings.env.clone();
    let script = Script::new([Answer::Silence]);
    let watch = WatchParams::default();
    assert!(maps(script.client(settings.clone())).watch(&watch, "0").await.is_err());
    assert_eq!(env.moment().since_start(), Duration::from_secs(30));
    let script = Script::new([Answer::SilenceInTheMiddle]);
    let stream = maps(script.client(settings)).watch(&watch, "0").await.unwrap();
    let mut stream = Box::pin(stream);
    let next = futures_util::StreamExt::next(&mut stream);
    assert!(env.within(Duration::from_secs(3600), next).await.is_none(), "the watch was cut");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_nobody_declared_names_the_line_to_add() {
    let cluster = TestCluster::new().await;
    let mut rules = Rules::new();
    rules.allow("", "configmaps", &["get", "list"]);
    let mut settings = settings();
    settings.guard = Some(rules);
    let client = client::layered(cluster.client(), settings);
    let maps = maps(client.clone());
    let before = cluster.requests().len();
    maps.list(&ListParams::default()).await.unwrap();
    client.apiserver_version().await.unwrap();
    assert_eq!(cluster.requests().len(), before + 2);

    let said = |error: kube::Error| refusal(&error).expect("refused").to_string();
    let apply = maps.patch("one", &PatchParams::apply("me"), &Patch::Apply(map("one"))).await.unwrap_err();
    assert_eq!(
        said(apply),
        "patch configmaps default/one was not sent: nothing that the operator declares covers it; \
         add `.owns::<ConfigMap>()` to the controller, or `.permits(\"\", \"configmaps\", &[\"patch\"])` to the operator"
    );
    let watch = maps.watch(&WatchParams::default(), "0").await.err().unwrap();
    assert_eq!(
        said(watch),
        "watch configmaps in default was not sent: nothing that the operator declares covers it; \
         add `.reads::<K>()` to the controller, with the kind of configmaps, \
         or `.permits(\"\", \"configmaps\", &[\"watch\"])` to the operator"
    );
    let status =
        maps.patch_status("one", &PatchParams::default(), &Patch::Merge(json!({}))).await.unwrap_err();
    assert_eq!(
        said(status),
        "patch configmaps/status default/one was not sent: nothing that the operator declares covers it; \
         add `.permits(\"\", \"configmaps/status\", &[\"patch\"])` to the operator"
    );
    assert_eq!(cluster.requests().len(), before + 2, "nothing was sent");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_only_reads_may_try_dry() {
    let cluster = TestCluster::new().await;
    maps(cluster.client()).create(&PostParams::default(), &map("one")).await.unwrap();
    let mut settings = settings();
    settings.read_only = true;
    let client = client::layered(cluster.client(), settings);
    let maps = maps(client.clone());
    let before = cluster.dump();

    maps.get("one").await.unwrap();
    maps.patch("one", &PatchParams::apply("me").dry_run(), &Patch::Apply(map("one"))).await.unwrap();
    maps.delete("one", &DeleteParams::default().dry_run()).await.unwrap();
    let review = json!({"metadata": {}, "spec": {"nonResourceAttributes": {"path": "/", "verb": "get"}}});
    let review: SelfSubjectAccessReview = serde_json::from_value(review).unwrap();
    let asked = Api::all(client).create(&PostParams::default(), &review).await;
    assert!(asked.as_ref().err().is_none_or(|error| refusal(error).is_none()), "{asked:?}");

    let refused = |error: kube::Error| matches!(refusal(&error), Some(Refused::ReadOnly { .. }));
    assert!(refused(maps.create(&PostParams::default(), &map("two")).await.unwrap_err()));
    assert!(refused(
        maps.patch("one", &PatchParams::apply("me"), &Patch::Apply(map("one"))).await.unwrap_err()
    ));
    assert!(refused(maps.delete("one", &DeleteParams::default()).await.map(drop).unwrap_err()));
    assert_eq!(cluster.dump(), before);
}

/// May write for the next so many questions.
struct Times(AtomicUsize);

impl Fence for Times {
    fn may_write(&self) -> bool {
        self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok()
    }
}

#[tokio::test(start_paused = true)]
async fn without_the_lease_nothing_is_written_and_all_is_read() {
    let cluster = TestCluster::new().await;
    let mut settings = settings();
    settings.fence = Some(Arc::new(Times(AtomicUsize::new(1))));
    let metrics = settings.metrics.clone();
    let maps = maps(client::layered(cluster.client(), settings));
    maps.create(&PostParams::default(), &map("one")).await.unwrap();
    let before = cluster.requests().len();
    let error = maps.create(&PostParams::default(), &map("two")).await.unwrap_err();
    assert_eq!(
        refusal(&error).unwrap().to_string(),
        "create configmaps in default was not sent: this process does not lead"
    );
    assert_eq!(cluster.requests().len(), before, "it reached the server");
    maps.get("one").await.unwrap();
    let text = metrics.render(Format::Text);
    assert!(!text.contains("<error>"), "what was not sent is no request: {text}");
}

/// The process is stopped after it asked, while the connection is made: nothing of the write reaches the server.
#[tokio::test]
async fn the_lease_is_asked_for_again_when_the_connection_takes_the_request() {
    let bodies = Arc::new(Mutex::new(Vec::new()));
    let seen = bodies.clone();
    let answer = move |body: Bytes| {
        seen.lock().unwrap().push(body.len());
        async { (http::StatusCode::CREATED, "{\"metadata\":{}}") }
    };
    let router = axum::Router::new().fallback(answer);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = tokio::spawn(async move { axum::serve(listener, router).await });

    let config = kube::Config::new(format!("http://{address}").parse().unwrap());
    let mut settings = Settings::new(&Env::system(), &Metrics::new());
    settings.fence = Some(Arc::new(Times(AtomicUsize::new(3))));
    let maps = maps(client::connect(&config, settings).unwrap());
    maps.create(&PostParams::default(), &map("one")).await.unwrap();
    assert_eq!(bodies.lock().unwrap().len(), 1);
    let error = maps.create(&PostParams::default(), &map("two")).await.unwrap_err();
    assert!(matches!(refusal(&error), Some(Refused::NotLeading { .. })), "{error:?}");
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(bodies.lock().unwrap().len(), 1, "the second write reached the server");
    server.abort();
}

#[tokio::test]
async fn a_kubeconfig_that_is_named_has_to_be_there() {
    let error = client::config(Some("/no/such/kubeconfig".as_ref())).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot use the kubeconfig \"/no/such/kubeconfig\" that --kubeconfig names"
    );
}

#[tokio::test(start_paused = true)]
async fn requests_say_who_asks() {
    let agents = Arc::new(Mutex::new(Vec::new()));
    let seen = agents.clone();
    let service = tower::service_fn(move |request: Request<Body>| {
        seen.lock().unwrap().push(request.headers()["user-agent"].to_str().unwrap().to_owned());
        async { Ok::<_, BoxError>(Response::builder().status(404).body(Empty::<Bytes>::new()).unwrap()) }
    });
    let mut settings = settings();
    settings.agent = "foobar-operator/1.2".to_owned();
    let client = client::layered(kube::Client::new(service.boxed_clone(), "default"), settings);
    maps(client).get("one").await.unwrap_err();
    assert_eq!(*agents.lock().unwrap(), ["foobar-operator/1.2"]);
}
