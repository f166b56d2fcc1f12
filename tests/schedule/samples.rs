//! Small schedules written by hand, one per pattern.

use duet::device::DType;
use duet::operator::{Kind, Operator, Shape};
use duet::schedule::{
    Buffer, BufferId, Builder, CollectiveKind, CollectiveLibrary, Compute, Dep, Extent, GemmKernel,
    Lane, Mover, Piece, Rank, Role, Schedule, Slice, TaskId, TensorId, Via,
};
use duet::units::Bytes;

pub const COMPUTE: Lane = Lane(0);
pub const COMM: Lane = Lane(1);

pub fn gemm_operator(kind: Kind, m: u32, n: u32, k: u32, tp: u32) -> Operator {
    Operator {
        kind,
        shape: Shape::Gemm {
            m: m.into(),
            n: n.into(),
            k: k.into(),
        },
        tp,
        dtype: DType::Bf16,
    }
}

pub fn bare_operator(kind: Kind, bytes: u64, tp: u32) -> Operator {
    Operator {
        kind,
        shape: Shape::Bytes(Bytes::new(bytes)),
        tp,
        dtype: DType::Bf16,
    }
}

pub fn event(task: TaskId) -> Dep {
    (task, Via::Event).into()
}

pub fn flag(task: TaskId) -> Dep {
    (task, Via::KernelFlag).into()
}

/// A piece `(rows, cols)` of the buffer at `(row, col)` of the tensor.
pub fn piece(rows: (u32, u32), cols: (u32, u32), at: (u32, u32), initial: (u32, u32)) -> Piece {
    Piece {
        rows: Extent::new(rows.0, rows.1),
        cols: Extent::new(cols.0, cols.1),
        global_row: at.0,
        global_col: at.1,
        initial: Extent::new(initial.0, initial.1),
    }
}

pub fn buffer(
    b: &mut Builder,
    name: &str,
    tensor: TensorId,
    rank: Rank,
    shape: (u32, u32),
    role: Role,
    pieces: Vec<Piece>,
) -> BufferId {
    b.buffer(Buffer {
        name: name.into(),
        tensor,
        rank,
        rows: shape.0,
        cols: shape.1,
        slots: 1,
        role,
        pieces,
    })
}

pub fn gemm(a: Slice, b: Slice, out: Slice, accumulate: bool) -> Compute {
    Compute::Gemm {
        a,
        b,
        out,
        accumulate,
        kernel: GemmKernel::Gated,
        sms: 0,
    }
}

/// Per rank: gathered A, B and C.
pub struct AgGemm {
    pub a: Vec<BufferId>,
    pub b: Vec<BufferId>,
    pub c: Vec<BufferId>,
}

/// Buffers of AG+GEMM, in which every rank's gathered A holds the own shard at the start.
pub fn ag_gemm(b: &mut Builder, m: u32, n: u32, k: u32, tp: u32) -> AgGemm {
    let ta = b.tensor("A", m, k, 1);
    let tb = b.tensor("B", k, n, 1);
    let tc = b.tensor("C", m, n, k);
    let (rows, cols) = (m / tp, n / tp);
    let mut buffers = AgGemm {
        a: Vec::new(),
        b: Vec::new(),
        c: Vec::new(),
    };
    for rank in b.ranks() {
        let r = u32::from(rank.0);
        let own = piece((r * rows, rows), (0, k), (r * rows, 0), (0, 1));
        buffers
            .a
            .push(buffer(b, "A", ta, rank, (m, k), Role::Input, vec![own]));
        let own = piece((0, k), (0, cols), (0, r * cols), (0, 1));
        buffers
            .b
            .push(buffer(b, "B", tb, rank, (k, cols), Role::Input, vec![own]));
        let own = piece((0, m), (0, cols), (0, r * cols), (0, 0));
        buffers
            .c
            .push(buffer(b, "C", tc, rank, (m, cols), Role::Output, vec![own]));
    }
    buffers
}

