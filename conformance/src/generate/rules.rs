//! Rules in CEL: expressions of all types over a schema of all types, right most of the time.
//!
//! An expression is made from the type that it is to have. Now and then a part is made of another type, or of a name
//! that nothing has, so that the checker has something to say.

use serde_json::{Map, Value, json};

use crate::rng::Rng;
use crate::sequence::Step;

/// Types of expressions.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Ty {
    Bool,
    Int,
    Double,
    Text,
    Texts,
    Ints,
    Objects,
    TextMap,
    IntMap,
    Object,
    Duration,
    Time,
    Bytes,
    Dyn,
    Quantity,
    Ip,
    Cidr,
    Url,
    Semver,
    OptionalText,
}

const ALL: [Ty; 20] = [
    Ty::Bool,
    Ty::Int,
    Ty::Double,
    Ty::Text,
    Ty::Texts,
    Ty::Ints,
    Ty::Objects,
    Ty::TextMap,
    Ty::IntMap,
    Ty::Object,
    Ty::Duration,
    Ty::Time,
    Ty::Bytes,
    Ty::Dyn,
    Ty::Quantity,
    Ty::Ip,
    Ty::Cidr,
    Ty::Url,
    Ty::Semver,
    Ty::OptionalText,
];

/// Fields of `self`, by type. Names that CEL cannot write are escaped.
const FIELDS: [(&str, &str, Ty); 24] = [
    ("s", "s", Ty::Text),
    ("t", "t", Ty::Text),
    ("e", "e", Ty::Text),
    ("n", "n", Ty::Int),
    ("m", "m", Ty::Int),
    ("d", "d", Ty::Double),
    ("b", "b", Ty::Bool),
    ("c", "c", Ty::Bool),
    ("l", "l", Ty::Texts),
    ("set", "set", Ty::Texts),
    ("k", "k", Ty::Ints),
    ("ol", "ol", Ty::Objects),
    ("om", "om", Ty::Objects),
    ("mp", "mp", Ty::TextMap),
    ("mi", "mi", Ty::IntMap),
    ("o", "o", Ty::Object),
    ("dur", "dur", Ty::Duration),
    ("ts", "ts", Ty::Time),
    ("day", "day", Ty::Time),
    ("by", "by", Ty::Bytes),
    ("ios", "ios", Ty::Dyn),
    ("namespace", "__namespace__", Ty::Text),
    ("a-b.c/d", "a__dash__b__dot__c__slash__d", Ty::Int),
    ("u__v", "u__underscores__v", Ty::Text),
];

struct Writer<'r> {
    rng: &'r mut Rng,
    /// Variables of loops.
    scope: Vec<(String, Ty)>,
    /// What `self` is: an object with the fields, or one value.
    own: Option<Ty>,
    /// How often a part is wrong, in percent.
    wrong: usize,
    /// Whether literals are never wrong either.
    sound: bool,
    old_self: bool,
}

