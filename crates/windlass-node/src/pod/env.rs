//! The environment of a container, and the command that it changes.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, EnvVar, Pod, Service};

use super::downward::{self, Facts};
use super::expand::expand;
use super::library::{Library, not_found};

/// The environment variables that a container is given, beside its image's.
///
/// # Errors
/// When something that they come from is not there, in kubelet's words.
pub fn variables(
    pod: &Pod,
    container: &Container,
    library: &dyn Library,
    facts: &Facts,
) -> Result<BTreeMap<String, String>, String> {
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    let links = pod.spec.as_ref().and_then(|spec| spec.enable_service_links).unwrap_or(true);
    let services = service_variables(namespace, links, library);
    let mut variables = from_objects(namespace, container, library)?;
    for variable in container.env.iter().flatten() {
        let written = variable.value.as_deref().unwrap_or_default();
        let value = if written.is_empty() && variable.value_from.is_some() {
            match value_from(variable, pod, container, library, facts)? {
                Some(value) => value,
                None => continue,
            }
        } else {
            expand(written, |name| variables.get(name).or_else(|| services.get(name)).cloned())
        };
        variables.insert(variable.name.clone(), value);
    }
    for (name, value) in services {
        variables.entry(name).or_insert(value);
    }
    Ok(variables)
}

/// The command of a container: its own where it has one, else its image's, with `$(NAME)` replaced.
pub fn command(
    container: &Container,
    entrypoint: &[String],
    cmd: &[String],
    variables: &BTreeMap<String, String>,
) -> Vec<String> {
    let expanded = |texts: &Option<Vec<String>>| -> Vec<String> {
        let texts = texts.iter().flatten();
        texts.map(|text| expand(text, |name| variables.get(name).cloned())).collect()
    };
    let (command, args) = (expanded(&container.command), expanded(&container.args));
    match (command.is_empty(), args.is_empty()) {
        (false, _) => [command, args].concat(),
        (true, false) => [entrypoint.to_vec(), args].concat(),
        (true, true) => [entrypoint, cmd].concat(),
    }
}

fn from_objects(
    namespace: &str,
    container: &Container,
    library: &dyn Library,
) -> Result<BTreeMap<String, String>, String> {
    let mut variables = BTreeMap::new();
    for from in container.env_from.iter().flatten() {
        let prefix = from.prefix.as_deref().unwrap_or_default();
        if let Some(source) = &from.config_map_ref {
            match library.config_map(namespace, &source.name) {
                Some(map) => {
                    for (key, value) in map.data.iter().flatten() {
                        variables.insert(format!("{prefix}{key}"), value.clone());
                    }
                }
                None if source.optional == Some(true) => {}
                None => return Err(not_found("configmap", &source.name)),
            }
        } else if let Some(source) = &from.secret_ref {
            match library.secret(namespace, &source.name) {
                Some(secret) => {
                    for (key, value) in secret.data.iter().flatten() {
                        let value = String::from_utf8_lossy(&value.0).into_owned();
                        variables.insert(format!("{prefix}{key}"), value);
                    }
                }
                None if source.optional == Some(true) => {}
                None => return Err(not_found("secret", &source.name)),
            }
        }
    }
    Ok(variables)
}

/// The value of a variable that comes from elsewhere; `None` if it is not there and need not be.
fn value_from(
    variable: &EnvVar,
    pod: &Pod,
    container: &Container,
    library: &dyn Library,
    facts: &Facts,
) -> Result<Option<String>, String> {
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    let Some(from) = &variable.value_from else { return Ok(None) };
    if let Some(selector) = &from.field_ref {
        return downward::field(selector, pod, facts).map(Some);
    }
    if let Some(selector) = &from.resource_field_ref {
        return downward::resource(selector, container, facts).map(Some);
    }
    if let Some(source) = &from.config_map_key_ref {
        let map = library.config_map(namespace, &source.name);
        let value = map.as_ref().and_then(|map| map.data.as_ref()?.get(&source.key).cloned());
        return match value {
            Some(value) => Ok(Some(value)),
            None if source.optional == Some(true) => Ok(None),
            None if map.is_none() => Err(not_found("configmap", &source.name)),
            None => Err(format!("couldn't find key {} in ConfigMap {namespace}/{}", source.key, source.name)),
        };
    }
    if let Some(source) = &from.secret_key_ref {
        let secret = library.secret(namespace, &source.name);
        let value = secret.as_ref().and_then(|secret| secret.data.as_ref()?.get(&source.key).cloned());
        return match value {
            Some(value) => Ok(Some(String::from_utf8_lossy(&value.0).into_owned())),
            None if source.optional == Some(true) => Ok(None),
            None if secret.is_none() => Err(not_found("secret", &source.name)),
            None => Err(format!("couldn't find key {} in Secret {namespace}/{}", source.key, source.name)),
        };
    }
    Ok(Some(String::new()))
}

