//! What functions of the library cost by estimate. They are kube-apiserver's figures: an API of its own, for rules are
//! accepted or refused by them.

use cel::common::ast::{Expr, LiteralValue};

use super::estimate::{Call, Estimate, PATTERN, Part, TEXT};
use super::range::Range;
use super::types::Ty;

/// How long the pattern of a named format is taken to be.
const FORMAT_PATTERN: f64 = 128.0;

/// What a function costs without its arguments; `None` if it is not of the library.
pub(super) fn estimate(
    estimate: &Estimate<'_>,
    name: &str,
    overload: &str,
    target: Option<&Part<'_>>,
    args: &[Part<'_>],
) -> Option<Call> {
    if let Some(list) = lists(estimate, overload, target, args) {
        return Some(list);
    }
    let size = |part: &Part<'_>| estimate.part_size(part);
    let plain = |cost: Range| Some(Call { cost, size: None });
    match (name, target, args) {
        (
            "serviceAccount"
            | "path"
            | "group"
            | "resource"
            | "subresource"
            | "namespace"
            | "name"
            | "allowed"
            | "reason"
            | "error"
            | "errored"
            | "masked"
            | "prefixLength"
            | "family"
            | "isUnspecified"
            | "isLoopback"
            | "isLinkLocalMulticast"
            | "isLinkLocalUnicast"
            | "isGlobalUnicast"
            | "format.named"
            | "sign"
            | "asInteger"
            | "isInteger"
            | "asApproximateFloat"
            | "isGreaterThan"
            | "isLessThan"
            | "compareTo"
            | "add"
            | "sub"
            | "major"
            | "minor"
            | "patch"
            | "getScheme"
            | "getHostname"
            | "getHost"
            | "getPort"
            | "getEscapedPath"
            | "getQuery",
            _,
            _,
        ) => plain(Range::fixed(1)),
        ("isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf", Some(target), _) => {
            let Some((ty, element)) = estimate.element(target) else {
                return plain(size(target).times(TEXT));
            };
            let each = match ty {
                Ty::Text | Ty::Bytes => Range::fixed(1).plus(element.times(TEXT)),
                _ => Range::fixed(1),
            };
            plain(size(target).by(each))
        }
        ("url", None, [text]) => Some(read(size(text))),
        ("lowerAscii" | "upperAscii" | "substring" | "trim", Some(target), _) => Some(read(size(target))),
        ("replace", Some(target), [old, new, ..]) => {
            let text = size(target);
            let replaced = replaced(text, size(old), size(new));
            Some(Call { cost: text.times(2.0 * TEXT), size: Some(replaced) })
        }
        ("split", Some(target), _) => {
            let text = size(target);
            let most = args.get(1).and_then(literal).map_or(text.most, i64::cast_unsigned);
            Some(Call { cost: text.times(2.0 * TEXT), size: Some(Range { least: 0, most }) })
        }
        ("join", Some(target), _) => {
            let list = size(target);
            let mut text = match estimate.element(target) {
                Some((_, element)) => list.by(element),
                None => Range::default(),
            };
            if let Some(separator) = args.first() {
                let between =
                    Range { least: list.least.saturating_sub(1), most: list.most.saturating_sub(1) };
                text = text.plus(size(separator).by(between));
            }
            Some(read(text))
        }
        ("find" | "findAll", Some(target), [pattern, ..]) => {
            let text = size(target);
            let cost = text.plus(Range::fixed(1)).times(TEXT).by(size(pattern).times(PATTERN));
            Some(Call { cost, size: Some(Range { least: 0, most: text.most }) })
        }
        ("ip", _, _) if overload == "cidr_ip" => plain(Range::fixed(1)),
        (
            "cidr" | "isIP" | "isCIDR" | "ip" | "quantity" | "isQuantity" | "semver" | "isSemver",
            _,
            [text, ..],
        ) => plain(size(text).times(TEXT)),
        ("ip.isCanonical", _, [text]) => plain(size(text).times(2.0 * TEXT)),
        ("containsIP" | "containsCIDR", _, [other]) => {
            // An address has four or sixteen bytes.
            let address = Range { least: 4, most: 16 };
            let mut cost = address.plus(address).times(TEXT);
            if name == "containsCIDR" {
                cost = cost.plus(address.times(TEXT)).plus(Range::fixed(1));
            }
            if matches!(overload, "cidr_contains_ip_string" | "cidr_contains_cidr_string") {
                cost = cost.plus(size(other).times(TEXT));
            }
            plain(cost)
        }
        ("validate", _, [text]) => plain(size(text).times(TEXT).times(FORMAT_PATTERN * PATTERN)),
        ("_==_", _, [left, right]) if left.ty.same(&right.ty) => match left.ty {
            Ty::Opaque("net.IP" | "net.CIDR") | Ty::Struct("kubernetes.Quantity" | "kubernetes.Semver") => {
                plain(Range::fixed(1))
            }
            Ty::Struct("kubernetes.NamedFormat") => plain(Range { least: 1, most: 64 }.times(TEXT)),
            Ty::Struct("kubernetes.URL") => {
                let most = right.size.map_or(1, |size| size.most);
                plain(Range { least: 1, most }.times(TEXT))
            }
            _ => None,
        },
        _ => None,
    }
}

/// A text that is read once, and gives one as long.
fn read(text: Range) -> Call {
    Call { cost: text.times(TEXT), size: Some(text) }
}

/// How long a text becomes in which `old` is replaced by `new`.
fn replaced(text: Range, old: Range, new: Range) -> Range {
    // The longest: the shortest parts give way to the longest. Nothing stands between any two characters.
    let (most_count, most_kept) = match old.least {
        0 => (text.most.saturating_add(1), text.most),
        least if new.most <= least => (0, text.most),
        least => (text.most.div_ceil(least), 0),
    };
    let (least_count, least_kept) = match old.most {
        0 => (text.least.saturating_add(1), text.least),
        most if most <= new.least => (0, text.least),
        most => (text.least.div_ceil(most), 0),
    };
    let count = Range { least: least_count, most: most_count };
    count.by(new).plus(Range { least: least_kept, most: most_kept })
}

/// Functions that make lists of lists, and sets.
fn lists(
    estimate: &Estimate<'_>,
    overload: &str,
    target: Option<&Part<'_>>,
    args: &[Part<'_>],
) -> Option<Call> {
    let size = |part: &Part<'_>| estimate.part_size(part);
    let made = |factor: f64, list: Range| {
        let cost = list.times(factor).plus(Range::fixed(1)).plus(Range::fixed(10));
        Some(Call { cost, size: Some(list) })
    };
    let bound = |part: &Part<'_>, otherwise: u64| {
        literal(part).map_or(otherwise, |value| u64::try_from(value).unwrap_or_default())
    };
    #[expect(
        clippy::cast_precision_loss,
        reason = "a depth that is not exact is a cost that is too high anyway"
    )]
    match (overload, target, args) {
        ("list_slice", Some(list), [start, end]) => {
            let length = bound(end, size(list).most).wrapping_sub(bound(start, 0));
            made(1.0, Range::fixed(length))
        }
        ("lists_range", None, [end]) => made(1.0, Range::fixed(bound(end, u64::MAX))),
        ("list_reverse", Some(list), []) => made(1.0, size(list)),
        ("list_flatten", Some(list), []) => made(1.0, size(list)),
        ("list_flatten_int", Some(list), [depth]) => made(bound(depth, u64::MAX) as f64, size(list)),
        ("list_distinct", Some(list), []) => made(2.0, size(list).by(size(list))),
        (sort, Some(list), []) if sort.ends_with("_sort") => {
            let factor =
                if matches!(sort, "list_string_sort" | "list_bytes_sort") { 2.0 + TEXT } else { 2.0 };
            made(factor, size(list).by(size(list)))
        }
        (sort, Some(_), [keys]) if sort.ends_with("_sortByAssociatedKeys") => {
            let is_text = sort.starts_with("list_string") || sort.starts_with("list_bytes");
            let factor = if is_text { 2.0 + TEXT } else { 2.0 };
            made(factor, size(keys).by(size(keys)))
        }
        (sets, None, [a, b]) if sets.starts_with("list_sets_") => {
            let factor = if sets == "list_sets_equivalent_list" { 2.0 } else { 1.0 };
            let cost = size(a).by(size(b)).times(factor).plus(Range::fixed(1));
            Some(Call { cost, size: None })
        }
        _ => None,
    }
}

/// The value of an integer that stands in the source.
fn literal(part: &Part<'_>) -> Option<i64> {
    match &part.expr.expr {
        Expr::Literal(LiteralValue::Int(value)) => Some(*value.inner()),
        _ => None,
    }
}
