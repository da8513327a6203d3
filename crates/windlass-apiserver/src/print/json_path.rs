//! JSONPath as client-go's `jsonpath` reads and evaluates it, without `range`.

use std::borrow::Cow;
use std::cmp::Ordering;

use serde_json::Value;
use thiserror::Error;

/// A path that cannot be read, or that does not fit the object.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{0}")]
pub struct PathError(String);

/// A parsed expression such as `.status.conditions[?(@.type=="Ready")].status`.
#[derive(Clone, Debug, PartialEq)]
pub struct JsonPath {
    nodes: Vec<Node>,
}

/// How deep filters and unions may be nested in each other.
const DEPTH_MAX: usize = 16;

/// Reads an expression, which stands without braces.
pub fn json_path(expression: &str) -> Result<JsonPath, PathError> {
    Ok(JsonPath { nodes: parse(expression, DEPTH_MAX)? })
}

impl JsonPath {
    /// All values that the path leads to; absent members lead nowhere.
    pub fn find<'a>(&self, object: &'a Value) -> Result<Vec<Cow<'a, Value>>, PathError> {
        walk(&self.nodes, vec![Cow::Borrowed(object)])
    }
}

#[derive(Clone, Debug, PartialEq)]
enum Node {
    Field(String),
    Literal(Value),
    Slice { start: Option<i64>, end: End, step: Option<i64> },
    Wildcard,
    Recursive,
    Union(Vec<Vec<Node>>),
    Exists(Vec<Node>),
    Compare(Vec<Node>, Operator, Vec<Node>),
    Identifier(String),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    /// `[n]`: one element.
    One,
    Open,
    At(i64),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Operator {
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
}

fn parse(text: &str, depth: usize) -> Result<Vec<Node>, PathError> {
    let depth = depth.checked_sub(1).ok_or_else(|| error("expression is nested too deeply"))?;
    let mut nodes: Vec<Node> = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if let Some(filter) = rest.strip_prefix("[?(") {
            let (inside, tail) = split_filter(filter)?;
            nodes.push(parse_filter(inside, depth)?);
            rest = tail;
            continue;
        }
        if let Some(tail) = rest.strip_prefix("..") {
            if nodes.last() == Some(&Node::Recursive) {
                return Err(error("invalid multiple recursive descent"));
            }
            nodes.push(Node::Recursive);
            rest = tail;
            if tail.starts_with(is_alphanumeric) {
                rest = parse_field(tail, &mut nodes);
            }
            continue;
        }
        rest = match first {
            ' ' | '@' | '$' => &rest[1..],
            '[' => {
                let end = rest.find([']', '\n']).filter(|&end| rest[end..].starts_with(']'));
                let end = end.ok_or_else(|| error("unterminated array"))?;
                parse_array(&rest[1..end], &mut nodes, depth)?;
                &rest[end + 1..]
            }
            '"' | '\'' => {
                let (literal, tail) = parse_quoted(rest, first)?;
                nodes.push(Node::Literal(Value::String(literal)));
                tail
            }
            '.' => parse_field(&rest[1..], &mut nodes),
            '+' | '-' | '0'..='9' => {
                let end = rest[1..]
                    .find(|c: char| c != '.' && !c.is_ascii_digit())
                    .map_or(rest.len(), |end| end + 1);
                nodes.push(Node::Literal(parse_number(&rest[..end])?));
                &rest[end..]
            }
            c if is_alphanumeric(c) => {
                let end = rest.find(is_terminator).unwrap_or(rest.len());
                nodes.push(match &rest[..end] {
                    "true" => Node::Literal(Value::Bool(true)),
                    "false" => Node::Literal(Value::Bool(false)),
                    word => Node::Identifier(word.to_owned()),
                });
                &rest[end..]
            }
            other => return Err(error(format!("unrecognized character in action: {other:?}"))),
        };
    }
    Ok(nodes)
}

/// A member up to the next terminator that is not escaped; gives what follows it.
fn parse_field<'a>(text: &'a str, nodes: &mut Vec<Node>) -> &'a str {
    let mut escaped = false;
    let end = text.find(|c: char| {
        let ends = !escaped && is_terminator(c);
        escaped = !escaped && c == '\\';
        ends
    });
    let (name, rest) = text.split_at(end.unwrap_or(text.len()));
    nodes.push(if name == "*" { Node::Wildcard } else { Node::Field(name.replace('\\', "")) });
    rest
}

