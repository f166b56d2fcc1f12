//! A run as recorded graphs, for each half of the arenas: one, or one for each GPU.
//!
//! One graph over several GPUs begins on the others once the first has told them and ends once they have told
//! it, about 6 us each time on two H200. Where GPUs wait for one another by words in memory alone, each has a graph of
//! its own, which begins and ends by itself.

use super::Run;
use super::issue::{Extras, Into, Start};
use super::lane::GRAPH;
use crate::gpu::GpuError;
use crate::gpu::plan::{Mode, Plan, StreamId, What};
use crate::gpu::raw::{Event, GraphExec};

/// A graph and the stream that it is launched in.
#[derive(Debug)]
pub(super) struct Part {
    head: StreamId,
    graph: GraphExec,
    /// Recorded behind it.
    end: Event,
}

/// By part: the stream that it is captured and launched in. One part, the plan's origin, unless each GPU waits for
/// others by nothing but words in memory; then of each GPU the first stream with a product, if there is one.
fn heads(plan: &Plan) -> Vec<StreamId> {
    let gpu = |stream: StreamId| plan.streams[stream.index()].gpu;
    let apart = plan.collectives.is_empty()
        && plan.steps.iter().all(|step| match step.what {
            What::Await(event) => plan.events[event.index()] == gpu(step.stream),
            _ => true,
        });
    let mut heads: Vec<StreamId> = Vec::new();
    let products = (plan.steps.iter()).filter(|step| step.what.product().is_some());
    for step in products.chain(&plan.steps) {
        if heads.iter().all(|&head| gpu(head) != gpu(step.stream)) {
            heads.push(step.stream);
        }
    }
    match apart && heads.len() > 1 {
        true => heads,
        false => vec![plan.origin],
    }
}

/// The steps of a plan in the order in which they are captured into the graph of the GPU of `head`. Products come before
/// copies by engines that wait for nothing: a graph whose first node is a copy ends 6 us later on an H200 than one whose
/// first is the kernel beside it.
pub(super) fn captured(plan: &Plan, head: StreamId) -> Vec<usize> {
    let gpu = |stream: StreamId| plan.streams[stream.index()].gpu;
    let here = |&at: &usize| gpu(plan.steps[at].stream) == gpu(head);
    let mut steps: Vec<usize> = (0..plan.steps.len()).filter(here).collect();
    let free = |&at: &usize| match plan.steps[at].what {
        What::Copy { .. } | What::WriteFlag(_) => true,
        What::Gated { .. } => plan.steps[at].stream == head,
        _ => false,
    };
    if steps.iter().all(free) {
        steps.sort_by_key(|&at| plan.steps[at].stream != head);
    }
    steps
}

