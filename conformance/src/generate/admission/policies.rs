//! ValidatingAdmissionPolicies with bindings and parameters, and writes that they judge.

use serde_json::{Value, json};

use super::super::custom::{DEFINITION, DEFINITIONS, THINGS, definition, thing};
use super::{CONFIG_MAPS, binding, forgotten, here, known, policy, pool};
use crate::rng::Rng;
use crate::sequence::Step;

/// Writes of every kind, on a few ConfigMaps.
fn writes(rng: &mut Rng) -> Vec<Step> {
    let mut steps = Vec::new();
    for _ in 0..2 + rng.below(3) {
        let name = rng.pick(&["a", "ab", "c"]);
        let mut body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
        for (key, value) in [("k", "v"), ("n", "5"), ("d", "90s"), ("long", "x")] {
            if rng.chance(55) {
                body["data"][key] = json!(value);
            }
        }
        if rng.chance(40) {
            body["metadata"]["labels"] = json!({"tier": rng.pick(&["web", "db"])});
        }
        let query =
            rng.pick(&["", "?fieldManager=me", "?dryRun=All", "?fieldManager=me&fieldValidation=Strict"]);
        let one = format!("{CONFIG_MAPS}/{name}");
        steps.push(match rng.below(7) {
            0..=2 => Step::with("POST", format!("{CONFIG_MAPS}{query}"), body),
            3 => Step::with("PUT", format!("{one}{query}"), body),
            4 => Step::patch("merge", format!("{one}{query}"), json!({"data": {"k": rng.pick(&["v", "w"])}})),
            5 => Step::patch("apply", format!("{one}?fieldManager=me"), body),
            _ => Step::new("DELETE", one),
        });
    }
    steps
}

fn rule(groups: &[&str], resources: &[&str], operations: &[&str]) -> Value {
    json!({"apiGroups": groups, "apiVersions": ["v1"], "resources": resources, "operations": operations})
}

fn config_maps() -> Value {
    json!({"namespaceSelector": here(), "resourceRules": [rule(&[""], &["configmaps"], &["*"])]})
}

/// What expressions say of writes. All that is wrong becomes a warning, so that all of it is told.
pub fn evaluated(rng: &mut Rng) -> Vec<Step> {
    let has_variables = rng.chance(60);
    let validations: Value =
        (0..4 + rng.below(4)).map(|_| json!({"expression": pool::truth(rng, has_variables, 2)})).collect();
    let mut spec = json!({"matchConstraints": config_maps(), "validations": validations});
    if has_variables {
        let all = pool::VARIABLES.iter();
        spec["variables"] = all.map(|(name, source)| json!({"name": name, "expression": source})).collect();
    }
    if rng.chance(15) {
        spec["failurePolicy"] = json!("Ignore");
    }
    let mut steps = vec![
        policy("p", spec),
        binding("p", json!({"validationActions": rng.pick(&[&["Warn"][..], &["Warn", "Audit"]])})),
    ];
    known(&mut steps);
    steps.extend(writes(rng));
    forgotten(&mut steps, &["p"]);
    steps
}

/// What becomes of what does not hold: reasons, messages, actions, annotations, conditions.
pub fn told(rng: &mut Rng) -> Vec<Step> {
    let mut validation = json!({"expression": pool::truth(rng, false, 1)});
    if rng.chance(40) {
        validation["message"] = json!(rng.pick(&["it is wrong", "  spaces around  "]));
    }
    if rng.chance(50) {
        validation["messageExpression"] = json!(pool::text(rng));
    }
    if rng.chance(50) {
        let reasons = ["Forbidden", "Invalid", "RequestEntityTooLarge"];
        validation["reason"] = json!(rng.pick(&reasons));
    }
    let mut spec = json!({"matchConstraints": config_maps(), "validations": [validation]});
    if rng.chance(30) {
        spec["failurePolicy"] = json!("Ignore");
    }
    if rng.chance(30) {
        let source =
            rng.pick(&["'x'", "null", "object.metadata.name == 'a' ? 'is a' : ''", "string(object.nothing)"]);
        spec["auditAnnotations"] = json!([{"key": "noted", "valueExpression": source}]);
    }
    if rng.chance(50) {
        let conditions = (0..=rng.below(2))
            .map(|index| json!({"name": format!("c{index}"), "expression": pool::truth(rng, false, 1)}));
        spec["matchConditions"] = conditions.collect();
    }
    let actions: [&[&str]; 5] = [&["Deny"], &["Deny"], &["Warn"], &["Audit"], &["Deny", "Audit"]];
    let mut steps = vec![policy("p", spec), binding("p", json!({"validationActions": rng.pick(&actions)}))];
    known(&mut steps);
    steps.extend(writes(rng));
    forgotten(&mut steps, &["p"]);
    steps
}

