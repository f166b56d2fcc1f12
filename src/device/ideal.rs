//! The built-in profile `ideal`: infinite compute and memory bandwidth, no launch, sync, start-up
//! or engine limits. It isolates the network model.

use super::{Beside, CopyEngines, Costs, DType, Device, Library, Scatter, Tile};
use crate::units::{Bytes, BytesPerSecond, FlopsPerSecond, Seconds};

/// SMs of the ideal GPU: more than any launch asks for, few enough to be added up in 32 bits.
const SMS: u32 = 1 << 20;

/// Memory of the ideal GPU: more than any operator asks for.
const MEMORY: Bytes = Bytes::new(1 << 60);

/// A GPU on which only links cost time.
///
/// ```
/// use duet::device::{self, DType, gemm::gemm};
/// let time = gemm(&device::ideal(), DType::Bf16, 8192, 8192, 8192, 1).unwrap();
/// assert_eq!(time.seconds, 0.0);
/// ```
pub fn ideal() -> Device {
    Device {
        name: "ideal".to_owned(),
        about: "infinite compute and memory bandwidth, no start-up costs".to_owned(),
        sms: SMS,
        peak: DType::ALL
            .map(|dtype| (dtype, FlopsPerSecond::INFINITE))
            .to_vec(),
        sustained: 1.0,
        hbm: BytesPerSecond::INFINITE,
        memory: MEMORY,
        l2: MEMORY,
        tiles: vec![Tile {
            m: 128,
            n: 128,
            efficiency: 1.0,
        }],
        gemm_overhead: Seconds::ZERO,
        gemm_table: Vec::new(),
        gemm_loaded: None,
        gemm_accumulate: None,
        gemm_unaligned: [None; 2],
        gemm_library: None,
        engines: CopyEngines {
            peer: u32::MAX,
            h2d: u32::MAX,
            d2h: u32::MAX,
        },
        peer_copy: BytesPerSecond::INFINITE,
        sm_copy: BytesPerSecond::INFINITE,
        sm_copy_efficiency: 1.0,
        local_copy: BytesPerSecond::INFINITE,
        elementwise: BytesPerSecond::INFINITE,
        costs: Costs::FREE,
        library: Library {
            sms: 0,
            base: Seconds::ZERO,
            step: Seconds::ZERO,
            efficiency: Vec::new(),
            other: 1.0,
            table: Default::default(),
        },
        beside: Beside::default(),
        scatter: Scatter::default(),
    }
}
