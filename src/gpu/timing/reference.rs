//! Plans to compare with: the ranks' unsplit products, and one plain copy.

use crate::gpu::plan::{
    ALIGNMENT, Area, Arena, EventId, Fork, Gpu, LEADING, Library, Mode, Place, Plan, Products,
    Step, Stream, StreamId, What,
};
use crate::operator::Operator;
use crate::schedule::{Schedule, TaskId};

struct Writer {
    plan: Plan,
    size: u64,
}

impl Writer {
    /// A plan with one stream on each GPU of `schedule`; the first is the origin.
    fn new(schedule: &Schedule, products: Products) -> Self {
        let mut gpus = schedule.placement.clone();
        gpus.sort_unstable();
        gpus.dedup();
        let streams: Vec<Stream> = (0..gpus.len() as u32)
            .map(|gpu| Stream {
                gpu: Gpu(gpu),
                name: "reference".to_owned(),
                urgent: false,
            })
            .collect();
        // Event 0 forks; event s joins stream s.
        let events = (0..gpus.len() as u32).map(Gpu).collect();
        let others = || (1..gpus.len() as u32).map(StreamId);
        Self {
            size: schedule.operator.dtype.size(),
            plan: Plan {
                joined: Vec::new(),
                dtype: schedule.operator.dtype,
                mode: Mode::Stream,
                products,
                tile: None,
                verified: true,
                library: Library::Copies,
                shared: false,
                origin: StreamId(0),
                fork: Fork {
                    event: EventId(0),
                    streams: others().collect(),
                },
                steps: Vec::new(),
                join: others().map(|s| (s, EventId(s.0))).collect(),
                events,
                flags: Vec::new(),
                arenas: vec![Arena { half: 0 }; gpus.len()],
                places: Vec::new(),
                staging: Vec::new(),
                groups: Vec::new(),
                collectives: Vec::new(),
                gemms: Vec::new(),
                streams,
                gpus,
            },
        }
    }

    fn gpu(&self, number: u32) -> Gpu {
        Gpu(self.plan.gpus.partition_point(|&gpu| gpu < number) as u32)
    }

    /// Reserves a matrix; `None` if it cannot be addressed.
    fn matrix(&mut self, gpu: Gpu, rows: u64, cols: u64) -> Option<Area> {
        let ld = cols.checked_next_multiple_of(LEADING)?;
        let half = &mut self.plan.arenas[gpu.index()].half;
        let bytes = rows.checked_mul(ld)?.checked_mul(self.size)?;
        let at = *half;
        *half = at
            .checked_add(bytes)?
            .checked_next_multiple_of(ALIGNMENT)
            .filter(|&half| half <= u64::MAX / 4)?;
        let area = Area {
            gpu,
            at,
            ld: u32::try_from(ld).ok()?,
            rows: u32::try_from(rows).ok()?,
            cols: u32::try_from(cols).ok()?,
        };
        self.plan.places.push(Place {
            area,
            slots: 1,
            stride: bytes,
        });
        Some(area)
    }

    fn step(&mut self, gpu: Gpu, what: What) {
        self.plan.gemms.extend(what.gemm());
        self.plan.steps.push(Step {
            stream: StreamId(gpu.0),
            task: TaskId(0),
            what,
        });
    }

    fn finish(mut self) -> Option<Plan> {
        self.plan.gemms.sort_unstable();
        self.plan.gemms.dedup();
        (!self.plan.steps.is_empty()).then_some(self.plan)
    }
}

/// Every rank's product in one piece, those of a GPU one after another. `None` for a bare
/// collective and for an empty schedule.
pub fn gemm_plan(schedule: &Schedule) -> Option<Plan> {
    gemm_plan_by(schedule, Products::Library)
}

/// The same, multiplied by Duet's own kernels or the library.
pub fn gemm_plan_by(schedule: &Schedule, products: Products) -> Option<Plan> {
    let (m, n, k) = schedule.operator.rank_gemm()?;
    schedule.tasks.first()?;
    let mut writer = Writer::new(schedule, products);
    for &number in &schedule.placement {
        let gpu = writer.gpu(number);
        let a = writer.matrix(gpu, m, k)?;
        let b = writer.matrix(gpu, k, n)?;
        let out = writer.matrix(gpu, m, n)?;
        let gemm = What::Gemm {
            a,
            b,
            out,
            accumulate: false,
            sms: 0,
        };
        writer.step(gpu, gemm);
    }
    writer.finish()
}

/// A rank's share of the operator's message, in one piece, from each GPU into the next by copy
/// engine, all at once; on one GPU within it.
pub fn copy_plan(schedule: &Schedule) -> Option<Plan> {
    let operator: &Operator = &schedule.operator;
    schedule.tasks.first()?;
    let elements = operator.message_bytes() / u64::from(operator.tp) / operator.dtype.size();
    let mut writer = Writer::new(schedule, Products::default());
    let count = writer.plan.gpus.len() as u32;
    let (rows, cols) = (elements.div_ceil(1024), elements.clamp(1, 1024));
    for gpu in 0..count {
        let from = writer.matrix(Gpu(gpu), rows, cols)?;
        let to = writer.matrix(Gpu((gpu + 1) % count), rows, cols)?;
        writer.step(Gpu(gpu), What::Copy { from, to });
    }
    writer.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::DType;
    use crate::operator::Kind;
    use crate::topology::build::Builder;

    fn schedule(placement: &[u32]) -> Schedule {
        let mut b = Builder::new("pair");
        let gpus = b.gpus(4);
        let hub = b.switch("s");
        for gpu in gpus {
            b.link(gpu, hub, "nvlink", 50e9, 0.0);
        }
        let op = Operator::gemm(Kind::AgGemm, 4 * 30, 4 * 20, 33, 4, DType::Bf16).unwrap();
        let choice = crate::strategy::parse("sequential").unwrap();
        choice.build(&op, &b.build(), placement).unwrap()
    }

    #[test]
    fn every_rank_multiplies_its_own_matrices_once() {
        let plan = gemm_plan_by(&schedule(&[0, 0, 1, 1]), Products::Own).unwrap();
        assert_eq!((plan.steps.len(), plan.streams.len()), (4, 2));
        assert_eq!(plan.join, [(StreamId(1), EventId(1))]);
        // A 120 × 33, B 33 × 20, C 120 × 20, each row 64 elements of 2 bytes.
        let each = 128 * (120 + 33 + 120_u64).next_multiple_of(2);
        assert!(plan.arenas.iter().all(|a| a.half.abs_diff(2 * each) < 2048));
        assert_eq!(plan.gemms.len(), 2);
        assert_eq!(plan.gemms[0].ld, [64; 3]);
        for step in &plan.steps {
            let shape = step.what.gemm().unwrap();
            assert!(plan.gemms.binary_search(&shape).is_ok());
            assert_eq!((shape.m, shape.n, shape.k), (120, 20, 33));
        }
    }

    #[test]
    fn the_copy_is_a_share_of_the_message() {
        let plan = copy_plan(&schedule(&[0, 1, 2, 3])).unwrap();
        assert_eq!(plan.steps.len(), 4);
        let What::Copy { from, to } = plan.steps[3].what else {
            panic!("a copy");
        };
        assert_eq!((from.gpu, to.gpu), (Gpu(3), Gpu(0)));
        // 120 · 33 elements by 4 ranks are 990.
        assert_eq!((from.rows, from.cols), (1, 990));
        let alone = copy_plan(&schedule(&[0, 0, 0, 0])).unwrap();
        assert_eq!(alone.steps.len(), 1);
    }
}
