//! Protobuf bodies.

use windlass_apiserver::codec::{self, Envelope};
use windlass_apiserver::schema::{self, TypeId};

use crate::tree;

/// A body with its envelope, of the type that it names; or two bytes that choose a type, and a message of it.
pub fn run(data: &[u8]) {
    if let Ok(envelope) = codec::envelope(data) {
        if let Some(id) = tree::type_named(&envelope.api_version, &envelope.kind) {
            check(id, &envelope);
        }
        return;
    }
    let Some((chosen, raw)) = data.split_first_chunk::<2>() else { return };
    let count = u32::try_from(schema::builtin().iter().count()).expect("few types");
    let id = TypeId(u32::from(u16::from_le_bytes(*chosen)) % count);
    check(id, &Envelope { raw, ..Envelope::default() });
}

fn check(id: TypeId, envelope: &Envelope<'_>) {
    let types = schema::builtin();
    let Ok(decoded) = codec::decode_proto(types, id, envelope) else { return };
    assert_eq!(codec::decode_proto(types, id, envelope).as_ref(), Ok(&decoded));
    // Not every message is one that JSON could say: only what decodes has to stay what it is.
    let Ok(canonical) = codec::canonical(types, id, decoded, &mut Vec::new()) else { return };
    let written = codec::write(&canonical).bytes;
    let again = codec::canonical(types, id, canonical, &mut Vec::new()).expect("canonical trees decode");
    assert_eq!(codec::write(&again).bytes, written);
}
