//! Fixed costs of a GPU and its host.

use crate::units::Seconds;

/// Fixed costs of getting work started and of handing it over.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Costs {
    /// Host time to submit one kernel to a stream (serial per GPU).
    pub submit_kernel: Seconds,
    /// Host time to submit one copy.
    pub submit_copy: Seconds,
    /// Host time to submit one wait or record of an event or a flag.
    pub submit_sync: Seconds,
    /// Host time of launching one whole graph (graph mode: instead of the three above).
    pub submit_graph: Seconds,
    /// From the GPU taking up a kernel to its first instruction.
    pub kernel_start: Seconds,
    /// From the GPU taking up a copy-engine copy to its first byte.
    pub copy_start: Seconds,
    /// From an SM copy kernel's first instruction to its first byte on the link.
    pub sm_copy_start: Seconds,
    /// End of a task to start of its successor in the same lane.
    pub lane: Seconds,
    /// Event hand-off between two lanes of one GPU.
    pub event: Seconds,
    /// Event hand-off between two GPUs.
    pub event_peer: Seconds,
    /// Stream-written flag to a satisfied stream wait, between GPUs.
    pub stream_flag: Seconds,
    /// Flag written by a copy or a kernel to the tile group that spins on it.
    pub kernel_flag: Seconds,
    /// What a profile need not state.
    pub more: MoreCosts,
}

/// Costs that a profile may leave out; each says what then takes its place.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub struct MoreCosts {
    /// As [`Costs::copy_start`], of a copy that another copy lets go, of its lane or of another GPU; else
    /// that.
    pub copy_next: Option<Seconds>,
    /// As [`Costs::copy_start`], of a copy to or from the host's memory; else that.
    pub host_copy_start: Option<Seconds>,
    /// The same for each further chunk of a transfer that stops there; else as the first.
    pub host_copy_next: Option<Seconds>,
    /// What writing a flag takes in the writer's lane; else nothing.
    pub flag_write: Option<Seconds>,
    /// As [`Self::flag_write`], behind a copy of a copy engine; else that.
    pub flag_write_copy: Option<Seconds>,
    /// What awaiting a flag that is there takes in the waiting lane; else nothing.
    pub flag_wait: Option<Seconds>,
    /// What recording an event takes in a queue, between two kernels; else nothing.
    pub event_record: Option<Seconds>,
    /// What awaiting an event that has passed takes in a queue, between two kernels; else nothing.
    pub event_wait: Option<Seconds>,
    /// As [`Costs::stream_flag`], between two lanes of one GPU; else that.
    pub flag_local: Option<Seconds>,
    /// As [`Costs::kernel_start`], in a graph; else that.
    pub graph_kernel_start: Option<Seconds>,
    /// As [`Costs::lane`], in a graph; else that.
    pub graph_lane: Option<Seconds>,
    /// Edge of a graph between two lanes of one GPU; else an event or a flag.
    pub graph_event: Option<Seconds>,
    /// Edge of a graph between two GPUs; else an event or a flag.
    pub graph_event_peer: Option<Seconds>,
    /// Beginning and end of a run in streams, from its start event to its end event, beyond its work
    /// and the first event; else nothing.
    pub run: Option<Seconds>,
    /// The same for a run that is one graph; else nothing.
    pub run_graph: Option<Seconds>,
}

impl MoreCosts {
    /// No cost stated.
    pub const NONE: Self = Self {
        copy_next: None,
        host_copy_start: None,
        host_copy_next: None,
        flag_write: None,
        flag_write_copy: None,
        flag_wait: None,
        event_record: None,
        event_wait: None,
        flag_local: None,
        graph_kernel_start: None,
        graph_lane: None,
        graph_event: None,
        graph_event_peer: None,
        run: None,
        run_graph: None,
    };

    /// Each with its name.
    pub(super) fn fields(&mut self) -> [(&'static str, &mut Option<Seconds>); 15] {
        [
            ("costs.copy_next", &mut self.copy_next),
            ("costs.host_copy_start", &mut self.host_copy_start),
            ("costs.host_copy_next", &mut self.host_copy_next),
            ("costs.flag_write", &mut self.flag_write),
            ("costs.flag_write_copy", &mut self.flag_write_copy),
            ("costs.flag_wait", &mut self.flag_wait),
            ("costs.event_record", &mut self.event_record),
            ("costs.event_wait", &mut self.event_wait),
            ("costs.flag_local", &mut self.flag_local),
            ("costs.graph_kernel_start", &mut self.graph_kernel_start),
            ("costs.graph_lane", &mut self.graph_lane),
            ("costs.graph_event", &mut self.graph_event),
            ("costs.graph_event_peer", &mut self.graph_event_peer),
            ("costs.run", &mut self.run),
            ("costs.run_graph", &mut self.run_graph),
        ]
    }
}

impl Costs {
    /// Nothing costs anything.
    pub const FREE: Self = Self {
        submit_kernel: Seconds::ZERO,
        submit_copy: Seconds::ZERO,
        submit_sync: Seconds::ZERO,
        submit_graph: Seconds::ZERO,
        kernel_start: Seconds::ZERO,
        copy_start: Seconds::ZERO,
        sm_copy_start: Seconds::ZERO,
        lane: Seconds::ZERO,
        event: Seconds::ZERO,
        event_peer: Seconds::ZERO,
        stream_flag: Seconds::ZERO,
        kernel_flag: Seconds::ZERO,
        more: MoreCosts::NONE,
    };
}
