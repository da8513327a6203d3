//! A path kept on the stack while a tree is walked, so that nothing is built unless a message needs it.

use std::fmt;

/// The path of a value: a list whose links live in the frames of the walk.
#[derive(Clone, Copy)]
pub(super) enum Path<'a> {
    /// The whole value.
    Root,
    /// A field of a structure.
    Field(&'a Path<'a>, &'a str),
    /// A key of a map.
    Key(&'a Path<'a>, &'a str),
    /// An element of a list.
    Index(&'a Path<'a>, usize),
}

impl<'a> Path<'a> {
    pub fn field(&'a self, name: &'a str) -> Path<'a> {
        Path::Field(self, name)
    }

    pub fn key(&'a self, key: &'a str) -> Path<'a> {
        Path::Key(self, key)
    }

    pub fn index(&'a self, index: usize) -> Path<'a> {
        Path::Index(self, index)
    }

    /// The names of the structure fields alone, joined by dots: how Go's decoder names a place.
    pub fn fields(&self) -> String {
        match self {
            Path::Root => String::new(),
            Path::Key(parent, _) | Path::Index(parent, _) => parent.fields(),
            Path::Field(parent, name) => match parent.fields() {
                outer if outer.is_empty() => (*name).to_owned(),
                outer => format!("{outer}.{name}"),
            },
        }
    }
}

/// The whole path, such as `spec.containers[0].name`.
impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Path::Root => Ok(()),
            Path::Field(Path::Root, name) | Path::Key(Path::Root, name) => f.write_str(name),
            Path::Field(parent, name) | Path::Key(parent, name) => write!(f, "{parent}.{name}"),
            Path::Index(parent, index) => write!(f, "{parent}[{index}]"),
        }
    }
}
