//! Strategic merge patch: lists merge by key, and directives delete, replace, retain and order.
//!
//! Follows apimachinery's `strategicpatch`, with its messages. Two things differ in cost, not in result: elements
//! are found by a hash of their merge key, and lists are ordered by rank.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::order::{Ranks, arrange, deduplicate, identity, scalar_identity};
use super::{PatchError, go};
use crate::schema::{Field, Type, TypeId, Types};

const DIRECTIVE: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const SET_ORDER: &str = "$setElementOrder";
const DELETE_FROM: &str = "$deleteFromPrimitiveList";

type Object = Map<String, Value>;
type Result<T> = std::result::Result<T, PatchError>;

/// Merges the patch into the target, whose type is `id`. On an error the target is left in no useful state.
pub fn strategic(types: &Types, id: TypeId, target: &mut Value, patch: Value) -> Result<()> {
    let patch = match patch {
        Value::Null => return Ok(()),
        Value::Object(patch) => patch,
        other => {
            let kind = go::json_kind(&other);
            let text =
                format!("json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}");
            return Err(PatchError::Malformed(text));
        }
    };
    let original = match target.take() {
        Value::Object(original) => original,
        _ => Object::new(),
    };
    let shape = Shape { types, ty: Type::Struct(id) };
    *target = Value::Object(merge_objects(original, patch, &shape)?);
    Ok(())
}

/// What the type table says of a value that is being merged.
struct Shape<'a> {
    types: &'a Types,
    ty: Type,
}

/// How a field is merged.
struct Plan<'a> {
    shape: Shape<'a>,
    replace: bool,
    merge: bool,
    merge_key: &'a str,
}

impl<'a> Shape<'a> {
    fn field(&self, name: &str) -> Result<&'a Field> {
        let unknown = |go_type: &str| {
            unclassified(format!("unable to find api field in struct {go_type} for the json field {name:?}"))
        };
        let id = match &self.ty {
            Type::Struct(id) => *id,
            other => {
                return Err(match go_struct(other) {
                    Some(go_type) => unknown(go_type),
                    None => unclassified(format!(
                        "merging an object in json but data type is not struct, instead is: {}",
                        go_kind(other)
                    )),
                });
            }
        };
        let structure = self.types.get(id);
        // Go finds fields regardless of case when there is no exact match.
        let folded = || structure.fields.iter().find(|field| field.name.eq_ignore_ascii_case(name));
        let go_type = structure.name.rsplit('.').next().unwrap_or_default();
        structure.field(name).or_else(folded).ok_or_else(|| unknown(go_type))
    }

    fn plan(&self, field: &'a Field, ty: Type) -> Plan<'a> {
        let strategy = |name: &str| field.patch_strategy.split(',').any(|part| part == name);
        Plan {
            shape: Shape { types: self.types, ty },
            replace: strategy("replace"),
            merge: strategy("merge"),
            merge_key: &field.merge_key,
        }
    }

    fn object_field(&self, name: &str) -> Result<Plan<'a>> {
        let field = self.field(name)?;
        Ok(self.plan(field, field.ty.clone()))
    }

    fn list_field(&self, name: &str) -> Result<Plan<'a>> {
        let field = self.field(name)?;
        let element = match &field.ty {
            Type::List(element) if matches!(**element, Type::List(_)) => {
                return Err(unclassified("unexpected slice of slice".into()));
            }
            Type::List(element) => (**element).clone(),
            _ if field.ptr => field.ty.clone(),
            _ => {
                let kind = go_kind(&self.ty);
                return Err(unclassified(format!("expected slice or array type, but got: {kind}")));
            }
        };
        Ok(self.plan(field, element))
    }
}

fn merge_objects(mut original: Object, mut patch: Object, shape: &Shape<'_>) -> Result<Object> {
    if let Some(directive) = patch.get(DIRECTIVE) {
        return match directive.as_str() {
            Some("replace") => {
                patch.swap_remove(DIRECTIVE);
                Ok(patch)
            }
            Some("delete") => Ok(Object::new()),
            _ => Err(bad_directive(directive, &patch)),
        };
    }
    retain_keys(&mut original, &mut patch)?;
    merge_ordered_lists(&mut original, &mut patch, shape)?;
    for (key, value) in patch {
        if key.starts_with(DELETE_FROM) {
            delete_from_list(&mut original, &key, value, shape)?;
        } else {
            merge_member(&mut original, key, value, shape)?;
        }
    }
    Ok(original)
}

