//! What a kernel is given of its order as parameters: `struct Near` of `kernels/gemm.cuh`.

use super::Order;
use super::order::{BAND, WAIT};
use super::sections::Section;

/// Entries of sections, of bands and of waits.
const ENTRIES: [usize; 3] = [6, 16, 16];
/// Bytes of each.
const BYTES: [usize; 3] = [Section::BYTES, BAND as usize, WAIT];
/// Words of 8 bytes.
pub(super) const WORDS: usize =
    (ENTRIES[0] * BYTES[0] + ENTRIES[1] * BYTES[1] + ENTRIES[2] * BYTES[2]) / 8;

/// How the tables of an order begin, zeros behind.
#[derive(Copy, Clone, Debug)]
pub struct Near(pub(super) [u64; WORDS]);

impl Near {
    /// Of the tables of a product.
    pub fn of(order: &Order) -> Self {
        let mut words = [0; WORDS];
        let mut at = 0;
        let tables = [&order.sections, &order.bands, &order.waits];
        for (table, (entries, bytes)) in tables.into_iter().zip(ENTRIES.into_iter().zip(BYTES)) {
            let whole = entries * bytes / 8;
            for (word, bytes) in words[at..at + whole].iter_mut().zip(table.chunks_exact(8)) {
                let mut all = [0; 8];
                all.copy_from_slice(bytes);
                *word = u64::from_le_bytes(all);
            }
            at += whole;
        }
        Self(words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_takes_as_many_entries() {
        let source = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/kernels/gemm.cuh"));
        let tables = ["Section sections", "Band bands", "Wait waits"];
        for (table, entries) in tables.iter().zip(ENTRIES) {
            assert!(
                source.contains(&format!("    {table}[{entries}];")),
                "{table}"
            );
        }
    }

    #[test]
    fn tables_begin_where_the_kernel_looks_for_them() {
        let order = Order {
            sections: vec![1; 2 * Section::BYTES],
            bands: vec![2; 20 * BAND as usize],
            waits: vec![3; WAIT],
            completions: Vec::new(),
            ready: 0,
        };
        let Near(words) = Near::of(&order);
        let all = |byte: u8| u64::from_le_bytes([byte; 8]);
        let count = |byte: u8| words.iter().filter(|&&word| word == all(byte)).count();
        // Two sections of three words, 16 bands of three, a wait of three.
        assert_eq!([1, 2, 3].map(count), [6, 48, 3]);
        assert_eq!((words[5], words[6], words[17]), (all(1), 0, 0));
        assert_eq!((words[18], words[65], words[66]), (all(2), all(2), all(3)));
    }
}
