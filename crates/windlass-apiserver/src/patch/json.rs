//! JSON patch, RFC 6902, as evanphx/json-patch v4 applies it in kube-apiserver.

use serde_json::{Map, Value};

use super::{PatchError, go};

/// How many operations one patch may contain.
pub const OPERATIONS_MAX: usize = 10_000;

/// How many bytes of JSON the `copy` operations of one patch may add.
const COPIED_BYTES_MAX: usize = 3 * 1024 * 1024;

/// How many values one patch may shift or look at. Each insertion into a list moves what stands behind it, so ten
/// thousand operations at the front of a list as long as a body can be would keep the server busy for minutes;
/// upstream lets its request timeout end that.
const WORK_MAX: usize = 200_000_000;

/// How deep the result may be: as deep as the reader lets a body be. Copying a value into itself could otherwise
/// dig deeper than the stack of whoever walks the tree.
const DEPTH_MAX: usize = 128;

/// Whether the body is a JSON patch at all, and the members of its operations that mean nothing
/// (`json patch unknown field "[0].foo"`), for the caller to warn of or refuse.
pub fn check_json_patch(patch: &Value) -> Result<Vec<String>, PatchError> {
    let malformed =
        |text: String| PatchError::Malformed(format!("error decoding patch: json: cannot unmarshal {text}"));
    let operations = match patch {
        Value::Null => return Ok(Vec::new()),
        Value::Array(operations) => operations,
        other => {
            let kind = go::json_kind(other);
            return Err(malformed(format!("{kind} into Go value of type []handlers.jsonPatchOp")));
        }
    };
    let mut unknown = Vec::new();
    for (i, operation) in operations.iter().enumerate() {
        let members = match operation {
            Value::Null => continue,
            Value::Object(members) => members,
            other => {
                let kind = go::json_kind(other);
                return Err(malformed(format!("{kind} into Go value of type handlers.jsonPatchOp")));
            }
        };
        for (name, value) in members {
            match name.as_str() {
                "op" | "path" | "from" if !value.is_string() && !value.is_null() => {
                    let kind = go::json_kind(value);
                    let text = format!("{kind} into Go struct field jsonPatchOp.{name} of type string");
                    return Err(malformed(text));
                }
                "op" | "path" | "from" | "value" => {}
                other => unknown.push(format!("json patch unknown field \"[{i}].{other}\"")),
            }
        }
    }
    Ok(unknown)
}

/// Applies the operations in order. On an error the target is left as far as the patch came.
///
/// Where it differs from RFC 6902, it does so as upstream: `replace` of an absent object member adds it, `test` of
/// an absent member against `null` holds, `copy` of an absent member writes `null`, negative indices count from
/// the end, and a path that lacks its leading slash loses its first segment.
///
/// One difference from upstream is on purpose: upstream's `test` compares texts as they were written, so that
/// `"<"` never equals the `"\u003c"` that its encoder makes of it; this one compares values.
pub fn json_patch(target: &mut Value, patch: &Value) -> Result<(), PatchError> {
    let operations = match patch {
        Value::Null => return Ok(()),
        Value::Array(operations) => operations,
        other => {
            let kind = go::json_kind(other);
            let text = format!("json: cannot unmarshal {kind} into Go value of type jsonpatch.Patch");
            return Err(PatchError::Malformed(text));
        }
    };
    if operations.len() > OPERATIONS_MAX {
        return Err(PatchError::TooLarge(format!(
            "The allowed maximum operations in a JSON patch is {OPERATIONS_MAX}, got {}",
            operations.len()
        )));
    }
    let mut patcher = Patcher { root: target, copied_bytes: 0, work: 0 };
    operations.iter().try_for_each(|operation| patcher.apply(operation))
}

struct Patcher<'a> {
    root: &'a mut Value,
    copied_bytes: usize,
    work: usize,
}