/// Library all-gather, then one GEMM.
pub fn sequential(tp: u32) -> Schedule {
    let (m, n, k) = (2 * tp, 2 * tp, 3);
    let operator = gemm_operator(Kind::AgGemm, m, n, k, tp);
    let mut b = Builder::new(operator, "sequential", (0..tp).collect());
    let x = ag_gemm(&mut b, m, n, k, tp);
    let members: Vec<(Rank, Slice, Slice, &[Dep])> = (0..tp as usize)
        .map(|r| {
            let all = b.whole(x.a[r]);
            let own = b.rows(x.a[r], 0, 2 * r as u32, 2);
            (Rank(r as u16), own, all, &[][..])
        })
        .collect();
    let gathered = b.collective(
        CollectiveKind::AllGather,
        CollectiveLibrary::Ring,
        0,
        COMM,
        &members,
    );
    for (r, member) in gathered.into_iter().enumerate() {
        let work = gemm(b.whole(x.a[r]), b.whole(x.b[r]), b.whole(x.c[r]), false);
        b.compute(Rank(r as u16), COMPUTE, None, work, &[event(member)]);
    }
    b.finish()
}

/// Every rank pushes its shard to every other; a gated GEMM takes the shards as they arrive.
pub fn direct(tp: u32) -> Schedule {
    let (m, n, k) = (2 * tp, 2 * tp, 3);
    let operator = gemm_operator(Kind::AgGemm, m, n, k, tp);
    let mut b = Builder::new(operator, "direct", (0..tp).collect());
    let x = ag_gemm(&mut b, m, n, k, tp);
    let mut arrived = vec![None; (tp * tp) as usize];
    for step in 1..tp as usize {
        for from in 0..tp as usize {
            let to = (from + step) % tp as usize;
            let source = b.rows(x.a[from], 0, 2 * from as u32, 2);
            let target = b.rows(x.a[to], 0, 2 * from as u32, 2);
            let rank = Rank(from as u16);
            let sent = b.transfer(rank, COMM, source, target, Mover::CopyEngine, &[]);
            arrived[to * tp as usize + from] = Some(sent);
        }
    }
    for (r, arrived) in arrived.chunks(tp as usize).enumerate() {
        let rank = Rank(r as u16);
        let launch = b.launch("gemm", rank, 120);
        for step in 0..tp as usize {
            let part = (r + tp as usize - step) % tp as usize;
            let [a, out] = [x.a[r], x.c[r]].map(|of| b.rows(of, 0, 2 * part as u32, 2));
            let after: Vec<Dep> = arrived[part].map(flag).into_iter().collect();
            let work = gemm(a, b.whole(x.b[r]), out, false);
            b.compute(rank, COMPUTE, Some(launch), work, &after);
        }
    }
    b.finish()
}

/// Ring all-gather of one row per rank into a buffer of all rows.
pub fn ring_all_gather(tp: u32) -> Schedule {
    let operator = bare_operator(Kind::AllGather, u64::from(tp) * 16, tp);
    let mut b = Builder::new(operator, "ring", (0..tp).collect());
    let x = b.tensor("X", tp, 8, 1);
    let buffers: Vec<BufferId> = b
        .ranks()
        .map(|rank| {
            let pieces = (0..tp)
                .map(|row| {
                    let there = u32::from(row == u32::from(rank.0));
                    piece((row, 1), (0, 8), (row, 0), (0, there))
                })
                .collect();
            buffer(&mut b, "X", x, rank, (tp, 8), Role::InputOutput, pieces)
        })
        .collect();
    let mut last: Vec<Option<TaskId>> = vec![None; tp as usize];
    for step in 0..tp - 1 {
        let mut sent = last.clone();
        for r in 0..tp {
            let part = (r + tp - step) % tp;
            let to = (r + 1) % tp;
            let from = b.rows(buffers[r as usize], 0, part, 1);
            let target = b.rows(buffers[to as usize], 0, part, 1);
            let after: Vec<Dep> = last[r as usize].map(event).into_iter().collect();
            let rank = Rank(r as u16);
            let task = b.transfer(rank, COMM, from, target, Mover::CopyEngine, &after);
            sent[to as usize] = Some(task);
        }
        last = sent;
    }
    b.finish()
}

