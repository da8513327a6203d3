use serde_json::json;

use super::super::super::services::tests::{service, slice};
use super::*;

struct World {
    services: Vec<Arc<Service>>,
    slices: Vec<Arc<EndpointSlice>>,
}

impl Directory for World {
    fn service(&self, namespace: &str, name: &str) -> Option<Arc<Service>> {
        let found =
            |one: &&Arc<Service>| one.metadata.name.as_deref() == Some(name) && namespace == "default";
        self.services.iter().find(found).cloned()
    }

    fn slices(&self, namespace: &str, service: &str) -> Vec<Arc<EndpointSlice>> {
        let found = |one: &&Arc<EndpointSlice>| service_of(one) == Some((namespace, service));
        self.slices.iter().filter(found).cloned().collect()
    }

    fn service_at(&self, address: Ipv4Addr) -> Option<Arc<Service>> {
        self.services.iter().find(|one| cluster_ip(one) == Some(address)).cloned()
    }

    fn slices_at(&self, address: Ipv4Addr) -> Vec<Arc<EndpointSlice>> {
        let has = |one: &&Arc<EndpointSlice>| each(one).any(|e| addresses(e).any(|a| a == address));
        self.slices.iter().filter(has).cloned().collect()
    }

    fn has_namespace(&self, name: &str) -> bool {
        name == "default"
    }
}

fn world() -> World {
    let services = [
        service(
            "web",
            json!({"clusterIP": "10.0.0.5", "ports": [
                {"name": "http", "port": 80}, {"name": "dns", "port": 53, "protocol": "UDP"},
            ]}),
        ),
        service("db", json!({"clusterIP": "None", "ports": [{"name": "sql", "port": 5432}]})),
        service("lonely", json!({"clusterIP": "None", "ports": [{"port": 1}]})),
        service("outside", json!({"type": "ExternalName", "externalName": "Example.com."})),
        service("other", json!({"type": "ExternalName", "externalName": "web.default.svc.cluster.local"})),
        service(
            "mirror",
            json!({"type": "ExternalName", "externalName": "mirror.default.svc.cluster.local"}),
        ),
    ];
    let slices = [
        slice(
            "db",
            json!([{"name": "sql", "port": 5432}]),
            json!([
                {"addresses": ["10.244.0.2"], "hostname": "db-0"},
                {"addresses": ["10.244.0.3"], "hostname": "db-1", "conditions": {"ready": false}},
                {"addresses": ["10.244.0.4"], "conditions": {"ready": true}},
            ]),
        ),
        slice("web", json!([{"name": "http", "port": 8080}]), json!([{"addresses": ["10.244.0.9"]}])),
    ];
    World { services: services.map(Arc::new).into(), slices: slices.map(Arc::new).into() }
}

fn shown(record: &Record) -> String {
    let data = match &record.data {
        Data::A(address) => format!("A {address}"),
        Data::Cname(name) => format!("CNAME {name}"),
        Data::Ptr(name) => format!("PTR {name}"),
        Data::Srv { weight, port, target } => format!("SRV {weight} {port} {target}"),
        Data::Soa { .. } => "SOA".to_owned(),
    };
    format!("{} {data}", record.name)
}

fn check(name: &str, kind: Kind, code: Code, answers: &[&str]) -> Reply {
    let labels: Vec<_> = name.split('.').map(str::to_owned).collect();
    let reply = answer(&labels, kind, &world());
    let found: Vec<_> = reply.answers.iter().map(shown).collect();
    assert_eq!(
        (reply.code, found),
        (code, answers.iter().map(|text| (*text).to_owned()).collect()),
        "{name}"
    );
    reply
}

#[test]
fn a_service_is_its_address() {
    let name = "web.default.svc.cluster.local";
    check(name, Kind::A, Code::Ok, &[&format!("{name} A 10.0.0.5")]);
    let none = check(name, Kind::Other(28), Code::Ok, &[]);
    assert_eq!(none.authority.iter().map(shown).collect::<Vec<_>>(), ["cluster.local SOA"]);
    let gone = check("no.default.svc.cluster.local", Kind::A, Code::NoSuchName, &[]);
    assert_eq!(gone.authority.len(), 1);
    check("web.other.svc.cluster.local", Kind::A, Code::NoSuchName, &[]);
}