impl Writer<'_> {
    /// An expression of a type.
    fn expr(&mut self, ty: Ty, depth: usize) -> String {
        if self.rng.chance(self.wrong) {
            return match self.rng.below(8) {
                0 => "self.nosuch".into(),
                1 => "nosuch".into(),
                2 => format!("nosuch({})", self.expr(ty, depth.saturating_sub(1))),
                3 => format!("{}.nosuch()", self.expr(ty, depth.saturating_sub(1))),
                _ => {
                    let other = ALL[self.rng.below(ALL.len())];
                    self.expr(other, depth.saturating_sub(1))
                }
            };
        }
        match depth == 0 || self.rng.chance(25) {
            true => self.leaf(ty),
            false => self.made(ty, depth - 1),
        }
    }

    fn leaf(&mut self, ty: Ty) -> String {
        let mut known: Vec<String> =
            self.scope.iter().filter(|(_, own)| *own == ty).map(|(name, _)| name.clone()).collect();
        match self.own {
            Some(own) if own == ty => known.push("self".into()),
            Some(_) => {}
            None => {
                let root = if self.old_self && self.rng.chance(30) { "oldSelf" } else { "self" };
                let fields = FIELDS.iter().filter(|(_, _, own)| *own == ty);
                known.extend(fields.map(|(_, name, _)| format!("{root}.{name}")));
            }
        }
        if !known.is_empty() && self.rng.chance(75) {
            return known[self.rng.below(known.len())].clone();
        }
        let literals: &[&str] = match ty {
            Ty::Bool => &["true", "false"],
            Ty::Int => &["0", "1", "5", "-3", "0x10", "100"],
            Ty::Double => &["1.5", "-0.25", "1e3"],
            Ty::Text => &["'a'", "\"b c\"", "r'\\d+'", "''", "'äö'", "'1.2.3.4'", "'5s'"],
            Ty::Texts => &["['a', 'b']", "['x']", "[]"],
            Ty::Ints => &["[1, 2, 3]", "[3, 1]", "lists.range(3)"],
            Ty::Objects => &["self.ol", "self.om"],
            Ty::TextMap => &["{'a': 'b'}", "{'x': '', 'y': 'z'}"],
            Ty::IntMap => &["{'a': 1}", "{'x': 1, 'y': 2}"],
            Ty::Object => &["self.o", "self.ol[0]"],
            Ty::Duration => &["duration('5s')", "duration('1h30m')"],
            Ty::Time => &["timestamp('2024-01-01T00:00:00Z')", "timestamp(1000)"],
            Ty::Bytes => &["b'ab'", "bytes('xy')"],
            Ty::Dyn => &["dyn(1)", "dyn('a')", "self.ios"],
            Ty::Quantity => &["quantity('1')", "quantity('50Mi')"],
            Ty::Ip => &["ip('1.2.3.4')", "ip('::1')"],
            Ty::Cidr => &["cidr('10.0.0.0/8')", "cidr('::1/128')"],
            Ty::Url => &["url('https://a.example.com:80/p?q=1')"],
            Ty::Semver => &["semver('1.2.3')", "semver('v1.0', true)"],
            Ty::OptionalText => &["optional.of('a')", "optional.none()"],
        };
        self.rng.pick(literals).to_owned()
    }

    fn op(&mut self, ops: &[&str], ty: Ty, depth: usize) -> String {
        let op = self.rng.pick(ops).to_owned();
        format!("{} {op} {}", self.expr(ty, depth), self.expr(ty, depth))
    }

    /// A body in which a new variable is known.
    fn within(&mut self, vars: &[(&str, Ty)], ty: Ty, depth: usize) -> String {
        let before = self.scope.len();
        self.scope.extend(vars.iter().map(|(name, ty)| ((*name).to_owned(), *ty)));
        let body = self.expr(ty, depth);
        self.scope.truncate(before);
        body
    }

    fn made(&mut self, ty: Ty, depth: usize) -> String {
        match ty {
            Ty::Bool => self.truth(depth),
            Ty::Int => match self.rng.below(9) {
                0 => format!("({})", self.op(&["+", "-", "*", "/", "%"], Ty::Int, depth)),
                1 => format!("size({})", self.sized(depth)),
                2 => format!("{}.size()", self.sized(depth)),
                3 => format!("{}.{}()", self.expr(Ty::Ints, depth), self.rng.pick(&["sum", "min", "max"])),
                4 => format!("{}.indexOf({})", self.expr(Ty::Text, depth), self.expr(Ty::Text, depth)),
                5 => format!("int({})", self.convertible(depth)),
                6 => format!("{}[{}]", self.expr(Ty::Ints, depth), self.expr(Ty::Int, depth)),
                7 => format!(
                    "{}.{}()",
                    self.expr(Ty::Time, depth),
                    self.rng.pick(&["getFullYear", "getHours", "getDayOfWeek", "getMinutes"])
                ),
                _ => self.choice(Ty::Int, depth),
            },
            Ty::Double => match self.rng.below(3) {
                0 => format!("({})", self.op(&["+", "-", "*", "/"], Ty::Double, depth)),
                1 => format!("double({})", self.expr(Ty::Int, depth)),
                _ => format!("{}.asApproximateFloat()", self.expr(Ty::Quantity, depth)),
            },
            Ty::Text => match self.rng.below(13) {
                0 => format!("({} + {})", self.expr(Ty::Text, depth), self.expr(Ty::Text, depth)),
                1 => format!("string({})", self.convertible(depth)),
                2 => format!(
                    "{}.{}()",
                    self.expr(Ty::Text, depth),
                    self.rng.pick(&["lowerAscii", "upperAscii", "trim"])
                ),
                3 => format!(
                    "{}.replace({}, {})",
                    self.expr(Ty::Text, depth),
                    self.expr(Ty::Text, depth),
                    self.expr(Ty::Text, depth)
                ),
                4 => format!("{}.substring({})", self.expr(Ty::Text, depth), self.rng.below(3)),
                5 => format!("{}.join({})", self.expr(Ty::Texts, depth), self.rng.pick(&["','", "'-'", ""])),
                6 => format!("{}[{}]", self.expr(Ty::Texts, depth), self.rng.below(2)),
                7 => format!("{}[{}]", self.expr(Ty::TextMap, depth), self.expr(Ty::Text, depth)),
                8 => format!("{}.{}", self.expr(Ty::Object, depth), self.rng.pick(&["x", "w"])),
                9 => {
                    format!("'%s-%d'.format([{}, {}])", self.expr(Ty::Text, depth), self.expr(Ty::Int, depth))
                }
                10 => {
                    format!("{}.orValue({})", self.expr(Ty::OptionalText, depth), self.expr(Ty::Text, depth))
                }
                11 => format!(
                    "{}.{}()",
                    self.expr(Ty::Url, depth),
                    self.rng.pick(&["getHost", "getScheme", "getPort", "getEscapedPath"])
                ),
                _ => self.choice(Ty::Text, depth),
            },
            Ty::Texts => match self.rng.below(9) {
                0 => format!("({} + {})", self.expr(Ty::Texts, depth), self.expr(Ty::Texts, depth)),
                1 => format!(
                    "{}.split({})",
                    self.expr(Ty::Text, depth),
                    self.rng.pick(&["','", "''", "'a', 2"])
                ),
                2 => {
                    let range = self.expr(Ty::Texts, depth);
                    format!("{range}.filter(x, {})", self.within(&[("x", Ty::Text)], Ty::Bool, depth))
                }
                3 => {
                    let range = self.expr(Ty::Ints, depth);
                    format!("{range}.map(i, {})", self.within(&[("i", Ty::Int)], Ty::Text, depth))
                }
                4 => {
                    let range = self.expr(Ty::TextMap, depth);
                    let body = self.within(&[("key", Ty::Text), ("value", Ty::Text)], Ty::Text, depth);
                    format!("{range}.transformList(key, value, {body})")
                }
                5 => format!(
                    "{}.{}()",
                    self.expr(Ty::Texts, depth),
                    self.rng.pick(&["sort", "distinct", "reverse"])
                ),
                6 => format!(
                    "{}.findAll({})",
                    self.expr(Ty::Text, depth),
                    self.rng.pick(&["'[a-z]+'", "'[0-9]', 2"])
                ),
                7 => {
                    let range = self.expr(Ty::Objects, depth);
                    format!("{range}.map(o, {})", self.within(&[("o", Ty::Object)], Ty::Text, depth))
                }
                _ => format!("{}.slice(0, {})", self.expr(Ty::Texts, depth), self.rng.below(3)),
            },
            Ty::Ints => match self.rng.below(4) {
                0 => format!("({} + {})", self.expr(Ty::Ints, depth), self.expr(Ty::Ints, depth)),
                1 => {
                    let range = self.expr(Ty::Texts, depth);
                    format!("{range}.map(x, {})", self.within(&[("x", Ty::Text)], Ty::Int, depth))
                }
                2 => {
                    let range = self.expr(Ty::Ints, depth);
                    format!("{range}.map(i, i > 1, {})", self.within(&[("i", Ty::Int)], Ty::Int, depth))
                }
                _ => {
                    let range = self.expr(Ty::Ints, depth);
                    format!("{range}.sortBy(i, {})", self.within(&[("i", Ty::Int)], Ty::Int, 0))
                }
            },
            Ty::Objects => {
                let range = self.expr(Ty::Objects, depth);
                format!("{range}.filter(o, {})", self.within(&[("o", Ty::Object)], Ty::Bool, depth))
            }
            Ty::TextMap => {
                let range = self.expr(Ty::TextMap, depth);
                let body = self.within(&[("key", Ty::Text), ("value", Ty::Text)], Ty::Text, depth);
                format!("{range}.transformMap(key, value, {body})")
            }
            Ty::IntMap => {
                let range = self.expr(Ty::TextMap, depth);
                let body = self.within(&[("key", Ty::Text), ("value", Ty::Text)], Ty::Int, depth);
                format!("{range}.transformMap(key, value, {body})")
            }
            Ty::Object => format!("{}[{}]", self.expr(Ty::Objects, depth), self.rng.below(2)),
            Ty::Duration => match self.rng.below(3) {
                0 if !self.sound => format!("duration({})", self.expr(Ty::Text, depth)),
                0 | 1 => format!("({} - {})", self.expr(Ty::Time, depth), self.expr(Ty::Time, depth)),
                _ => format!("({} + {})", self.expr(Ty::Duration, depth), self.expr(Ty::Duration, depth)),
            },
            Ty::Time => format!("({} + {})", self.expr(Ty::Time, depth), self.expr(Ty::Duration, depth)),
            Ty::Bytes => format!("bytes({})", self.expr(Ty::Text, depth)),
            Ty::Dyn => {
                let inner = ALL[self.rng.below(4)];
                format!("dyn({})", self.expr(inner, depth))
            }
            Ty::Quantity => match self.rng.below(2) {
                0 => format!("quantity({})", self.expr(Ty::Text, depth)),
                _ => format!("{}.add({})", self.expr(Ty::Quantity, depth), self.expr(Ty::Quantity, depth)),
            },
            Ty::Ip => match self.rng.below(2) {
                0 => format!("ip({})", self.expr(Ty::Text, depth)),
                _ => format!("{}.ip()", self.expr(Ty::Cidr, depth)),
            },
            Ty::Cidr => format!("{}.masked()", self.expr(Ty::Cidr, depth)),
            Ty::Url => format!("url({})", self.expr(Ty::Text, depth)),
            Ty::Semver => format!("semver({})", self.expr(Ty::Text, depth)),
            Ty::OptionalText => match self.rng.below(4) {
                0 => format!("{}[?{}]", self.expr(Ty::Texts, depth), self.rng.below(3)),
                1 => format!("{}.?{}", self.leaf(Ty::Object), self.rng.pick(&["x", "w"])),
                2 => format!("{}[?'a']", self.expr(Ty::TextMap, depth)),
                _ => {
                    let of = self.expr(Ty::OptionalText, depth);
                    format!("{of}.optMap(v, {})", self.within(&[("v", Ty::Text)], Ty::Text, depth))
                }
            },
        }
    }

    fn sized(&mut self, depth: usize) -> String {
        let all = [Ty::Text, Ty::Texts, Ty::Ints, Ty::Objects, Ty::TextMap, Ty::Bytes];
        let ty = all[self.rng.below(all.len())];
        self.expr(ty, depth)
    }

    fn convertible(&mut self, depth: usize) -> String {
        let all = [Ty::Int, Ty::Double, Ty::Text, Ty::Duration, Ty::Time];
        let ty = all[self.rng.below(all.len())];
        self.expr(ty, depth)
    }

    fn choice(&mut self, ty: Ty, depth: usize) -> String {
        let (condition, yes, no) = (self.expr(Ty::Bool, depth), self.expr(ty, depth), self.expr(ty, depth));
        format!("({condition} ? {yes} : {no})")
    }

    fn truth(&mut self, depth: usize) -> String {
        match self.rng.below(22) {
            0 => format!("({})", self.op(&["&&", "||"], Ty::Bool, depth)),
            1 => format!("!{}", self.expr(Ty::Bool, depth)),
            2 => self.op(&["<", "<=", ">", ">=", "==", "!="], Ty::Int, depth),
            3 => self.op(&["<", "<=", ">", ">=", "==", "!="], Ty::Text, depth),
            4 => {
                let ty = ALL[self.rng.below(ALL.len())];
                self.op(&["==", "!="], ty, depth)
            }
            5 => self.op(&["<", ">="], Ty::Duration, depth),
            6 => self.op(&["<", ">="], Ty::Time, depth),
            7 => format!("{} in {}", self.expr(Ty::Text, depth), self.expr(Ty::Texts, depth)),
            8 => format!("{} in {}", self.expr(Ty::Text, depth), self.expr(Ty::TextMap, depth)),
            9 | 10 => {
                let range = self.expr(Ty::Texts, depth);
                let name = self.rng.pick(&["all", "exists", "exists_one"]).to_owned();
                format!("{range}.{name}(x, {})", self.within(&[("x", Ty::Text)], Ty::Bool, depth))
            }
            11 => {
                let range = self.expr(Ty::Objects, depth);
                let name = self.rng.pick(&["all", "exists"]).to_owned();
                format!("{range}.{name}(o, {})", self.within(&[("o", Ty::Object)], Ty::Bool, depth))
            }
            12 => {
                let range = self.expr(Ty::IntMap, depth);
                let vars = [("key", Ty::Text), ("value", Ty::Int)];
                let name = self.rng.pick(&["all", "exists", "existsOne"]).to_owned();
                format!("{range}.{name}(key, value, {})", self.within(&vars, Ty::Bool, depth))
            }
            13 => {
                let name = self.rng.pick(&["startsWith", "endsWith", "contains"]).to_owned();
                format!("{}.{name}({})", self.expr(Ty::Text, depth), self.expr(Ty::Text, depth))
            }
            14 => {
                let patterns = ["'^[a-z]+$'", "'\\\\d{3}'", "'.*'", "'[a-'"];
                let pattern = self.rng.pick(&patterns[..if self.sound { 3 } else { 4 }]).to_owned();
                format!("{}.matches({pattern})", self.expr(Ty::Text, depth))
            }
            15 => {
                let name = self.rng.pick(&["s", "l", "o", "n"]).to_owned();
                if self.own.is_some() { self.leaf(Ty::Bool) } else { format!("has(self.{name})") }
            }
            16 => format!("has({}.x)", self.leaf(Ty::Object)),
            17 => {
                let name = self.rng.pick(&["isGreaterThan", "isLessThan"]).to_owned();
                format!("{}.{name}({})", self.expr(Ty::Quantity, depth), self.expr(Ty::Quantity, depth))
            }
            18 => match self.rng.below(4) {
                0 => format!("{}.containsIP({})", self.expr(Ty::Cidr, depth), self.expr(Ty::Ip, depth)),
                1 => format!("{}.containsIP({})", self.expr(Ty::Cidr, depth), self.expr(Ty::Text, depth)),
                2 => format!("{}.containsCIDR({})", self.expr(Ty::Cidr, depth), self.expr(Ty::Cidr, depth)),
                _ => format!("{}.isLoopback()", self.expr(Ty::Ip, depth)),
            },
            19 => {
                let name = self.rng.pick(&["isIP", "isCIDR", "isURL", "isQuantity", "isSemver"]).to_owned();
                format!("{name}({})", self.expr(Ty::Text, depth))
            }
            20 => {
                let name = self.rng.pick(&["contains", "intersects", "equivalent"]).to_owned();
                format!("sets.{name}({}, {})", self.expr(Ty::Texts, depth), self.expr(Ty::Texts, depth))
            }
            _ => {
                let name = self.rng.pick(&["dns1123Label", "uuid", "qualifiedName", "date"]).to_owned();
                format!("!format.{name}().validate({}).hasValue()", self.expr(Ty::Text, depth))
            }
        }
    }
}