impl Run<'_> {
    /// Captures the run into graphs; needed once in graph mode.
    ///
    /// # Errors
    /// The driver's, e.g. where it cannot put several GPUs into one graph.
    pub fn capture(&mut self, extras: &Extras<'_>) -> Result<(), GpuError> {
        self.machine.usable()?;
        if self.plan.mode != Mode::Graph {
            return Ok(());
        }
        let heads = heads(&self.plan);
        for parity in 0..2 {
            let mut parts = Vec::with_capacity(heads.len());
            for &head in &heads {
                let into = match heads.len() {
                    1 => Into::Graph,
                    _ => Into::Part(head),
                };
                let stream = self.stream(head);
                stream.begin_capture()?;
                let issued = self.issue((parity, 0), Start::Origin, extras, into);
                // The capture ends whatever happened in it.
                let graph = stream.end_capture();
                issued?;
                let graph = graph?.instantiate()?;
                graph.upload(stream)?;
                stream.finish(self.machine.settings().limit, "sending a graph to a GPU")?;
                let end = Event::new(stream.gpu(), false)?;
                parts.push(Part { head, graph, end });
            }
            self.graphs[parity as usize] = parts;
        }
        Ok(())
    }

    /// The GPUs of the plan that have a captured graph of their own; empty where one graph is for all.
    pub fn parts(&self) -> Vec<usize> {
        match &self.graphs[0][..] {
            [_] => Vec::new(),
            parts => (parts.iter())
                .map(|part| self.plan.streams[part.head.index()].gpu.index())
                .collect(),
        }
    }

    /// Launches the graphs of one half.
    pub(super) fn launch(
        &self,
        parity: u64,
        start: Start<'_>,
        extras: &Extras<'_>,
    ) -> Result<(), GpuError> {
        let parts = &self.graphs[parity as usize];
        if parts.is_empty() {
            return Err(GpuError::Argument("the run was not captured".to_owned()));
        }
        let plan = &*self.plan;
        let others = || parts.iter().filter(|part| part.head != plan.origin);
        let (origin, begin) = (
            self.stream(plan.origin),
            &self.events[plan.fork.event.index()],
        );
        self.room(plan.origin, GRAPH + 1 + others().count())?;
        if let Start::Origin = start {
            origin.record(begin)?;
        }
        for part in parts {
            let gpu = plan.streams[part.head.index()].gpu.index();
            let stream = self.stream(part.head);
            if part.head != plan.origin {
                self.room(part.head, GRAPH + 1)?;
            }
            match start {
                Start::Each(events) => stream.wait(&events[gpu])?,
                Start::Origin if part.head != plan.origin => stream.wait(begin)?,
                Start::Origin => {}
            }
            part.graph.launch(stream)?;
            if let Some(ends) = extras.ends.filter(|_| parts.len() > 1) {
                stream.record(&ends[gpu])?;
            }
        }
        for part in others() {
            self.stream(part.head).record(&part.end)?;
            origin.wait(&part.end)?;
        }
        Ok(())
    }

    /// Joins the streams whose last step others await too, because a graph must not end with a record
    /// that nobody waits for.
    pub(super) fn join_rest(&self) -> Result<(), GpuError> {
        let plan = &*self.plan;
        let rest = |s: &usize| {
            let joined = plan.join.iter().any(|(stream, _)| stream.index() == *s);
            *s != plan.origin.index() && !joined && self.works(*s)
        };
        let rest = (0..self.lanes.len()).filter(rest);
        let rest: Vec<StreamId> = rest.map(|s| StreamId(s as u32)).collect();
        self.join_all(plan.origin, &rest)
    }

    pub(super) fn join_all(&self, head: StreamId, streams: &[StreamId]) -> Result<(), GpuError> {
        for stream in streams {
            let lane = &self.lanes[stream.index()];
            lane.stream.record(&lane.captured)?;
            self.stream(head).wait(&lane.captured)?;
        }
        Ok(())
    }

    /// The other streams with steps on the GPU of one.
    pub(super) fn beside(&self, head: StreamId) -> Vec<StreamId> {
        let gpu = self.plan.streams[head.index()].gpu;
        let beside =
            |s: &usize| *s != head.index() && self.plan.streams[*s].gpu == gpu && self.works(*s);
        let beside = (0..self.lanes.len()).filter(beside);
        beside.map(|s| StreamId(s as u32)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::DType;
    use crate::gpu::plan::{Options, Products, lower};
    use crate::operator::{Kind, Operator};
    use crate::topology::build::Builder;

    fn plan_of(kind: Kind, strategy: &str, products: Products) -> Plan {
        let mut b = Builder::new("pair");
        let gpus = b.gpus(2);
        let hub = b.switch("s");
        for gpu in gpus {
            b.link(gpu, hub, "nvlink", 50e9, 0.0);
        }
        let op = Operator::gemm(kind, 512, 512, 512, 2, DType::Bf16).unwrap();
        let choice = crate::strategy::parse(strategy).unwrap();
        let schedule = choice.build(&op, &b.build(), &[0, 1]).unwrap();
        let options = Options {
            mode: Mode::Graph,
            products,
            ..Options::default()
        };
        lower(&schedule, &options, None).unwrap()
    }

    fn heads_of(kind: Kind, strategy: &str, products: Products) -> Vec<u32> {
        let plan = plan_of(kind, strategy, products);
        let heads = heads(&plan);
        (heads.iter().map(|head| plan.streams[head.index()].gpu.0)).collect()
    }

    #[test]
    fn products_are_captured_before_the_copies_beside_them() {
        let plan = plan_of(Kind::AgGemm, "fusion-alltoall", Products::Own);
        for head in heads(&plan) {
            let steps = captured(&plan, head);
            let kinds = steps.iter().map(|&at| &plan.steps[at].what);
            let kinds: Vec<&What> = kinds.collect();
            assert!(
                matches!(
                    kinds[..],
                    [What::Gated { .. }, What::Copy { .. }, What::WriteFlag(_)]
                ),
                "{kinds:?}"
            );
        }
        // Copies of sums wait for products.
        let plan = plan_of(Kind::GemmRs, "fusion-ring", Products::Own);
        assert!(
            heads(&plan)
                .iter()
                .all(|&head| captured(&plan, head).is_sorted())
        );
    }

    #[test]
    fn gpus_that_wait_for_words_alone_have_graphs_of_their_own() {
        let own = Products::Own;
        assert_eq!(heads_of(Kind::AgGemm, "fusion-alltoall", own).len(), 2);
        // A library product waits in its stream, for a node of the other GPU.
        assert_eq!(
            heads_of(Kind::AgGemm, "fusion-alltoall", Products::Library).len(),
            1
        );
        // A collective is on all of them.
        assert_eq!(heads_of(Kind::AgGemm, "sequential", own).len(), 1);
        // Copies wait for products of their own GPU; sums wait inside the kernels.
        assert_eq!(heads_of(Kind::GemmRs, "fusion-ring", own).len(), 2);
    }
}