impl Patcher<'_> {
    fn apply(&mut self, operation: &Value) -> Result<(), PatchError> {
        let empty = Map::new();
        let operation = operation.as_object().unwrap_or(&empty);
        let text = |name: &str| {
            let text = operation.get(name).and_then(Value::as_str);
            text.ok_or_else(|| rejected(format!("operation missing {name} field")))
        };
        let value = operation.get("value").unwrap_or(&Value::Null);
        let op = text("op")?;
        let done = match op {
            "add" => self.add(text("path")?, value.clone()),
            "remove" => self.remove(text("path")?).map(drop),
            "replace" => self.replace(text("path")?, value),
            "move" => self.relocate(text("from")?, text("path")),
            "test" => self.test(text("path")?, value),
            "copy" => self.copy(text("from")?, text("path")?),
            other => Err(rejected(format!("Unexpected kind: {other}"))),
        };
        done.map_err(|error| match error {
            PatchError::Rejected(text) if text.starts_with("doc is missing") => {
                let place = |name: &str| text_of(operation, name);
                let what = match op {
                    "test" => format!("is missing path: {}", place("path")),
                    "move" | "copy" => format!("doc is missing from path: {}", place("from")),
                    _ => text,
                };
                rejected(format!("{op} operation does not apply: {what}: missing value"))
            }
            PatchError::Rejected(why) if why.starts_with(NONEXISTENT) => {
                // Where something is moved from, only its own name is told.
                let from = text_of(operation, "from");
                let place = match op {
                    "move" => from.rsplit('/').next().unwrap_or_default(),
                    _ => text_of(operation, "path"),
                };
                rejected(format!("error in {op} for path: '{place}': {why}: missing value"))
            }
            PatchError::Rejected(text) if text.starts_with("testing value") => {
                rejected(format!("{text}: test failed"))
            }
            other => other,
        })
    }

    fn add(&mut self, path: &str, value: Value) -> Result<(), PatchError> {
        self.check_depth(path, &value)?;
        self.insert(path, value)
    }

    /// `move`. A value that does not go deeper need not be measured, however large it is.
    fn relocate(&mut self, from: &str, path: Result<&str, PatchError>) -> Result<(), PatchError> {
        let value = self.remove(from)?;
        let path = path?;
        if segments(path) > segments(from) { self.add(path, value) } else { self.insert(path, value) }
    }

    fn insert(&mut self, path: &str, value: Value) -> Result<(), PatchError> {
        let (container, key) = parent(self.root, path)?;
        match container {
            Value::Object(map) => {
                map.insert(key, value);
            }
            Value::Array(list) if key == "-" => list.push(value),
            Value::Array(list) => {
                let at = position(&key, list.len() + 1)?;
                spend(&mut self.work, list.len() - at)?;
                list.insert(at, value);
            }
            _ => return Err(missing(path)),
        }
        Ok(())
    }

    fn remove(&mut self, path: &str) -> Result<Value, PatchError> {
        let (container, key) = parent(self.root, path)?;
        match container {
            // The order of members is made canonical later, so that removal need not be linear.
            Value::Object(map) => {
                map.swap_remove(&key).ok_or_else(|| rejected(format!("{NONEXISTENT}: {key}")))
            }
            Value::Array(list) => {
                let at = position(&key, list.len())?;
                spend(&mut self.work, list.len() - at)?;
                Ok(list.remove(at))
            }
            _ => Err(missing(path)),
        }
    }

    fn replace(&mut self, path: &str, value: &Value) -> Result<(), PatchError> {
        if path.is_empty() {
            if !value.is_object() && !value.is_array() {
                return Err(rejected("replace operation value must be object or array".into()));
            }
            *self.root = value.clone();
            return Ok(());
        }
        self.check_depth(path, value)?;
        let (container, key) = parent(self.root, path)?;
        match container {
            Value::Object(map) => {
                map.insert(key, value.clone());
            }
            Value::Array(list) => {
                let at = position(&key, list.len())?;
                list[at] = value.clone();
            }
            _ => return Err(missing(path)),
        }
        Ok(())
    }

    fn test(&mut self, path: &str, expected: &Value) -> Result<(), PatchError> {
        let holds = if path.is_empty() {
            self.root == expected
        } else {
            get(self.root, path)?.unwrap_or(&Value::Null) == expected
        };
        if holds { Ok(()) } else { Err(rejected(format!("testing value {path} failed"))) }
    }

    fn copy(&mut self, from: &str, path: &str) -> Result<(), PatchError> {
        let value = get(self.root, from)?.cloned();
        if let Some(value) = &value {
            self.copied_bytes += value.to_string().len();
        }
        if self.copied_bytes > COPIED_BYTES_MAX {
            return Err(rejected(format!(
                "Unable to complete the copy, the accumulated size increase of copy is {}, exceeding the limit {COPIED_BYTES_MAX}",
                self.copied_bytes
            )));
        }
        self.add(path, value.unwrap_or_default())
    }

    fn check_depth(&mut self, path: &str, value: &Value) -> Result<(), PatchError> {
        let depth = segments(path) + depth(value, &mut self.work);
        spend(&mut self.work, 0)?;
        if depth > DEPTH_MAX { Err(rejected("exceeded max depth".into())) } else { Ok(()) }
    }
}

fn segments(path: &str) -> usize {
    path.matches('/').count()
}

/// How many containers are nested in each other; the values that it took to find out are added to `seen`.
fn depth(value: &Value, seen: &mut usize) -> usize {
    *seen += 1;
    match value {
        Value::Object(map) => 1 + map.values().map(|value| depth(value, seen)).max().unwrap_or(0),
        Value::Array(list) => 1 + list.iter().map(|value| depth(value, seen)).max().unwrap_or(0),
        _ => 0,
    }
}