/// A schema with all the fields. With `fixed` limits every value of [`value`] fits.
fn schema(rng: &mut Rng, fixed: bool) -> Value {
    let limit = |rng: &mut Rng, schema: Value, key: &str, most: usize| {
        let mut schema = schema;
        if fixed {
            schema[key] = json!(most);
        } else if rng.chance(85) {
            // Large enough for costs near the limits.
            schema[key] = json!([5, 40, 300, 2000][rng.below(4)]);
        }
        schema
    };
    let text = |rng: &mut Rng| limit(rng, json!({"type": "string"}), "maxLength", 12);
    let element = json!({"type": "object", "required": ["name"], "properties": {
        "name": text(rng), "x": text(rng), "w": text(rng), "y": {"type": "integer"}}});
    let mut properties = Map::new();
    for (name, _, ty) in FIELDS {
        let schema = match (name, ty) {
            ("e", _) => json!({"type": "string", "enum": ["a", "bb", "ccc"]}),
            ("day", _) => json!({"type": "string", "format": "date"}),
            ("set", _) => {
                let list = json!({"type": "array", "x-kubernetes-list-type": "set", "items": text(rng)});
                limit(rng, list, "maxItems", 5)
            }
            ("om", _) => {
                let list = json!({"type": "array", "x-kubernetes-list-type": "map", "items": element,
                    "x-kubernetes-list-map-keys": ["name"]});
                limit(rng, list, "maxItems", 5)
            }
            (_, Ty::Text) => text(rng),
            (_, Ty::Int) => json!({"type": "integer"}),
            (_, Ty::Double) => json!({"type": "number"}),
            (_, Ty::Bool) => json!({"type": "boolean"}),
            (_, Ty::Texts) => {
                let list = json!({"type": "array", "items": text(rng)});
                limit(rng, list, "maxItems", 5)
            }
            (_, Ty::Ints) => {
                limit(rng, json!({"type": "array", "items": {"type": "integer"}}), "maxItems", 5)
            }
            (_, Ty::Objects) => limit(rng, json!({"type": "array", "items": element}), "maxItems", 5),
            (_, Ty::TextMap) => {
                let map = json!({"type": "object", "additionalProperties": text(rng)});
                limit(rng, map, "maxProperties", 5)
            }
            (_, Ty::IntMap) => {
                let map = json!({"type": "object", "additionalProperties": {"type": "integer"}});
                limit(rng, map, "maxProperties", 5)
            }
            (_, Ty::Object) => element.clone(),
            (_, Ty::Duration) => json!({"type": "string", "format": "duration"}),
            (_, Ty::Time) => json!({"type": "string", "format": "date-time"}),
            (_, Ty::Bytes) => limit(rng, json!({"type": "string", "format": "byte"}), "maxLength", 20),
            _ => json!({"x-kubernetes-int-or-string": true}),
        };
        properties.insert(name.into(), schema);
    }
    json!({"type": "object", "properties": properties})
}

