//! What each stream knows to have ended.

use std::rc::Rc;

/// A step by its place: stream and position, from 1.
type At = (u32, u32);

/// By stream: the position up to which it has ended. A stream's own entry is not kept.
type Known = Rc<Vec<u32>>;

/// What a stream knows at some moment.
#[derive(Clone, Debug)]
pub struct Moment(u32, Known);

/// Vector clocks of streams and of the steps in them.
#[derive(Debug, Default)]
pub struct Clocks {
    /// By stream: its steps so far, and what the next one knows.
    streams: Vec<(u32, Known)>,
    /// By step: its place, and what is known to who waits for it.
    steps: Vec<(At, Known)>,
}

fn upto(known: &Known, stream: u32) -> u32 {
    known.get(stream as usize).copied().unwrap_or(0)
}

fn raise(known: &mut Known, stream: u32, position: u32) {
    if upto(known, stream) >= position {
        return;
    }
    let known = Rc::make_mut(known);
    if known.len() <= stream as usize {
        known.resize(stream as usize + 1, 0);
    }
    known[stream as usize] = position;
}

impl Clocks {
    fn stream(&mut self, stream: u32) -> &mut (u32, Known) {
        let stream = stream as usize;
        if self.streams.len() <= stream {
            self.streams.resize_with(stream + 1, Default::default);
        }
        &mut self.streams[stream]
    }

    /// Whether the next step of `stream` begins after `step` has ended.
    pub fn knows(&mut self, stream: u32, step: usize) -> bool {
        let ((there, position), _) = self.steps[step];
        let (_, known) = self.stream(stream);
        there == stream || upto(known, there) >= position
    }

    /// What the next step of `stream` knows, for [`Self::knew`].
    pub fn moment(&mut self, stream: u32) -> Moment {
        Moment(stream, Rc::clone(&self.stream(stream).1))
    }

    /// Whether `step` had ended then for all that the stream knew; earlier steps of the stream itself had.
    pub fn knew(&self, moment: &Moment, step: usize) -> bool {
        let ((there, position), _) = self.steps[step];
        there == moment.0 || upto(&moment.1, there) >= position
    }

    /// Whether who waits for `step` comes after `earlier` too.
    pub fn before(&self, earlier: usize, step: usize) -> bool {
        let ((here, upto_here), ref known) = self.steps[step];
        let ((there, position), _) = self.steps[earlier];
        match here == there {
            true => position <= upto_here,
            false => upto(known, there) >= position,
        }
    }

    /// The next step of `stream` waits for `step`.
    pub fn wait(&mut self, stream: u32, step: usize) {
        let ((there, position), ended) = self.steps[step].clone();
        let (_, known) = self.stream(stream);
        merge(known, &ended);
        raise(known, there, position);
    }

    /// The next steps of these streams begin together: each after what any of them comes after.
    pub fn meet(&mut self, streams: &[u32]) {
        let mut all = Known::default();
        for &stream in streams {
            let (steps, known) = self.stream(stream).clone();
            merge(&mut all, &known);
            raise(&mut all, stream, steps);
        }
        for &stream in streams {
            self.stream(stream).1 = Rc::clone(&all);
        }
    }

    /// Appends a step to `stream`.
    pub fn push(&mut self, stream: u32) -> usize {
        let (steps, known) = self.stream(stream);
        *steps += 1;
        let step = ((stream, *steps), Rc::clone(known));
        self.steps.push(step);
        self.steps.len() - 1
    }
}

fn merge(known: &mut Known, other: &Known) {
    if Rc::ptr_eq(known, other) {
        return;
    }
    for (stream, &position) in other.iter().enumerate() {
        raise(known, stream as u32, position);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_transitive_and_streams_are_in_order() {
        let [a, b, c] = [0, 1, 2];
        let mut clocks = Clocks::default();
        let a1 = clocks.push(a);
        let a2 = clocks.push(a);
        clocks.wait(b, a1);
        let b1 = clocks.push(b);
        clocks.wait(c, b1);
        assert!(clocks.knows(c, a1) && clocks.knows(c, b1) && !clocks.knows(c, a2));
        // What a stream learns later does not change what a step meant.
        clocks.wait(b, a2);
        assert!(clocks.knows(b, a2) && !clocks.knows(c, a2));
        // Nor what it knew before.
        let moment = clocks.moment(c);
        clocks.wait(c, a2);
        assert!(clocks.knows(c, a2) && !clocks.knew(&moment, a2) && clocks.knew(&moment, b1));
        let c1 = clocks.push(c);
        clocks.meet(&[b, c]);
        // Before the meeting both had waited for a2.
        assert!(clocks.knows(c, a2) && clocks.knows(b, c1));
    }
}