/// The member at a path: `None` if its object does not have it, an error if there is nowhere to look.
fn get<'a>(root: &'a mut Value, path: &str) -> Result<Option<&'a Value>, PatchError> {
    let (container, key) = parent(root, path)?;
    match container {
        Value::Object(map) => Ok(map.get(&key)),
        Value::Array(list) => {
            let at = position(&key, list.len())?;
            Ok(Some(&list[at]))
        }
        _ => Err(missing(path)),
    }
}

/// The container that the path ends in, and the last segment.
fn parent<'a>(root: &'a mut Value, path: &str) -> Result<(&'a mut Value, String), PatchError> {
    let mut segments = path.split('/').skip(1).peekable();
    let mut container = root;
    while let Some(segment) = segments.next() {
        let key = unescape(segment);
        if segments.peek().is_none() {
            return Ok((container, key));
        }
        let next = match container {
            Value::Object(map) => map.get_mut(&key),
            Value::Array(list) => {
                let at = position(&key, list.len())?;
                list.get_mut(at)
            }
            _ => None,
        };
        container = next.filter(|value| !value.is_null()).ok_or_else(|| missing(path))?;
    }
    Err(missing(path))
}

/// RFC 6901: `~1` is a slash and `~0` a tilde, in one pass from the left.
fn unescape(segment: &str) -> String {
    if !segment.contains('~') {
        return segment.to_owned();
    }
    let mut out = String::with_capacity(segment.len());
    let mut rest = segment;
    while let Some(at) = rest.find('~') {
        out.push_str(&rest[..at]);
        let (character, width) = match rest.as_bytes().get(at + 1) {
            Some(b'1') => ('/', 2),
            Some(b'0') => ('~', 2),
            _ => ('~', 1),
        };
        out.push(character);
        rest = &rest[at + width..];
    }
    out.push_str(rest);
    out
}

/// An index below `len`, where negative ones count from the end.
fn position(key: &str, len: usize) -> Result<usize, PatchError> {
    let index = key.parse::<i64>().ok();
    let index = index.and_then(|i| if i < 0 { i.checked_add(i64::try_from(len).ok()?) } else { Some(i) });
    let index = index.and_then(|i| usize::try_from(i).ok()).filter(|&i| i < len);
    index.ok_or_else(|| rejected(format!("Unable to access invalid index: {key}")))
}

fn spend(work: &mut usize, more: usize) -> Result<(), PatchError> {
    *work += more;
    if *work > WORK_MAX {
        let text = format!("The operations of a JSON patch may move at most {WORK_MAX} values");
        return Err(PatchError::TooLarge(text));
    }
    Ok(())
}

/// What is said of a key that is not there to be removed.
const NONEXISTENT: &str = "Unable to remove nonexistent key";

fn text_of<'a>(operation: &'a Map<String, Value>, name: &str) -> &'a str {
    operation.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn missing(path: &str) -> PatchError {
    rejected(format!("doc is missing path: {path:?}"))
}