/// What constraints match.
pub fn matched(rng: &mut Rng) -> Vec<Step> {
    let some_rule = |rng: &mut Rng| {
        let resources: [&[&str]; 7] = [
            &["configmaps"],
            &["secrets"],
            &["*"],
            &["*/*"],
            &["configmaps", "secrets"],
            &["deployments/status"],
            &["pods", "serviceaccounts"],
        ];
        let operations: [&[&str]; 5] = [&["*"], &["CREATE"], &["UPDATE"], &["DELETE"], &["CREATE", "DELETE"]];
        let groups: [&[&str]; 4] = [&[""], &["*"], &["apps"], &["", "apps"]];
        let mut rule = rule(rng.pick(&groups), rng.pick(&resources), rng.pick(&operations));
        if rng.chance(30) {
            rule["resourceNames"] = json!(rng.pick(&[&["a"][..], &["b", "c"]]));
        }
        if rng.chance(30) {
            rule["scope"] = json!(rng.pick(&["*", "Namespaced", "Cluster"]));
        }
        rule
    };
    let objects = |rng: &mut Rng| match rng.below(3) {
        0 => json!({"matchLabels": {"tier": "web"}}),
        1 => json!({"matchExpressions": [{"key": "tier", "operator": "Exists"}]}),
        _ => json!({"matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["db"]}]}),
    };
    let rules: Value = (0..=rng.below(2)).map(|_| some_rule(rng)).collect();
    let mut constraints = json!({"namespaceSelector": here(), "resourceRules": rules});
    if rng.chance(30) {
        constraints["excludeResourceRules"] = json!([some_rule(rng)]);
    }
    if rng.chance(35) {
        constraints["objectSelector"] = objects(rng);
    }
    if rng.chance(30) {
        constraints["matchPolicy"] = json!(rng.pick(&["Exact", "Equivalent"]));
    }
    let spec = json!({"matchConstraints": constraints, "validations": [{"expression": "false", "message": "matched"}]});
    let mut bound = json!({"validationActions": ["Warn"]});
    if rng.chance(40) {
        bound["matchResources"] = json!({});
        if rng.chance(60) {
            bound["matchResources"]["objectSelector"] = objects(rng);
        }
        if rng.chance(40) {
            bound["matchResources"]["resourceRules"] = json!([some_rule(rng)]);
        }
        if rng.chance(30) {
            bound["matchResources"]["excludeResourceRules"] = json!([some_rule(rng)]);
        }
    }
    let mut steps = vec![policy("p", spec), binding("p", bound)];
    known(&mut steps);
    for _ in 0..4 + rng.below(4) {
        let (plural, kind) = rng.pick(&[
            &("configmaps", "ConfigMap"),
            &("secrets", "Secret"),
            &("serviceaccounts", "ServiceAccount"),
        ]);
        let (path, name) = (format!("/api/v1/namespaces/{{ns}}/{plural}"), rng.pick(&["a", "b"]));
        let mut body = json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name}});
        if rng.chance(50) {
            body["metadata"]["labels"] = json!({"tier": rng.pick(&["web", "db"])});
        }
        steps.push(match rng.below(6) {
            0..=2 => Step::with("POST", path, body),
            3 => Step::patch(
                "merge",
                format!("{path}/{name}"),
                json!({"metadata": {"labels": {"tier": "web"}}}),
            ),
            4 => Step::with(
                "POST",
                path,
                json!({"apiVersion": "v1", "kind": kind, "metadata": {"generateName": "g-"}}),
            ),
            _ => Step::new("DELETE", format!("{path}/{name}")),
        });
    }
    forgotten(&mut steps, &["p"]);
    steps
}