fn parse_array(text: &str, nodes: &mut Vec<Node>, depth: usize) -> Result<(), PathError> {
    if text.contains(',') {
        let parts = text.split(',').map(|part| parse(&format!("[{}]", part.trim_matches(' ')), depth));
        nodes.push(Node::Union(parts.collect::<Result<_, _>>()?));
        return Ok(());
    }
    if let Some(key) = text.strip_prefix('\'').and_then(|text| text.strip_suffix('\''))
        && !key.contains('\'')
    {
        // As upstream: a dot in a quoted key must be escaped, too.
        nodes.extend(parse(&format!(".{key}"), depth)?);
        return Ok(());
    }
    let text = if text == "*" { ":" } else { text };
    let invalid = || error(format!("invalid array index {text}"));
    let parts = text.split(':').collect::<Vec<_>>();
    if parts.len() > 3 || text.is_empty() {
        return Err(invalid());
    }
    let number = |part: Option<&&str>| match part {
        None | Some(&"") => Ok(None),
        Some(part) if part.starts_with('+') => Err(invalid()),
        Some(part) => part.parse::<i64>().map(Some).map_err(|_| invalid()),
    };
    let start = number(parts.first())?;
    let end = match (parts.len(), number(parts.get(1))?) {
        (1, _) => End::One,
        (_, None) => End::Open,
        (_, Some(end)) => End::At(end),
    };
    nodes.push(Node::Slice { start, end, step: number(parts.get(2))? });
    Ok(())
}

/// Splits after the `)]` that closes the filter; a closing parenthesis inside the quoted text does not.
fn split_filter(text: &str) -> Result<(&str, &str), PathError> {
    let (mut quote, mut closed, mut previous) = (None, false, '\0');
    for (i, c) in text.char_indices() {
        match (c, quote) {
            ('\n', _) => break,
            ('"' | '\'', None) => quote = Some(c),
            (c, Some(open)) if c == open && previous != '\\' => closed = true,
            (')', _) if quote.is_some() == closed => {
                let tail = text[i + 1..].strip_prefix(']').ok_or_else(|| error("unclosed array expect ]"))?;
                return Ok((&text[..i], tail));
            }
            _ => {}
        }
        previous = c;
    }
    Err(error("unterminated filter"))
}

fn parse_filter(text: &str, depth: usize) -> Result<Node, PathError> {
    let is_operator = |c: char| matches!(c, '!' | '<' | '>' | '=');
    let Some(start) = text.find(is_operator).filter(|&start| start > 0) else {
        return Ok(Node::Exists(parse(text, depth)?));
    };
    let (left, rest) = text.split_at(start);
    let (operator, right) = rest.split_at(rest.find(|c| !is_operator(c)).unwrap_or(rest.len()));
    let operator = match operator {
        "==" => Operator::Equal,
        "!=" => Operator::NotEqual,
        "<" => Operator::Less,
        "<=" => Operator::LessEqual,
        ">" => Operator::Greater,
        ">=" => Operator::GreaterEqual,
        other => return Err(error(format!("unrecognized filter operator {other}"))),
    };
    Ok(Node::Compare(parse(left, depth)?, operator, parse(right, depth)?))
}

fn parse_quoted(text: &str, quote: char) -> Result<(String, &str), PathError> {
    let mut out = String::new();
    let mut chars = text.char_indices().skip(1);
    while let Some((i, c)) = chars.next() {
        match c {
            '\n' => break,
            '\\' => match chars.next().map(|(_, c)| c) {
                Some('n') => out.push('\n'),
                Some('t') => out.push('\t'),
                Some('r') => out.push('\r'),
                Some(c @ ('\\' | '"' | '\'')) => out.push(c),
                _ => return Err(error(format!("unquote string {text} error invalid syntax"))),
            },
            c if c == quote => return Ok((out, &text[i + 1..])),
            c => out.push(c),
        }
    }
    Err(error("unterminated quoted string"))
}

fn parse_number(text: &str) -> Result<Value, PathError> {
    let invalid = || error(format!("cannot parse number {text}"));
    match text.parse::<i64>() {
        Ok(number) => Ok(number.into()),
        Err(_) => {
            let float = text.parse::<f64>().map_err(|_| invalid())?;
            serde_json::Number::from_f64(float).map(Value::Number).ok_or_else(invalid)
        }
    }
}

type Values<'a> = Vec<Cow<'a, Value>>;

fn walk<'a>(nodes: &[Node], start: Values<'a>) -> Result<Values<'a>, PathError> {
    nodes.iter().try_fold(start, |values, node| step(node, values))
}