fn rule(rng: &mut Rng, own: Option<Ty>, wrong: usize, old_self: bool, sound: bool) -> Value {
    let depth = 1 + rng.below(if sound { 2 } else { 3 });
    let mut writer = Writer { rng, scope: Vec::new(), own, wrong, sound, old_self };
    let mut rule = json!({"rule": writer.expr(Ty::Bool, depth)});
    if !sound && writer.rng.chance(6) {
        let mut text: Vec<char> = rule["rule"].as_str().unwrap_or_default().chars().collect();
        let at = writer.rng.below(text.len());
        match writer.rng.below(3) {
            0 => drop(text.remove(at)),
            1 => text.insert(at, *writer.rng.pick(&[&'(', &')', &'.', &'?', &'"', &' ', &'#', &'['])),
            _ => text.truncate(at.max(1)),
        }
        rule["rule"] = json!(text.into_iter().collect::<String>());
    }
    if writer.rng.chance(20) {
        rule["messageExpression"] = json!(writer.expr(Ty::Text, 1));
    }
    if old_self && rng.chance(30) {
        rule["optionalOldSelf"] = json!(true);
        let text = rule["rule"].as_str().unwrap_or_default().replace("oldSelf.", "oldSelf.value().");
        rule["rule"] = json!(text);
    }
    if rng.chance(10) {
        rule["message"] = json!("it says so");
    }
    if own.is_none() && rng.chance(10) {
        rule["fieldPath"] =
            json!(rng.pick(&[".s", ".o.x", ".mp['k']", ".nosuch", "['a-b.c/d']", ".namespace"]));
    }
    rule
}

