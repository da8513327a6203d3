//! Indices into strings and lists that lead nowhere, in the words of cel-go: the library has words of its own, and takes
//! some of these for good.

use super::value::{Fault, Result, Val};

/// The outcome of a function by its indices alone, if they decide it.
pub(super) fn by_indices<'a>(name: &str, target: &Val<'a>, args: &[Val<'a>]) -> Option<Result<Val<'a>>> {
    let out_of_range = |index: i64| Some(Err(Fault::other(format!("index out of range: {index}"))));
    let length = || i64::try_from(target.size().unwrap_or_default()).unwrap_or(i64::MAX);
    let outside = |index: i64| index < 0 || index > length();
    match (name, target, args) {
        ("charAt" | "substring", Val::Text(_), [Val::Int(at)]) if outside(*at) => out_of_range(*at),
        ("substring", Val::Text(_), [Val::Int(start), Val::Int(end)]) => match () {
            () if start > end => {
                let message = format!("invalid substring range. start: {start}, end: {end}");
                Some(Err(Fault::Other(message)))
            }
            () if outside(*start) => out_of_range(*start),
            () if outside(*end) => out_of_range(*end),
            () => None,
        },
        ("indexOf" | "lastIndexOf", Val::Text(_), [Val::Text(part), Val::Int(from)]) => match () {
            () if part.is_empty() => Some(Ok(Val::Int(*from))),
            () if *from < 0 => out_of_range(*from),
            () if *from >= length() => Some(Ok(Val::Int(-1))),
            () => None,
        },
        ("flatten", _, [Val::Int(depth)]) if *depth < 0 => {
            Some(Err(Fault::other("level must be non-negative")))
        }
        ("slice", _, [Val::Int(start), Val::Int(end)]) => {
            let fault = match () {
                () if *start < 0 || *end < 0 => "negative indexes not supported".to_owned(),
                () if start > end => "start index must be less than or equal to end index".to_owned(),
                () if *end > length() => format!("list is length {}", length()),
                () => return None,
            };
            Some(Err(Fault::Other(format!("cannot slice({start}, {end}), {fault}"))))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(name: &str, args: &[Val<'static>]) -> String {
        match by_indices(name, &Val::text("añb"), args) {
            Some(Err(Fault::Other(message))) => message,
            Some(Ok(Val::Int(index))) => index.to_string(),
            None => "goes on".to_owned(),
            _ => panic!("{name}"),
        }
    }

    #[test]
    fn indices_count_characters_and_are_told_as_cel_go_tells_them() {
        let int = Val::Int;
        assert_eq!(said("charAt", &[int(3)]), "goes on");
        assert_eq!(said("charAt", &[int(4)]), "index out of range: 4");
        assert_eq!(said("substring", &[int(-1)]), "index out of range: -1");
        assert_eq!(said("substring", &[int(2), int(1)]), "invalid substring range. start: 2, end: 1");
        assert_eq!(said("substring", &[int(1), int(4)]), "index out of range: 4");
        assert_eq!(said("indexOf", &[Val::text(""), int(9)]), "9");
        assert_eq!(said("lastIndexOf", &[Val::text("a"), int(3)]), "-1");
        assert_eq!(said("lastIndexOf", &[Val::text("a"), int(2)]), "goes on");
    }

    #[test]
    fn slices_stay_within_their_list() {
        let list = Val::list(vec![Val::Int(1)]);
        let said = |start, end| match by_indices("slice", &list, &[Val::Int(start), Val::Int(end)]) {
            Some(Err(Fault::Other(message))) => message,
            _ => "goes on".to_owned(),
        };
        assert_eq!(said(0, 1), "goes on");
        assert_eq!(said(-1, 1), "cannot slice(-1, 1), negative indexes not supported");
        assert_eq!(said(1, 0), "cannot slice(1, 0), start index must be less than or equal to end index");
        assert_eq!(said(0, 2), "cannot slice(0, 2), list is length 1");
    }
}
