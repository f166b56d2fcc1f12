//! Which operators make sense, in words.

use super::{Kind, Operator, Shape};
use crate::units::Bytes;
use crate::units::count;

/// What is wrong with an operator, a model or a layer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OperatorError {
    /// No operator of this name.
    #[error("unknown operator `{0}`: use one of {list}", list = names())]
    UnknownKind(String),
    /// No such model preset.
    #[error("unknown model `{0}`: use one of {list}, or give -m, -n and -k", list = super::models::names().join(", "))]
    UnknownModel(String),
    /// No such layer of a model.
    #[error("unknown layer `{0}`: use one of qkv, proj, fc1, fc2")]
    UnknownLayer(String),
    /// A dimension is zero.
    #[error("{0} is 0: give a positive number")]
    Zero(&'static str),
    /// A bare collective was given m, n, k, or a fused operator bytes.
    #[error("{kind} needs {needs}")]
    WrongShape { kind: Kind, needs: &'static str },
    /// A dimension cannot be cut evenly.
    #[error(
        "{name} = {value} cannot be divided among {tp} ranks: use a multiple of {tp}, such as {near}"
    )]
    Indivisible {
        name: &'static str,
        value: u64,
        tp: u32,
        near: u64,
    },
    /// A collective's size cannot be cut evenly.
    #[error(
        "{bytes} bytes are not a whole number of {dtype} elements for each of {parts} parts: use a multiple of {multiple} bytes, such as {near}"
    )]
    Uneven {
        bytes: u64,
        dtype: &'static str,
        parts: u32,
        multiple: u64,
        near: u64,
    },
    /// A dimension is beyond the schedule's 32-bit extents.
    #[error(
        "{name} = {value} is beyond the largest supported extent, 4294967295: use a smaller shape or split it"
    )]
    TooLarge { name: &'static str, value: u128 },
    /// Too many or too few ranks.
    #[error("{kind} on {}: use {least} to 65535", count(u64::from(*tp), "rank"))]
    Ranks { kind: Kind, tp: u32, least: u32 },
}

fn names() -> String {
    Kind::ALL.map(Kind::name).join(", ")
}

/// The multiple of `of` nearest to `value` that is not 0.
fn nearest_multiple(value: u64, of: u64) -> u64 {
    let below = value - value % of;
    let above = below.saturating_add(of);
    if below > 0 && value - below <= above - value {
        below
    } else {
        above
    }
}

impl Operator {
    /// Whether the operator can be cut among its ranks.
    ///
    /// AG+GEMM needs tp to divide m and n, GEMM+RS m and k, GEMM+AR k. A bare collective needs a
    /// whole number of elements in each rank's share.
    ///
    /// # Errors
    /// [`OperatorError`] with the dimension at fault and a remedy.
    pub fn check(&self) -> Result<(), OperatorError> {
        let least = if self.kind.is_fused() { 1 } else { 2 };
        if self.tp < least || self.tp > u32::from(u16::MAX) {
            return Err(OperatorError::Ranks {
                kind: self.kind,
                tp: self.tp,
                least,
            });
        }
        match self.shape {
            Shape::Gemm { m, n, k } if self.kind.is_fused() => self.check_gemm(m, n, k),
            Shape::Bytes(bytes) if !self.kind.is_fused() => self.check_bytes(bytes),
            Shape::Gemm { .. } => Err(OperatorError::WrongShape {
                kind: self.kind,
                needs: "a size: give --bytes instead of -m, -n and -k",
            }),
            Shape::Bytes(_) => Err(OperatorError::WrongShape {
                kind: self.kind,
                needs: "a GEMM shape: give -m, -n and -k instead of --bytes",
            }),
        }
    }

