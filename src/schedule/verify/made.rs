//! How tensors come about: each is the product of two others, a function of others, or given; the
//! first task that makes part of one states it, and the others must agree.

use super::error::VerifyError;
use super::sweep::Sweep;
use crate::schedule::TaskId;

/// How a tensor comes about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Made {
    Product(u32, u32),
    Map(Vec<u32>),
}

impl Sweep<'_> {
    /// States or confirms how a tensor comes about.
    pub(super) fn define(
        &mut self,
        task: TaskId,
        tensor: u32,
        made: Made,
    ) -> Result<(), VerifyError> {
        let name = |t: u32| self.tensor(t).name.as_str();
        let text = |made: &Made| match made {
            Made::Product(a, b) => format!("{} times {}", name(*a), name(*b)),
            Made::Map(inputs) => {
                let names: Vec<&str> = inputs.iter().map(|&t| name(t)).collect();
                format!("a function of {}", names.join(", "))
            }
        };
        match &self.made[tensor as usize] {
            Some(known) if *known == made => return Ok(()),
            Some(known) => {
                let problem = format!(
                    "it makes part of {} as {}, but {0} is {}",
                    name(tensor),
                    text(&made),
                    text(known)
                );
                return Err(self.operand(task, problem, "make every part of a tensor alike"));
            }
            None => {}
        }
        if self.made_of(&made, tensor) {
            let problem = format!("it makes {} of itself", name(tensor));
            return Err(self.operand(task, problem, "make a new tensor"));
        }
        let t = self.tensor(tensor);
        let fits = match &made {
            Made::Product(a, b) => {
                let (a, b) = (self.tensor(*a), self.tensor(*b));
                (t.rows, t.cols, t.contributions, a.cols) == (a.rows, b.cols, a.cols, b.rows)
            }
            Made::Map(inputs) => {
                t.contributions == 1
                    && inputs.iter().all(|&i| {
                        let input = self.tensor(i);
                        (input.rows, input.cols) == (t.rows, t.cols)
                    })
            }
        };
        if !fits {
            let problem = format!(
                "{} ({} x {}, {} contributions) is not {}",
                t.name,
                t.rows,
                t.cols,
                t.contributions,
                text(&made)
            );
            let remedy = match made {
                Made::Product(..) => "a product has the shape m x n and k contributions",
                Made::Map(_) => {
                    "a pointwise result is a new tensor of its inputs' shape with 1 contribution"
                }
            };
            return Err(self.operand(task, problem, remedy));
        }
        self.made[tensor as usize] = Some(made);
        Ok(())
    }

    /// Whether `tensor` is among what is used, directly or through other tensors.
    fn made_of(&self, made: &Made, tensor: u32) -> bool {
        let mut seen = vec![false; self.made.len()];
        let mut todo = vec![made];
        while let Some(made) = todo.pop() {
            let inputs = match made {
                Made::Product(a, b) => &[*a, *b][..],
                Made::Map(inputs) => inputs,
            };
            for &input in inputs {
                if input == tensor {
                    return true;
                }
                if !std::mem::replace(&mut seen[input as usize], true) {
                    todo.extend(&self.made[input as usize]);
                }
            }
        }
        false
    }
}