fn rejected(text: String) -> PatchError {
    PatchError::Rejected(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn apply(mut target: Value, patch: Value) -> Option<Value> {
        json_patch(&mut target, &patch).is_ok().then_some(target)
    }

    #[test]
    fn operations_that_apply() {
        let check = |target: Value, operation: Value, expected: Value| {
            assert_eq!(apply(target.clone(), json!([operation])), Some(expected), "{operation} on {target}");
        };
        check(json!({}), json!({"op": "add", "path": "/a", "value": 1}), json!({"a": 1}));
        check(json!({}), json!({"op": "replace", "path": "/a", "value": 1}), json!({"a": 1}));
        check(json!({}), json!({"op": "add", "path": "x/a", "value": 1}), json!({"a": 1}));
        check(json!({}), json!({"op": "add", "path": "/a"}), json!({"a": null}));
        check(json!({}), json!({"op": "add", "path": "/a~1b~0c~01", "value": 1}), json!({"a/b~c~1": 1}));
        check(
            json!({"a": [1, 3]}),
            json!({"op": "add", "path": "/a/1", "value": 2}),
            json!({"a": [1, 2, 3]}),
        );
        check(json!({"a": [1]}), json!({"op": "add", "path": "/a/-", "value": 2}), json!({"a": [1, 2]}));
        check(json!({"a": [1]}), json!({"op": "add", "path": "/a/-1", "value": 2}), json!({"a": [1, 2]}));
        check(json!({"a": [1, 2]}), json!({"op": "remove", "path": "/a/-1"}), json!({"a": [1]}));
        check(json!({"a": [1]}), json!({"op": "replace", "path": "/a/+0", "value": 2}), json!({"a": [2]}));
        check(json!({"a": 1}), json!({"op": "move", "from": "/a", "path": "/b"}), json!({"b": 1}));
        check(json!({"a": 1}), json!({"op": "copy", "from": "/x", "path": "/b"}), json!({"a": 1, "b": null}));
        check(json!({"a": 1}), json!({"op": "test", "path": "/x", "value": null}), json!({"a": 1}));
        check(json!({"a": 1}), json!({"op": "test", "path": "", "value": {"a": 1}}), json!({"a": 1}));
        check(json!({"a": 1}), json!({"op": "replace", "path": "", "value": [1]}), json!([1]));
    }

    #[test]
    fn operations_that_are_rejected() {
        let target = json!({"a": {"n": null}, "l": [1, 2], "s": "x"});
        for operation in [
            json!({"op": "add", "path": "", "value": {}}),
            json!({"op": "add", "path": "/b/c", "value": 1}),
            json!({"op": "add", "path": "/a/n/c", "value": 1}),
            json!({"op": "add", "path": "/s/c", "value": 1}),
            json!({"op": "add", "path": "/l/3", "value": 1}),
            json!({"op": "add", "path": "/l/-4", "value": 1}),
            json!({"op": "add", "path": "/l/x", "value": 1}),
            json!({"op": "replace", "path": "/l/2", "value": 1}),
            json!({"op": "replace", "path": "/l/-", "value": 1}),
            json!({"op": "replace", "path": "", "value": 1}),
            json!({"op": "remove", "path": "/b"}),
            json!({"op": "remove", "path": "/l/2"}),
            json!({"op": "move", "from": "/b", "path": "/c"}),
            json!({"op": "test", "path": "/s", "value": "y"}),
            json!({"op": "test", "path": "/l/9", "value": null}),
            json!({"op": "test", "path": "/l/0", "value": 1.0}),
            json!({"op": "ADD", "path": "/b", "value": 1}),
            json!({"path": "/b", "value": 1}),
            json!({"op": "add", "value": 1}),
            json!(null),
        ] {
            assert_eq!(apply(target.clone(), json!([operation])), None, "{operation}");
        }
    }

    #[test]
    fn the_number_of_operations_is_bounded() {
        let patch =
            Value::Array(vec![json!({"op": "test", "path": "/a", "value": null}); OPERATIONS_MAX + 1]);
        let error = json_patch(&mut json!({}), &patch).unwrap_err();
        let text = "The allowed maximum operations in a JSON patch is 10000, got 10001";
        assert_eq!(error, PatchError::TooLarge(text.into()));
    }

    #[test]
    fn copies_cannot_blow_up_the_object() {
        let doubling = Value::Array(vec![json!({"op": "copy", "from": "/a", "path": "/a/-"}); 40]);
        let error = json_patch(&mut json!({"a": ["x"]}), &doubling).unwrap_err();
        assert!(matches!(error, PatchError::Rejected(text) if text.contains("exceeding the limit 3145728")));
    }

    #[test]
    fn shifting_long_lists_is_bounded() {
        let mut target = json!({"a": vec![0; 50_000]});
        let front = Value::Array(vec![json!({"op": "add", "path": "/a/0", "value": 1}); OPERATIONS_MAX]);
        assert!(matches!(json_patch(&mut target, &front), Err(PatchError::TooLarge(_))));
        let back = Value::Array(vec![json!({"op": "remove", "path": "/a/-1"}); OPERATIONS_MAX]);
        assert_eq!(json_patch(&mut target, &back), Ok(()));
    }

    #[test]
    fn the_depth_of_the_result_is_bounded() {
        let digging = Value::Array(vec![json!({"op": "copy", "from": "/a", "path": "/a/a"}); 100]);
        assert!(json_patch(&mut json!({"a": {}}), &digging).is_ok(), "copies replace each other");
        let mut target = json!({"a": {}, "b": {}});
        for _ in 0..20 {
            let step = json!([{"op": "copy", "from": "/a", "path": "/b/a"}, {"op": "copy", "from": "/b", "path": "/a/b"}]);
            if let Err(error) = json_patch(&mut target, &step) {
                assert_eq!(error, PatchError::Rejected("exceeded max depth".into()));
                return;
            }
        }
        let text = target.to_string();
        assert!(text.len() < 1000, "{text}");
    }

    #[test]
    fn the_form_is_checked_before_anything_is_applied() {
        let check = |patch: Value| check_json_patch(&patch).map_err(|error| error.to_string());
        let text = "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp";
        assert_eq!(check(json!({"a": 1})), Err(text.into()));
        let text = "error decoding patch: json: cannot unmarshal number into Go struct field jsonPatchOp.path of type string";
        assert_eq!(check(json!([{"op": "add", "path": 1}])), Err(text.into()));
        let unknown = check(json!([{"op": "add", "path": "/a", "foo": 1}]));
        assert_eq!(unknown, Ok(vec!["json patch unknown field \"[0].foo\"".into()]));
    }
}
