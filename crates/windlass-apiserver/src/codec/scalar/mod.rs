//! Scalars whose text has a canonical form: quantities, times, durations.

pub mod duration;
pub mod time;

pub use windlass_core::quantity;

/// Quotes a text as Go's time package does: bytes beyond ASCII one by one.
fn go_quote(text: &str) -> String {
    let mut out = String::from("\"");
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => out.extend(['\\', char::from(byte)]),
            b' '..=0x7f => out.push(char::from(byte)),
            _ => out.push_str(&format!("\\x{byte:02x}")),
        }
    }
    out + "\""
}