fn step<'a>(node: &Node, input: Values<'a>) -> Result<Values<'a>, PathError> {
    let mut output = Vec::new();
    match node {
        Node::Literal(literal) => {
            // Upstream gives one text whatever comes in, and one number or boolean for each value.
            let count = if literal.is_string() { 1 } else { input.len() };
            return Ok(vec![Cow::Owned(literal.clone()); count]);
        }
        Node::Identifier(name) => return Err(error(format!("unrecognized identifier {name}"))),
        Node::Union(parts) => {
            for part in parts {
                output.extend(walk(part, input.clone())?);
            }
            return Ok(output);
        }
        _ => {}
    }
    for value in input {
        match (node, value.is_null()) {
            (Node::Exists(_) | Node::Compare(..), true) => {
                return Err(error("null is not array or slice and cannot be filtered"));
            }
            (_, true) => continue,
            (Node::Field(name), _) => output.extend(member(value, name)),
            (Node::Wildcard, _) => output.extend(children(value)),
            (Node::Recursive, _) => recurse(value, &mut output),
            (Node::Slice { start, end, step }, _) => {
                if !slice(elements(value)?, *start, *end, *step, &mut output)? {
                    return Ok(output);
                }
            }
            (_, _) => {
                for element in elements(value)? {
                    if passes(node, &element)? {
                        output.push(element);
                    }
                }
            }
        }
    }
    Ok(output)
}

fn member<'a>(value: Cow<'a, Value>, name: &str) -> Option<Cow<'a, Value>> {
    match value {
        Cow::Borrowed(value) => value.as_object()?.get(name).map(Cow::Borrowed),
        Cow::Owned(_) => None,
    }
}

fn children(value: Cow<'_, Value>) -> Values<'_> {
    match value {
        Cow::Borrowed(Value::Array(list)) => list.iter().map(Cow::Borrowed).collect(),
        Cow::Borrowed(Value::Object(map)) => map.values().map(Cow::Borrowed).collect(),
        _ => Vec::new(),
    }
}

fn recurse<'a>(value: Cow<'a, Value>, output: &mut Values<'a>) {
    let inner = children(value.clone());
    if !inner.is_empty() {
        output.push(value);
        inner.into_iter().filter(|value| !value.is_null()).for_each(|value| recurse(value, output));
    }
}

fn elements(value: Cow<'_, Value>) -> Result<Values<'_>, PathError> {
    match value {
        Cow::Borrowed(Value::Array(list)) => Ok(list.iter().map(Cow::Borrowed).collect()),
        other => Err(error(format!("{other} is not array or slice"))),
    }
}

/// Whether to go on with the next list: a slice of no elements ends the step, as upstream.
fn slice<'a>(
    list: Values<'a>,
    start: Option<i64>,
    end: End,
    step: Option<i64>,
    output: &mut Values<'a>,
) -> Result<bool, PathError> {
    let len = i64::try_from(list.len()).map_err(|_| error("list is too long"))?;
    let from = match start.unwrap_or(0) {
        start if start < 0 => start.saturating_add(len),
        start => start,
    };
    let to = match end {
        End::Open => len,
        End::One => match start.unwrap_or(0).saturating_add(1) {
            end if end <= 0 => end.saturating_add(len),
            end => end,
        },
        End::At(end) if end < 0 => end.saturating_add(len),
        End::At(end) => end,
    };
    if from == to {
        return Ok(false);
    }
    if !(0..len).contains(&from) || !(0..=len).contains(&to) || from > to {
        return Err(error(format!("array index out of bounds: index {from}, length {len}")));
    }
    let step = match step.map(usize::try_from) {
        None => 1,
        Some(Ok(step)) if step > 0 => step,
        Some(_) => return Err(error("step must be > 0")),
    };
    let index = |i: i64| usize::try_from(i).expect("checked to be within the list");
    output.extend(list.into_iter().take(index(to)).skip(index(from)).step_by(step));
    Ok(true)
}

fn passes(node: &Node, element: &Value) -> Result<bool, PathError> {
    let (left, operator, right) = match node {
        Node::Exists(path) => {
            return Ok(walk(path, vec![Cow::Borrowed(element)]).is_ok_and(|found| !found.is_empty()));
        }
        Node::Compare(left, operator, right) => (left, operator, right),
        _ => return Ok(false),
    };
    let one = |nodes: &[Node]| match walk(nodes, vec![Cow::Borrowed(element)])?.as_slice() {
        [] => Ok(None),
        [one] => Ok(Some(one.clone().into_owned())),
        _ => Err(error("can only compare one element at a time")),
    };
    let (Some(left), Some(right)) = (one(left)?, one(right)?) else { return Ok(false) };
    let ordering = compare(&left, &right)?;
    if left.is_boolean() && !matches!(operator, Operator::Equal | Operator::NotEqual) {
        return Err(error("invalid type for comparison"));
    }
    Ok(match operator {
        Operator::Equal => ordering == Ordering::Equal,
        Operator::NotEqual => ordering != Ordering::Equal,
        Operator::Less => ordering == Ordering::Less,
        Operator::LessEqual => ordering != Ordering::Greater,
        Operator::Greater => ordering == Ordering::Greater,
        Operator::GreaterEqual => ordering != Ordering::Less,
    })
}