/// Partial products, pushed into a slot per peer where their rows belong, and summed there.
pub fn gemm_rs(tp: u32) -> Schedule {
    let (m, n, k) = (2 * tp, 4, 3 * tp);
    let operator = gemm_operator(Kind::GemmRs, m, n, k, tp);
    let mut b = Builder::new(operator, "direct", (0..tp).collect());
    let ta = b.tensor("A", m, k, 1);
    let tb = b.tensor("B", k, n, 1);
    let tc = b.tensor("C", m, n, k);
    let mut partial = Vec::new();
    let mut inbox = Vec::new();
    let mut output = Vec::new();
    let mut done = Vec::new();
    for rank in b.ranks() {
        let r = u32::from(rank.0);
        let own = piece((0, m), (0, 3), (0, 3 * r), (0, 1));
        let a = buffer(&mut b, "A", ta, rank, (m, 3), Role::Input, vec![own]);
        let own = piece((0, 3), (0, n), (3 * r, 0), (0, 1));
        let weights = buffer(&mut b, "B", tb, rank, (3, n), Role::Input, vec![own]);
        partial.push(b.scratch("C_partial", tc, rank, m, n, 1));
        inbox.push(b.scratch("C_inbox", tc, rank, 2, n, tp as u16));
        let own = piece((0, 2), (0, n), (2 * r, 0), (0, 0));
        output.push(buffer(
            &mut b,
            "C",
            tc,
            rank,
            (2, n),
            Role::Output,
            vec![own],
        ));
        let out = *partial.last().unwrap_or(&a);
        let work = gemm(b.whole(a), b.whole(weights), b.whole(out), false);
        done.push(b.compute(rank, COMPUTE, None, work, &[]));
    }
    for to in 0..tp as usize {
        let mut inputs = vec![b.rows(partial[to], 0, 2 * to as u32, 2)];
        let mut after = Vec::new();
        for step in 1..tp as usize {
            let from = (to + step) % tp as usize;
            let source = b.rows(partial[from], 0, 2 * to as u32, 2);
            let target = b.rows(inbox[to], from as u16, 0, 2);
            let rank = Rank(from as u16);
            let wait = [event(done[from])];
            let sent = b.transfer(rank, COMM, source, target, Mover::CopyEngine, &wait);
            inputs.push(target);
            after.push(event(sent));
        }
        let out = b.whole(output[to]);
        let work = Compute::Reduce { inputs, out };
        b.compute(Rank(to as u16), COMPUTE, None, work, &after);
    }
    b.finish()
}

/// Ring all-gather through a scratch buffer of two slots, handed on when the next rank is done.
pub fn two_slots(tp: u32) -> Schedule {
    let (m, n, k) = (2 * tp, 2 * tp, 3);
    let operator = gemm_operator(Kind::AgGemm, m, n, k, tp);
    let mut b = Builder::new(operator, "ring-exchange", (0..tp).collect());
    let ta = b.tensor("A", m, k, 1);
    let x = ag_gemm_own(&mut b, ta, m, n, k, tp);
    let inbox: Vec<BufferId> = b
        .ranks()
        .map(|rank| b.scratch("A_inbox", ta, rank, 2, k, 2))
        .collect();
    let ranks = tp as usize;
    // By rank: the transfer that filled its slot in the last step, and the tasks that read it.
    let mut filled: Vec<Option<TaskId>> = vec![None; ranks];
    let mut read: Vec<Vec<Vec<TaskId>>> = vec![vec![Vec::new(); 2]; ranks];
    for step in 0..ranks {
        let slot = |step: usize| (step % 2) as u16;
        let source = |b: &Builder, r: usize| match step {
            0 => b.whole(x.a[r]),
            _ => b.rows(inbox[r], slot(step - 1), 0, 2),
        };
        for r in 0..ranks {
            let rank = Rank(r as u16);
            let part = (r + ranks - step) % ranks;
            let out = b.rows(x.c[r], 0, 2 * part as u32, 2);
            let after: Vec<Dep> = filled[r].map(event).into_iter().collect();
            let work = gemm(source(&b, r), b.whole(x.b[r]), out, false);
            let multiplied = b.compute(rank, COMPUTE, None, work, &after);
            if step > 0 {
                read[r][(step - 1) % 2].push(multiplied);
            }
        }
        if step + 1 == ranks {
            break;
        }
        let mut sent = vec![None; ranks];
        for r in 0..ranks {
            let to = (r + 1) % ranks;
            let target = b.rows(inbox[to], slot(step), 0, 2);
            let mut after: Vec<Dep> = filled[r].map(event).into_iter().collect();
            after.extend(read[to][step % 2].drain(..).map(event));
            let from = source(&b, r);
            let task = b.transfer(
                Rank(r as u16),
                COMM,
                from,
                target,
                Mover::CopyEngine,
                &after,
            );
            sent[to] = Some(task);
            if step > 0 {
                read[r][(step - 1) % 2].push(task);
            }
        }
        filled = sent;
    }
    b.finish()
}