#[test]
fn a_headless_service_is_its_ready_endpoints() {
    let name = "db.default.svc.cluster.local";
    check(name, Kind::A, Code::Ok, &[&format!("{name} A 10.244.0.2"), &format!("{name} A 10.244.0.4")]);
    check(
        "db-0.db.default.svc.cluster.local",
        Kind::A,
        Code::Ok,
        &["db-0.db.default.svc.cluster.local A 10.244.0.2"],
    );
    check(
        "10-244-0-4.db.default.svc.cluster.local",
        Kind::A,
        Code::Ok,
        &["10-244-0-4.db.default.svc.cluster.local A 10.244.0.4"],
    );
    check("db-1.db.default.svc.cluster.local", Kind::A, Code::NoSuchName, &[]);
    check("lonely.default.svc.cluster.local", Kind::A, Code::NoSuchName, &[]);
}

#[test]
fn ports_are_found_by_their_names() {
    let name = "_http._tcp.web.default.svc.cluster.local";
    let reply =
        check(name, Kind::Srv, Code::Ok, &[&format!("{name} SRV 100 80 web.default.svc.cluster.local")]);
    assert_eq!(
        reply.additional.iter().map(shown).collect::<Vec<_>>(),
        ["web.default.svc.cluster.local A 10.0.0.5"]
    );
    let name = "_sql._tcp.db.default.svc.cluster.local";
    check(
        name,
        Kind::Srv,
        Code::Ok,
        &[
            &format!("{name} SRV 50 5432 10-244-0-4.db.default.svc.cluster.local"),
            &format!("{name} SRV 50 5432 db-0.db.default.svc.cluster.local"),
        ],
    );
    check("_http._udp.web.default.svc.cluster.local", Kind::Srv, Code::NoSuchName, &[]);
    check(
        "_dns._udp.web.default.svc.cluster.local",
        Kind::A,
        Code::Ok,
        &["_dns._udp.web.default.svc.cluster.local A 10.0.0.5"],
    );
}

#[test]
fn a_name_for_something_else_is_followed_as_far_as_we_know_it() {
    let name = "outside.default.svc.cluster.local";
    check(name, Kind::A, Code::Ok, &[&format!("{name} CNAME example.com")]);
    let name = "other.default.svc.cluster.local";
    check(
        name,
        Kind::A,
        Code::Ok,
        &[&format!("{name} CNAME web.default.svc.cluster.local"), "web.default.svc.cluster.local A 10.0.0.5"],
    );
    check(name, Kind::Cname, Code::Ok, &[&format!("{name} CNAME web.default.svc.cluster.local")]);
    let labels: Vec<_> = "mirror.default.svc.cluster.local".split('.').map(str::to_owned).collect();
    assert_eq!(answer(&labels, Kind::A, &world()).answers.len(), CHAIN_MAX, "a circle ends");
}

#[test]
fn addresses_have_names() {
    check(
        "5.0.0.10.in-addr.arpa",
        Kind::Ptr,
        Code::Ok,
        &["5.0.0.10.in-addr.arpa PTR web.default.svc.cluster.local"],
    );
    check(
        "2.0.244.10.in-addr.arpa",
        Kind::Ptr,
        Code::Ok,
        &["2.0.244.10.in-addr.arpa PTR db-0.db.default.svc.cluster.local"],
    );
    check("2.0.244.10.in-addr.arpa", Kind::A, Code::Ok, &[]);
    check("1.1.1.1.in-addr.arpa", Kind::Ptr, Code::NoSuchName, &[]);
    check("ip6.arpa", Kind::Ptr, Code::NoSuchName, &[]);
}

#[test]
fn pods_have_names_by_their_addresses() {
    let name = "10-244-0-2.default.pod.cluster.local";
    check(name, Kind::A, Code::Ok, &[&format!("{name} A 10.244.0.2")]);
    check("10-244-0-2.nowhere.pod.cluster.local", Kind::A, Code::NoSuchName, &[]);
    check("web-0.default.pod.cluster.local", Kind::A, Code::NoSuchName, &[]);
}

#[test]
fn what_is_above_and_outside() {
    for empty in ["cluster.local", "svc.cluster.local", "pod.cluster.local", "default.svc.cluster.local"] {
        check(empty, Kind::A, Code::Ok, &[]);
    }
    check("cluster.local", Kind::Soa, Code::Ok, &["cluster.local SOA"]);
    for missing in ["nowhere.svc.cluster.local", "x.cluster.local", "a.b.c.web.default.svc.cluster.local"] {
        check(missing, Kind::A, Code::NoSuchName, &[]);
    }
    for outside in ["example.com", "local", "web.default.svc.cluster.local.example.com"] {
        check(outside, Kind::A, Code::NoSuchName, &[]);
    }
}
