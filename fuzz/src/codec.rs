//! JSON to canonical trees and back, and the scalars with a form of their own.

use windlass_apiserver::codec::scalar::{duration, quantity, time};
use windlass_apiserver::codec::{self, Format};
use windlass_apiserver::schema::{self, TypeId};

use crate::tree;

/// A body of the kind that it names, or of some; and a text that may be a scalar.
pub fn run(data: &[u8]) {
    if let Ok(text) = std::str::from_utf8(data) {
        scalars(text.trim_end());
    }
    codec::summary(data);
    let Ok(parsed) = codec::parse(data, Format::Json) else { return };
    let written = codec::write(&parsed.value);
    let again = codec::parse(&written.bytes, Format::Json).expect("what was written reads");
    // Not the trees: 1.0 is written as Go writes it, 1, and is an integer from then on.
    assert_eq!(codec::write(&again.value), written);
    assert!(again.duplicates.is_empty());
    if let Ok((api_version, kind)) = codec::type_meta(&parsed)
        && let Some(id) = tree::type_named(&api_version, &kind)
    {
        return check(id, &parsed);
    }
    for name in ["Pod", "Node"] {
        check(tree::type_named("v1", name).expect("in the table"), &parsed);
    }
}

fn check(id: TypeId, parsed: &codec::Parsed) {
    let types = schema::builtin();
    let mut unknown = Vec::new();
    // Refusals of either are fine; what is taken must stay what it is.
    let mut custom = parsed.value.clone();
    if codec::canonical_meta(types, "", &mut custom, &mut unknown).is_ok() {
        let once = custom.clone();
        codec::canonical_meta(types, "", &mut custom, &mut unknown).expect("canonical metadata decodes");
        assert_eq!(custom, once);
    }
    unknown.clear();
    let Ok(canonical) = codec::canonical(types, id, parsed.value.clone(), &mut unknown) else { return };
    parsed.problems(&unknown).strict();
    unknown.clear();
    let again = codec::canonical(types, id, canonical.clone(), &mut unknown).expect("canonical trees decode");
    assert_eq!(codec::write(&again).bytes, codec::write(&canonical).bytes);
    assert_eq!(unknown, Vec::<String>::new(), "canonical trees know their fields");
}

fn scalars(text: &str) {
    if let Ok(canonical) = quantity::canonical(text) {
        assert_eq!(quantity::canonical(&canonical).as_ref(), Ok(&canonical), "{text:?}");
        let parsed = quantity::Quantity::parse(text).expect("it was canonical");
        let _ = (parsed.as_i64(), parsed.as_milli(), parsed.is_whole(), parsed.checked_add(&parsed));
    }
    if let Ok(nanos) = duration::parse(text) {
        assert_eq!(duration::parse(&duration::format(nanos)).as_ref(), Ok(&nanos), "{text:?}");
    }
    for precision in [time::Precision::Seconds, time::Precision::Micros] {
        if let Ok(Some(canonical)) = time::canonical(text, precision) {
            assert_eq!(time::canonical(&canonical, precision), Ok(Some(canonical.clone())), "{text:?}");
        }
    }
}