/// Definitions with rules at any place, tried without being stored.
pub fn checked(rng: &mut Rng) -> Vec<Step> {
    (0..4)
        .map(|_| {
            let mut spec = schema(rng, false);
            let wrong = if rng.chance(50) { 4 } else { 0 };
            let old_self = rng.chance(20);
            match rng.below(10) {
                0 => {
                    spec["properties"]["s"]["x-kubernetes-validations"] =
                        json!([rule(rng, Some(Ty::Text), wrong, false, false)])
                }
                1 => {
                    spec["properties"]["l"]["items"]["x-kubernetes-validations"] =
                        json!([rule(rng, Some(Ty::Text), wrong, false, false)])
                }
                2 => {
                    spec["properties"]["l"]["x-kubernetes-validations"] =
                        json!([rule(rng, Some(Ty::Texts), wrong, false, false)])
                }
                3 => {
                    spec["properties"]["mp"]["x-kubernetes-validations"] =
                        json!([rule(rng, Some(Ty::TextMap), wrong, false, false)])
                }
                4 => {
                    spec["properties"]["ol"]["items"]["x-kubernetes-validations"] =
                        json!([rule(rng, Some(Ty::Object), wrong, false, false)])
                }
                5 => {
                    spec["properties"]["ios"]["x-kubernetes-validations"] =
                        json!([rule(rng, Some(Ty::Dyn), wrong, false, false)])
                }
                6 => {
                    spec["properties"]["mi"]["additionalProperties"]["x-kubernetes-validations"] =
                        json!([rule(rng, Some(Ty::Int), wrong, false, false)])
                }
                _ => {
                    let rules: Vec<Value> =
                        (0..1 + rng.below(2)).map(|_| rule(rng, None, wrong, old_self, false)).collect();
                    spec["x-kubernetes-validations"] = json!(rules);
                }
            }
            let path = format!("{}?dryRun=All", super::custom::DEFINITIONS);
            Step::with("POST", path, super::custom::definition(spec))
        })
        .collect()
}

