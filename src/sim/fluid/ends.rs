//! When each flow ends, and which ends first: a tournament of blocks.
//!
//! Level 0 holds one time per flow slot (infinity: empty), every level above the minimum of each
//! block of [`BLOCK`] below. A change marks its block; the marked blocks are played again when the
//! winner is asked for, so a solve that moves thousands of ends costs a scan of contiguous numbers
//! instead of thousands of heap moves.

/// Slots per block: four cache lines of times.
const BLOCK: usize = 32;

/// End times by slot.
#[derive(Debug)]
pub(super) struct Ends {
    /// `levels[0]` by slot; the last level has one entry.
    levels: Vec<Vec<f64>>,
    /// Marked blocks of level 0, each once.
    marked: Vec<u32>,
    is_marked: Vec<bool>,
    /// Scratch: blocks to play on the next level.
    above: Vec<u32>,
}

impl Ends {
    pub fn new() -> Self {
        Self {
            levels: vec![Vec::new(), vec![f64::INFINITY]],
            marked: Vec::new(),
            is_marked: vec![false],
            above: Vec::new(),
        }
    }

    /// Sets the end of a slot.
    pub fn set(&mut self, slot: u32, end: f64) {
        let slot = slot as usize;
        if slot >= self.levels[0].len() {
            self.grow(slot + 1);
        }
        self.levels[0][slot] = end;
        let block = slot / BLOCK;
        if !self.is_marked[block] {
            self.is_marked[block] = true;
            self.marked.push(block as u32);
        }
    }

    /// The first end; infinity if there is none.
    pub fn first(&mut self) -> f64 {
        self.play();
        self.levels[self.levels.len() - 1][0]
    }

    /// Appends the slots that end no later than `until` to `out`, in slot order.
    pub fn due(&mut self, until: f64, out: &mut Vec<u32>) {
        self.play();
        self.descend(self.levels.len() - 1, 0, until, out);
    }

    fn descend(&self, level: usize, at: usize, until: f64, out: &mut Vec<u32>) {
        if self.levels[level][at] > until || self.levels[level][at].is_infinite() {
            return;
        }
        if level == 0 {
            out.push(at as u32);
            return;
        }
        let below = &self.levels[level - 1];
        for child in at * BLOCK..((at + 1) * BLOCK).min(below.len()) {
            self.descend(level - 1, child, until, out);
        }
    }

    fn play(&mut self) {
        if self.marked.is_empty() {
            return;
        }
        let mut blocks = std::mem::take(&mut self.marked);
        for &block in &blocks {
            self.is_marked[block as usize] = false;
        }
        for level in 1..self.levels.len() {
            let (below, here) = self.levels.split_at_mut(level);
            let (below, here) = (&below[level - 1], &mut here[0]);
            self.above.clear();
            for &block in &blocks {
                let start = block as usize * BLOCK;
                let end = (start + BLOCK).min(below.len());
                let least = below[start..end]
                    .iter()
                    .fold(f64::INFINITY, |a, &b| if b < a { b } else { a });
                if here[block as usize] != least {
                    here[block as usize] = least;
                    self.above.push(block / BLOCK as u32);
                }
            }
            self.above.sort_unstable();
            self.above.dedup();
            std::mem::swap(&mut blocks, &mut self.above);
        }
        blocks.clear();
        self.marked = blocks;
    }

    fn grow(&mut self, slots: usize) {
        // Doubling keeps growth linear in all.
        let slots = slots.max(2 * self.levels[0].len()).next_multiple_of(BLOCK);
        let mut len = slots;
        let mut level = 0;
        loop {
            if level == self.levels.len() {
                self.levels.push(Vec::new());
            }
            self.levels[level].resize(len, f64::INFINITY);
            if level > 0 && len == 1 {
                break;
            }
            len = len.div_ceil(BLOCK);
            level += 1;
        }
        self.is_marked.resize(slots / BLOCK, false);
        // A new level on top has to hear of every block.
        for block in 0..self.is_marked.len() {
            if !self.is_marked[block] {
                self.is_marked[block] = true;
                self.marked.push(block as u32);
            }
        }
        for level in 1..self.levels.len() {
            self.levels[level].fill(f64::NAN); // differs from any minimum: played up to the top
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_a_plain_list() {
        let mut ends = Ends::new();
        let mut plain = vec![f64::INFINITY; 5000];
        let mut state = 7u64;
        for step in 0..20_000 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let slot = (state % (50 + step / 4).min(5000)) as usize;
            let end = if state.is_multiple_of(3) {
                f64::INFINITY
            } else {
                ((state >> 20) % 1000) as f64
            };
            ends.set(slot as u32, end);
            plain[slot] = end;
            if step % 17 == 3 {
                let first = plain.iter().copied().fold(f64::INFINITY, f64::min);
                assert_eq!(ends.first(), first);
                let mut due = Vec::new();
                ends.due(first + 3.0, &mut due);
                let expected: Vec<u32> = (0..5000)
                    .filter(|&s| plain[s] <= first + 3.0 && plain[s].is_finite())
                    .map(|s| s as u32)
                    .collect();
                assert_eq!(due, expected);
            }
        }
    }
}
