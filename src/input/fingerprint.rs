//! A short name for a content.

use std::fmt::Write;

/// 64-bit FNV-1a of what is written to it: the same on every machine.
///
/// ```
/// use std::fmt::Write;
/// let mut hash = duet::input::Fingerprint::default();
/// write!(hash, "a{}", 'b').unwrap();
/// assert_eq!(hash.to_string(), "089c4407b545986a");
/// ```
#[derive(Clone, Debug)]
pub struct Fingerprint(u64);

impl Default for Fingerprint {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Fingerprint {
    /// Of bytes, as a number.
    pub fn of(bytes: &[u8]) -> u64 {
        let mut hash = Self::default();
        hash.add(bytes);
        hash.0
    }

    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

impl Write for Fingerprint {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.add(text.as_bytes());
        Ok(())
    }
}

impl std::fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::Fingerprint;

    #[test]
    fn published_values() {
        // Fowler, Noll and Vo's test vectors for 64-bit FNV-1a.
        assert_eq!(Fingerprint::of(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(Fingerprint::of(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(Fingerprint::of(b"foobar"), 0x8594_4171_f739_67e8);
    }
}
