//! Short names of templates: the same for the same template, in every process.

use serde::Serialize;

/// Names something by what it is, and by how many others of the same name were met.
///
/// The text has the alphabet of the API's generated names, so that it says nothing by accident, and it is a label's value.
pub(crate) fn name_of<T: Serialize>(value: &T, collisions: Option<i32>) -> String {
    // The API's types write their fields in one order, and their maps by key.
    let text = serde_json::to_vec(value).expect("a part of an object is JSON");
    let mut hash = Fnv::new();
    hash.add(&text);
    if let Some(collisions) = collisions {
        hash.add(&collisions.to_le_bytes());
    }
    safe(&hash.0.to_string())
}

/// FNV-1a of 32 bits.
struct Fnv(u32);

impl Fnv {
    fn new() -> Fnv {
        Fnv(0x811c_9dc5)
    }

    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
        }
    }
}

/// Without vowels, and without digits that look like them.
pub(crate) fn safe(text: &str) -> String {
    const SAFE: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    text.bytes().map(|byte| char::from(SAFE[usize::from(byte) % SAFE.len()])).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn is_fnv_and_the_safe_alphabet() {
        let mut hash = Fnv::new();
        hash.add(b"foobar");
        assert_eq!(hash.0, 0xbf9c_f968);
        assert_eq!(safe("0123456789"), "456789bcdf");
    }

    #[test]
    fn the_same_is_named_the_same_and_a_collision_otherwise() {
        let template = json!({"b": 1, "a": [2]});
        assert_eq!(name_of(&template, None), "755cc4ddd5", "in every process");
        assert_ne!(name_of(&template, None), name_of(&template, Some(1)));
        assert_ne!(name_of(&template, Some(1)), name_of(&template, Some(2)));
    }
}