/// Only values of one basic type compare; an integer and a float do not.
fn compare(left: &Value, right: &Value) -> Result<Ordering, PathError> {
    match (left, right) {
        (Value::String(left), Value::String(right)) => Ok(left.cmp(right)),
        (Value::Bool(left), Value::Bool(right)) => Ok(left.cmp(right)),
        (Value::Number(a), Value::Number(b)) if a.is_f64() == b.is_f64() => {
            let integers = a.as_i64().zip(b.as_i64()).map(|(a, b)| a.cmp(&b));
            let floats = || a.as_f64().zip(b.as_f64()).and_then(|(a, b)| a.partial_cmp(&b));
            integers.or_else(floats).ok_or_else(|| error("incompatible types for comparison"))
        }
        _ => Err(error("incompatible types for comparison")),
    }
}

fn is_terminator(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n' | '.' | ',' | '[' | ']' | '$' | '@' | '{' | '}')
}

fn is_alphanumeric(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

fn error(text: impl Into<String>) -> PathError {
    PathError(text.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn find(expression: &str, object: &Value) -> Result<Value, String> {
        let path = json_path(expression).map_err(|error| error.to_string())?;
        let found = path.find(object).map_err(|error| error.to_string())?;
        Ok(found.into_iter().map(Cow::into_owned).collect())
    }

    #[test]
    fn paths_lead_where_they_say() {
        let object = json!({
            "metadata": {"labels": {"a.b/c": "x"}, "name": "n"},
            "spec": {"list": [10, 20, 30], "deep": {"list": [{"v": 1}, {"v": 2}]}},
            "status": {"conditions": [
                {"type": "Ready", "status": "True", "n": 3},
                {"type": "Done (really)", "status": "False", "n": 4, "f": 1.5},
            ]},
        });
        for (expression, expected) in [
            (".metadata.name", json!(["n"])),
            ("$.metadata.name", json!(["n"])),
            (".metadata['name']", json!(["n"])),
            (r".metadata.labels['a\.b/c']", json!(["x"])),
            (r".metadata.labels.a\.b/c", json!(["x"])),
            (".metadata.labels['a.b/c']", json!([])),
            (".metadata.missing.more", json!([])),
            (".spec.list[0]", json!([10])),
            (".spec.list[-1]", json!([30])),
            (".spec.list[1:]", json!([20, 30])),
            (".spec.list[:2]", json!([10, 20])),
            (".spec.list[::2]", json!([10, 30])),
            (".spec.list[*]", json!([10, 20, 30])),
            (".spec.list[0,2]", json!([10, 30])),
            (".spec.missing[0]", json!([])),
            (".spec.deep.list[*].v", json!([1, 2])),
            (".spec.deep.*[0].v", json!([1])),
            ("..v", json!([1, 2])),
            (r#".status.conditions[?(@.type=="Ready")].status"#, json!(["True"])),
            (".status.conditions[?(@.type=='Ready')].status", json!(["True"])),
            (r#".status.conditions[?(@.type=="Done (really)")].n"#, json!([4])),
            (r#".status.conditions[?(@.type!="Ready")].n"#, json!([4])),
            (".status.conditions[?(@.n>=4)].n", json!([4])),
            (".status.conditions[?(@.f)].n", json!([4])),
            (".status.conditions[?(@.f<2.5)].n", json!([4])),
        ] {
            assert_eq!(find(expression, &object), Ok(expected), "{expression}");
        }
        for expression in
            [".spec.list[3]", ".spec[0]", ".status.conditions[?(@.n==1.5)]", "name", ".spec.list[0:2:0]"]
        {
            let path = json_path(expression).unwrap();
            assert!(path.find(&object).is_err(), "{expression}");
        }
        for expression in
            [".a[", ".a[x]", ".a[?(@.b", ".a[?(@.b=>1)]", "#", ".a['b", "'x", ".....a", ".a[1:2:3:4]"]
        {
            assert!(json_path(expression).is_err(), "{expression}");
        }
    }

    proptest! {
        #[test]
        fn nothing_panics(expression in "[.@$a*0-9:,'\"\\[\\]?()=<>! \\\\é-]{0,20}") {
            if let Ok(path) = json_path(&expression) {
                let _ = path.find(&json!({"a": [1, {"a": "x"}, null], "": {"a": []}}));
            }
        }
    }
}