    /// [`Self::check`] of a fused operator in a few instructions, without saying what is wrong.
    #[inline]
    pub(crate) fn is_whole(&self) -> bool {
        let Shape::Gemm { m, n, k } = self.shape else {
            return false;
        };
        let extents = [m, n, k].map(|x| u32::try_from(x).unwrap_or(0));
        let [m, n, k] = extents;
        let tp = self.tp;
        let cut = match self.kind {
            Kind::AgGemm => [m, n],
            Kind::GemmRs => [m, k],
            Kind::GemmAr => [k, k],
            _ => return false,
        };
        let ranks = 1..=u32::from(u16::MAX);
        ranks.contains(&tp) && !extents.contains(&0) && cut.into_iter().all(|x| x % tp == 0)
    }

    fn check_gemm(&self, m: u64, n: u64, k: u64) -> Result<(), OperatorError> {
        for (name, value) in [("m", m), ("n", n), ("k", k)] {
            if value == 0 {
                return Err(OperatorError::Zero(name));
            }
            fits(name, value.into())?;
        }
        let cut: &[(&'static str, u64)] = match self.kind {
            Kind::AgGemm => &[("m", m), ("n", n)],
            Kind::GemmRs => &[("m", m), ("k", k)],
            _ => &[("k", k)],
        };
        let tp = u64::from(self.tp);
        match cut.iter().find(|(_, value)| value % tp != 0) {
            None => Ok(()),
            Some(&(name, value)) => Err(OperatorError::Indivisible {
                name,
                value,
                tp: self.tp,
                near: nearest_multiple(value, tp),
            }),
        }
    }

    fn check_bytes(&self, bytes: Bytes) -> Result<(), OperatorError> {
        let bytes = bytes.get();
        if bytes == 0 {
            return Err(OperatorError::Zero("the size"));
        }
        let parts = self.parts();
        let multiple = u64::from(parts) * self.dtype.size();
        if !bytes.is_multiple_of(multiple) {
            return Err(OperatorError::Uneven {
                bytes,
                dtype: self.dtype.name(),
                parts,
                multiple,
                near: nearest_multiple(bytes, multiple),
            });
        }
        let (rows, _) = share_shape(bytes / multiple);
        let blocks = match self.kind {
            Kind::AllToAll => u128::from(self.tp) * u128::from(self.tp),
            _ => parts.into(),
        };
        fits("rows of the tensor", u128::from(rows) * blocks)
    }

    /// Into how many parts a bare collective's size is cut.
    fn parts(&self) -> u32 {
        match self.kind {
            Kind::PointToPoint => 1,
            _ => self.tp,
        }
    }

    /// For a bare collective: each rank's share as rows × columns \[elements\]; columns are the
    /// largest power of two up to 1024 that divides the share. `None` for a fused operator, and
    /// where [`Self::check`] fails.
    pub fn share(&self) -> Option<(u32, u32)> {
        let Shape::Bytes(bytes) = self.shape else {
            return None;
        };
        self.check().ok()?;
        let elements = bytes.get() / self.dtype.size() / u64::from(self.parts());
        let (rows, cols) = share_shape(elements);
        Some((u32::try_from(rows).ok()?, cols))
    }
}

fn share_shape(elements: u64) -> (u64, u32) {
    let cols = 1u32 << elements.trailing_zeros().min(10);
    (elements / u64::from(cols), cols)
}

fn fits(name: &'static str, value: u128) -> Result<(), OperatorError> {
    if value > u128::from(u32::MAX) {
        return Err(OperatorError::TooLarge { name, value });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::DType;

    fn said(result: Result<Operator, OperatorError>) -> String {
        result.expect_err("must be refused").to_string()
    }

    #[test]
    fn the_short_check_says_the_same() {
        let extents = [
            0,
            1,
            7,
            8,
            24,
            1000,
            4096,
            u64::from(u32::MAX),
            1 << 32,
            1 << 40,
        ];
        let ranks = [0, 1, 2, 3, 8, 1000, 65535, 65536];
        for kind in Kind::ALL {
            for (tp, m, n, k) in ranks.into_iter().flat_map(|tp| {
                let of = move |m| extents.map(|n| extents.map(|k| (tp, m, n, k)));
                extents.into_iter().flat_map(of).flatten()
            }) {
                let operator = Operator {
                    kind,
                    shape: Shape::Gemm { m, n, k },
                    tp,
                    dtype: DType::Bf16,
                };
                assert_eq!(
                    operator.is_whole(),
                    operator.check().is_ok(),
                    "{operator:?}"
                );
            }
        }
    }

    #[test]
    fn names_parse_and_print() {
        for kind in Kind::ALL {
            assert_eq!(kind.to_string().parse(), Ok(kind));
        }
        assert_eq!(
            "ag+gemm".parse::<Kind>().unwrap_err().to_string(),
            "unknown operator `ag+gemm`: use one of ag-gemm, gemm-rs, gemm-ar, all-gather, \
             reduce-scatter, all-reduce, all-to-all, point-to-point"
        );
    }

    #[test]
    fn shapes_are_refused_in_words() {
        let gemm = |kind, m, n, k, tp| Operator::gemm(kind, m, n, k, tp, DType::Bf16);
        assert_eq!(
            said(gemm(Kind::AgGemm, 8190, 8192, 4096, 8)),
            "m = 8190 cannot be divided among 8 ranks: use a multiple of 8, such as 8192"
        );
        assert_eq!(
            said(gemm(Kind::GemmRs, 8192, 8191, 3, 8)),
            "k = 3 cannot be divided among 8 ranks: use a multiple of 8, such as 8"
        );
        // GEMM+AR leaves m whole, AG+GEMM leaves k whole, GEMM+RS leaves n whole.
        assert!(gemm(Kind::GemmAr, 7, 5, 8, 8).is_ok());
        assert!(gemm(Kind::AgGemm, 8, 8, 7, 8).is_ok());
        assert!(gemm(Kind::GemmRs, 8, 7, 8, 8).is_ok());
        assert_eq!(
            said(gemm(Kind::AgGemm, 8, 0, 4, 2)),
            "n is 0: give a positive number"
        );
        assert_eq!(
            said(gemm(Kind::AgGemm, 1 << 32, 8, 8, 8)),
            "m = 4294967296 is beyond the largest supported extent, 4294967295: use a smaller \
             shape or split it"
        );
        assert_eq!(
            said(gemm(Kind::AllGather, 8, 8, 8, 8)),
            "all-gather needs a size: give --bytes instead of -m, -n and -k"
        );
        assert_eq!(
            said(gemm(Kind::AgGemm, 8, 8, 8, 0)),
            "ag-gemm on 0 ranks: use 1 to 65535"
        );
    }

    #[test]
    fn sizes_are_refused_in_words() {
        let bare = |kind, bytes, tp| Operator::collective(kind, Bytes::new(bytes), tp, DType::Bf16);
        assert_eq!(
            said(bare(Kind::AllGather, 100, 8)),
            "100 bytes are not a whole number of bf16 elements for each of 8 parts: use a \
             multiple of 16 bytes, such as 96"
        );
        assert_eq!(
            said(bare(Kind::AllReduce, 64, 1)),
            "all-reduce on 1 rank: use 2 to 65535"
        );
        assert!(said(bare(Kind::AllToAll, u64::MAX - 1023, 32)).contains("beyond the largest"));
        assert!(bare(Kind::PointToPoint, 6, 2).is_ok());
        assert_eq!(
            said(bare(Kind::AgGemm, 64, 2)),
            "ag-gemm needs a GEMM shape: give -m, -n and -k instead of --bytes"
        );
    }

    #[test]
    fn shares_are_rows_of_a_power_of_two() {
        let share = |bytes, tp| {
            Operator::collective(Kind::AllGather, Bytes::new(bytes), tp, DType::Bf16)
                .unwrap()
                .share()
        };
        assert_eq!(share(8 << 20, 8), Some((512, 1024))); // 1 MiB each: 524,288 elements.
        assert_eq!(share(3 * 2 * 96, 3), Some((3, 32))); // 96 = 3 · 32.
        assert_eq!(share(2 * 2 * 7, 2), Some((7, 1)));
    }
}
