//! What tasks, buffers and the like are named by.

/// Index types: `id!(/// Index into … Name)`.
macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);

        impl $name {
            /// The id as an index.
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}
pub(crate) use id;

id!(
    /// Index into [`Schedule::tasks`](super::Schedule::tasks).
    TaskId
);
id!(
    /// Index into [`Schedule::buffers`](super::Schedule::buffers).
    BufferId
);
id!(
    /// Index into [`Schedule::tensors`](super::Schedule::tensors).
    TensorId
);
id!(
    /// Index into [`Schedule::launches`](super::Schedule::launches).
    LaunchId
);
id!(
    /// Index into [`Schedule::computes`](super::Schedule::computes).
    ComputeId
);
id!(
    /// Index into [`Schedule::collectives`](super::Schedule::collectives).
    CollectiveId
);