fn ag_gemm_own(b: &mut Builder, ta: TensorId, m: u32, n: u32, k: u32, tp: u32) -> AgGemm {
    let tb = b.tensor("B", k, n, 1);
    let tc = b.tensor("C", m, n, k);
    let (rows, cols) = (m / tp, n / tp);
    let mut buffers = AgGemm {
        a: Vec::new(),
        b: Vec::new(),
        c: Vec::new(),
    };
    for rank in b.ranks() {
        let r = u32::from(rank.0);
        let own = piece((0, rows), (0, k), (r * rows, 0), (0, 1));
        let a = buffer(b, "A", ta, rank, (rows, k), Role::Input, vec![own]);
        let own = piece((0, k), (0, cols), (0, r * cols), (0, 1));
        let w = buffer(b, "B", tb, rank, (k, cols), Role::Input, vec![own]);
        let own = piece((0, m), (0, cols), (0, r * cols), (0, 0));
        let c = buffer(b, "C", tc, rank, (m, cols), Role::Output, vec![own]);
        buffers.a.push(a);
        buffers.b.push(w);
        buffers.c.push(c);
    }
    buffers
}

/// Every rank sends one row to every rank, its own copied as well.
pub fn all_to_all(tp: u32) -> Schedule {
    let operator = bare_operator(Kind::AllToAll, u64::from(tp) * 16, tp);
    let mut b = Builder::new(operator, "direct", (0..tp).collect());
    let x = b.tensor("X", tp * tp, 8, 1);
    let mut buffers = Vec::new();
    for rank in b.ranks() {
        let r = u32::from(rank.0);
        let own = piece((0, tp), (0, 8), (r * tp, 0), (0, 1));
        let input = buffer(&mut b, "X_in", x, rank, (tp, 8), Role::Input, vec![own]);
        let pieces = (0..tp).map(|s| piece((s, 1), (0, 8), (s * tp + r, 0), (0, 0)));
        let pieces = pieces.collect();
        let output = buffer(&mut b, "X_out", x, rank, (tp, 8), Role::Output, pieces);
        buffers.push((input, output));
    }
    for from in 0..tp {
        for to in 0..tp {
            let source = b.rows(buffers[from as usize].0, 0, to, 1);
            let target = b.rows(buffers[to as usize].1, 0, from, 1);
            let rank = Rank(from as u16);
            b.transfer(rank, COMM, source, target, Mover::CopyEngine, &[]);
        }
    }
    b.finish()
}

/// All samples by name, for `tp` ranks.
pub fn all(tp: u32) -> Vec<(&'static str, Schedule)> {
    vec![
        ("sequential", sequential(tp)),
        ("direct", direct(tp)),
        ("ring all-gather", ring_all_gather(tp)),
        ("gemm + rs", gemm_rs(tp)),
        ("two slots", two_slots(tp)),
        ("all-to-all", all_to_all(tp)),
        ("split k", crate::kernels::split_k(tp)),
    ]
}
