//! From measurements to parameters: least squares, bootstrap intervals, error figures.
//!
//! [`table`] reads times, [`mod@points`] sets beside them what the closed forms say without overhead,
//! [`groups`] sorts them by what shares an overhead, and [`fit`] finds alpha and beta of each group,
//! by way of [`nnls`]. [`metrics`] says how far predictions and choices are from the truth,
//! [`bootstrap`] how sure such a number is. [`machine`] measures a machine's GPUs and links.

pub mod bootstrap;
pub mod fit;
pub mod groups;
pub mod machine;
pub mod metrics;
pub mod nnls;
pub mod points;
pub mod table;

/// Where a case falls in \[0, 1), by a hash of its name and a seed: the same on every machine and in
/// any order of cases. Cases below a share s make a random sample of about that share.
///
/// ```
/// use duet::calibrate::lot;
/// assert_eq!(lot("m=8192", 1), lot("m=8192", 1));
/// let below = (0..1000).filter(|m| lot(&format!("m={m}"), 1) < 1.0 / 3.0).count();
/// assert!((300..367).contains(&below));
/// ```
pub fn lot(case: &str, seed: u64) -> f64 {
    let hash = crate::input::Fingerprint::of(case.as_bytes());
    let mixed = bootstrap::mix(hash ^ bootstrap::mix(seed));
    (mixed >> 11) as f64 / (1_u64 << 53) as f64
}
