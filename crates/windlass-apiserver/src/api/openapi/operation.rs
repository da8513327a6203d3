//! An operation of a path, and what the operations of a path share.

use serde_json::{Map, Value, json};

/// The methods in the order in which documents list them.
const METHODS: [&str; 7] = ["get", "put", "post", "delete", "options", "head", "patch"];
const FORMATS: [&str; 3] = ["application/json", "application/vnd.kubernetes.protobuf", "application/yaml"];
const STREAMS: [&str; 5] = [
    "application/json",
    "application/json;stream=watch",
    "application/vnd.kubernetes.protobuf",
    "application/vnd.kubernetes.protobuf;stream=watch",
    "application/yaml",
];
const CUSTOM_FORMATS: [&str; 2] = ["application/json", "application/yaml"];
const PATCHES: [&str; 4] = [
    "application/apply-patch+yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
];

/// Built-in and custom kinds are described by different authors: what they say of formats and codes is not the same.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Style {
    Builtin,
    Custom,
}

impl Style {
    /// Answers with an object in all formats.
    pub fn answers(self, codes: &[u16], schema: &Value) -> Value {
        answers(codes, if self == Style::Builtin { &FORMATS } else { &CUSTOM_FORMATS }, schema)
    }

    /// The answer to a list, which may turn out to be a watch.
    pub fn streams(self, schema: &Value) -> Value {
        answers(&[200], if self == Style::Builtin { &STREAMS } else { &CUSTOM_FORMATS }, schema)
    }

    /// The body of a request.
    pub fn body(self, schema: &Value, required: bool) -> Value {
        let mut body = match self {
            Style::Builtin => json!({"content": content(&["*/*"], schema)}),
            Style::Custom => json!({"content": content(&CUSTOM_FORMATS, schema)}),
        };
        if required {
            body["required"] = json!(true);
        }
        body
    }

    /// The body of a patch.
    pub fn patch(self, schema: &Value) -> Value {
        let kinds = if self == Style::Builtin { &PATCHES[..] } else { &PATCHES[..3] };
        json!({"content": content(kinds, schema), "required": true})
    }
}

/// Answers of these codes with a body, and the one to strangers.
pub(super) fn answers(codes: &[u16], formats: &[&str], schema: &Value) -> Value {
    let mut out = Map::new();
    for code in codes {
        let description = match code {
            201 => "Created",
            202 => "Accepted",
            _ => "OK",
        };
        out.insert(
            code.to_string(),
            json!({"description": description, "content": content(formats, schema)}),
        );
    }
    out.insert("401".into(), json!({"description": "Unauthorized"}));
    Value::Object(out)
}

fn content(formats: &[&str], schema: &Value) -> Map<String, Value> {
    formats.iter().map(|format| ((*format).to_owned(), json!({"schema": schema}))).collect()
}

/// An operation, before it is known which of its parameters all operations of the path have.
pub(super) struct Operation {
    pub method: String,
    pub tag: String,
    pub description: String,
    pub id: String,
    pub parameters: Vec<Value>,
    pub body: Option<Value>,
    pub answers: Value,
    pub action: &'static str,
    pub kind: Value,
}

impl Operation {
    pub fn new(method: &str, tag: String) -> Operation {
        Operation {
            method: method.to_owned(),
            tag,
            description: String::new(),
            id: String::new(),
            parameters: Vec::new(),
            body: None,
            answers: Value::Null,
            action: "",
            kind: Value::Null,
        }
    }

    pub fn describe(mut self, action: &'static str, description: String) -> Operation {
        self.action = action;
        self.description = description;
        self
    }

    fn render(self) -> Value {
        let mut out = Map::new();
        out.insert("tags".into(), json!([self.tag]));
        out.insert("description".into(), json!(self.description));
        out.insert("operationId".into(), json!(self.id));
        if !self.parameters.is_empty() {
            out.insert("parameters".into(), Value::Array(self.parameters));
        }
        if let Some(body) = self.body {
            out.insert("requestBody".into(), body);
        }
        out.insert("responses".into(), self.answers);
        out.insert("x-kubernetes-action".into(), json!(self.action));
        out.insert("x-kubernetes-group-version-kind".into(), self.kind);
        Value::Object(out)
    }
}

/// Adds a path. Parameters that all of its operations have are those of the path.
pub(super) fn insert(all: &mut Map<String, Value>, path: String, mut operations: Vec<Operation>) {
    let Some(first) = operations.first() else { return };
    let everywhere = |one: &&Value| operations.iter().all(|operation| operation.parameters.contains(one));
    let mut shared: Vec<Value> = first.parameters.iter().filter(everywhere).cloned().collect();
    operations.sort_by_key(|operation| METHODS.iter().position(|method| *method == operation.method));
    let mut item = Map::new();
    for mut operation in operations {
        operation.parameters.retain(|one| !shared.contains(one));
        sort(&mut operation.parameters);
        item.insert(operation.method.clone(), operation.render());
    }
    if !shared.is_empty() {
        sort(&mut shared);
        item.insert("parameters".into(), Value::Array(shared));
    }
    all.insert(path, Value::Object(item));
}

fn sort(parameters: &mut [Value]) {
    let key = |parameter: &Value| {
        let text = |key: &str| parameter[key].as_str().unwrap_or_default().to_owned();
        (text("name"), text("in"))
    };
    parameters.sort_by_key(key);
}
