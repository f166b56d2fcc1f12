//! Quantities with units: [`Bytes`], [`Seconds`], [`BytesPerSecond`], [`Flops`], [`FlopsPerSecond`].
//!
//! They stand at every public boundary and in every file. Inside a formula bind the plain number:
//! `let bytes = x.get();`. Decimal prefixes are powers of 1000 (`GB` = 1e9), binary ones of 1024
//! (`GiB` = 2^30), and `Gbit/s` counts bits.
//!
//! ```
//! use duet::units::{Bytes, BytesPerSecond, Seconds};
//! let link: BytesPerSecond = "400 Gbit/s".parse()?;
//! assert_eq!(link.get(), 50e9);
//! let message: Bytes = "1 MiB".parse()?;
//! let time = Seconds::new(message.as_f64() / link.get())?;
//! assert_eq!(time.to_string(), "20.97 us");
//! assert!("400".parse::<BytesPerSecond>().is_err()); // a bare number has no unit
//! # Ok::<(), duet::units::UnitError>(())
//! ```

mod parse;
mod print;

pub use parse::UnitError;

/// Declares one floating-point quantity: never NaN, never negative; infinity only by `INFINITE`.
macro_rules! quantity {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Copy, Clone, Debug, Default, PartialEq, PartialOrd)]
        pub struct $name(f64);

        impl $name {
            /// No amount at all.
            pub const ZERO: Self = Self(0.0);
            /// Without limit: only built-in ideal profiles use it; no file may state it.
            pub const INFINITE: Self = Self(f64::INFINITY);

            /// A finite, non-negative amount in the base unit.
            ///
            /// # Errors
            /// [`UnitError`] for NaN, a negative or an infinite number.
            pub fn new(value: f64) -> Result<Self, UnitError> {
                parse::check_number(value).map(Self)
            }

            /// An amount known to be a number ≥ 0 (results of arithmetic on checked amounts).
            pub const fn of(value: f64) -> Self {
                debug_assert!(value >= 0.0);
                Self(value)
            }

            /// The plain number in the base unit.
            pub const fn get(self) -> f64 {
                self.0
            }
        }
    };
}

quantity!(
    /// A duration in seconds.
    Seconds
);
quantity!(
    /// A transfer rate in bytes per second.
    BytesPerSecond
);
quantity!(
    /// A number of floating-point operations (a multiply-add counts two).
    Flops
);
quantity!(
    /// An arithmetic rate in floating-point operations per second.
    FlopsPerSecond
);

/// A number of bytes.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(u64);

impl Bytes {
    /// No bytes.
    pub const ZERO: Self = Self(0);

    /// `bytes` bytes.
    pub const fn new(bytes: u64) -> Self {
        Self(bytes)
    }

    /// The plain count.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The count as a float, for formulas.
    pub const fn as_f64(self) -> f64 {
        self.0 as f64
    }
}

/// So many of a thing, in words: `1 row`, `3 rows`.
///
/// ```
/// use duet::units::count;
/// assert_eq!((count(1, "row"), count(0, "row")), ("1 row".to_owned(), "0 rows".to_owned()));
/// ```
pub fn count(number: u64, noun: &str) -> String {
    let s = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{s}")
}
