//! The logs of containers: how they are written, and how they are read.
//!
//! The format is that of CRI: a line for each line of output, `<time> <stream> <F|P> <text>`, where `P` marks a piece
//! of a line that goes on in the next entry of its stream.

mod line;
mod read;

pub use line::{Entry, Lines, Stream, parse};
pub use read::{Reader, Selection};