fn value(rng: &mut Rng, name: &str, ty: Ty) -> Value {
    let text = |rng: &mut Rng| json!(rng.pick(&["a", "abc", "", "5s", "1.2.3.4", "äö", "1", "A b"]));
    let element = |rng: &mut Rng, name: &str| {
        let mut out = json!({"name": name, "y": rng.below(5)});
        if rng.chance(70) {
            out["x"] = text(rng);
        }
        if rng.chance(70) {
            out["w"] = text(rng);
        }
        out
    };
    match (name, ty) {
        ("e", _) => json!(rng.pick(&["a", "bb", "ccc"])),
        ("day", _) => json!("2024-02-29"),
        ("set", _) => json!(["a", "b"]),
        (_, Ty::Text) => text(rng),
        (_, Ty::Int) => json!([0, 1, -3, 7, 100][rng.below(5)]),
        (_, Ty::Double) => json!([0.5, 2.0, -1.25][rng.below(3)]),
        (_, Ty::Bool) => json!(rng.chance(50)),
        (_, Ty::Texts) => (0..rng.below(4)).map(|_| text(rng)).collect(),
        (_, Ty::Ints) => (0..rng.below(4)).map(|_| json!(rng.below(5))).collect(),
        (_, Ty::Objects) => ["p", "q"].iter().map(|name| element(rng, name)).collect(),
        (_, Ty::TextMap) => json!({"a": text(rng), "k": text(rng)}),
        (_, Ty::IntMap) => json!({"a": rng.below(4), "z": rng.below(4)}),
        (_, Ty::Object) => element(rng, "o"),
        (_, Ty::Duration) => json!(rng.pick(&["5s", "1h0m0s", "250ms"])),
        (_, Ty::Time) => json!(rng.pick(&["2024-01-01T00:00:00Z", "1999-12-31T23:59:59Z"])),
        (_, Ty::Bytes) => json!("YWI="),
        _ => [json!(5), json!("50%")][rng.below(2)].clone(),
    }
}

