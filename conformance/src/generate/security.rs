//! Levels of security: namespaces that ask something of their pods, and pods that may or may not be so.

use serde_json::{Map, Value, json};

use crate::rng::Rng;
use crate::sequence::Step;

const PODS: &str = "/api/v1/namespaces/{ns}/pods";

fn secure_labels(rng: &mut Rng) -> Value {
    let mut labels = Map::new();
    for mode in ["enforce", "warn", "audit"] {
        if rng.chance(60) {
            let level = match rng.chance(5) {
                true => "strict",
                false => rng.pick(&["baseline", "restricted", "baseline", "restricted", "privileged"]),
            };
            labels.insert(format!("pod-security.kubernetes.io/{mode}"), json!(level));
        }
        if rng.chance(35) {
            let version = match rng.chance(5) {
                true => rng.pick(&["1.20", "v2.1", "v1.01", "newest"]),
                false => rng
                    .pick(&["latest", "v1.0", "v1.8", "v1.18", "v1.22", "v1.24", "v1.30", "v1.34", "v1.99"]),
            };
            labels.insert(format!("pod-security.kubernetes.io/{mode}-version"), json!(version));
        }
    }
    labels.into()
}

/// What a container says of its security.
fn context(rng: &mut Rng) -> Value {
    let mut context = json!({});
    let one = |rng: &mut Rng, percent, field: &str, values: &[Value], context: &mut Value| {
        if rng.chance(percent) {
            context[field] = values[rng.below(values.len())].clone();
        }
    };
    one(rng, 8, "privileged", &[json!(true), json!(false)], &mut context);
    one(rng, 70, "allowPrivilegeEscalation", &[json!(false), json!(false), json!(true)], &mut context);
    one(rng, 60, "runAsNonRoot", &[json!(true), json!(true), json!(false)], &mut context);
    one(rng, 20, "runAsUser", &[json!(0), json!(1000)], &mut context);
    one(rng, 8, "procMount", &[json!("Default"), json!("Unmasked")], &mut context);
    let capabilities = [
        json!({"drop": ["ALL"]}),
        json!({"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]}),
        json!({"drop": ["ALL"]}),
        json!({"add": ["SYS_ADMIN", "CHOWN"]}),
        json!({"add": ["NET_RAW", "BPF"], "drop": ["MKNOD"]}),
    ];
    one(rng, 70, "capabilities", &capabilities, &mut context);
    let profiles = [
        json!({"type": "RuntimeDefault"}),
        json!({"type": "Unconfined"}),
        json!({"type": "Localhost", "localhostProfile": "x"}),
    ];
    one(rng, 35, "seccompProfile", &profiles, &mut context);
    one(rng, 15, "appArmorProfile", &profiles, &mut context);
    let options = [
        json!({"type": "container_t"}),
        json!({"type": "spc_t"}),
        json!({"user": "u", "role": "r"}),
        json!({"type": "container_engine_t"}),
    ];
    one(rng, 15, "seLinuxOptions", &options, &mut context);
    if context["privileged"] == true || context["capabilities"]["add"][0] == "SYS_ADMIN" {
        context.as_object_mut().expect("an object").remove("allowPrivilegeEscalation");
    }
    context
}

fn secured_container(rng: &mut Rng, name: &str) -> Value {
    let mut container = json!({"name": name, "image": "nginx"});
    if rng.chance(85) {
        container["securityContext"] = context(rng);
    }
    if rng.chance(10) {
        container["ports"] = json!([{"containerPort": 80, "hostPort": 8080 + rng.below(3)}]);
    }
    if rng.chance(10) {
        container["livenessProbe"] = json!({"httpGet": {"port": 80, "host": rng.pick(&["", "10.0.0.1"])}});
    }
    if rng.chance(6) {
        container["lifecycle"] = json!({"preStop": {"httpGet": {"port": 80, "host": "example.com"}}});
    }
    container
}

fn secured_spec(rng: &mut Rng) -> Value {
    let mut spec = json!({"containers": [secured_container(rng, "a")]});
    if rng.chance(30) {
        let another = secured_container(rng, "b");
        spec["containers"].as_array_mut().expect("a list").push(another);
    }
    if rng.chance(20) {
        spec["initContainers"] = json!([secured_container(rng, "i")]);
    }
    for field in ["hostNetwork", "hostPID", "hostIPC"] {
        if rng.chance(6) {
            spec[field] = json!(true);
        }
    }
    // Ports of the host are those of its network.
    if spec["hostNetwork"] == true {
        for field in ["containers", "initContainers"] {
            for container in spec[field].as_array_mut().into_iter().flatten() {
                container.as_object_mut().expect("an object").remove("ports");
            }
        }
    }
    if rng.chance(10)
        && spec.get("hostNetwork").is_none()
        && spec.get("hostPID").is_none()
        && spec.get("hostIPC").is_none()
    {
        spec["hostUsers"] = json!(false);
    }
    if rng.chance(40) {
        let mut own = json!({});
        if rng.chance(60) {
            own["runAsNonRoot"] = json!(rng.chance(80));
        }
        if rng.chance(50) {
            own["seccompProfile"] =
                json!({"type": rng.pick(&["RuntimeDefault", "RuntimeDefault", "Unconfined"])});
        }
        if rng.chance(15) {
            own["runAsUser"] = json!(0);
        }
        if rng.chance(20) {
            let name = rng.pick(&[
                "kernel.shm_rmid_forced",
                "net.ipv4.tcp_rmem",
                "net.ipv4.tcp_keepalive_time",
                "kernel.msgmax",
            ]);
            own["sysctls"] = json!([{"name": name, "value": "1"}]);
        }
        spec["securityContext"] = own;
    }
    if rng.chance(25) {
        let volumes = [
            json!({"name": "v", "emptyDir": {}}),
            json!({"name": "v", "hostPath": {"path": "/x"}}),
            json!({"name": "v", "nfs": {"server": "s", "path": "/"}}),
            json!({"name": "v", "configMap": {"name": "c"}}),
            json!({"name": "v", "iscsi": {"targetPortal": "10.0.0.1:3260", "iqn": "iqn.2001-04.com.example:x", "lun": 0}}),
        ];
        spec["volumes"] = json!([volumes[rng.below(volumes.len())].clone()]);
    }
    spec
}

fn secured_pod(rng: &mut Rng, name: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": secured_spec(rng)})
}

/// Namespaces with levels, and pods and workloads in them.
pub fn pods(rng: &mut Rng) -> Vec<Step> {
    const HERE: &str = "/api/v1/namespaces/{ns}-s";
    let labels = secure_labels(rng);
    let namespace = json!({"metadata": {"name": "{ns}-s", "labels": labels}});
    let mut steps = vec![Step::with("POST", "/api/v1/namespaces", namespace)];
    for index in 0..4 {
        let name = format!("p{index}");
        let step = match rng.below(6) {
            0 => {
                let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": secured_spec(rng)});
                let spec = json!({"selector": {"matchLabels": {"a": "b"}}, "template": template});
                let plural = rng.pick(&["deployments", "replicasets", "daemonsets"]);
                let body = json!({"metadata": {"name": name}, "spec": spec});
                Step::with("POST", format!("/apis/apps/v1/namespaces/{{ns}}-s/{plural}"), body)
            }
            1 => {
                let mut template = json!({"spec": secured_spec(rng)});
                template["spec"]["restartPolicy"] = json!("Never");
                let body = match rng.chance(50) {
                    true => json!({"metadata": {"name": name}, "spec": {"template": template}}),
                    false => json!({"metadata": {"name": name}, "spec": {
                        "schedule": "* * * * *", "jobTemplate": {"spec": {"template": template}},
                    }}),
                };
                let plural = if body["spec"].get("schedule").is_some() { "cronjobs" } else { "jobs" };
                Step::with("POST", format!("/apis/batch/v1/namespaces/{{ns}}-s/{plural}"), body)
            }
            2 => {
                let mut body = secured_pod(rng, "");
                body["metadata"].as_object_mut().expect("an object").remove("name");
                body["metadata"]["generateName"] = json!("some-");
                Step::with("POST", format!("{HERE}/pods?dryRun=All"), body)
            }
            _ => Step::with("POST", format!("{HERE}/pods"), secured_pod(rng, &name)),
        };
        steps.push(step);
    }
    let image = json!({"spec": {"containers": [{"name": "a", "image": "other"}]}});
    steps.push(Step::patch("strategic", format!("{HERE}/pods/p{}", rng.below(4)), image));
    let debugger = json!({"spec": {"ephemeralContainers": [secured_container(rng, "d")]}});
    steps.push(Step::patch(
        "strategic",
        format!("{HERE}/pods/p{}/ephemeralcontainers", rng.below(4)),
        debugger,
    ));
    steps
}

/// Waits until the pods so far are known: the real server hears of them a little later, one after the other, so when it
/// warns of the last one it knows all of them.
fn pods_known(steps: &mut Vec<Step>) {
    const HERE: &str = "/api/v1/namespaces/{ns}-mark";
    let spec = json!({"hostNetwork": true, "containers": [{"name": "a", "image": "x"}]});
    let strict = json!({"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}});
    let asked = Step::patch("merge", format!("{HERE}?dryRun=All"), strict);
    let namespace = json!({"metadata": {"name": "{ns}-mark"}});
    steps.push(Step::with("POST", "/api/v1/namespaces", namespace).quiet());
    let mark = json!({"metadata": {"name": "mark"}, "spec": spec});
    steps.push(Step::with("POST", format!("{HERE}/pods"), mark).quiet());
    steps.push(asked.until_told(200, "header:warning", Value::Null).quiet());
}

/// A namespace of which more is asked than some of its pods can give.
pub fn levels(rng: &mut Rng) -> Vec<Step> {
    let mut steps: Vec<Step> = (0..=rng.below(5))
        .map(|index| Step::with("POST", PODS, secured_pod(rng, &format!("p{index}"))))
        .collect();
    pods_known(&mut steps);
    for _ in 0..3 {
        let labels = json!({"metadata": {"labels": secure_labels(rng)}});
        let path = format!("/api/v1/namespaces/{{ns}}{}", rng.pick(&["", "", "?dryRun=All"]));
        // The real server tries a write on the object in its cache first, and keeps what it warned of then. A list waits
        // until the cache has heard of all writes.
        steps.push(Step::new("GET", "/api/v1/namespaces?fieldSelector=metadata.name%3D{ns}").quiet());
        steps.push(Step::patch("merge", path, labels));
    }
    steps
}
