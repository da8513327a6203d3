//! Series of one name, told apart by labels.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use prometheus_client::encoding::{EncodeMetric, MetricEncoder};
use prometheus_client::metrics::{MetricType, TypedMetric};

/// A family of series with `N` labels. Unlike prometheus-client's own it is ordered: what is shown twice without a change
/// in between is the same text, which people compare. Clones are the same family.
///
/// ```
/// use windlass::metrics::prometheus_client::metrics::gauge::Gauge;
/// use windlass::metrics::{Family, Format, Metrics};
///
/// let metrics = Metrics::new();
/// let members: Family<1, Gauge> = Family::new(["cluster"], Gauge::default);
/// metrics.register(|registry| registry.register("myapp_members", "Members of a cluster", members.clone()));
/// members.of(["one"]).set(3);
/// members.of(["two"]).set(5);
/// assert!(metrics.render(Format::Text).contains("\nmyapp_members{cluster=\"one\"} 3\n"));
///
/// // What is gone is not shown.
/// members.retain(|[cluster]| cluster != "one");
/// assert!(!metrics.render(Format::Text).contains("cluster=\"one\""));
/// ```
#[derive(Clone)]
pub struct Family<const N: usize, M>(Arc<Inner<N, M>>);

struct Inner<const N: usize, M> {
    labels: [&'static str; N],
    make: fn() -> M,
    series: RwLock<BTreeMap<[String; N], M>>,
}

impl<const N: usize, M: Clone> Family<N, M> {
    /// No series yet. New ones are made by `make`.
    pub fn new(labels: [&'static str; N], make: fn() -> M) -> Family<N, M> {
        Family(Arc::new(Inner { labels, make, series: RwLock::default() }))
    }

    /// The series with these values of the labels; a new one where there is none.
    pub fn of(&self, values: [&str; N]) -> M {
        let values = values.map(str::to_owned);
        if let Some(series) = self.0.series.read().unwrap_or_else(PoisonError::into_inner).get(&values) {
            return series.clone();
        }
        let mut all = self.0.series.write().unwrap_or_else(PoisonError::into_inner);
        all.entry(values).or_insert_with(self.0.make).clone()
    }

    /// Forgets the series whose labels do not pass: of what is gone, for instance.
    pub fn retain(&self, passes: impl Fn(&[String; N]) -> bool) {
        let mut all = self.0.series.write().unwrap_or_else(PoisonError::into_inner);
        all.retain(|values, _| passes(values));
    }

    /// All series there are.
    pub fn all(&self) -> Vec<([String; N], M)> {
        let all = self.0.series.read().unwrap_or_else(PoisonError::into_inner);
        all.iter().map(|(values, series)| (values.clone(), series.clone())).collect()
    }
}

impl<const N: usize, M> EncodeMetric for Family<N, M>
where
    M: EncodeMetric + TypedMetric,
{
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        for (values, series) in &*self.0.series.read().unwrap_or_else(PoisonError::into_inner) {
            let labels: Vec<_> =
                self.0.labels.iter().copied().zip(values.iter().map(String::as_str)).collect();
            series.encode(encoder.encode_family(&labels)?)?;
        }
        Ok(())
    }

    fn metric_type(&self) -> MetricType {
        M::TYPE
    }

    fn is_empty(&self) -> bool {
        self.0.series.read().unwrap_or_else(PoisonError::into_inner).is_empty()
    }
}

impl<const N: usize, M> fmt::Debug for Family<N, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Family").field("labels", &self.0.labels).finish_non_exhaustive()
    }
}
