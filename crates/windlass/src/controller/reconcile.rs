//! What a controller runs for one object.

use std::future::Future;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use windlass_core::Outcome;

use crate::{Context, Error};

/// One pass over one object.
pub(crate) trait Reconcile<K>: Send + Sync + 'static {
    /// Does what has to be done, and says what should come next.
    fn reconcile(&self, ctx: Context, object: Arc<K>) -> BoxFuture<'_, Result<Outcome, Error>>;

    /// Says what it would do, line by line, and does nothing.
    fn preview(&self, ctx: Context, object: Arc<K>) -> BoxFuture<'_, Result<Vec<String>, Error>>;
}

/// A function, for those who come from elsewhere.
pub(super) struct Raw<F>(pub F);

impl<K, F, R> Reconcile<K> for Raw<F>
where
    K: Send + Sync + 'static,
    F: Fn(Context, Arc<K>) -> R + Send + Sync + 'static,
    R: Future<Output = Result<Outcome, Error>> + Send + 'static,
{
    fn reconcile(&self, ctx: Context, object: Arc<K>) -> BoxFuture<'_, Result<Outcome, Error>> {
        Box::pin((self.0)(ctx, object))
    }

    fn preview(&self, _: Context, _: Arc<K>) -> BoxFuture<'_, Result<Vec<String>, Error>> {
        Box::pin(async {
            let message = "this controller is a function that acts as it decides: only a Planner can say what it would do";
            Err(Error::terminal("NotPlanned", message))
        })
    }
}