/// `$retainKeys`: only the listed members stay, and the patch may set no other.
fn retain_keys(original: &mut Object, patch: &mut Object) -> Result<()> {
    let Some(listed) = patch.swap_remove(RETAIN_KEYS) else { return Ok(()) };
    let malformed = || PatchError::Malformed("invalid patch format of retainKeys".into());
    let listed = listed.as_array().ok_or_else(malformed)?;
    let listed = listed.iter().filter_map(Value::as_str).collect::<HashSet<_>>();
    let exempt = |key: &str, value: &Value| {
        value.is_null() || key.starts_with(DELETE_FROM) || key.starts_with(SET_ORDER)
    };
    if patch.iter().any(|(key, value)| !exempt(key, value) && !listed.contains(key.as_str())) {
        return Err(malformed());
    }
    original.retain(|key, _| listed.contains(key.as_str()));
    Ok(())
}

fn merge_member(original: &mut Object, key: String, value: Value, shape: &Shape<'_>) -> Result<()> {
    if value.is_null() {
        original.swap_remove(&key);
        return Ok(());
    }
    let slot = match original.get_mut(&key) {
        Some(slot) => slot,
        None => {
            if let Some(value) = without_directives(without_nulls(value)) {
                original.insert(key, value);
            }
            return Ok(());
        }
    };
    *slot = match (slot.take(), value) {
        (Value::Object(old), Value::Object(new)) => {
            let plan = shape.object_field(&key)?;
            Value::Object(if plan.replace { new } else { merge_objects(old, new, &plan.shape)? })
        }
        (Value::Array(old), Value::Array(new)) => {
            let plan = shape.list_field(&key)?;
            Value::Array(if plan.merge { merge_lists(old, new, &plan)? } else { new })
        }
        (_, value) => match without_directives(without_nulls(value)) {
            Some(value) => value,
            None => {
                original.swap_remove(&key);
                return Ok(());
            }
        },
    };
    Ok(())
}

/// `$deleteFromPrimitiveList/field`: the listed scalars leave the list.
fn delete_from_list(original: &mut Object, directive: &str, value: Value, shape: &Shape<'_>) -> Result<()> {
    let key = directive.strip_prefix(DELETE_FROM).and_then(|rest| rest.strip_prefix('/'));
    let malformed = || PatchError::Malformed("invalid patch format of primitive list".into());
    let key = key.ok_or_else(malformed)?;
    if value.is_null() {
        original.swap_remove(key);
        return Ok(());
    }
    let (Some(Value::Array(old)), Value::Array(listed)) = (original.get_mut(key), value) else {
        return Ok(());
    };
    let plan = shape.list_field(key)?;
    if old.is_empty() && listed.is_empty() {
        return Ok(());
    }
    if element_kind(&[&*old, &listed])? == ElementKind::Object {
        *old = merge_lists(std::mem::take(old), listed, &plan)?;
    } else {
        let listed = listed.iter().map(scalar_identity).collect::<HashSet<_>>();
        old.retain(|value| !listed.contains(&scalar_identity(value)));
    }
    Ok(())
}

/// `$setElementOrder/field`: merges that list now, and puts it in the order given.
fn merge_ordered_lists(original: &mut Object, patch: &mut Object, shape: &Shape<'_>) -> Result<()> {
    let directives = patch.keys().filter(|key| key.starts_with(SET_ORDER)).cloned().collect::<Vec<_>>();
    for directive in directives {
        let order = patch.swap_remove(&directive).expect("its key was just listed");
        let order = into_list(order)?;
        let key = directive.strip_prefix(SET_ORDER).and_then(|rest| rest.strip_prefix('/'));
        let malformed = || PatchError::Malformed("invalid patch format of setElementOrder list".into());
        let key = key.ok_or_else(malformed)?;
        let old = original.swap_remove(key).map(into_list).transpose()?;
        let new = patch.swap_remove(key).map(into_list).transpose()?;
        let plan = shape.list_field(key)?;
        check_order(new.as_deref().unwrap_or_default(), &order, plan.merge_key)?;
        let kind = |old: &[Value], new: &[Value]| element_kind(&[old, new]);
        let server_order = Ranks::of(old.as_deref().unwrap_or_default(), plan.merge_key);
        let (kind, merged) = match (old, new) {
            (None, None) => continue,
            (Some(old), None) => (kind(&old, &[]), old),
            (None, Some(new)) => (kind(&[], &new), new.into_iter().filter_map(without_directives).collect()),
            (Some(old), Some(new)) => {
                let kind = kind(&old, &new);
                (kind, if plan.merge { merge_lists(old, new, &plan)? } else { new })
            }
        };
        if !plan.merge_key.is_empty() {
            require_merge_key(&merged, plan.merge_key)?;
        }
        if kind? == ElementKind::Object {
            require_merge_key(&order, plan.merge_key)?;
        }
        let patch_order = Ranks::of(&order, plan.merge_key);
        let arranged = arrange(merged, &patch_order, &server_order, plan.merge_key);
        original.insert(key.to_owned(), Value::Array(arranged));
    }
    Ok(())
}

