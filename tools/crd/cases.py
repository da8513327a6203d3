"""What is asked of the real server: definitions, and objects of kinds that are defined for the purpose."""

import copy

GROUP = "crdcases.example.com"


def crd(plural="things", kind=None, schema=None, **spec):
    """A definition with one version and this schema."""
    kind = kind or plural.capitalize()
    version = {"name": "v1", "served": True, "storage": True}
    version["schema"] = {"openAPIV3Schema": schema if schema is not None else {"type": "object"}}
    version.update(spec.pop("version", {}))
    out = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {"group": GROUP, "scope": "Namespaced", "names": {"plural": plural, "kind": kind}, "versions": [version]},
    }
    out["spec"].update(spec)
    return out


def spec_of(**properties):
    """A root schema whose `spec` has these properties."""
    return {"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}}


DEFINITIONS = []
OBJECTS = []


def definition(name, value, update=None):
    case = {"name": name, "crd": value}
    if update is not None:
        case["update"] = update
    DEFINITIONS.append(case)


def bad_field(name, **schema):
    """A definition whose `spec.f` has this schema."""
    definition(name, crd(schema=spec_of(f=schema)))


def edited(change, base=None):
    out = copy.deepcopy(base or crd(schema=spec_of(f={"type": "string"})))
    change(out)
    return out


# --- definitions: types and structure ---------------------------------------------------------------------------
definition("ok", crd(schema=spec_of(f={"type": "string"})))
definition("root without type", crd(schema={"properties": {"spec": {"type": "object"}}}))
definition("root is an array", crd(schema={"type": "array", "items": {"type": "string"}}))
definition("root is nullable", crd(schema={"type": "object", "nullable": True}))
definition("root with additionalProperties", crd(schema={"type": "object", "additionalProperties": {"type": "string"}}))
bad_field("field without type", description="no type")
bad_field("field of type null", type="null")
bad_field("field of unknown type", type="str")
bad_field("array without items", type="array")
bad_field("items without type", type="array", items={"description": "x"})
bad_field("items as a list", type="array", items=[{"type": "string"}])
bad_field("map value without type", type="object", additionalProperties={})
bad_field("both properties and additionalProperties", type="object", properties={"a": {"type": "string"}}, additionalProperties={"type": "string"})
bad_field("properties and additionalProperties true", type="object", properties={"a": {"type": "string"}}, additionalProperties=True)
bad_field("properties and additionalProperties false", type="object", properties={"a": {"type": "string"}}, additionalProperties=False)
bad_field("additionalProperties true", type="object", additionalProperties=True)
bad_field("type in anyOf", type="string", anyOf=[{"type": "string"}])
bad_field("type in nested allOf items", type="array", items={"type": "string"}, allOf=[{"items": {"type": "string"}}])
bad_field("forbidden in oneOf", type="object", oneOf=[{"description": "d", "title": "t", "default": {}, "nullable": True}])
bad_field("extensions in not", type="object", **{"not": {"x-kubernetes-preserve-unknown-fields": True, "x-kubernetes-int-or-string": True, "x-kubernetes-embedded-resource": True, "x-kubernetes-list-type": "set", "x-kubernetes-map-type": "atomic", "x-kubernetes-list-map-keys": ["a"]}})
bad_field("additionalProperties in allOf", type="object", allOf=[{"additionalProperties": {"minLength": 1}}])
bad_field("rules in allOf", type="object", allOf=[{"x-kubernetes-validations": [{"rule": "true"}]}])
bad_field("junctor on field that is not specified", type="object", allOf=[{"properties": {"x": {"minLength": 1}}}])
definition("root junctor on field that is not specified", crd(schema={"type": "object", "anyOf": [{"required": ["x"]}, {"properties": {"x": {"minLength": 1}}}]}))
definition("root junctor on items that are not specified", crd(schema={"type": "object", "properties": {"a": {"type": "string"}}, "allOf": [{"properties": {"a": {"items": {"minLength": 1}}}}]}))
definition("metadata in junctor", crd(schema={"type": "object", "properties": {"metadata": {"type": "object"}}, "allOf": [{"properties": {"metadata": {"properties": {"name": {"maxLength": 3}}}}}]}))
bad_field("bad pattern", type="string", pattern="(")
bad_field("pattern with look-ahead", type="string", pattern="(?=a)b")
bad_field("pattern of Go", type="string", pattern="^[[:alpha:]\\d-]+\\z")
bad_field("uniqueItems", type="array", items={"type": "string"}, uniqueItems=True)
for key, value in [("$ref", "#/x"), ("id", "x"), ("definitions", {"a": {"type": "string"}}), ("dependencies", {"a": ["b"]}), ("patternProperties", {"a": {"type": "string"}}), ("additionalItems", True), ("$schema", "http://json-schema.org/schema#")]:
    bad_field(f"keyword {key}", type="object", **{key: value})
# --- definitions: extensions ------------------------------------------------------------------------------------
bad_field("preserve-unknown-fields false", type="object", **{"x-kubernetes-preserve-unknown-fields": False})
bad_field("preserve-unknown-fields without type", **{"x-kubernetes-preserve-unknown-fields": True})
bad_field("int-or-string", **{"x-kubernetes-int-or-string": True})
bad_field("int-or-string with anyOf", anyOf=[{"type": "integer"}, {"type": "string"}], **{"x-kubernetes-int-or-string": True})
bad_field("int-or-string with allOf", allOf=[{"anyOf": [{"type": "integer"}, {"type": "string"}]}, {"minimum": 1}], **{"x-kubernetes-int-or-string": True})
bad_field("int-or-string with other anyOf", anyOf=[{"type": "string"}, {"type": "integer"}], **{"x-kubernetes-int-or-string": True})
bad_field("int-or-string that preserves", **{"x-kubernetes-int-or-string": True, "x-kubernetes-preserve-unknown-fields": True})
bad_field("int-or-string that embeds", type="object", **{"x-kubernetes-int-or-string": True, "x-kubernetes-embedded-resource": True})
bad_field("embedded without properties", type="object", **{"x-kubernetes-embedded-resource": True})
bad_field("embedded without type", **{"x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True})
bad_field("embedded string", type="string", **{"x-kubernetes-embedded-resource": True})
bad_field("embedded map", type="object", additionalProperties={"type": "string"}, **{"x-kubernetes-embedded-resource": True})
bad_field("embedded with odd meta", type="object", properties={"kind": {"type": "integer"}, "apiVersion": {"type": "object"}, "metadata": {"type": "string"}}, **{"x-kubernetes-embedded-resource": True})
bad_field("embedded in embedded meta", type="object", properties={"metadata": {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True}}, **{"x-kubernetes-embedded-resource": True})
definition("odd kind at the root", crd(schema={"type": "object", "properties": {"kind": {"type": "integer"}, "apiVersion": {"type": "integer"}, "metadata": {"type": "array", "items": {"type": "string"}}}}))
definition("metadata with name", crd(schema={"type": "object", "properties": {"metadata": {"type": "object", "properties": {"name": {"type": "string", "maxLength": 4}}}}}))
definition("metadata with labels", crd(schema={"type": "object", "properties": {"metadata": {"type": "object", "properties": {"labels": {"type": "object"}}}}}))
definition("metadata with default", crd(schema={"type": "object", "properties": {"metadata": {"type": "object", "default": {}}, "kind": {"type": "string", "default": "X"}}}))
definition("metadata with description", crd(schema={"type": "object", "properties": {"metadata": {"type": "object", "description": "d"}}}))
LIST = {"type": "array", "items": {"type": "object", "required": ["k"], "properties": {"k": {"type": "string"}, "v": {"type": "string"}}}}
bad_field("list map", **LIST, **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]})
bad_field("list map without keys", **LIST, **{"x-kubernetes-list-type": "map"})
bad_field("list map with unknown key", **LIST, **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k", "z"]})
bad_field("list map with key twice", **LIST, **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k", "k"]})
bad_field("list map with optional key", **LIST, **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["v"]})
bad_field("list map of strings", type="array", items={"type": "string"}, **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]})
bad_field("list map with nullable items", type="array", items=dict(LIST["items"], nullable=True), **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]})
bad_field("list map with nullable key", type="array", items={"type": "object", "required": ["k"], "properties": {"k": {"type": "string", "nullable": True}}}, **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]})
bad_field("list map with object key", type="array", items={"type": "object", "required": ["k"], "properties": {"k": {"type": "object"}}}, **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]})
bad_field("keys without list map", **LIST, **{"x-kubernetes-list-map-keys": ["k"]})
bad_field("keys with set", type="array", items={"type": "string"}, **{"x-kubernetes-list-type": "set", "x-kubernetes-list-map-keys": ["k"]})
bad_field("set of objects", **LIST, **{"x-kubernetes-list-type": "set"})
bad_field("set of sets", type="array", items={"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}, **{"x-kubernetes-list-type": "set"})
bad_field("set with nullable items", type="array", items={"type": "string", "nullable": True}, **{"x-kubernetes-list-type": "set"})
bad_field("odd list type", type="array", items={"type": "string"}, **{"x-kubernetes-list-type": "bag"})
bad_field("list type on object", type="object", **{"x-kubernetes-list-type": "set"})
bad_field("list type without type", **{"x-kubernetes-list-type": "atomic", "x-kubernetes-preserve-unknown-fields": True})
bad_field("odd map type", type="object", **{"x-kubernetes-map-type": "bag"})
bad_field("map type on array", type="array", items={"type": "string"}, **{"x-kubernetes-map-type": "atomic"})
# --- definitions: defaults --------------------------------------------------------------------------------------
bad_field("default of wrong type", type="string", default=5)
bad_field("default out of bounds", type="integer", minimum=3, default=1)
bad_field("default with unknown field", type="object", properties={"a": {"type": "string"}}, default={"b": 1})
bad_field("default lacks required", type="object", required=["a"], properties={"a": {"type": "string"}}, default={})
bad_field("default of map", type="object", additionalProperties={"type": "integer"}, default={"a": "x"})
bad_field("default of list", type="array", items={"type": "integer"}, default=[1, "x"])
bad_field("default in map values", type="object", additionalProperties={"type": "object", "properties": {"a": {"type": "integer", "default": "x"}}})
bad_field("default of embedded", type="object", default={"kind": "X"}, **{"x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True})
bad_field("default enum", type="string", enum=["a", "b"], default="c")
bad_field("format not known", type="string", format="nice")
bad_field("format on object", type="object", format="date")
bad_field("format of number", type="integer", format="double")
# --- definitions: names and versions ----------------------------------------------------------------------------
definition("name is not plural.group", edited(lambda c: c["metadata"].update(name="other." + GROUP)))
definition("name in capitals", edited(lambda c: (c["metadata"].update(name="Things." + GROUP), c["spec"]["names"].update(plural="Things"))))
definition("group without dot", edited(lambda c: (c["spec"].update(group="example"), c["metadata"].update(name="things.example"))))
definition("group missing", edited(lambda c: c["spec"].update(group="")))
definition("group in capitals", edited(lambda c: (c["spec"].update(group="Example.com"), c["metadata"].update(name="things.Example.com"))))
definition("scope missing", edited(lambda c: c["spec"].pop("scope")))
definition("scope odd", edited(lambda c: c["spec"].update(scope="Global")))
definition("scope cluster", edited(lambda c: c["spec"].update(scope="Cluster")))
definition("kind missing", edited(lambda c: c["spec"]["names"].pop("kind")))
definition("plural missing", edited(lambda c: c["spec"]["names"].pop("plural")))
definition("kind odd", edited(lambda c: c["spec"]["names"].update(kind="My_Kind")))
definition("kind equals listKind", edited(lambda c: c["spec"]["names"].update(listKind="Things")))
definition("singular odd", edited(lambda c: c["spec"]["names"].update(singular="A B")))
definition("short names odd", edited(lambda c: c["spec"]["names"].update(shortNames=["ok", "No"], categories=["all", "A"])))
definition("no versions", edited(lambda c: c["spec"].update(versions=[])))
definition("no storage version", edited(lambda c: c["spec"]["versions"][0].update(storage=False)))
definition("version name odd", edited(lambda c: c["spec"]["versions"][0].update(name="V1")))
definition("version name empty", edited(lambda c: c["spec"]["versions"][0].update(name="")))
definition("not served", edited(lambda c: c["spec"]["versions"][0].update(served=False)))
definition("no schema", edited(lambda c: c["spec"]["versions"][0].pop("schema")))
definition("empty schema", edited(lambda c: c["spec"]["versions"][0].update(schema={})))
V2 = {"name": "v2", "served": True, "storage": False, "schema": {"openAPIV3Schema": {"type": "object", "properties": {"x": {}}}}}
definition("two versions, one bad", edited(lambda c: c["spec"]["versions"].append(V2)))
definition("two versions, both storage", edited(lambda c: c["spec"]["versions"].append(dict(c["spec"]["versions"][0], name="v2"))))
definition("two versions of one name", edited(lambda c: c["spec"]["versions"].append(dict(c["spec"]["versions"][0], storage=False))))
definition("two versions, one schema, bad", edited(lambda c: [v["schema"].update(openAPIV3Schema={"type": "string"}) for v in (c["spec"]["versions"].append(dict(copy.deepcopy(c["spec"]["versions"][0]), name="v2", storage=False)), c["spec"]["versions"])[1]]))
definition("two versions, one without schema", edited(lambda c: c["spec"]["versions"].append({"name": "v2", "served": True, "storage": False})))
definition("preserveUnknownFields", edited(lambda c: c["spec"].update(preserveUnknownFields=True)))
definition("deprecation warning without deprecated", edited(lambda c: c["spec"]["versions"][0].update(deprecationWarning="x")))
definition("deprecation warning too long", edited(lambda c: c["spec"]["versions"][0].update(deprecated=True, deprecationWarning="x" * 257)))
definition("deprecation warning empty", edited(lambda c: c["spec"]["versions"][0].update(deprecated=True, deprecationWarning="")))
definition("protected group", edited(lambda c: (c["spec"].update(group="things.k8s.io"), c["metadata"].update(name="things.things.k8s.io"))))
definition("protected group, odd approval", edited(lambda c: (c["spec"].update(group="things.k8s.io"), c["metadata"].update(name="things.things.k8s.io", annotations={"api-approved.kubernetes.io": "yes"}))))
definition("protected group, unapproved", edited(lambda c: (c["spec"].update(group="things.k8s.io"), c["metadata"].update(name="things.things.k8s.io", annotations={"api-approved.kubernetes.io": "unapproved, a test"}))))
# --- definitions: subresources, columns, fields, conversion -----------------------------------------------------
SCALE = {"specReplicasPath": ".spec.r", "statusReplicasPath": ".status.r"}


def version(name, schema=None, **values):
    definition(name, crd(schema=schema or spec_of(f={"type": "string"}, r={"type": "integer"}), version=values))


version("status and scale", subresources={"status": {}, "scale": dict(SCALE, labelSelectorPath=".status.s")})
version("scale without paths", subresources={"scale": {}})
version("scale with odd paths", subresources={"scale": {"specReplicasPath": ".status.r", "statusReplicasPath": ".spec.r", "labelSelectorPath": ".metadata.s"}})
version("scale with paths that are none", subresources={"scale": {"specReplicasPath": "spec.r", "statusReplicasPath": "r", "labelSelectorPath": "s"}})
version("status with junctor at the root", schema={"type": "object", "properties": {"spec": {"type": "object"}}, "anyOf": [{"required": ["spec"]}]}, subresources={"status": {}})
version("status with string at the root", schema={"type": "string"}, subresources={"status": {}})
version("column", additionalPrinterColumns=[{"name": "F", "type": "string", "jsonPath": ".spec.f", "priority": 1, "description": "d", "format": "byte"}])
version("columns that are odd", additionalPrinterColumns=[{"name": "", "type": "", "jsonPath": ""}, {"name": "A", "type": "text", "format": "x", "jsonPath": "spec"}])
version("selectable", selectableFields=[{"jsonPath": ".spec.f"}, {"jsonPath": ".spec.r"}])
version("selectable odd", schema={"type": "object", "properties": {"metadata": {"type": "object", "properties": {"name": {"type": "string"}}}, "spec": {"type": "object", "properties": {"f": {"type": "string"}, "l": {"type": "array", "items": {"type": "string"}}, "n": {"type": "number"}}}}}, selectableFields=[{"jsonPath": ".metadata.name"}, {"jsonPath": ".spec.l"}, {"jsonPath": ".spec.n"}, {"jsonPath": ".spec.f"}, {"jsonPath": ".spec.f"}, {"jsonPath": "spec.f"}, {"jsonPath": ".spec.z"}, {"jsonPath": ".spec['f']"}, {"jsonPath": ""}])
version("selectable too many", schema=spec_of(**{f"f{i}": {"type": "string"} for i in range(9)}), selectableFields=[{"jsonPath": f".spec.f{i}"} for i in range(9)])
HOOK = {"clientConfig": {"service": {"name": "n", "namespace": "s"}}, "conversionReviewVersions": ["v1"]}
definition("conversion webhook", edited(lambda c: c["spec"].update(conversion={"strategy": "Webhook", "webhook": HOOK})))
definition("conversion odd", edited(lambda c: c["spec"].update(conversion={"strategy": "Magic"})))
definition("conversion without strategy", edited(lambda c: c["spec"].update(conversion={})))
definition("conversion None with webhook", edited(lambda c: c["spec"].update(conversion={"strategy": "None", "webhook": HOOK})))
definition("conversion Webhook without webhook", edited(lambda c: c["spec"].update(conversion={"strategy": "Webhook"})))
definition("conversion with both", edited(lambda c: c["spec"].update(conversion={"strategy": "Webhook", "webhook": {"clientConfig": {"url": "https://a", "service": {"name": "n", "namespace": "s"}}, "conversionReviewVersions": ["v2", "v2", "X"]}})))
definition("conversion with odd url", edited(lambda c: c["spec"].update(conversion={"strategy": "Webhook", "webhook": {"clientConfig": {"url": "http://u@/x?q#f"}, "conversionReviewVersions": ["v1"]}})))
definition("conversion with odd service", edited(lambda c: c["spec"].update(conversion={"strategy": "Webhook", "webhook": {"clientConfig": {"service": {"name": "", "namespace": "", "port": 0, "path": "a//B"}}, "conversionReviewVersions": ["v1"]}})))
# --- definitions: updates ---------------------------------------------------------------------------------------
BASE = crd("updated1", schema=spec_of(f={"type": "string"}))
definition("update of nothing", BASE, BASE)


def update(number, name, change):
    base = crd(f"updated{number}", schema=spec_of(f={"type": "string"}))
    definition(name, base, edited(change, base))


update(2, "update of scope", lambda c: c["spec"].update(scope="Cluster"))
update(3, "update of kind", lambda c: c["spec"]["names"].update(kind="Other", listKind="OtherList"))
update(4, "update of plural", lambda c: c["spec"]["names"].update(plural="others"))
update(5, "update of group", lambda c: c["spec"].update(group="other.example.com"))
update(6, "update drops stored version", lambda c: c["spec"]["versions"][0].update(name="v2"))
update(7, "update adds version", lambda c: c["spec"]["versions"].append(dict(copy.deepcopy(c["spec"]["versions"][0]), name="v2", storage=False)))
update(8, "update moves storage", lambda c: (c["spec"]["versions"].append(dict(copy.deepcopy(c["spec"]["versions"][0]), name="v2")), c["spec"]["versions"][0].update(storage=False)))
update(9, "update to bad schema", lambda c: c["spec"]["versions"][0]["schema"].update(openAPIV3Schema={"type": "object", "properties": {"a": {}}}))
update(10, "update of short names", lambda c: c["spec"]["names"].update(shortNames=["zz"]))

# --- objects ----------------------------------------------------------------------------------------------------


def objects(plural, fields, *steps, version=None, **root):
    """A kind whose spec has these properties, and objects of it: a dict is a spec to create."""
    schema = dict(spec_of(**fields), **root)
    made = [s if "object" in s else {"object": {"spec": s}} for s in steps]
    OBJECTS.append({"name": plural, "crd": crd(plural, schema=schema, version=version or {}), "steps": made})


def change(old, new, **more):
    return dict({"old": {"spec": old}, "object": {"spec": new}}, **more)


objects(
    "strings",
    {
        "short": {"type": "string", "maxLength": 3},
        "long": {"type": "string", "minLength": 3},
        "pattern": {"type": "string", "pattern": "^a\\d+$"},
        "enum": {"type": "string", "enum": ["a", "b"]},
        "nullable": {"type": "string", "nullable": True},
        "plain": {"type": "string"},
        "nenum": {"type": "string", "nullable": True, "enum": ["a"]},
        "all": {"type": "string", "minLength": 5, "pattern": "^x", "enum": ["y"], "format": "date"},
    },
    {"short": "abc", "long": "abc", "pattern": "a1", "enum": "a", "nullable": None, "plain": ""},
    {"short": "äöüß"}, {"short": "äöü"}, {"long": "äö"}, {"pattern": "b"}, {"enum": "c"}, {"enum": 1},
    {"plain": 5}, {"plain": 5.5}, {"plain": True}, {"plain": []}, {"plain": {}}, {"plain": None}, {"nullable": 5},
    {"nenum": None}, {"all": "z"}, {"unknown": 1, "plain": "x"}, {"short": 12345}, {"pattern": 7},
)
objects(
    "numbers",
    {
        "i": {"type": "integer"},
        "i32": {"type": "integer", "format": "int32"},
        "i64": {"type": "integer", "format": "int64"},
        "n": {"type": "number"},
        "f": {"type": "number", "format": "float"},
        "d": {"type": "number", "format": "double"},
        "min": {"type": "integer", "minimum": 1},
        "max": {"type": "integer", "maximum": 5},
        "xmin": {"type": "integer", "minimum": 1, "exclusiveMinimum": True},
        "xmax": {"type": "number", "maximum": 5.5, "exclusiveMaximum": True},
        "step": {"type": "integer", "multipleOf": 3},
        "fstep": {"type": "number", "multipleOf": 0.1},
        "half": {"type": "integer", "minimum": 1.5, "maximum": 2.5},
        "enum": {"type": "integer", "enum": [1, 2]},
        "fmin": {"type": "number", "minimum": 0.5},
    },
    {"i": 1, "i32": 2147483647, "i64": 9007199254740993, "n": 1, "f": 1.5, "d": 1e300, "min": 1, "max": 5, "xmin": 2, "xmax": 5.25, "step": 6, "fstep": 0.3},
    {"i": 1.0}, {"i": 1.5}, {"i": "1"}, {"i": True}, {"i32": 2147483648}, {"i32": 1.5}, {"i64": 1e30}, {"n": "x"}, {"f": 1e300}, {"f": 3e38},
    {"min": 0}, {"max": 6}, {"xmin": 1}, {"xmax": 5.5}, {"xmax": 6}, {"step": 4}, {"fstep": 0.25}, {"half": 2}, {"enum": 3}, {"enum": 1.0}, {"fmin": 0},
    {"min": -1.0}, {"i": None}, {"i": []}, {"min": 0.5}, {"step": 4.5}, {"i32": "x"}, {"f": False},
)
objects(
    "lists",
    {
        "l": {"type": "array", "items": {"type": "string", "minLength": 2}},
        "min": {"type": "array", "minItems": 2, "items": {"type": "string"}},
        "max": {"type": "array", "maxItems": 2, "items": {"type": "string"}},
        "set": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
        "nset": {"type": "array", "items": {"type": "number"}, "x-kubernetes-list-type": "set"},
        "oset": {"type": "array", "items": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}}, "x-kubernetes-list-type": "set"},
        "map": dict(LIST, **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}),
        "map2": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["p", "q"], "items": {"type": "object", "required": ["p"], "properties": {"p": {"type": "integer"}, "q": {"type": "string", "default": "TCP"}}}},
        "deep": {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}},
        "nul": {"type": "array", "items": {"type": "string", "nullable": True}},
    },
    {"l": ["ab", "cd"], "min": ["a", "b"], "max": [], "set": ["a", "b"], "map": [{"k": "a"}, {"k": "b"}]},
    {"l": ["a", 1, None, "ab"]}, {"l": "x"}, {"l": {}}, {"min": ["a"]}, {"max": ["a", "b", "c"]},
    {"set": ["a", "b", "a", "a", "b"]}, {"nset": [1, 1.0, 2]}, {"oset": [{"a": "x", "b": "y"}, {"b": "y", "a": "x"}]},
    {"map": [{"k": "a", "v": "1"}, {"k": "a", "v": "2"}]}, {"map": [{"v": "1"}]}, {"map2": [{"p": 1}, {"p": 1, "q": "TCP"}]}, {"map2": [{"p": 1}, {"p": 1, "q": "UDP"}]},
    {"deep": {"a": ["x", "x"], "b": ["y"]}}, {"nul": [None, "x"]}, {"map": ["x"]},
    change({"set": ["a"]}, {"set": ["a", "a"]}),
    change({"map": [{"k": "a"}]}, {"map": [{"k": "b"}, {"k": "b"}]}),
)
objects(
    "maps",
    {
        "o": {"type": "object", "required": ["a", "b"], "properties": {"a": {"type": "string"}, "b": {"type": "object", "required": ["c"], "properties": {"c": {"type": "integer"}}}}},
        "m": {"type": "object", "additionalProperties": {"type": "integer", "minimum": 1}},
        "any": {"type": "object", "additionalProperties": True},
        "min": {"type": "object", "minProperties": 1, "additionalProperties": {"type": "string"}},
        "max": {"type": "object", "maxProperties": 1, "additionalProperties": {"type": "string"}},
        "closed": {"type": "object", "additionalProperties": False},
        "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "properties": {"a": {"type": "object", "properties": {"b": {"type": "string"}}}}},
        "free": {"x-kubernetes-preserve-unknown-fields": True},
        "empty": {"type": "object"},
        "mm": {"type": "object", "additionalProperties": {"type": "object", "properties": {"x": {"type": "string"}}}},
        "nm": {"type": "object", "additionalProperties": {"type": "string", "nullable": True}},
    },
    {"o": {"a": "x", "b": {"c": 1}}, "m": {"x": 1}, "min": {"a": "b"}, "max": {}},
    {"o": {}}, {"o": {"a": "x", "b": {}}}, {"o": {"a": None, "b": {"c": "x"}}}, {"m": {"x": 0, "y": "z", "a.b": 0}}, {"m": {"x": None}}, {"any": {"x": {"y": 1}, "z": 2}},
    {"min": {}}, {"max": {"a": "b", "c": "d"}}, {"closed": {"a": 1}}, {"open": {"z": {"y": 1}, "a": {"b": "x", "q": 1}}}, {"free": [1, "x", {"y": None}]}, {"free": "x"}, {"empty": {"a": 1, "b": {"c": 2}}},
    {"mm": {"k": {"x": "a", "y": "b"}}}, {"nm": {"a": None, "b": "x"}}, {"o": "x"}, {"o": []},
    {"object": {"spec": {"o": {"a": "x", "b": {"c": 1}}}, "extra": 1, "status": {"x": 1}}},
    {"object": {"spec": None}}, {"object": {}}, {"object": {"spec": "x"}},
)
objects(
    "junctors",
    {
        "any": {"type": "string", "anyOf": [{"minLength": 3}, {"pattern": "^a"}]},
        "one": {"type": "integer", "oneOf": [{"minimum": 5}, {"maximum": 10}]},
        "all": {"type": "integer", "allOf": [{"minimum": 5}, {"maximum": 10}]},
        "not": {"type": "string", "not": {"enum": ["bad"]}},
        "req": {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}, "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
        "anyo": {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}, "anyOf": [{"properties": {"a": {"minLength": 2}}, "required": ["a"]}, {"properties": {"b": {"minimum": 2}}, "required": ["b"]}]},
        "ios": {"x-kubernetes-int-or-string": True},
        "ios2": {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}], "pattern": "^[0-9]+%$"},
        "ios3": {"x-kubernetes-int-or-string": True, "allOf": [{"anyOf": [{"type": "integer"}, {"type": "string"}]}, {"maximum": 5}]},
    },
    {"any": "abc", "one": 3, "all": 7, "not": "good", "req": {"a": "x"}, "ios": 1, "ios2": "5%"},
    {"any": "b"}, {"one": 7}, {"one": 4}, {"one": 11}, {"all": 1}, {"all": 11}, {"not": "bad"}, {"req": {}}, {"req": {"a": "x", "b": "y"}},
    {"anyo": {"a": "x"}}, {"anyo": {"b": 1}}, {"anyo": {}}, {"anyo": {"a": "x", "b": 1}},
    {"ios": "x"}, {"ios": 1.5}, {"ios": True}, {"ios": []}, {"ios": None}, {"ios2": "x"}, {"ios2": 5}, {"ios2": {}}, {"ios3": 6}, {"ios3": "x"},
)
objects("rooted", {"a": {"type": "string"}}, {}, {"a": "x"}, {"object": {}}, {"object": {"spec": {"a": 1}}}, required=["spec"], minProperties=4, anyOf=[{"required": ["spec"]}])
FORMATS = {
    "date": ["2024-02-29", "2023-02-29", "24-1-1"], "date-time": ["2024-01-01T00:00:00Z", "2024-01-01 00:00:00", "2024-01-01T00:00:00"],
    "byte": ["YQ==", "a", ""], "uuid": ["5a8d1f0e-1f43-4d9a-8a0e-0b1c2d3e4f50", "x"], "uuid3": ["5a8d1f0e-1f43-4d9a-8a0e-0b1c2d3e4f50"], "uuid4": ["5a8d1f0e-1f43-4d9a-8a0e-0b1c2d3e4f50"], "uuid5": ["x"],
    "ipv4": ["10.0.0.1", "::1", "1.2.3"], "ipv6": ["::1", "10.0.0.1"], "cidr": ["10.0.0.0/8", "10.0.0.0"], "mac": ["01:23:45:67:89:ab", "01:23"],
    "hostname": ["a.example.com", "a_b"], "uri": ["https://a.b/c", "a b", "a/b"], "email": ["a@b.c", "a"], "duration": ["1h2m", "2 weeks", "soon", ""],
    "isbn": ["0321751043", "1"], "isbn10": ["0321751043", "978-0321751041"], "isbn13": ["978-0321751041", "1"], "creditcard": ["4111111111111111", "1"], "ssn": ["123-45-6789", "1"],
    "hexcolor": ["#fff", "x"], "rgbcolor": ["rgb(1,2,3)", "x"], "password": ["x"], "bsonobjectid": ["507f1f77bcf86cd799439011", "x"], "k8s-short-name": ["a-b", "A"], "k8s-long-name": ["a.b", "a..b"], "nosuch": ["x"],
    "int32": ["x"],
}
objects(
    "formats",
    {name.replace("-", ""): {"type": "string", "format": name} for name in FORMATS},
    *[{name.replace("-", ""): value} for name, values in FORMATS.items() for value in values],
    {"date": 5}, {"date": True}, {"date": []}, {"date": {}}, {"date": None}, {"date": 1.5},
)
objects(
    "defaults",
    {
        "s": {"type": "string", "default": "x"},
        "n": {"type": "integer", "nullable": True, "default": 3},
        "o": {"type": "object", "default": {}, "properties": {"a": {"type": "string", "default": "y"}, "b": {"type": "string"}}},
        "p": {"type": "object", "properties": {"a": {"type": "string", "default": "z"}}},
        "l": {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "integer", "default": 1}}}},
        "m": {"type": "object", "additionalProperties": {"type": "object", "properties": {"a": {"type": "integer", "default": 1}}}},
        "i": {"type": "array", "items": {"type": "string", "default": "q"}},
        "r": {"type": "string"},
    },
    {}, {"s": None, "n": None, "o": None, "r": None}, {"o": {}, "p": {}}, {"p": None}, {"l": [{}, {"a": 2}, {"a": None}], "m": {"k": {}, "n": {"a": None}}}, {"i": [None, "x"]}, {"l": [None]}, {"m": {"k": None}},
    {"object": {}},
)
objects(
    "embeds",
    {
        "e": {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True},
        "t": {"type": "object", "x-kubernetes-embedded-resource": True, "properties": {"spec": {"type": "object", "properties": {"a": {"type": "string"}}}}},
        "l": {"type": "array", "items": {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True}},
    },
    {"e": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "labels": {"a": "b"}}, "x": 1}},
    {"e": {}}, {"e": {"apiVersion": "v1"}}, {"e": {"apiVersion": "", "kind": ""}}, {"e": {"apiVersion": "a/b/c", "kind": "A_B"}}, {"e": {"apiVersion": 1, "kind": "Pod"}},
    {"e": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a/b"}}}, {"e": {"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {"a b": "c d"}}}},
    {"e": {"apiVersion": "v1", "kind": "Pod", "metadata": {"annotations": {"A b": "c"}}}}, {"e": {"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "A"}}},
    {"t": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x", "extra": 1}, "spec": {"a": "x", "b": "y"}, "z": 1}},
    {"l": [{"kind": "A", "apiVersion": "v1"}, {}]},
    {"e": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": 5}}}, {"e": {"apiVersion": "v1", "kind": "Pod", "metadata": "x"}},
)
objects(
    "scaled", {"r": {"type": "integer"}, "x": {"x-kubernetes-preserve-unknown-fields": True}},
    {"r": 3}, {"r": -1}, {"r": 2147483648}, {"object": {"spec": {"r": 1}, "status": {"r": 5}}},
    change({"r": 1}, {"r": -1}),
    {"old": {"spec": {"r": 1}}, "object": {"spec": {"r": 9}, "status": {"r": 2, "z": 1}}, "status": True},
    {"old": {"spec": {"r": 1}}, "object": {"spec": {"r": 9}, "status": {"r": "x"}}, "status": True},
    {"old": {"spec": {"r": 1}}, "object": {"status": {"r": -2, "s": 5}}, "status": True},
    {"old": {"spec": {"r": 1}}, "object": {"status": "x"}, "status": True},
    version={"subresources": {"status": {}, "scale": dict(SCALE, labelSelectorPath=".status.s")}},
    properties={"spec": {"type": "object", "properties": {"r": {"type": "integer"}}}, "status": {"type": "object", "properties": {"r": {"type": "integer"}, "s": {"type": "string"}}}},
)

# --- rules ------------------------------------------------------------------------------------------------------
RULED = {
    "s": {"type": "string", "maxLength": 64}, "t": {"type": "string", "maxLength": 64}, "i": {"type": "integer"}, "j": {"type": "integer"}, "n": {"type": "number"}, "b": {"type": "boolean"},
    "d": {"type": "string", "format": "duration"}, "ts": {"type": "string", "format": "date-time"}, "day": {"type": "string", "format": "date"}, "by": {"type": "string", "format": "byte", "maxLength": 64},
    "ios": {"x-kubernetes-int-or-string": True}, "l": {"type": "array", "maxItems": 10, "items": {"type": "string", "maxLength": 16}}, "il": {"type": "array", "maxItems": 10, "items": {"type": "integer"}},
    "m": {"type": "object", "maxProperties": 10, "additionalProperties": {"type": "string", "maxLength": 16}},
    "o": {"type": "object", "properties": {"a": {"type": "string", "maxLength": 16}, "x-y": {"type": "string", "maxLength": 16}, "my_field": {"type": "integer"}, "a__b": {"type": "integer"}, "namespace": {"type": "string"}, "a.b": {"type": "integer"}, "x/y": {"type": "integer"}}},
    "set": {"type": "array", "maxItems": 10, "items": {"type": "string", "maxLength": 16}, "x-kubernetes-list-type": "set"},
    "lm": {"type": "array", "maxItems": 10, "items": {"type": "object", "required": ["k"], "properties": {"k": {"type": "string", "maxLength": 16}, "v": {"type": "integer"}}}, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]},
    "nul": {"type": "string", "nullable": True, "maxLength": 16}, "free": {"x-kubernetes-preserve-unknown-fields": True}, "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    "emb": {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True},
}


def ruled(rules, **more):
    """A schema whose `spec` has these rules."""
    schema = spec_of(**RULED)
    listed = [{"rule": r} if isinstance(r, str) else r for r in rules]
    schema["properties"]["spec"]["x-kubernetes-validations"] = listed
    schema.update(more)
    return schema


def bad_rule(rule, **more):
    shown = rule if isinstance(rule, str) else repr(rule)
    definition("rule " + shown, crd(schema=ruled([rule], **more)))


for text in [
    # Names, fields and types.
    "true", "self.nosuch == 1", "nosuch == 1", "self.s ==", "self.s == 1", "self.i == 1.0", "self.i < self.n", "self.s", "self.i + 1", "self.s.size() > self.i", "size(self.s) > 0",
    "self.o.nosuch == ''", "self.o.a.b == ''", "self.o.x__dash__y == ''", "self.o.my_field > 0", "self.o.a__underscores__b > 0", "self.o.__namespace__ == ''", "self.o.a__dot__b > 0", "self.o.x__slash__y > 0", "self.o.namespace == ''",
    "self.free == 1", "has(self.free)", "self.any.x == 1", "has(self.any)", "self.emb.kind == 'A'", "self.emb.metadata.name == 'A'", "self.emb.spec == 1", "self.metadata.name == ''", "self.apiVersion == ''",
    "self.l[0] == 'a'", "self.l['a'] == 'a'", "self.m['a'] == 'b'", "self.m.a == 'b'", "self.m[0] == 'b'", "self.o['a'] == ''", "'a' in self.m", "1 in self.m", "'a' in self.l", "1 in self.l", "'a' in self.o",
    "self.l.all(x, x == 'a')", "self.l.all(x, x == 1)", "self.l.all(x, x.y == 1)", "self.m.all(k, k == 'a')", "self.m.all(k, v, v == k)", "self.l.all(i, v, i >= 0)", "self.o.all(k, k == 'a')", "self.i.all(x, true)", "self.l.map(x, x + 'b') == ['ab']", "self.l.map(x, size(x)) == ['ab']", "self.l.filter(x, x != '').size() > 0", "self.l.exists_one(x, x == 'a')", "self.il.map(x, x > 1, x * 2) == [1]", "self.l.exists(x, x)",
    "self.ios == 1", "self.ios == 'a'", "type(self.ios) == int", "type(self.ios) == string ? self.ios == 'a' : self.ios == 1", "self.nul == null", "self.s == null", "self.l == null", "self.o == null", "self.d == duration('1h')", "self.d == '1h'", "self.ts > timestamp('2020-01-01T00:00:00Z')", "self.ts - self.day > self.d", "self.ts + self.d > self.ts", "self.by == b'a'", "self.by == 'a'",
    "self.b && self.s", "!self.b", "!self.s", "-self.i > 0", "-self.s == ''", "self.b ? 1 : 'a'", "self.b ? self.i : self.j", "self.b ? self.i > 1 : self.j", "self.s + 1 == ''", "self.i % 2 == 0", "self.n % 2.0 == 0.0", "self.s > 'a'", "self.l > self.l", "self.l + self.set == self.l", "self.i / self.n > 1",
    "has(self.s)", "has(self.o.a)", "has(self.nosuch)", "has(self.s.x)", "has(s)", "self.?s.orValue('') == ''", "self.?nosuch.orValue('') == ''", "self.?o.?a.hasValue()", "self.o.?a.orValue(1) == 1", "self.m[?'a'].orValue('x') == 'x'", "optional.of(1).value() == 1", "optional.none().hasValue()", "self.?s.optMap(x, x + 'a').orValue('') == 'a'", "optional.ofNonZeroValue(self.s).hasValue()", "self.?s.optFlatMap(x, optional.of(x)).hasValue()",
    # Functions.
    "self.s.startsWith('a')", "self.s.startsWith(1)", "self.i.startsWith('a')", "self.s.nosuch()", "nosuch(self.s)", "self.s.matches('^a$')", "self.s.matches('(')", "matches(self.s, 'a')", "self.s.contains('a')", "self.s.endsWith('a')", "self.s.startsWith()",
    "int(self.s) > 1", "string(self.i) == '1'", "double(self.i) == 1.0", "uint(self.i) == 1u", "bool(self.s)", "bytes(self.s) == b''", "dyn(self.s) == 1", "type(self.s) == string", "type(self.i) == self.i", "int(self.ts) > 1", "string(self.d) == ''", "int(self.b) == 1",
    "self.s.lowerAscii() == ''", "self.s.upperAscii() == ''", "self.s.trim() == ''", "self.s.split(',').size() > 0", "self.l.join(',') == ''", "self.l.join() == ''", "self.il.join(',') == ''", "self.s.replace('a', 'b') == ''", "self.s.replace('a', 'b', 1) == ''", "self.s.substring(1) == ''", "self.s.substring(0, 1) == ''", "self.s.charAt(0) == 'a'", "self.s.indexOf('a') == 0", "self.s.lastIndexOf('a', 1) == 0", "'%s is %d'.format([self.s, self.i]) == ''", "self.s.format([1]) == ''", "self.s.reverse() == ''", "strings.quote(self.s) == ''",
    "self.l.isSorted()", "self.il.sum() > 1", "self.il.min() > 1", "self.il.max() > 1", "self.l.indexOf('a') == 0", "self.l.sum() == ''", "self.il.sum() == 'a'", "self.l.distinct().size() == 1", "self.l.flatten().size() == 1", "self.l.sort() == self.l", "self.l.slice(0, 1) == self.l", "lists.range(3).size() == 3", "self.l.first().hasValue()",
    "sets.contains(self.l, ['a'])", "sets.equivalent(self.l, self.set)", "sets.intersects(self.l, [1])", "math.greatest(self.i, self.j) == 1", "math.abs(self.i) == 1", "base64.encode(self.by) == ''",
    "self.s.find('[0-9]+') == '1'", "self.s.findAll('[0-9]+').size() == 1", "self.s.findAll('[0-9]+', 2).size() == 1", "isURL(self.s)", "url(self.s).getHost() == 'a'", "url(self.s).getQuery()['a'][0] == 'a'", "url(self.s).getPort() == 1", "isIP(self.s)", "ip(self.s).family() == 4", "ip(self.s).isLoopback()", "ip.isCanonical(self.s)", "isCIDR(self.s)", "cidr(self.s).containsIP('10.0.0.1')", "cidr(self.s).containsIP(ip('10.0.0.1'))", "cidr(self.s).containsCIDR('10.0.0.0/8')", "cidr(self.s).ip().family() == 4", "cidr(self.s).prefixLength() == 8", "cidr(self.s).masked() == cidr(self.s)", "isQuantity(self.s)", "quantity(self.s).isGreaterThan(quantity('1'))", "quantity(self.s).add(quantity('1')).compareTo(quantity('2')) == 0", "quantity(self.s).add(1).sign() == 1", "quantity(self.s).asInteger() == 1", "quantity(self.s) == quantity('1')", "isSemver(self.s)", "semver(self.s).isLessThan(semver('1.0.0'))", "semver(self.s).major() == 1", "semver(self.s, true).minor() == 1",
    "format.dns1123Label().validate(self.s).hasValue()", "!format.named('uuid').value().validate(self.s).hasValue()", "format.named('x').hasValue()", "duration(self.s) > duration('1s')", "self.d.getHours() > 1", "self.ts.getFullYear() > 2000", "self.ts.getFullYear('UTC') > 2000", "self.i.getHours() > 1", "self.l.transformList(i, v, v + 'a') == ['a']", "self.m.transformMap(k, v, size(v)) == {'a': 1}", "self.m.transformMapEntry(k, v, {v: k}) == {'a': 'b'}", "cel.bind(x, self.s, x == 'a')", "authorizer.group('').check('x').allowed()", "request.name == ''",
    # Transitions.
    "self.i >= oldSelf.i", "oldSelf == self", "oldSelf.nosuch == 1", "self.lm.all(x, oldSelf.lm.exists(y, y.k == x.k))", "oldSelf.s == 1",
    # Literals and syntax.
    "{'a': 1}.a == 1", "[1, 'a'].size() == 2", "{'a': 1, 'b': 'c'}.size() == 2", "1 == 1u", "1 < 2.0", "'a' \"b\"", "self.s == \"a\"", "self.s == r'\\d'", "self.s == '''a'''", "a.b.c", "Foo{x: 1} == 1", "self", "self.i in [1, 2]", "self.s in ['a', 'b']", "self.s in [1]", "(self.b || true) && !(self.b)", "self.i > 0 && self.i <", "1 + 2 == 3", "[].all(x, x > 0)", "self.l.all(self, self == 'a')", "self.l.map(x, self.l.map(y, x + y)).size() > 0", "dyn(1) + 'a' == 1", "null == 1", "[1,2].exists(x, x > 1)",
]:
    bad_rule(text)
for rule in [
    {"rule": "self.i > 0", "message": "must be positive"}, {"rule": "self.i > 0", "message": " "}, {"rule": "self.i > 0", "message": "a\nb"}, {"rule": "self.i > 0 &&\nself.j > 0"}, {"rule": "self.i > 0 &&\nself.j > 0", "message": "x"}, {"rule": " "},
    {"rule": "self.i > 0", "messageExpression": "'i is ' + string(self.i)"}, {"rule": "self.i > 0", "messageExpression": "self.i"}, {"rule": "self.i > 0", "messageExpression": "self.nosuch"}, {"rule": "self.i > 0", "messageExpression": " "}, {"rule": "self.i > 0", "messageExpression": "oldSelf.s"},
    {"rule": "self.i > 0", "reason": "FieldValueForbidden"}, {"rule": "self.i > 0", "reason": "Nope"}, {"rule": "self.i > 0", "fieldPath": ".i"}, {"rule": "self.i > 0", "fieldPath": ".m.foo"}, {"rule": "self.i > 0", "fieldPath": ".o['x-y']"}, {"rule": "self.i > 0", "fieldPath": "i"}, {"rule": "self.i > 0", "fieldPath": ".nosuch"}, {"rule": "self.i > 0", "fieldPath": " "}, {"rule": "self.i > 0", "fieldPath": ".l[0]"},
    {"rule": "self.i > 0", "optionalOldSelf": True}, {"rule": "self.i > oldSelf.i", "optionalOldSelf": True}, {"rule": "!oldSelf.hasValue() || self.i > oldSelf.value().i", "optionalOldSelf": True}, {"rule": "oldSelf.?i.orValue(0) <= self.i", "optionalOldSelf": True}, {"rule": "self.i > oldSelf.i", "optionalOldSelf": False},
]:
    bad_rule(rule)


def placed(name, **schema):
    definition("rule placed " + name, crd(schema=spec_of(**schema)))


OLD_RULE = {"x-kubernetes-validations": [{"rule": "self == oldSelf"}]}
placed("on a string", f=dict({"type": "string"}, **OLD_RULE))
placed("on items of an atomic list", f={"type": "array", "maxItems": 5, "items": dict({"type": "string"}, **OLD_RULE)})
placed("on items of a set", f={"type": "array", "maxItems": 5, "items": dict({"type": "string"}, **OLD_RULE), "x-kubernetes-list-type": "set"})
placed("on items of a list map", f=dict(LIST, maxItems=5, items=dict(LIST["items"], **OLD_RULE), **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}))
placed("on map values", f={"type": "object", "maxProperties": 5, "additionalProperties": dict({"type": "string"}, **OLD_RULE)})
placed("on an atomic map", f={"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"a": dict({"type": "string"}, **OLD_RULE)}})
placed("on a field of any kind", f={"x-kubernetes-preserve-unknown-fields": True, "x-kubernetes-validations": [{"rule": "true"}]})
placed("on int-or-string", f={"x-kubernetes-int-or-string": True, "x-kubernetes-validations": [{"rule": "self == 1 || self == 'a'"}]})
placed("with a bad schema", f={"x-kubernetes-validations": [{"rule": "self.nosuch"}]})
placed("that its default breaks", f={"type": "integer", "default": 1, "x-kubernetes-validations": [{"rule": "self > 3", "message": "too small"}]})
placed("that its default passes", f={"type": "integer", "default": 5, "x-kubernetes-validations": [{"rule": "self > 3"}]})
placed("that a default of an object breaks", f={"type": "object", "default": {"a": 1}, "properties": {"a": {"type": "integer", "x-kubernetes-validations": [{"rule": "self > 3"}]}}})
definition("rule at the root", crd(schema=dict(spec_of(f={"type": "string"}), **{"x-kubernetes-validations": [{"rule": "self.metadata.name.startsWith('a') && self.kind == 'Things' && self.spec.f != ''"}]})))
definition("rule at the root on labels", crd(schema=dict(spec_of(f={"type": "string"}), **{"x-kubernetes-validations": [{"rule": "has(self.metadata.labels)"}]})))


def rules(plural, listed, *steps, **more):
    """A kind whose spec has these rules, and objects of it."""
    schema = ruled(listed)
    for name, rule in more.pop("on", {}).items():
        node = schema["properties"]["spec"]["properties"]
        for part in name.split("/"):
            node = node[part] if part in node else node["properties"][part]
        node = node.copy()
        parent = schema["properties"]["spec"]["properties"]
        path = name.split("/")
        for part in path[:-1]:
            parent[part] = copy.deepcopy(parent[part])
            parent = parent[part]
        parent[path[-1]] = dict(node, **{"x-kubernetes-validations": [{"rule": r} if isinstance(r, str) else r for r in rule]})
    schema.update(more)
    made = [s if "object" in s else {"object": {"spec": s}} for s in steps]
    OBJECTS.append({"name": plural, "crd": crd(plural, schema=schema), "steps": made})


rules("celplain", ["self.i > 0", {"rule": "self.j < 10", "message": "j is too large"}, {"rule": "!has(self.s) || self.s != ''", "messageExpression": "'i is %d'.format([self.i])"}],
      {"i": 1, "j": 1}, {"i": 0, "j": 1}, {"i": 0, "j": 11}, {"i": 1, "j": 1, "s": ""}, {"i": 1}, {}, {"i": "x", "j": 1}, {"i": 1, "j": 1, "l": ["a"] * 11}, {"object": {}}, {"i": 1, "j": None})
rules("celreasons", [{"rule": "self.i != 1", "reason": "FieldValueForbidden"}, {"rule": "self.i != 2", "reason": "FieldValueRequired", "fieldPath": ".o.a"}, {"rule": "self.i != 3", "reason": "FieldValueDuplicate", "fieldPath": ".m.foo"}, {"rule": "self.i != 4", "fieldPath": ".o['x-y']", "message": "no four"}, {"rule": "self.i != 5", "reason": "FieldValueInvalid"}],
      {"i": 1}, {"i": 2}, {"i": 3}, {"i": 4}, {"i": 5})
rules("celscalars", ["true"], {"s": "ab"}, {"s": "b", "i": 3}, {"l": ["a", "b"]}, {"m": {"a": "x", "b": "y"}}, {"lm": [{"k": "a", "v": 1}, {"k": "b", "v": 0}]}, {"o": {"a": "q"}}, {"ios": 3}, {"ios": "x"}, {"n": 1}, {"b": True}, {"d": "2h"}, {"ts": "2019-01-01T00:00:00Z"}, {"nul": None}, {"nul": "x"}, {"by": "YWI="},
      on={"s": ["self.startsWith('a')"], "i": [{"rule": "self > 5", "reason": "FieldValueDuplicate"}], "l": [{"rule": "self.size() > 2", "reason": "FieldValueDuplicate"}], "m": ["self.all(k, self[k] == 'x')"], "o": ["self.a == 'z'"], "ios": ["type(self) == string ? self == 'a' : self == 1"], "n": ["self > 2.0"], "b": ["!self"], "d": ["self < duration('1h')"], "ts": ["self > timestamp('2020-01-01T00:00:00Z')"], "nul": ["self == 'y'"], "by": ["self == b'a'"], "lm/items": ["self.v > 0"]})
rules("celfields", ["self.o.my_field == 1 && self.o.a__underscores__b == 2 && self.o.__namespace__ == 'n' && self.o.namespace == 'n' && self.o.a__dot__b == 3 && self.o.x__slash__y == 4 && self.o.x__dash__y == 'd'"],
      {"o": {"my_field": 1, "a__b": 2, "namespace": "n", "a.b": 3, "x/y": 4, "x-y": "d"}}, {"o": {"my_field": 2, "a__b": 2, "namespace": "n", "a.b": 3, "x/y": 4, "x-y": "d"}}, {"o": {}})
rules("celtypes", ["self.n == 1.0", "self.n / 2.0 == 0.5", "self.d == duration('90m')", "self.ts == timestamp('2024-01-02T03:04:05Z')", "self.day == timestamp('2024-01-02T00:00:00Z')", "self.by == b'ab'", "self.ts - self.day == duration('3h4m5s')", "self.ts.getHours() == 3", "self.d.getMinutes() == 90", "type(self.i) == int", "type(self.n) == double", "string(self.d) == '5400s'"],
      {"i": 1, "n": 1, "d": "1h30m", "ts": "2024-01-02T03:04:05Z", "day": "2024-01-02", "by": "YWI="}, {"i": 1, "n": 1, "d": "90 min", "ts": "2024-01-02T04:04:05+01:00", "day": "2024-01-02", "by": "YWI="}, {"i": 1, "n": 2, "d": "1h", "ts": "2024-01-02T03:04:06Z", "day": "2024-01-03", "by": "YQ=="})
rules("celoptional", ["self.?s.orValue('x') == 'x'", "!self.?o.?a.hasValue() || self.o.a == 'a'", "self.m[?'k'].orValue('v') == 'v'", "self.?l.optMap(l, l.size()).orValue(0) < 3", "[?self.?s].size() < 2", "self.?l[?0].orValue('z') != 'y'"],
      {"m": {}}, {"s": "y", "m": {}}, {"o": {"a": "b"}, "m": {"k": "w"}}, {"o": {"a": "a"}, "m": {"k": "v"}, "l": ["1", "2", "3"]}, {}, {"m": {}, "l": ["y"]})
rules("celcollections", ["self.l.all(x, x in ['a', 'b', 'c'])", "self.l.exists(x, x == 'a')", "self.l.exists_one(x, x == 'b')", "self.l.map(x, x + '!') == ['a!', 'b!']", "self.l.filter(x, x != 'a').size() == 1", "self.m.all(k, v, k + v != 'ab')", "self.m.exists(k, k == 'k')", "self.il.sum() == 6", "self.il.isSorted()", "self.il.max() == 3 && self.il.min() == 1", "self.il.map(x, x > 1, x * 10) == [20, 30]", "self.l[0] == 'a'", "self.m['k'] == 'v'", "self.l.join('-') == 'a-b'", "sets.equivalent(self.l, ['b', 'a'])", "self.l.transformList(i, v, i > 0, v) == ['b']", "self.m.transformMap(k, v, v + k) == {'k': 'vk'}", "self.il.transformList(i, v, i + v) == [1, 3, 5]", "self.m.transformMapEntry(k, v, {v: k}) == {'v': 'k'}"],
      {"l": ["a", "b"], "m": {"k": "v"}, "il": [1, 2, 3]}, {"l": ["d"], "m": {"a": "b"}, "il": [3, 1]}, {"l": [], "m": {}, "il": []})
rules("celequality", ["self.set == ['b', 'a']", "self.set + ['a', 'c'] == ['a', 'b', 'c']", "(self.lm + self.lm).size() == self.lm.size()", "self.l == ['a', 'b']"],
      {"set": ["a", "b"], "lm": [{"k": "a", "v": 1}, {"k": "b", "v": 2}], "l": ["a", "b"]}, {"set": ["b", "a"], "lm": [], "l": ["b", "a"]})
rules("celerrors", ["self.l[5] == 'x'"], {"l": ["a"]}, {})
rules("celerrors2", ["self.m['x'] == 'y'", "1 / self.i > 0", "self.i + 9223372036854775807 > 0", "int(self.s) == 5", "self.ios + 1 == 2", "self.i % self.j == 0", "self.d > duration(self.s)"],
      {"m": {}, "i": 0, "j": 0, "s": "x", "ios": "a", "d": "1s"}, {"m": {"x": "y"}, "i": 1, "j": 1, "s": "5", "ios": 1, "d": "1s"}, {"m": {"x": "y"}, "i": -1, "j": 1, "s": "5", "ios": 1.5, "d": "1s"})
rules("celshort", ["self.i == 1 || self.m['x'] == 'y'", "self.m['x'] == 'y' || self.i == 1", "!(self.i == 0 && self.m['x'] == 'y')", "self.i > 0 ? true : self.m['x'] == 'y'"],
      {"i": 1, "m": {}}, {"i": 0, "m": {}}, {"i": 0, "m": {"x": "y"}})
rules("celmessages", [{"rule": "self.i > 0", "message": "m", "messageExpression": "self.s"}, {"rule": "self.i > 0", "messageExpression": "self.l[9]"}, {"rule": "self.i > 0", "message": " padded ", "messageExpression": "' '"}, {"rule": "self.i > 0 &&\nself.j > 0", "message": "both"}],
      {"i": 0, "s": "from s", "l": []}, {"i": 0, "s": "two\nlines", "l": []}, {"i": 0, "s": "  trimmed  ", "l": []}, {"i": 0, "l": []})
rules("celold", ["self.i >= oldSelf.i", {"rule": "!has(oldSelf.s) || self.s == oldSelf.s", "message": "s is immutable", "fieldPath": ".s"}, {"rule": "oldSelf.?j.orValue(0) <= self.j", "optionalOldSelf": True}, {"rule": "!oldSelf.hasValue() || oldSelf.value().j != 7", "optionalOldSelf": True, "message": "seven stays"}],
      {"i": 1, "j": 1}, {"i": 1, "j": -1},
      change({"i": 5, "j": 1}, {"i": 4, "j": 1}), change({"i": 5, "j": 1}, {"i": 6, "j": 0}), change({"i": 1, "j": 1, "s": "a"}, {"i": 1, "j": 1, "s": "b"}), change({"i": 1, "j": 1, "s": "a"}, {"i": 1, "j": 1}), change({"i": 1, "j": 7}, {"i": 1, "j": 8}), change({"i": 1, "j": 1}, {"i": 1, "j": 1}))
rules("celoldnested", ["true"], change({"m": {"a": "x", "b": "y"}}, {"m": {"a": "z", "b": "y", "c": "n"}}), change({"lm": [{"k": "a", "v": 1}, {"k": "b", "v": 5}]}, {"lm": [{"k": "b", "v": 4}, {"k": "a", "v": 2}, {"k": "c", "v": 0}]}), change({"o": {"a": "x"}}, {"o": {"a": "y"}}), change({"o": {"a": "x"}}, {}), change({"l": ["a"]}, {"l": ["b"]}), change({"nul": "a"}, {"nul": None}), change({"nul": None}, {"nul": "b"}),
      on={"m/additionalProperties": ["self == oldSelf"], "lm/items": ["self.v >= oldSelf.v"], "l": ["self == oldSelf"], "nul": ["self == oldSelf"], "o": ["self.a == oldSelf.a"]})
rules("celnested", ["true"], {"m": {"a": "bad", "b": "ok", "c.d": "bad"}}, {"l": ["bad", "ok"]}, {"o": {"a": "bad"}}, {"emb": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}}}, {"emb": {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "y"}}}, {"emb": {"apiVersion": "v1", "kind": "Node"}},
      on={"m/additionalProperties": ["self != 'bad'"], "l/items": ["self != 'bad'"], "o/properties/a": ["self != 'bad'"], "emb": ["self.kind == 'Pod'", "self.metadata.name == 'x'"]})
