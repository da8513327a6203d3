//! What people are told: events, logs, and of objects that nobody can read.

use std::cell::RefCell;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::ListParams;
use kube::{Api, CustomResourceExt as _};
use serde_json::json;
use windlass::core::Outcome;
use windlass::events::Event;
use windlass::metrics::Format;
use windlass::{Controller, Operator};
use windlass_testing::{Clock, TestCluster};

use crate::support::{Log, config_map, start, until, until_told};
use crate::widget::{Outside, Widget, apply, is_ready, operator};

#[tokio::test(start_paused = true)]
async fn a_pass_tells_of_an_object_by_an_event_and_the_same_again_is_a_count() {
    use k8s_openapi::api::events::v1::Event as Stored;
    let cluster = TestCluster::new().await;
    config_map(&cluster, "one", "1").await;
    let log = Log::default();
    let controller = {
        let log = log.clone();
        Controller::raw(move |ctx, map: Arc<ConfigMap>| {
            log.note(ctx.key());
            ctx.event(&*map, Event::normal("Greeted", "Greet", "hello"));
            async { Ok(Outcome::After(Duration::from_secs(10))) }
        })
    };
    let running = start(&cluster, Operator::new("test-operator", "0.0.0").controller(controller)).await;
    tokio::time::sleep(Duration::from_secs(95)).await;
    assert_eq!(log.count("default/one"), 10);
    running.stop().await.unwrap();
    let api: Api<Stored> = Api::default_namespaced(cluster.client());
    let of_one =
        |event: &Stored| event.regarding.as_ref().is_some_and(|about| about.name.as_deref() == Some("one"));
    let mut events = api.list(&ListParams::default()).await.unwrap().items;
    events.retain(of_one);
    assert_eq!(events.len(), 1, "{events:?}");
    let event = &events[0];
    assert_eq!(event.reporting_controller.as_deref(), Some("test-operator"));
    assert_eq!((event.reason.as_deref(), event.action.as_deref()), (Some("Greeted"), Some("Greet")));
    assert!(event.series.as_ref().is_some_and(|series| series.count >= 4), "{event:?}");
}

thread_local! {
    /// What the test of this thread has logged.
    static LOGGED: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

struct Lines;

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        LOGGED.with_borrow_mut(|logged| logged.extend_from_slice(bytes));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_pass_logs_says_which_object_why_and_which_pass() {
    // One for the whole process: whether a line is of interest is remembered for all threads.
    tracing::subscriber::set_global_default(tracing_subscriber::fmt().json().with_writer(|| Lines).finish())
        .unwrap();
    let cluster = TestCluster::new().await;
    let running = start(&cluster, operator(&Log::default(), &Outside::default())).await;
    apply(&cluster, "default", "one", json!({"size": 1})).await;
    until(|| is_ready(&cluster, "default", "one")).await;
    running.stop().await.unwrap();
    let text = String::from_utf8(LOGGED.take()).unwrap();
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let created =
        lines.iter().find(|line| line["fields"]["message"] == "created").expect("a child was created");
    let span = &created["span"];
    assert_eq!((&span["name"], &span["controller"]), (&json!("reconcile"), &json!("widget")));
    assert_eq!(span["object"], "default/one");
    let cause = span["cause"].as_str().unwrap();
    assert!(cause.starts_with("Widget.test.example.com default/one changed at "), "{cause}");
    assert_eq!(span["id"].as_str().unwrap().len(), 16, "an id to find the rest of the pass by");
}

#[tokio::test(start_paused = true)]
async fn an_object_that_does_not_decode_is_told_of_and_the_rest_go_on() {
    let cluster = TestCluster::new().await;
    // A kind whose schema takes what the Rust type does not.
    let mut crd = serde_json::to_value(Widget::crd()).unwrap();
    let spec = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/size";
    *crd.pointer_mut(spec).unwrap() = json!({"x-kubernetes-preserve-unknown-fields": true});
    cluster.apply_yaml(&crd.to_string()).await.unwrap();
    let bad =
        "{apiVersion: test.example.com/v1, kind: Widget, metadata: {name: bad}, spec: {size: very large}}";
    cluster.apply_yaml(bad).await.unwrap();
    apply(&cluster, "default", "good", json!({"size": 1})).await;
    let log = Log::default();
    let outside = Outside::default();
    let running =
        start(&cluster, crate::widget::base(&outside).controller(crate::widget::controller(&log))).await;
    until(|| is_ready(&cluster, "default", "good")).await;
    assert_eq!(log.count("default/bad"), 0);
    let text = running.metrics().render(Format::Text);
    let counted = |line: &str| {
        line.starts_with("windlass_informer_undecodable_objects_total{kind=\"Widget.") && line.ends_with(" 1")
    };
    assert!(text.lines().any(counted), "{text}");
    let told = until_told(&cluster, |event| {
        event.regarding.as_ref().is_some_and(|about| about.name.as_deref() == Some("bad"))
    });
    let note = told.await.note.unwrap_or_default();
    assert!(note.contains("it does not fit the type: invalid type: string \"very large\""), "{note}");

    // Mended, it is an object like others.
    apply(&cluster, "default", "bad", json!({"size": 2})).await;
    until(|| is_ready(&cluster, "default", "bad")).await;
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn readiness_tells_a_silent_watch_from_a_live_one() {
    // The machine's clock stands still here, so that this server has nothing to say for hours.
    let silent = TestCluster::new().await;
    let running = start(&silent, operator(&Log::default(), &Outside::default())).await;
    // A watch is asked to last for four to five minutes: before that, silence is nothing.
    tokio::time::sleep(Duration::from_secs(200)).await;
    assert!(running.readiness().report("readyz", &[]).passed);
    // Between the ends of the second watch and of the third.
    tokio::time::sleep(Duration::from_secs(500)).await;
    let report = running.readiness().report("readyz", &[]);
    assert!(!report.passed);
    for kind in ["Widget.test.example.com", "ConfigMap"] {
        assert!(report.text.contains(&format!("nothing was heard of {kind} for 7")), "{}", report.text);
    }
    running.stop().await.unwrap();

    let clock = Clock::runtime("2026-01-01T00:00:00Z".parse().unwrap());
    let live = TestCluster::builder().clock(clock).start().await;
    let running = start(&live, operator(&Log::default(), &Outside::default())).await;
    for _ in 0..12 {
        tokio::time::sleep(Duration::from_secs(300)).await;
        let report = running.readiness().report("readyz", &[]);
        assert!(report.passed, "nothing happens, and bookmarks say so: {}", report.text);
    }
    running.stop().await.unwrap();
}