/// The elements of the patch must all stand in the order list, in the same relative order.
fn check_order(new: &[Value], order: &[Value], merge_key: &str) -> Result<()> {
    if new.is_empty() || order.is_empty() {
        return Ok(());
    }
    let mut kept = Vec::with_capacity(new.len());
    for element in new {
        match element {
            Value::Object(map) if !merge_key.is_empty() => {
                if map.get(DIRECTIVE).and_then(Value::as_str) != Some("delete") {
                    kept.push(element);
                }
            }
            other if !merge_key.is_empty() => return Err(bad_type("map[string]interface {}", other)),
            other => kept.push(other),
        }
    }
    let mut kept = kept.into_iter().filter(|element| !has_directive(element)).peekable();
    for place in order {
        let Some(element) = kept.peek() else { return Ok(()) };
        if !merge_key.is_empty() {
            require_merge_key(std::slice::from_ref(*element), merge_key)?;
            require_merge_key(std::slice::from_ref(place), merge_key)?;
        }
        if identity(element, merge_key) == identity(place, merge_key) {
            kept.next();
        }
    }
    match kept.peek() {
        None => Ok(()),
        Some(_) => Err(unclassified(format!(
            "The order in patch list:\n{}\n doesn't match {SET_ORDER} list:\n{}\n",
            go::list(new),
            go::list(order)
        ))),
    }
}

fn merge_lists(old: Vec<Value>, new: Vec<Value>, plan: &Plan<'_>) -> Result<Vec<Value>> {
    if old.is_empty() && new.is_empty() {
        return Ok(old);
    }
    let merge_key = plan.merge_key;
    if element_kind(&[&old, &new])? == ElementKind::Scalar {
        let (server_order, patch_order) = (Ranks::of(&old, ""), Ranks::of(&new, ""));
        let mut both = old;
        both.extend(new);
        return Ok(arrange(deduplicate(both), &patch_order, &server_order, ""));
    }
    if merge_key.is_empty() {
        let kind = go_kind(&plan.shape.ty);
        return Err(unclassified(format!("cannot merge lists without merge key for {kind}")));
    }
    let (old, new) = apply_element_directives(old, new, merge_key)?;
    require_merge_key(&new, merge_key)?;
    let (server_order, patch_order) = (Ranks::of(&old, merge_key), Ranks::of(&new, merge_key));
    let merged = merge_by_key(old, new, plan)?;
    require_merge_key(&merged, merge_key)?;
    Ok(arrange(merged, &patch_order, &server_order, merge_key))
}

/// Carries out `$patch` in list elements: what is deleted leaves `old`; if one says `replace`, the rest of the
/// patch takes the place of `old`.
fn apply_element_directives(
    mut old: Vec<Value>,
    new: Vec<Value>,
    merge_key: &str,
) -> Result<(Vec<Value>, Vec<Value>)> {
    let mut deleted = HashSet::new();
    let mut replace = false;
    let mut plain = Vec::with_capacity(new.len());
    for element in new {
        let Some(map) = element.as_object().filter(|map| map.contains_key(DIRECTIVE)) else {
            plain.push(element);
            continue;
        };
        match map[DIRECTIVE].as_str() {
            Some("delete") => {
                let value = map.get(merge_key).ok_or_else(|| no_merge_key(map, merge_key))?;
                deleted.insert(scalar_identity(value));
            }
            Some("replace") => replace = true,
            Some("merge") => {
                return Err(unclassified("merging lists cannot yet be specified in the patch".into()));
            }
            _ => return Err(bad_directive(&map[DIRECTIVE], map)),
        }
    }
    if replace {
        return Ok((plain, Vec::new()));
    }
    if !deleted.is_empty() {
        let is_deleted = |element: &Value| {
            element.get(merge_key).is_some_and(|value| deleted.contains(&scalar_identity(value)))
        };
        old.retain(|element| !is_deleted(element));
    }
    Ok((old, plain))
}

