//! What functions there are, and what they give.

use super::types::Ty;

/// How often arguments may come: with a target (a method) or without.
struct Signature {
    name: &'static str,
    /// Whether it is called on a value.
    method: bool,
    args: std::ops::RangeInclusive<usize>,
    gives: Gives,
}

/// The type of a result.
#[derive(Clone, Copy)]
enum Gives {
    Plain(fn() -> Ty<'static>),
    /// The type of the elements of the target.
    Element,
    /// The type of the target.
    Target,
    /// What an optional target holds.
    Inner,
    /// The type of the first argument, as an optional.
    OptionalOfArgument,
    /// The elements of the target, as an optional.
    OptionalElement,
    Unknown,
}

const fn method(name: &'static str, from: usize, to: usize, gives: Gives) -> Signature {
    Signature { name, method: true, args: from..=to, gives }
}

const fn global(name: &'static str, from: usize, to: usize, gives: Gives) -> Signature {
    Signature { name, method: false, args: from..=to, gives }
}

const BOOL: Gives = Gives::Plain(|| Ty::Bool);
const INT: Gives = Gives::Plain(|| Ty::Int);
const UINT: Gives = Gives::Plain(|| Ty::UInt);
const DOUBLE: Gives = Gives::Plain(|| Ty::Double);
const TEXT: Gives = Gives::Plain(|| Ty::Text);
const BYTES: Gives = Gives::Plain(|| Ty::Bytes);
const TEXTS: Gives = Gives::Plain(|| Ty::List(Box::new(Ty::Text)));
const URL: Gives = Gives::Plain(|| Ty::Library("kubernetes.URL"));
const IP: Gives = Gives::Plain(|| Ty::Library("net.IP"));
const CIDR: Gives = Gives::Plain(|| Ty::Library("net.CIDR"));
const QUANTITY: Gives = Gives::Plain(|| Ty::Library("kubernetes.Quantity"));
const SEMVER: Gives = Gives::Plain(|| Ty::Library("kubernetes.Semver"));
const FORMAT: Gives = Gives::Plain(|| Ty::Library("kubernetes.NamedFormat"));

const SIGNATURES: &[Signature] = &[
    // The language.
    method("size", 0, 0, INT),
    global("size", 1, 1, INT),
    method("contains", 1, 1, BOOL),
    method("startsWith", 1, 1, BOOL),
    method("endsWith", 1, 1, BOOL),
    method("matches", 1, 1, BOOL),
    global("matches", 2, 2, BOOL),
    global("int", 1, 1, INT),
    global("uint", 1, 1, UINT),
    global("double", 1, 1, DOUBLE),
    global("string", 1, 1, TEXT),
    global("bytes", 1, 1, BYTES),
    global("bool", 1, 1, BOOL),
    global("dyn", 1, 1, Gives::Unknown),
    global("type", 1, 1, Gives::Plain(|| Ty::Type)),
    global("duration", 1, 1, Gives::Plain(|| Ty::Duration)),
    global("timestamp", 1, 1, Gives::Plain(|| Ty::Timestamp)),
    method("getFullYear", 0, 1, INT),
    method("getMonth", 0, 1, INT),
    method("getDate", 0, 1, INT),
    method("getDayOfMonth", 0, 1, INT),
    method("getDayOfWeek", 0, 1, INT),
    method("getDayOfYear", 0, 1, INT),
    method("getHours", 0, 1, INT),
    method("getMinutes", 0, 1, INT),
    method("getSeconds", 0, 1, INT),
    method("getMilliseconds", 0, 1, INT),
    // Optionals.
    global("optional.none", 0, 0, Gives::Plain(|| Ty::Optional(Box::new(Ty::Dyn)))),
    global("optional.of", 1, 1, Gives::OptionalOfArgument),
    global("optional.ofNonZeroValue", 1, 1, Gives::OptionalOfArgument),
    method("hasValue", 0, 0, BOOL),
    method("value", 0, 0, Gives::Inner),
    method("orValue", 1, 1, Gives::Inner),
    method("or", 1, 1, Gives::Target),
    // Strings.
    method("charAt", 1, 1, TEXT),
    method("indexOf", 1, 2, INT),
    method("lastIndexOf", 1, 2, INT),
    method("lowerAscii", 0, 0, TEXT),
    method("upperAscii", 0, 0, TEXT),
    method("replace", 2, 3, TEXT),
    method("split", 1, 2, TEXTS),
    method("substring", 1, 2, TEXT),
    method("trim", 0, 0, TEXT),
    method("join", 0, 1, TEXT),
    method("format", 1, 1, TEXT),
    method("find", 1, 1, TEXT),
    method("findAll", 1, 2, TEXTS),
    // Lists and sets.
    method("isSorted", 0, 0, BOOL),
    method("sum", 0, 0, Gives::Element),
    method("min", 0, 0, Gives::Element),
    method("max", 0, 0, Gives::Element),
    method("distinct", 0, 0, Gives::Target),
    method("sort", 0, 0, Gives::Target),
    method("reverse", 0, 0, Gives::Target),
    method("slice", 2, 2, Gives::Target),
    method("flatten", 0, 1, Gives::Element),
    method("first", 0, 0, Gives::OptionalElement),
    method("last", 0, 0, Gives::OptionalElement),
    global("lists.range", 1, 1, Gives::Plain(|| Ty::List(Box::new(Ty::Int)))),
    global("strings.quote", 1, 1, TEXT),
    global("sets.contains", 2, 2, BOOL),
    global("sets.intersects", 2, 2, BOOL),
    global("sets.equivalent", 2, 2, BOOL),
    // URLs.
    global("url", 1, 1, URL),
    global("isURL", 1, 1, BOOL),
    method("getScheme", 0, 0, TEXT),
    method("getHost", 0, 0, TEXT),
    method("getHostname", 0, 0, TEXT),
    method("getPort", 0, 0, TEXT),
    method("getEscapedPath", 0, 0, TEXT),
    method(
        "getQuery",
        0,
        0,
        Gives::Plain(|| Ty::Map(Box::new(Ty::Text), Box::new(Ty::List(Box::new(Ty::Text))))),
    ),
    // Addresses.
    global("ip", 1, 1, IP),
    global("isIP", 1, 1, BOOL),
    global("ip.isCanonical", 1, 1, BOOL),
    method("family", 0, 0, INT),
    method("isUnspecified", 0, 0, BOOL),
    method("isLoopback", 0, 0, BOOL),
    method("isLinkLocalMulticast", 0, 0, BOOL),
    method("isLinkLocalUnicast", 0, 0, BOOL),
    method("isGlobalUnicast", 0, 0, BOOL),
    global("cidr", 1, 1, CIDR),
    global("isCIDR", 1, 1, BOOL),
    method("containsIP", 1, 1, BOOL),
    method("containsCIDR", 1, 1, BOOL),
    method("ip", 0, 0, IP),
    method("masked", 0, 0, CIDR),
    method("prefixLength", 0, 0, INT),
    // Quantities and versions.
    global("quantity", 1, 1, QUANTITY),
    global("isQuantity", 1, 1, BOOL),
    method("isInteger", 0, 0, BOOL),
    method("asInteger", 0, 0, INT),
    method("asApproximateFloat", 0, 0, DOUBLE),
    // kube-apiserver declares it as a function, not as a method.
    global("sign", 1, 1, INT),
    method("add", 1, 1, QUANTITY),
    method("sub", 1, 1, QUANTITY),
    method("isGreaterThan", 1, 1, BOOL),
    method("isLessThan", 1, 1, BOOL),
    method("compareTo", 1, 1, INT),
    global("semver", 1, 2, SEMVER),
    global("isSemver", 1, 2, BOOL),
    method("major", 0, 0, INT),
    method("minor", 0, 0, INT),
    method("patch", 0, 0, INT),
    // Formats.
    global(
        "format.named",
        1,
        1,
        Gives::Plain(|| Ty::Optional(Box::new(Ty::Library("kubernetes.NamedFormat")))),
    ),
    global("format.dns1123Label", 0, 0, FORMAT),
    global("format.dns1123Subdomain", 0, 0, FORMAT),
    global("format.dns1035Label", 0, 0, FORMAT),
    global("format.dns1123LabelPrefix", 0, 0, FORMAT),
    global("format.dns1123SubdomainPrefix", 0, 0, FORMAT),
    global("format.dns1035LabelPrefix", 0, 0, FORMAT),
    global("format.qualifiedName", 0, 0, FORMAT),
    global("format.labelValue", 0, 0, FORMAT),
    global("format.uri", 0, 0, FORMAT),
    global("format.uuid", 0, 0, FORMAT),
    global("format.byte", 0, 0, FORMAT),
    global("format.date", 0, 0, FORMAT),
    global("format.datetime", 0, 0, FORMAT),
    method("validate", 1, 1, Gives::Plain(|| Ty::Optional(Box::new(Ty::List(Box::new(Ty::Text)))))),
];

/// Whether there is a function of this name.
pub(super) fn is_known(name: &str) -> bool {
    SIGNATURES.iter().any(|signature| signature.name == name)
}

/// What a function gives; `None` if it cannot be called so.
pub(super) fn result<'p>(name: &str, target: Option<&Ty<'p>>, args: &[Ty<'p>]) -> Option<Ty<'p>> {
    let called_so =
        |s: &&Signature| s.name == name && s.method == target.is_some() && s.args.contains(&args.len());
    let signature = SIGNATURES.iter().find(called_so)?;
    if !takes(name, target, args) {
        return None;
    }
    Some(match signature.gives {
        Gives::Plain(ty) => ty(),
        Gives::Element => match target? {
            Ty::List(element) => (**element).clone(),
            _ => Ty::Dyn,
        },
        Gives::OptionalElement => match target? {
            Ty::List(element) => Ty::Optional(element.clone()),
            _ => Ty::Dyn,
        },
        Gives::Target => target?.clone(),
        Gives::Inner => match target? {
            Ty::Optional(inner) => (**inner).clone().join(args.first().cloned().unwrap_or(Ty::Dyn)),
            _ => Ty::Dyn,
        },
        Gives::OptionalOfArgument => Ty::Optional(Box::new(args.first()?.clone())),
        Gives::Unknown => Ty::Dyn,
    })
}

/// Whether a function gets what it takes.
fn takes(name: &str, target: Option<&Ty<'_>>, args: &[Ty<'_>]) -> bool {
    let text = |ty: &Ty<'_>| matches!(ty, Ty::Dyn | Ty::Text);
    let int = |ty: &Ty<'_>| matches!(ty, Ty::Dyn | Ty::Int);
    let list = |ty: &Ty<'_>| matches!(ty, Ty::Dyn | Ty::List(_));
    let library = |ty: &Ty<'_>, own: &str| match ty {
        Ty::Dyn => true,
        Ty::Library(name) => *name == own,
        _ => false,
    };
    let on = |is: &dyn Fn(&Ty<'_>) -> bool| target.is_some_and(is);
    let first = || target.or(args.first());
    let time = |ty: &Ty<'_>| matches!(ty, Ty::Dyn | Ty::Timestamp);
    let elements = |is: &dyn Fn(&Ty<'_>) -> bool| match target {
        Some(Ty::List(element)) => is(element),
        other => matches!(other, Some(Ty::Dyn)),
    };
    match name {
        "size" => matches!(first(), Some(Ty::Dyn | Ty::Text | Ty::Bytes | Ty::List(_) | Ty::Map(..))),
        "matches" => target.is_none_or(text) && args.iter().all(text),
        "contains" | "startsWith" | "endsWith" | "find" | "replace" | "split" | "findAll" => {
            let texts = if name == "replace" { 2 } else { 1 };
            on(&text) && args.iter().take(texts).all(text) && args.iter().skip(texts).all(int)
        }
        "charAt" | "substring" => on(&text) && args.iter().all(int),
        "indexOf" | "lastIndexOf" => match target {
            Some(Ty::List(element)) => args.len() == 1 && args[0].fits(element),
            _ => on(&text) && text(&args[0]) && args.iter().skip(1).all(int),
        },
        "lowerAscii" | "upperAscii" | "trim" => on(&text),
        "format" => on(&text) && args.iter().all(list),
        "join" => elements(&text) && args.iter().all(text),
        "sum" => elements(&|ty| matches!(ty, Ty::Dyn | Ty::Int | Ty::UInt | Ty::Double | Ty::Duration)),
        "isSorted" | "min" | "max" | "sort" => elements(&|ty| {
            !matches!(ty, Ty::List(_) | Ty::Map(..) | Ty::Object(..) | Ty::Meta | Ty::Optional(_))
        }),
        "distinct" | "reverse" | "slice" | "first" | "last" => on(&list) && args.iter().all(int),
        "flatten" => elements(&list),
        "lists.range" => args.iter().all(int),
        "strings.quote" => args.iter().all(text),
        "hasValue" | "value" | "orValue" | "or" => matches!(target, Some(Ty::Dyn | Ty::Optional(_))),
        "int" => {
            !matches!(args[0], Ty::Bool | Ty::Bytes | Ty::List(_) | Ty::Map(..) | Ty::Object(..) | Ty::Null)
        }
        "uint" | "double" => matches!(args[0], Ty::Dyn | Ty::Int | Ty::UInt | Ty::Double | Ty::Text),
        "bool" => matches!(args[0], Ty::Dyn | Ty::Bool | Ty::Text),
        "bytes" => matches!(args[0], Ty::Dyn | Ty::Bytes | Ty::Text),
        "string" => {
            !matches!(args[0], Ty::List(_) | Ty::Map(..) | Ty::Object(..) | Ty::Null | Ty::Optional(_))
        }
        "duration" => matches!(args[0], Ty::Dyn | Ty::Text | Ty::Duration | Ty::Int),
        "timestamp" => matches!(args[0], Ty::Dyn | Ty::Text | Ty::Timestamp | Ty::Int),
        "getHours" | "getMinutes" | "getSeconds" | "getMilliseconds" => {
            on(&|ty| time(ty) || matches!(ty, Ty::Duration)) && args.iter().all(text)
        }
        "getFullYear" | "getMonth" | "getDate" | "getDayOfMonth" | "getDayOfWeek" | "getDayOfYear" => {
            on(&time) && args.iter().all(text)
        }
        "url" | "isURL" | "isIP" | "isCIDR" | "cidr" | "quantity" | "isQuantity" | "ip.isCanonical"
        | "format.named" => args.iter().all(text),
        "semver" | "isSemver" => text(&args[0]),
        "ip" => match target {
            Some(target) => library(target, "net.CIDR"),
            None => args.iter().all(text),
        },
        "getScheme" | "getHost" | "getHostname" | "getPort" | "getEscapedPath" | "getQuery" => {
            on(&|ty| library(ty, "kubernetes.URL"))
        }
        "family"
        | "isUnspecified"
        | "isLoopback"
        | "isLinkLocalMulticast"
        | "isLinkLocalUnicast"
        | "isGlobalUnicast" => on(&|ty| library(ty, "net.IP")),
        "containsIP" => {
            on(&|ty| library(ty, "net.CIDR")) && args.iter().all(|ty| text(ty) || library(ty, "net.IP"))
        }
        "containsCIDR" => {
            on(&|ty| library(ty, "net.CIDR")) && args.iter().all(|ty| text(ty) || library(ty, "net.CIDR"))
        }
        "masked" | "prefixLength" => on(&|ty| library(ty, "net.CIDR")),
        "isInteger" | "asInteger" | "asApproximateFloat" => on(&|ty| library(ty, "kubernetes.Quantity")),
        "add" | "sub" => {
            let quantity = |ty: &Ty<'_>| library(ty, "kubernetes.Quantity");
            on(&quantity) && args.iter().all(|ty| quantity(ty) || int(ty))
        }
        "isGreaterThan" | "isLessThan" | "compareTo" => {
            on(&|ty| library(ty, "kubernetes.Quantity") || library(ty, "kubernetes.Semver"))
                && target.is_some_and(|target| target.fits(&args[0]))
        }
        "major" | "minor" | "patch" => on(&|ty| library(ty, "kubernetes.Semver")),
        "validate" => on(&|ty| library(ty, "kubernetes.NamedFormat")) && args.iter().all(text),
        "sets.contains" | "sets.intersects" | "sets.equivalent" => {
            args.iter().all(list) && args[0].fits(&args[1])
        }
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::super::library;
    use super::super::value::Val;
    use super::*;

    /// A rule may call any function with anything; the library must answer or refuse, but never panic.
    #[test]
    fn no_function_of_the_library_panics_on_odd_arguments() {
        let text = |text: &str| Val::text(text);
        let samples: Vec<Val<'_>> = vec![
            Val::Null,
            Val::Bool(true),
            Val::Int(-1),
            Val::Int(i64::MAX),
            Val::UInt(3),
            Val::Double(f64::NAN),
            text(""),
            text("äß€"),
            text("%d %s %.3f %x %b"),
            text("10.0.0.0/8"),
            Val::list(vec![]),
            Val::list(vec![Val::Int(1), text("x"), Val::list(vec![])]),
            library::duration(i64::MAX).expect("a duration"),
            library::timestamp("9999-12-31T23:59:59Z").expect("a time"),
        ];
        for signature in SIGNATURES.iter().filter(|signature| signature.name != "lists.range") {
            let (namespace, name) = match signature.name.split_once('.') {
                Some((namespace, name)) => (Some(namespace), name),
                None => (None, signature.name),
            };
            let targets = if signature.method { &samples[..] } else { &samples[..1] };
            for target in targets {
                let target = signature.method.then_some(target);
                for first in &samples {
                    for second in &samples {
                        let args = [first.clone(), second.clone(), Val::Int(1)];
                        for count in signature.args.clone() {
                            let _answer = library::call(namespace, name, target, &args[..count]);
                        }
                        if *signature.args.end() < 2 {
                            break;
                        }
                    }
                }
            }
        }
    }
}
