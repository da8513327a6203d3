//! YAML bodies.

use windlass_apiserver::codec::{self, Format};

use crate::tree;

/// Whatever reads is a tree of bounded depth that is written and read back as JSON, and JSON is YAML.
pub fn run(data: &[u8]) {
    let Ok(parsed) = codec::parse(data, Format::Yaml) else { return };
    assert!(tree::depth(&parsed.value) <= 129, "too deep");
    let written = codec::write(&parsed.value).bytes;
    let json = codec::parse(&written, Format::Json).expect("what was written reads");
    assert_eq!(codec::write(&json.value).bytes, written);
    let yaml = codec::parse(&written, Format::Yaml).expect("JSON is YAML");
    assert_eq!(codec::write(&yaml.value).bytes, written);
}
