//! `fusion-alltoall`: every pair of ranks exchanges directly while one GEMM kernel runs.
//!
//! Tm is the exchange's last arrival (all pairs, as many at once as there are copy engines, under
//! the fan-out curves of the links), in n − 1 steps; in pieces, the peers take turns. GEMM+RS has one group before the first copy,
//! and the owner's sum after the last arrival; GEMM+AR then sends the sums to everyone.

use super::fusion::{Frame, Fusion, Gathered, Kernel, Paced, group, line};
use crate::operator::Kind;
use crate::predict::chains::{Chain, Linear};
use crate::predict::form::Pipeline;
use crate::predict::model::{Model, Setting};
use crate::predict::network::Network;
use crate::predict::site::Site;

pub(super) fn form<P: Pipeline>(model: &Model<'_>, setting: Setting) -> Option<P> {
    Some(new(model.site, model.net, setting)?.form(&Kernel::new(model)))
}

/// The fusion in one setting; `None` where the exchange of so many ranks and pieces is not known.
pub(in crate::predict) fn new(site: &Site, net: &Network, setting: Setting) -> Option<Fusion> {
    let (gather, scatter) = net.exchanges(setting.chunks)?;
    let (c, part) = (&site.costs, site.part);
    let (start, lane) = (c.copy_start.get(), c.lane.get());
    let gathers = site.kind == Kind::AgGemm;
    let copies = (site.ranks - 1.0) * setting.parts;
    let frame = Frame::new(site, copies, if gathers { copies } else { 2.0 * copies });
    let exchange = if gathers { gather } else { scatter };
    let all = line(&exchange.line(start, lane));
    // The last copy is handed over before its signal.
    let [flag, leaves, landed, first, signal] = [
        c.kernel_flag.get(),
        site.flag_local(),
        c.stream_flag.get(),
        c.submit_kernel.get() + c.submit_copy.get(),
        site.submits(0.0, 0.0, 1.0),
    ]
    .map(Linear::seconds);
    // The sums' way to everyone, and the owner's sum before it.
    let back = match site.kind {
        Kind::GemmAr => Linear::seconds(c.event.get()) + line(&gather.line(start, lane)),
        _ => Linear::ZERO,
    };
    let after = back + line(&site.sum_line());
    let links = |before, work, count, after| Chain {
        resource: "links",
        before,
        work,
        count,
        after,
    };
    let mut chains = Vec::new();
    if !site.terms.stages {
        frame.begin(&mut chains, back);
        let before = if gathers { first } else { frame.start };
        let last = Linear::TILES * part + back;
        chains.push(links(before, all * frame.counted, frame.steps, last));
        return Some(Fusion::new(&frame, chains));
    }
    if gathers {
        frame.begin(&mut chains, Linear::ZERO);
        let copied = line(&exchange.piece(start)) - signal;
        for group in group(part * setting.part) {
            frame.host(&mut chains, copied + flag + group);
        }
        let timed = exchange.timed(site.terms.graph_launch);
        if let Some(arrivals) = timed.filter(|_| site.terms.launch) {
            let gathered = Gathered {
                arrivals: arrivals.clone(),
                flag: c.kernel_flag.get(),
                part: part * setting.part,
            };
            return Some(Fusion::new(&frame, chains).gathered(gathered));
        }
        // The shard that holds the kernel up most with the groups from it on, or the last one with a
        // wave.
        let mut last = frame.steps;
        for (before, arrival) in exchange.arrivals(start, lane) {
            let rest = Linear::TILES * ((frame.ranks - before) * part);
            chains.push(links(first, line(&arrival), before, flag + rest));
            last = before;
        }
        for group in group(part * setting.part) {
            chains.push(links(first, all, last, flag + group));
        }
        return Some(Fusion::new(&frame, chains));
    }
    frame.begin(&mut chains, after);
    // The groups leave one after another as they are computed; one wave may take longer than all.
    let groups = Linear::TILES * (frame.steps * part);
    let paced = [Linear::ZERO, Linear::WAVE - groups].map(|wait| {
        links(
            frame.start + wait + leaves,
            groups,
            frame.steps,
            landed + after,
        )
    });
    // The sum is handed over after all copies and waits for each, and for the last one to land.
    let sum = Linear::seconds(site.submits(0.0, 1.0, copies));
    frame.host(&mut chains, sum + after);
    frame.host(
        &mut chains,
        line(&exchange.piece(start)) - signal + landed + after,
    );
    if site.kind == Kind::GemmAr {
        // Scattered copies wait and signal, the sum between waits for each and signals, copies of it wait;
        // the last copy is on its way after all are handed over.
        let frame = Frame::new(site, 2.0 * copies, 4.0 * copies + 1.0);
        let sum = Linear::seconds(c.submit_kernel.get());
        frame.host(&mut chains, sum + line(&gather.piece(start)));
    }
    let pace = Paced {
        exchange: exchange.clone(),
        start,
        lane,
        part,
    };
    Some(Fusion::new(&frame, chains).paced(pace, paced.to_vec()))
}
