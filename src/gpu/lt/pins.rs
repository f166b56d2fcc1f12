//! A pinned algorithm as a file holds it.

use serde::{Deserialize, Serialize};

use super::{Chosen, GpuError, Problem};
use crate::device::DType;
use crate::gpu::raw::lt::Algo;

/// A problem and its algorithm; the words are the library's own, of one version and one GPU.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pin {
    pub m: u64,
    pub n: u64,
    pub k: u64,
    pub ld: [u64; 3],
    pub align: [u32; 3],
    pub dtype: String,
    pub accumulate: bool,
    pub sms: u32,
    /// Eight words of 16 hexadecimal digits.
    pub algo: String,
    pub workspace_bytes: u64,
    pub waves: f32,
    pub time_s: Option<f64>,
    /// For readers: rows × columns of a block's part of C.
    pub tile: Option<(u32, u32)>,
    pub split_k: u32,
}

/// A file of pins: the library's numbers mean something to one of its versions on one kind of GPU.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pins {
    pub schema: String,
    /// The library's version: 10000 · major + 100 · minor + patch.
    pub cublaslt: u64,
    /// The GPUs' name.
    pub gpu: String,
    pub pins: Vec<Pin>,
}

impl Pins {
    const SCHEMA: &str = "duet-pins-1";

    /// Pins of GPUs called `gpu`, without repetitions.
    pub fn new(cublaslt: u64, gpu: &str, pins: impl IntoIterator<Item = Pin>) -> Self {
        let mut kept: Vec<Pin> = Vec::new();
        for pin in pins {
            if !kept.iter().any(|other| other.same_problem(&pin)) {
                kept.push(pin);
            }
        }
        Self {
            schema: Self::SCHEMA.to_owned(),
            cublaslt,
            gpu: gpu.to_owned(),
            pins: kept,
        }
    }

    /// Reads a file's text.
    ///
    /// # Errors
    /// What is wrong with it, in words.
    pub fn read(text: &str) -> Result<Self, String> {
        let pins: Self = serde_json::from_str(text).map_err(|error| error.to_string())?;
        match pins.schema == Self::SCHEMA {
            true => Ok(pins),
            false => Err(format!(
                "schema `{}` instead of `{}`",
                pins.schema,
                Self::SCHEMA
            )),
        }
    }

    /// That they are of this version of the library and of such a GPU.
    ///
    /// # Errors
    /// Of which they are, in words.
    pub fn fit(&self, cublaslt: u64, gpu: &str) -> Result<(), String> {
        if self.cublaslt != cublaslt {
            return Err(format!(
                "made by cuBLASLt {}, and this is {cublaslt}",
                self.cublaslt
            ));
        }
        match self.gpu == gpu {
            true => Ok(()),
            false => Err(format!("made on `{}`, and this is `{gpu}`", self.gpu)),
        }
    }

    /// The file's text.
    ///
    /// # Errors
    /// Numbers that JSON cannot hold.
    pub fn write(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(self).map(|text| text + "\n")
    }
}

impl Pin {
    fn same_problem(&self, other: &Self) -> bool {
        let key = |pin: &Self| {
            let shape = (pin.m, pin.n, pin.k, pin.ld, pin.align);
            (shape, pin.dtype.clone(), pin.accumulate, pin.sms)
        };
        key(self) == key(other)
    }

    pub(super) fn new(problem: Problem, chosen: &Chosen) -> Self {
        let words = chosen.algo.words.map(|word| format!("{word:016x}"));
        Self {
            m: problem.m,
            n: problem.n,
            k: problem.k,
            ld: problem.ld,
            align: problem.align,
            dtype: problem.dtype.name().to_owned(),
            accumulate: problem.accumulate,
            sms: problem.sms,
            algo: words.concat(),
            workspace_bytes: chosen.algo.workspace,
            waves: chosen.algo.waves,
            time_s: chosen.time,
            tile: chosen.config.tile,
            split_k: chosen.config.split_k,
        }
    }

    pub(super) fn parts(&self) -> Result<(Problem, Algo), GpuError> {
        let wrong = |what: &str| GpuError::Argument(format!("a pinned algorithm has {what}"));
        let dtype = DType::ALL
            .into_iter()
            .find(|dtype| dtype.name() == self.dtype)
            .ok_or_else(|| wrong("an unknown element type"))?;
        let mut words = [0; 8];
        if self.algo.len() != 128 || !self.algo.is_ascii() {
            return Err(wrong("no 128 hexadecimal digits"));
        }
        for (i, word) in words.iter_mut().enumerate() {
            *word = u64::from_str_radix(&self.algo[16 * i..16 * i + 16], 16)
                .map_err(|_| wrong("no 128 hexadecimal digits"))?;
        }
        let problem = Problem {
            m: self.m,
            n: self.n,
            k: self.k,
            ld: self.ld,
            align: self.align,
            dtype,
            accumulate: self.accumulate,
            sms: self.sms,
        };
        let algo = Algo {
            words,
            workspace: self.workspace_bytes,
            waves: self.waves,
        };
        Ok((problem, algo))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pin() -> Pin {
        Pin {
            m: 8,
            n: 16,
            k: 32,
            ld: [64, 64, 64],
            align: [256, 128, 16],
            dtype: "fp16".to_owned(),
            accumulate: true,
            sms: 4,
            algo: (0..8_u64)
                .map(|i| format!("{:016x}", (i << 60) | 5))
                .collect(),
            workspace_bytes: 7,
            waves: 0.5,
            time_s: Some(1e-6),
            tile: None,
            split_k: 1,
        }
    }

    #[test]
    fn a_pin_goes_through_a_file() {
        let text = serde_json::to_string(&pin()).unwrap();
        let read: Pin = serde_json::from_str(&text).unwrap();
        assert_eq!(read, pin());
        let (problem, algo) = read.parts().unwrap();
        assert_eq!(problem.dtype, DType::Fp16);
        assert_eq!(algo.words[7], (7 << 60) | 5);
    }

    #[test]
    fn a_file_of_pins_is_for_one_version_and_one_gpu() {
        let mut other = pin();
        other.m = 9;
        let pins = Pins::new(130_200, "H200", [pin(), other.clone(), pin()]);
        assert_eq!(pins.pins, [pin(), other]);
        let read = Pins::read(&pins.write().unwrap()).unwrap();
        assert_eq!(read, pins);
        assert_eq!(read.fit(130_200, "H200"), Ok(()));
        assert_eq!(
            read.fit(130_201, "H200").unwrap_err(),
            "made by cuBLASLt 130200, and this is 130201"
        );
        assert!(read.fit(130_200, "A100").is_err());
        assert!(Pins::read("{").is_err());
        let old = pins.write().unwrap().replace("pins-1", "pins-0");
        assert!(Pins::read(&old).unwrap_err().contains("duet-pins-0"));
    }

    #[test]
    fn broken_pins_are_refused() {
        for change in [
            |pin: &mut Pin| pin.algo.truncate(127),
            |pin: &mut Pin| pin.algo.replace_range(5..6, "g"),
            |pin: &mut Pin| pin.algo.replace_range(126..128, "é"),
            |pin: &mut Pin| pin.dtype = "fp12".to_owned(),
        ] {
            let mut broken = pin();
            change(&mut broken);
            assert!(broken.parts().is_err());
        }
    }
}