OBJECTS.append({"name": "celroot", "crd": crd("celroots", kind="Celroot", schema=dict(spec_of(i={"type": "integer"}), **{"x-kubernetes-validations": [{"rule": "self.metadata.name == 'x' && self.kind == 'Celroot' && self.apiVersion == 'crdcases.example.com/v1'"}, {"rule": "self.spec.i > 0", "message": "i must be positive"}, {"rule": "self.spec.i < 10", "fieldPath": ".spec.i"}]})),
                "steps": [{"object": {"spec": {"i": 1}}}, {"object": {"spec": {"i": 0}}}, {"object": {"spec": {"i": 11}}}, {"object": {"spec": {}}}, {"object": {}}, {"object": {"spec": {"i": "x"}}}]})
rules("cellibrary", ["self.s.matches('^[a-z]+$')", "self.s.contains('b')", "self.s.endsWith('c')", "self.s.size() == 3", "self.s.upperAscii() == 'ABC'", "self.s.replace('b', 'x') == 'axc'", "self.s.substring(1, 2) == 'b'", "self.s.indexOf('c') == 2", "self.s.charAt(1) == 'b'", "self.s.split('b') == ['a', 'c']", "' abc '.trim() == self.s", "'%s-%d-%s'.format([self.s, self.i, self.l]) == 'abc-7-[x, y]'", "string(self.i) == '7'", "self.s.find('[bc]+') == 'bc'", "self.s.findAll('[abc]') == ['a', 'b', 'c']", "strings.quote(self.s) == '\"abc\"'", "self.l.distinct().size() == 2", "self.l.slice(0, 1) == ['x']", "lists.range(3) == [0, 1, 2]", "self.l.first().value() == 'x'"],
      {"s": "abc", "i": 7, "l": ["x", "y"]}, {"s": "Zed", "i": 8, "l": ["y", "y"]})