/// The variables that tell of Services: of the API server's always, of those in the pod's namespace if it wants to.
fn service_variables(namespace: &str, links: bool, library: &dyn Library) -> BTreeMap<String, String> {
    let mut chosen = BTreeMap::new();
    for service in library.services() {
        let of = |text: &Option<String>| text.clone().unwrap_or_default();
        let (its_namespace, name) = (of(&service.metadata.namespace), of(&service.metadata.name));
        let spec = service.spec.as_ref();
        let has_ip =
            spec.and_then(|spec| spec.cluster_ip.as_deref()).is_some_and(|ip| !matches!(ip, "" | "None"));
        if !has_ip {
            continue;
        }
        if its_namespace == "default" && name == "kubernetes" {
            chosen.entry(name).or_insert(service);
        } else if its_namespace == namespace && links {
            chosen.insert(name, service);
        }
    }
    chosen.iter().flat_map(|(name, service)| of_service(name, service)).collect()
}

fn of_service(name: &str, service: &Service) -> Vec<(String, String)> {
    let upper = |text: &str| text.replace('-', "_").to_uppercase();
    let prefix = upper(name);
    let Some(spec) = &service.spec else { return Vec::new() };
    let ip = spec.cluster_ip.clone().unwrap_or_default();
    let host = if ip.contains(':') { format!("[{ip}]") } else { ip.clone() };
    let mut all = vec![(format!("{prefix}_SERVICE_HOST"), ip.clone())];
    for (number, port) in spec.ports.iter().flatten().enumerate() {
        let number_text = port.port.to_string();
        let protocol = port.protocol.as_deref().unwrap_or("TCP");
        let url = format!("{}://{host}:{}", protocol.to_lowercase(), port.port);
        if number == 0 {
            all.push((format!("{prefix}_SERVICE_PORT"), number_text.clone()));
            all.push((format!("{prefix}_PORT"), url.clone()));
        }
        if let Some(name) = port.name.as_deref().filter(|name| !name.is_empty()) {
            all.push((format!("{prefix}_SERVICE_PORT_{}", upper(name)), number_text.clone()));
        }
        let link = format!("{prefix}_PORT_{}_{}", port.port, protocol.to_uppercase());
        all.push((link.clone(), url));
        all.push((format!("{link}_PROTO"), protocol.to_lowercase()));
        all.push((format!("{link}_PORT"), number_text));
        all.push((format!("{link}_ADDR"), ip.clone()));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::super::library::tests::Shelf;
    use super::*;
    use serde_json::{Value, json};
    use std::sync::Arc;

    fn shelf() -> Shelf {
        let of = |value: Value| serde_json::from_value(value).unwrap();
        Shelf {
            config_maps: vec![Arc::new(of(json!({"metadata": {"name": "conf"}, "data": {"colour": "blue", "size": "L"}})))],
            secrets: vec![Arc::new(serde_json::from_value(json!({"metadata": {"name": "key"}, "data": {"pass": "aHVzaA=="}})).unwrap())],
            services: vec![
                Arc::new(serde_json::from_value(json!({
                    "metadata": {"name": "kubernetes", "namespace": "default"},
                    "spec": {"clusterIP": "10.0.0.1", "ports": [{"name": "https", "port": 443, "protocol": "TCP"}]},
                })).unwrap()),
                Arc::new(serde_json::from_value(json!({
                    "metadata": {"name": "my-db", "namespace": "shop"},
                    "spec": {"clusterIP": "10.0.0.9", "ports": [{"port": 5432}]},
                })).unwrap()),
                Arc::new(serde_json::from_value(json!({
                    "metadata": {"name": "headless", "namespace": "shop"},
                    "spec": {"clusterIP": "None", "ports": [{"port": 1}]},
                })).unwrap()),
            ],
        }
    }

    fn of(container: Value, links: bool) -> Result<BTreeMap<String, String>, String> {
        let pod: Pod = serde_json::from_value(json!({
            "metadata": {"name": "web", "namespace": "shop"},
            "spec": {"enableServiceLinks": links, "containers": []},
        }))
        .unwrap();
        let mut container = container;
        container["name"] = json!("web");
        variables(&pod, &serde_json::from_value(container).unwrap(), &shelf(), &Facts::default())
    }

    fn text(variables: &BTreeMap<String, String>) -> String {
        variables.iter().map(|(name, value)| format!("{name}={value}\n")).collect()
    }

    #[test]
    fn later_ones_see_earlier_ones_and_beat_objects() {
        let container = json!({
            "envFrom": [{"configMapRef": {"name": "conf"}}, {"prefix": "S_", "secretRef": {"name": "key"}},
                {"configMapRef": {"name": "none", "optional": true}}],
            "env": [
                {"name": "size", "value": "XL"},
                {"name": "both", "value": "$(colour)-$(size)-$(later)"},
                {"name": "later", "value": "x"},
                {"name": "me", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                {"name": "secret", "valueFrom": {"secretKeyRef": {"name": "key", "key": "pass"}}},
                {"name": "gone", "valueFrom": {"configMapKeyRef": {"name": "conf", "key": "none", "optional": true}}},
            ],
        });
        let mut variables = of(container, false).unwrap();
        variables.retain(|name, _| !name.starts_with("KUBERNETES"));
        insta::assert_snapshot!(text(&variables), @r"
        S_pass=hush
        both=blue-XL-$(later)
        colour=blue
        later=x
        me=web
        secret=hush
        size=XL
        ");
    }

    #[test]
    fn services_are_told_as_they_always_were() {
        insta::assert_snapshot!(text(&of(json!({}), true).unwrap()), @r"
        KUBERNETES_PORT=tcp://10.0.0.1:443
        KUBERNETES_PORT_443_TCP=tcp://10.0.0.1:443
        KUBERNETES_PORT_443_TCP_ADDR=10.0.0.1
        KUBERNETES_PORT_443_TCP_PORT=443
        KUBERNETES_PORT_443_TCP_PROTO=tcp
        KUBERNETES_SERVICE_HOST=10.0.0.1
        KUBERNETES_SERVICE_PORT=443
        KUBERNETES_SERVICE_PORT_HTTPS=443
        MY_DB_PORT=tcp://10.0.0.9:5432
        MY_DB_PORT_5432_TCP=tcp://10.0.0.9:5432
        MY_DB_PORT_5432_TCP_ADDR=10.0.0.9
        MY_DB_PORT_5432_TCP_PORT=5432
        MY_DB_PORT_5432_TCP_PROTO=tcp
        MY_DB_SERVICE_HOST=10.0.0.9
        MY_DB_SERVICE_PORT=5432
        ");
        assert!(!of(json!({}), false).unwrap().contains_key("MY_DB_PORT"));
    }

    #[test]
    fn what_is_missing_is_said_as_kubelet_says_it() {
        let says = |from: Value| of(json!({"env": [{"name": "a", "valueFrom": from}]}), true).unwrap_err();
        assert_eq!(
            says(json!({"configMapKeyRef": {"name": "none", "key": "a"}})),
            "configmap \"none\" not found"
        );
        assert_eq!(
            says(json!({"configMapKeyRef": {"name": "conf", "key": "a"}})),
            "couldn't find key a in ConfigMap shop/conf"
        );
        assert_eq!(
            says(json!({"secretKeyRef": {"name": "key", "key": "a"}})),
            "couldn't find key a in Secret shop/key"
        );
        let missing = of(json!({"envFrom": [{"secretRef": {"name": "none"}}]}), true).unwrap_err();
        assert_eq!(missing, "secret \"none\" not found");
    }

    #[test]
    fn a_command_is_the_containers_or_the_images() {
        let variables = BTreeMap::from([("A".to_owned(), "1".to_owned())]);
        let of = |container: Value| {
            let mut container = container;
            container["name"] = json!("web");
            let container = serde_json::from_value(container).unwrap();
            let (entrypoint, cmd) = (["run".to_owned()], ["all".to_owned()]);
            command(&container, &entrypoint, &cmd, &variables).join(" ")
        };
        assert_eq!(of(json!({})), "run all");
        assert_eq!(of(json!({"args": ["$(A)", "$(B)"]})), "run 1 $(B)");
        assert_eq!(of(json!({"command": ["sh"]})), "sh");
        assert_eq!(of(json!({"command": ["sh"], "args": ["-c", "echo $$(A)"]})), "sh -c echo $(A)");
    }
}