fn merge_by_key(mut old: Vec<Value>, new: Vec<Value>, plan: &Plan<'_>) -> Result<Vec<Value>> {
    let mut places: HashMap<String, usize> = HashMap::with_capacity(old.len() + new.len());
    for (i, element) in old.iter().enumerate() {
        if let Some(value) = element.get(plan.merge_key) {
            places.entry(scalar_identity(value)).or_insert(i);
        }
    }
    for element in new {
        let place = *places.entry(identity(&element, plan.merge_key)).or_insert(old.len());
        match (old.get_mut(place), element) {
            (Some(slot), Value::Object(element)) => {
                let Value::Object(original) = slot.take() else { unreachable!("elements are all objects") };
                *slot = Value::Object(merge_objects(original, element, &plan.shape)?);
            }
            (_, element) => old.push(element),
        }
    }
    Ok(old)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ElementKind {
    Scalar,
    Object,
}

/// Elements of all lists must be of one type, and not lists.
fn element_kind(lists: &[&[Value]]) -> Result<ElementKind> {
    let mut elements = lists.iter().copied().flatten();
    let first =
        elements.next().ok_or_else(|| unclassified("no elements in any of the given slices".into()))?;
    match first {
        Value::Array(_) => return Err(PatchError::Rejected("lists of lists are not supported".into())),
        // Upstream panics here and drops the connection; there is nothing to be faithful to.
        Value::Null => return Err(unclassified("list element is null".into())),
        _ => {}
    }
    let expected = go::type_of(first);
    if elements.any(|element| go::type_of(element) != expected) {
        let lists = lists.iter().map(|list| go::list(list)).collect::<Vec<_>>().join(" ");
        return Err(unclassified(format!("list element types are not identical: [{lists}]")));
    }
    Ok(if first.is_object() { ElementKind::Object } else { ElementKind::Scalar })
}

fn require_merge_key(list: &[Value], merge_key: &str) -> Result<()> {
    for element in list {
        match element {
            Value::Object(map) if map.contains_key(merge_key) => {}
            Value::Object(map) => return Err(no_merge_key(map, merge_key)),
            other => return Err(bad_type("map[string]interface {}", other)),
        }
    }
    Ok(())
}

/// Drops null members of a value that is taken over as it is.
fn without_nulls(mut value: Value) -> Value {
    fn prune(value: &mut Value) {
        match value {
            Value::Object(map) => {
                map.retain(|_, value| !value.is_null());
                map.values_mut().for_each(prune);
            }
            Value::Array(list) => list.iter_mut().for_each(prune),
            _ => {}
        }
    }
    prune(&mut value);
    value
}

/// Drops objects that carry a `$patch` directive: there is nothing they could direct.
fn without_directives(value: Value) -> Option<Value> {
    match value {
        Value::Object(map) if map.contains_key(DIRECTIVE) => None,
        Value::Object(map) => {
            let kept = map.into_iter().filter_map(|(key, value)| Some((key, without_directives(value)?)));
            Some(Value::Object(kept.collect()))
        }
        Value::Array(list) => Some(Value::Array(list.into_iter().filter_map(without_directives).collect())),
        other => Some(other),
    }
}

fn has_directive(value: &Value) -> bool {
    value.as_object().is_some_and(|map| map.contains_key(DIRECTIVE))
}

fn into_list(value: Value) -> Result<Vec<Value>> {
    match value {
        Value::Array(list) => Ok(list),
        other => Err(bad_type("[]interface {}", &other)),
    }
}

/// The name of the Go structure behind a type that the table treats as a leaf, if it is one.
fn go_struct(ty: &Type) -> Option<&'static str> {
    Some(match ty {
        Type::Time => "Time",
        Type::MicroTime => "MicroTime",
        Type::Duration => "Duration",
        Type::Quantity => "Quantity",
        Type::IntOrString => "IntOrString",
        Type::Raw => "RawExtension",
        Type::FieldsV1 => "FieldsV1",
        Type::Any => "JSON",
        Type::SchemaOrBool => "JSONSchemaPropsOrBool",
        Type::SchemaOrArray => "JSONSchemaPropsOrArray",
        Type::SchemaOrStrings => "JSONSchemaPropsOrStringArray",
        _ => return None,
    })
}