rules("cellibrary2", ["isURL(self.s) && url(self.s).getHost() == 'a.b:80' && url(self.s).getPort() == '80' && url(self.s).getHostname() == 'a.b' && url(self.s).getEscapedPath() == '/p' && url(self.s).getQuery()['q'] == ['1']", "isIP(self.t) && ip(self.t).family() == 4 && !ip(self.t).isLoopback() && cidr('10.0.0.0/8').containsIP(self.t) && ip.isCanonical(self.t)", "isCIDR('10.0.0.0/8') && cidr('10.1.2.3/8').masked() == cidr('10.0.0.0/8') && cidr('10.0.0.0/8').prefixLength() == 8 && cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16')", "isQuantity('1Gi') && quantity('1Gi').isGreaterThan(quantity('1M')) && quantity('1500m').add(quantity('500m')).compareTo(quantity('2')) == 0 && quantity('2k').asInteger() == 2000", "isSemver('1.2.3') && semver('1.2.3').major() == 1 && semver('1.2.3').isLessThan(semver('1.10.0'))", "!format.dns1123Label().validate('abc').hasValue() && format.dns1123Label().validate('A_').hasValue()", "format.named('uuid').hasValue() && !format.named('nosuch').hasValue()", "timestamp('2024-02-29T00:00:00Z').getDayOfMonth() == 28 && duration('1h').getMinutes() == 60"],
      {"s": "https://a.b:80/p?q=1", "t": "10.0.0.1"}, {"s": "nope", "t": "::1"})
rules("celratchet", ["self.i > 0"], change({"i": 1, "s": "a"}, {"i": 1, "s": "b"}), change({"i": 1}, {"i": 0}))
