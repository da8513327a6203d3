//! Expressions over a request: some hold, some do not, and some cannot be told.

use crate::rng::Rng;

/// Expressions of type bool.
const BOOLS: [&str; 77] = [
    "object.metadata.name == 'a'",
    "object.metadata.name.startsWith('a')",
    "has(object.data)",
    "has(object.data) && has(object.data.k)",
    "object.data.k == 'v'",
    "object.data.size() > 1",
    "size(object.data) <= 2",
    "object.data.all(k, k.size() < 3)",
    "object.data.exists(k, object.data[k] == 'v')",
    "object.data.exists_one(k, k == 'k')",
    "'k' in object.data",
    "object.data.nothing == 'x'",
    "object.nothing.at.all == 1",
    "has(object.nothing)",
    "has(object.data.k.deeper)",
    "object.data.k.deeper == 1",
    "object.data['k'] + '!' == 'v!'",
    "object.data.n.matches('^[0-9]+$')",
    "int(object.data.n) < 10",
    "int(object.data.k) < 10",
    "object.data.n > 5",
    "object.data.n + 1 == 2",
    "object.data.k[0] == 'v'",
    "quantity(object.data.n).isLessThan(quantity('7'))",
    "quantity(object.data.k).isInteger()",
    "isQuantity(object.data.n)",
    "duration(object.data.d) > duration('1m')",
    "timestamp(object.metadata.creationTimestamp) < timestamp('2100-01-01T00:00:00Z')",
    "object.metadata.creationTimestamp < timestamp('2100-01-01T00:00:00Z')",
    "object.metadata.labels['tier'] == 'web'",
    "object.metadata.?labels['tier'].orValue('none') == 'none'",
    "object.metadata.?labels.hasValue()",
    "object.?data.k.orValue('x') == 'v'",
    "has(object.metadata.labels) && object.metadata.labels.all(k, object.metadata.labels[k] != '')",
    "object.metadata.labels.exists(k, k.startsWith('t'))",
    "object == oldObject",
    "oldObject == null",
    "object == null || oldObject == null",
    "oldObject.data.k == object.data.k",
    "oldObject != null && oldObject.data.k == 'v'",
    "has(oldObject.data)",
    "oldObject.metadata.uid == object.metadata.uid",
    "object.metadata.generation == 1",
    "type(object.data) == map",
    "type(object.data.k) == string",
    "type(object.metadata.name) == type('')",
    "request.operation == 'CREATE'",
    "request.operation in ['UPDATE', 'DELETE']",
    "request.name == 'a'",
    "request.namespace == namespaceObject.metadata.name",
    "request.kind.kind == 'ConfigMap' && request.kind.version == 'v1' && request.kind.group == ''",
    "request.resource.resource == 'configmaps'",
    "request.requestResource.resource == 'configmaps'",
    "has(request.subResource)",
    "request.subResource == 'status'",
    "request.dryRun",
    "!request.dryRun",
    "request.options.kind == 'CreateOptions'",
    "has(request.options.fieldManager) && request.options.fieldManager == 'me'",
    "request.userInfo.groups.exists(g, g == 'system:masters')",
    "'system:authenticated' in request.userInfo.groups",
    "request.userInfo.extra.size() == 0",
    "namespaceObject.metadata.labels.size() == 1",
    "namespaceObject.status.phase == 'Active'",
    "namespaceObject.spec.finalizers.size() == 1",
    "has(namespaceObject.metadata.annotations)",
    "namespaceObject.metadata.annotations.size() == 0",
    "has(namespaceObject.metadata.managedFields)",
    "authorizer.group('').resource('configmaps').namespace(request.namespace).check('create').allowed()",
    "authorizer.requestResource.check('update').allowed()",
    "authorizer.group('apps').resource('deployments').subresource('scale').name('x').check('get').allowed()",
    "authorizer.path('/healthz').check('get').allowed()",
    "authorizer.serviceAccount('default', 'nobody').group('').resource('secrets').check('get').allowed()",
    "authorizer.serviceAccount('default', 'nobody').path('/healthz').check('get').allowed()",
    "authorizer.serviceAccount('default', 'nobody').group('').resource('pods').check('list').reason() == ''",
    "authorizer.path('').check('get').allowed()",
    "1 / (object.data.size() - object.data.size()) == 1",
];

/// Expressions of type string.
const TEXTS: [&str; 10] = [
    "'plain'",
    "object.metadata.name",
    "'name is ' + object.metadata.name",
    // Go walks a map in another order each time: what is joined must not tell.
    "'keys: ' + object.data.map(k, 'k').join(',')",
    "string(object.data.size())",
    "object.nothing",
    "request.operation + ' of ' + request.name",
    "'two\\nlines'",
    "'   '",
    "object.data.k.upperAscii()",
];

/// Variables: names and expressions, of which later ones may use earlier ones.
pub const VARIABLES: [(&str, &str); 7] = [
    ("count", "object.data.size()"),
    ("keys", "object.data.map(k, k)"),
    ("broken", "object.nothing"),
    ("labels", "object.metadata.?labels.orValue({})"),
    ("more", "variables.count + 1"),
    ("maybe", "object.?data.k"),
    ("name", "'x' + object.metadata.name"),
];

/// Expressions over variables, each with those that it needs.
const OVER_VARIABLES: [&str; 8] = [
    "variables.count == 2",
    "variables.keys.size() == variables.count",
    "variables.broken == 1",
    "'tier' in variables.labels",
    "variables.more > variables.count",
    "variables.maybe.orValue('x') == 'v'",
    "variables.name == 'xa'",
    "has(variables.count) && variables.count > 0",
];

/// An expression that is to give true or false.
pub fn truth(rng: &mut Rng, has_variables: bool, depth: usize) -> String {
    let plain = |rng: &mut Rng| match has_variables && rng.chance(40) {
        true => rng.pick(&OVER_VARIABLES).to_owned(),
        false => rng.pick(&BOOLS).to_owned(),
    };
    if depth == 0 || rng.chance(60) {
        return plain(rng);
    }
    let (a, b) = (truth(rng, has_variables, depth - 1), truth(rng, has_variables, depth - 1));
    match rng.below(4) {
        0 => format!("({a}) && ({b})"),
        1 => format!("({a}) || ({b})"),
        2 => format!("!({a})"),
        _ => format!("({a}) ? ({b}) : {}", plain(rng)),
    }
}

/// An expression that is to give text.
pub fn text(rng: &mut Rng) -> String {
    // What is dyn has to become text, or the checker refuses it.
    match rng.pick(&TEXTS) {
        source if source.starts_with("object.") && !source.ends_with(')') => format!("string({source})"),
        source => source.to_owned(),
    }
}