/// `reflect.Kind` of the Go type.
fn go_kind(ty: &Type) -> &'static str {
    match ty {
        Type::String => "string",
        Type::Bool => "bool",
        Type::Int32 => "int32",
        Type::Int64 => "int64",
        Type::Float64 => "float64",
        Type::List(_) | Type::Bytes => "slice",
        Type::Map(_) => "map",
        _ => "struct",
    }
}

fn bad_directive(directive: &Value, map: &Object) -> PatchError {
    unclassified(format!(
        "unknown patch type: {} in map: {}",
        go::value_as_string(directive),
        go::object(map)
    ))
}

fn no_merge_key(map: &Object, merge_key: &str) -> PatchError {
    unclassified(format!("map: {} does not contain declared merge key: {merge_key}", go::object(map)))
}

fn bad_type(expected: &str, actual: &Value) -> PatchError {
    unclassified(format!("expected a {expected}, but received a {}", go::type_as_string(actual)))
}

fn unclassified(text: String) -> PatchError {
    PatchError::Unclassified(text)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::schema::{Omit, Struct};
    use serde_json::json;

    const POD: TypeId = TypeId(3);

    pub(in crate::patch) fn pod() -> TypeId {
        POD
    }

    /// A small pod, so that these tests do not hang on the generated table.
    pub(in crate::patch) fn types() -> Types {
        let field = |name: &'static str, ty: Type, strategy: &'static str, key: &'static str| Field {
            name: name.into(),
            ty,
            pb: 0,
            ptr: false,
            omit: Omit::Empty,
            required: false,
            list: None,
            atomic: false,
            patch_strategy: strategy.into(),
            merge_key: key.into(),
            default: None,
            enumeration: Vec::new(),
        };
        let list = |ty: Type| Type::List(Box::new(ty));
        let map = |ty: Type| Type::Map(Box::new(ty));
        let structs = [
            ("Variable", vec![field("name", Type::String, "", ""), field("value", Type::String, "", "")]),
            (
                "Container",
                vec![
                    field("name", Type::String, "", ""),
                    field("image", Type::String, "", ""),
                    field("args", list(Type::String), "", ""),
                    field("env", list(Type::Struct(TypeId(0))), "merge", "name"),
                    field("limits", map(Type::Quantity), "", ""),
                ],
            ),
            (
                "Spec",
                vec![
                    field("containers", list(Type::Struct(TypeId(1))), "merge", "name"),
                    field("volumes", list(Type::Struct(TypeId(1))), "merge,retainKeys", "name"),
                    field("strategy", Type::Struct(TypeId(1)), "retainKeys", ""),
                    field("selector", Type::Struct(TypeId(1)), "replace", ""),
                    field("finalizers", list(Type::String), "merge", ""),
                    field("broken", list(Type::Struct(TypeId(1))), "merge", ""),
                    field("maps", map(Type::Struct(TypeId(1))), "", ""),
                ],
            ),
            ("io.k8s.Pod", vec![field("spec", Type::Struct(TypeId(2)), "", "")]),
        ];
        let mut types = Types::default();
        for (name, fields) in structs {
            types.add(Struct::new(name.into(), fields));
        }
        types
    }

    fn patched(original: Value, patch: Value) -> std::result::Result<Value, String> {
        let mut target = json!({"spec": original});
        strategic(&types(), POD, &mut target, json!({"spec": patch})).map_err(|error| error.to_string())?;
        Ok(target["spec"].take())
    }

    #[test]
    fn lists_merge_by_key_and_new_elements_come_first_only_if_ordered_so() {
        let original = json!({"containers": [{"name": "a", "image": "1"}, {"name": "b", "image": "1"}]});
        let patch = json!({"containers": [{"name": "b", "image": "2"}, {"name": "c"}]});
        let expected =
            json!({"containers": [{"name": "a", "image": "1"}, {"name": "b", "image": "2"}, {"name": "c"}]});
        assert_eq!(patched(original.clone(), patch).unwrap(), expected);
        let order = json!([{"name": "c"}, {"name": "a"}, {"name": "b"}]);
        let patch = json!({"$setElementOrder/containers": order, "containers": [{"name": "c"}]});
        let expected =
            json!({"containers": [{"name": "c"}, {"name": "a", "image": "1"}, {"name": "b", "image": "1"}]});
        assert_eq!(patched(original, patch).unwrap(), expected);
    }

    #[test]
    fn directives_in_elements_delete_and_replace() {
        let original = json!({"containers": [{"name": "a"}, {"name": "b"}]});
        let delete = json!({"containers": [{"name": "a", "$patch": "delete"}]});
        assert_eq!(patched(original.clone(), delete).unwrap(), json!({"containers": [{"name": "b"}]}));
        let replace = json!({"containers": [{"$patch": "replace"}, {"name": "c"}]});
        assert_eq!(patched(original.clone(), replace).unwrap(), json!({"containers": [{"name": "c"}]}));
        let merge = json!({"containers": [{"name": "a", "$patch": "merge"}]});
        assert_eq!(
            patched(original, merge).unwrap_err(),
            "merging lists cannot yet be specified in the patch"
        );
    }

    #[test]
    fn directives_in_objects_delete_replace_and_retain() {
        let original = json!({"strategy": {"name": "a", "image": "1"}, "selector": {"name": "a"}});
        let delete = json!({"strategy": {"$patch": "delete", "name": "x"}});
        assert_eq!(patched(original.clone(), delete).unwrap()["strategy"], json!({}));
        let replace = json!({"strategy": {"$patch": "replace", "name": "x"}});
        assert_eq!(patched(original.clone(), replace).unwrap()["strategy"], json!({"name": "x"}));
        let retain = json!({"strategy": {"$retainKeys": ["name"], "name": "x"}});
        assert_eq!(patched(original.clone(), retain).unwrap()["strategy"], json!({"name": "x"}));
        let outside = json!({"strategy": {"$retainKeys": ["name"], "image": "x"}});
        assert_eq!(patched(original.clone(), outside).unwrap_err(), "invalid patch format of retainKeys");
        let by_strategy = json!({"selector": {"image": "2"}});
        assert_eq!(patched(original.clone(), by_strategy).unwrap()["selector"], json!({"image": "2"}));
        let unknown = json!({"strategy": {"$patch": "merge", "name": "x"}});
        let message = "unknown patch type: merge in map: map[$patch:merge name:x]";
        assert_eq!(patched(original, unknown).unwrap_err(), message);
    }

    #[test]
    fn scalars_merge_as_a_set_and_leave_by_their_own_list() {
        let original = json!({"finalizers": ["a", "b", "a"]});
        assert_eq!(
            patched(original.clone(), json!({"finalizers": ["c", "b"]})).unwrap(),
            json!({"finalizers": ["c", "a", "b"]})
        );
        let delete = json!({"$deleteFromPrimitiveList/finalizers": ["a"]});
        assert_eq!(patched(original, delete).unwrap(), json!({"finalizers": ["b"]}));
    }

    #[test]
    fn nulls_delete_and_do_not_arrive_in_new_values() {
        let original = json!({"strategy": {"name": "a"}, "finalizers": ["a"]});
        let patch =
            json!({"strategy": {"name": null}, "finalizers": null, "selector": {"name": null, "image": "x"}});
        assert_eq!(patched(original, patch).unwrap(), json!({"strategy": {}, "selector": {"image": "x"}}));
    }

    #[test]
    fn faults_are_named_as_upstream_names_them() {
        let check = |original: Value, patch: Value, message: &str| {
            assert_eq!(patched(original, patch).unwrap_err(), message);
        };
        let containers = json!({"containers": [{"name": "a"}]});
        check(
            containers.clone(),
            json!({"containers": [{"image": "x"}]}),
            "map: map[image:x] does not contain declared merge key: name",
        );
        check(
            containers.clone(),
            json!({"containers": ["x"]}),
            "list element types are not identical: [[map[name:a]] [x]]",
        );
        check(
            containers.clone(),
            json!({"$setElementOrder": []}),
            "invalid patch format of setElementOrder list",
        );
        check(
            containers.clone(),
            json!({"$setElementOrder/containers": "x"}),
            "expected a []interface {}, but received a string",
        );
        check(
            containers,
            json!({"$setElementOrder/containers": [{"name": "b"}], "containers": [{"name": "c"}]}),
            "The order in patch list:\n[map[name:c]]\n doesn't match $setElementOrder list:\n[map[name:b]]\n",
        );
        check(
            json!({"broken": [{"name": "a"}]}),
            json!({"broken": [{"name": "b"}]}),
            "cannot merge lists without merge key for struct",
        );
        check(
            json!({"maps": {"a": {"name": "x"}}}),
            json!({"maps": {"a": {"name": "y"}}}),
            "merging an object in json but data type is not struct, instead is: map",
        );
        check(
            json!({"strategy": {"other": {}}}),
            json!({"strategy": {"other": {}}}),
            "unable to find api field in struct Container for the json field \"other\"",
        );
    }
}