/// Rules that are right, on objects of all kinds.
pub fn evaluated(rng: &mut Rng) -> Vec<Step> {
    let spec = schema(rng, true);
    let old_self = rng.chance(30);
    let rules: Vec<Value> = (0..3)
        .map(|_| {
            let mut rule = rule(rng, None, 0, old_self, true);
            if let Some(rule) = rule.as_object_mut() {
                rule.remove("fieldPath");
                let has = |rule: &Map<String, Value>, key: &str| {
                    rule.get(key).and_then(Value::as_str).is_some_and(|text| text.contains("oldSelf"))
                };
                if !has(rule, "rule") {
                    rule.remove("optionalOldSelf");
                }
                if has(rule, "messageExpression") {
                    rule.remove("messageExpression");
                }
            }
            rule
        })
        .collect();
    let body = |rng: &mut Rng| {
        let mut spec = Map::new();
        for (name, _, ty) in FIELDS {
            if rng.chance(90) {
                spec.insert(name.into(), value(rng, name, ty));
            }
        }
        Value::Object(spec)
    };
    // One rule that is refused must not hide the others, so each comes by itself.
    let mut out = Vec::new();
    for (i, rule) in rules.iter().enumerate() {
        let mut definition = super::custom::definition(spec.clone());
        let name = |text: &str| text.replace("{id}", &format!("{{id}}r{i}"));
        definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["x-kubernetes-validations"] =
            json!([rule]);
        let definition: Value = serde_json::from_str(&name(&definition.to_string())).unwrap_or_default();
        out.push(Step::with("POST", super::custom::DEFINITIONS, definition.clone()));
        out.push(Step::new("GET", name(super::custom::THINGS)).until(200).quiet());
        for step in 0..2 {
            let thing = super::custom::thing(body(rng));
            let thing: Value = serde_json::from_str(&name(&thing.to_string())).unwrap_or_default();
            out.push(match step {
                0 => Step::with("POST", name(super::custom::THINGS), thing),
                _ => {
                    let mut patch = thing["spec"].clone();
                    patch["s"] = json!("zz");
                    let path = format!("{}/a", name(super::custom::THINGS));
                    Step::patch("merge", path, json!({"spec": patch}))
                }
            });
        }
        out.push(Step::new("DELETE", name(super::custom::DEFINITION)).quiet());
    }
    out
}