/// Parameters of a custom kind. The real server looks for new kinds every half a minute, and a mark is denied when it has
/// found one and its objects.
pub fn of_custom_kinds(rng: &mut Rng) -> Vec<Step> {
    let most = json!({"type": "object", "properties": {"most": {"type": "integer"}}});
    let mut steps = vec![
        Step::with("POST", DEFINITIONS, definition(most)).quiet(),
        Step::new("GET", THINGS).until(200).quiet(),
    ];
    let kind = json!({"apiVersion": "{id}.example.com/v1", "kind": "Thing"});
    for (name, most) in [("a", 1), ("b", 2)] {
        let mut body = thing(json!({"most": most}));
        body["metadata"] = json!({"name": name, "labels": {"params": "yes", "own": name}});
        steps.push(Step::with("POST", THINGS, body).quiet());
    }
    let expressions = [
        "object.data.size() <= params.spec.most",
        "params.kind == 'Thing' && params.apiVersion == '{id}.example.com/v1'",
        "params.metadata.name == 'a'",
        "has(params.spec.nothing)",
        "params.metadata.labels['own'] == object.metadata.name",
    ];
    let validation = json!({"expression": rng.pick(&expressions), "message": "too many"});
    let mut spec =
        json!({"matchConstraints": config_maps(), "validations": [validation], "paramKind": kind.clone()});
    // The mark is nobody else's business.
    let mut mark = rule(&[""], &["configmaps"], &["*"]);
    mark["resourceNames"] = json!(["mark"]);
    spec["matchConstraints"]["excludeResourceRules"] = json!([mark]);
    let mut reference = json!({"parameterNotFoundAction": rng.pick(&["Allow", "Deny"])});
    match rng.below(4) {
        0 | 1 => reference["name"] = json!(rng.pick(&["a", "b", "nothing"])),
        2 => reference["selector"] = json!({"matchLabels": {"own": rng.pick(&["a", "b", "nobody"])}}),
        _ => reference["selector"] = json!({"matchExpressions": [{"key": "own", "operator": "Exists"}]}),
    }
    if rng.chance(40) {
        reference["namespace"] = json!(rng.pick(&["{ns}", "default"]));
    }
    let bound = json!({"validationActions": [rng.pick(&["Deny", "Warn"])], "paramRef": reference});
    steps.extend([policy("p", spec), binding("p", bound)]);
    let mut marked = config_maps();
    marked["resourceRules"][0]["resourceNames"] = json!(["mark"]);
    let spec = json!({
        "matchConstraints": marked, "paramKind": kind, "failurePolicy": "Ignore",
        "validations": [{"expression": "params.metadata.name == 'nobody'"}],
    });
    let found = json!({"name": "b", "namespace": "{ns}", "parameterNotFoundAction": "Deny"});
    steps.push(policy("mark", spec).quiet());
    steps.push(binding("mark", json!({"validationActions": ["Deny"], "paramRef": found})).quiet());
    for _ in 0..4 {
        let mark = json!({"metadata": {"name": "mark"}});
        steps.push(Step::with("POST", format!("{CONFIG_MAPS}?dryRun=All"), mark).until(422).quiet());
    }
    steps.extend(writes(rng));
    forgotten(&mut steps, &["p"]);
    steps.push(Step::new("DELETE", DEFINITION).quiet());
    steps
}

/// Parameters: by name and by selector, there or not, in a namespace or in none.
pub fn parametrized(rng: &mut Rng) -> Vec<Step> {
    let mut steps = Vec::new();
    for (name, most) in [("one", "1"), ("two", "2")] {
        let labels = json!({"params": "yes"});
        let body = json!({"metadata": {"name": name, "labels": labels}, "data": {"most": most}});
        steps.push(Step::with("POST", "/api/v1/namespaces/{ns}/configmaps", body).quiet());
    }
    let kind = match rng.below(6) {
        0..=2 => json!({"apiVersion": "v1", "kind": "ConfigMap"}),
        3 => json!({"apiVersion": "v1", "kind": "Namespace"}),
        4 => json!({"apiVersion": "example.com/v1", "kind": "Nothing"}),
        _ => Value::Null,
    };
    let expressions: &[&str] = match kind.is_null() {
        true => &["object.data.size() > 1"],
        false => &[
            "params == null || object.data.size() <= int(params.data.most)",
            "object.data.size() <= int(params.data.most)",
            "params != null",
            "params.metadata.name == 'one'",
            "params.kind == 'ConfigMap' && params.apiVersion == 'v1'",
            "has(params.data)",
        ],
    };
    let validation = json!({"expression": rng.pick(expressions), "message": "too many"});
    let mut spec = json!({"matchConstraints": config_maps(), "validations": [validation]});
    if !kind.is_null() {
        spec["paramKind"] = kind.clone();
    }
    if rng.chance(30) {
        spec["failurePolicy"] = json!("Ignore");
    }
    if rng.chance(25) && !kind.is_null() {
        spec["matchConditions"] =
            json!([{"name": "c", "expression": "params == null || has(params.metadata)"}]);
    }
    let mut bound = json!({"validationActions": [rng.pick(&["Deny", "Warn"])]});
    if rng.chance(85) {
        let mut reference = json!({"parameterNotFoundAction": rng.pick(&["Allow", "Deny"])});
        let of_namespaces = kind["kind"] == "Namespace";
        if rng.chance(70) {
            let names: &[&str] =
                if of_namespaces { &["{ns}", "nothing"] } else { &["one", "two", "nothing"] };
            reference["name"] = json!(rng.pick(names));
        } else if of_namespaces {
            reference["selector"] = here();
        } else {
            // Of several nobody knows which comes first: what is said of one is said of all.
            reference["selector"] = json!({"matchLabels": {"params": rng.pick(&["yes", "yes", "no"])}});
        }
        if rng.chance(40) {
            reference["namespace"] = json!(rng.pick(&["{ns}", "default"]));
        }
        bound["paramRef"] = reference;
    }
    steps.extend([policy("p", spec), binding("p", bound)]);
    known(&mut steps);
    steps.extend(writes(rng));
    // The policy stays: with the last one that wants ConfigMaps the real server stops to read them, for good.
    forgotten(&mut steps, &[]);
    steps
}
