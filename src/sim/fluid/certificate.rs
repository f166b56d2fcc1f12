//! The certificate of max-min fairness: proves a set of speeds right without solving.

use super::Fluid;

/// How far (relative) sums of speeds may be off by rounding.
const SLACK: f64 = 1e-9;

impl Fluid {
    /// Checks `flows` (slots): no capacity of theirs is exceeded, and each is at its bound or, on
    /// some full resource, at the highest level.
    ///
    /// # Errors
    /// What is violated, in words.
    pub(super) fn certificate(&self, flows: &[u32]) -> Result<(), String> {
        let level = |f: u32| self.flows[f as usize].rate / self.flows[f as usize].weight;
        // Highest level on each resource if it is full; `None`: not looked at yet.
        let mut highest: Vec<Option<f64>> = vec![None; self.resources.len()];
        for &f in flows {
            let flow = &self.flows[f as usize];
            let mut satisfied = flow.rate >= flow.bound * (1.0 - SLACK);
            for u in &self.usages[flow.range()] {
                let r = u.resource;
                if highest[r as usize].is_none() {
                    let members = &self.members[r as usize];
                    let capacity = self.resources[r as usize].capacity(members.len());
                    let usage = self.usage(r);
                    if usage > capacity * (1.0 + SLACK) {
                        return Err(format!("resource {r}: {usage} of {capacity} in use"));
                    }
                    let top = if usage < capacity * (1.0 - SLACK) {
                        f64::INFINITY // limits nobody
                    } else {
                        members.iter().map(|m| level(m.flow)).fold(0.0, f64::max)
                    };
                    highest[r as usize] = Some(top);
                }
                let top = highest[r as usize].unwrap_or(f64::INFINITY);
                satisfied |= level(f) >= top * (1.0 - SLACK);
            }
            if !satisfied {
                return Err(format!("flow {f} at {} could be faster", flow.rate));
            }
        }
        Ok(())
    }

    /// The certificate of all running flows, after [`Self::solve`].
    ///
    /// # Errors
    /// What is violated, in words.
    pub fn certificate_of_all(&self) -> Result<(), String> {
        let mut flows: Vec<u32> = self.members.iter().flatten().map(|m| m.flow).collect();
        flows.sort_unstable();
        flows.dedup();
        self.certificate(&flows)
    }
}
