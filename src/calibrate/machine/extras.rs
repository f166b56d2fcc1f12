//! Numbers that a profile may have beyond those that every profile has.
//!
//! ```text
//! copy_next        = p2p.each − 4 KiB / rate − lane − latency        a copy right behind another
//! host_copy_start  = mean of host.d2h.start and host.h2d.start − run − lane − latency
//! host_copy_next   = host.next − lane − latency                      of chunks of an exchange
//! event_record …   = slopes of chains with a command between kernels less those without
//! flag_local       = value.same.extra + lane                         between streams of one GPU
//! graph_lane       = kernel.each.graph − graph_kernel_start          in graphs, at most kernel_start
//! graph_event      = graph_lane + event.same.graph.extra             and so between GPUs
//! run              = kernel.first − kernel.each                      a sample of nothing
//! run_graph        = order.graph at no kernels
//! beside           = rate / (1 − 1/slowed)                           what copies leave a GEMM
//! library.beside   = 1 / crowd.KIND.SIZE.collective                  what a GEMM leaves a collective
//! block_share      = mean of margin.block.KIND.SIZE                  of collectives on scattered SMs
//! ```

use super::estimate::Estimate;
use super::file::HOST_LATENCY;
use super::profile::{Facts, Field, mean};

/// What the facts tell of them; `start`, `lane` and `latency` as in [`super::profile`] \[s\].
pub fn extras(facts: &Facts, start: f64, lane: f64, latency: f64) -> Vec<Field> {
    let get = |name: &str| facts.get(name).copied();
    let less = |one: Option<Estimate>, seconds: f64| {
        let fixed = |n| Estimate::exact(seconds, n);
        one.map(|one| one.less(fixed(one.n)))
    };
    let plus = |one: Option<Estimate>, seconds: f64| one.map(|one| one.map(|v| v + seconds));
    let small = get("p2p.bandwidth").map_or(0.0, |rate| 4096.0 / rate.value);
    let each = get("kernel.each.graph");
    let graph_start = each.map(|each| each.map(|v| v.min(start)));
    let graph_lane = graph_start.and_then(|start| less(each, start.value));
    let in_graph = graph_lane.map_or(0.0, |lane| lane.value);
    let rest = get("kernel.first").zip(get("kernel.each"));
    let ways = [get("host.d2h.start"), get("host.h2d.start")];
    let to_host = mean(&ways.into_iter().flatten().collect::<Vec<_>>());
    let empty = rest.map_or(0.0, |(first, each)| first.value - each.value);
    let fields = [
        (
            "host_copy_start",
            less(to_host, empty.max(0.0) + lane + HOST_LATENCY),
            "copies to and from pinned memory at size 0 less events, lane and latency",
        ),
        (
            "host_copy_next",
            less(get("host.next"), lane + HOST_LATENCY),
            "chunks of an exchange through pinned memory at size 0 less lane and latency",
        ),
        (
            "copy_next",
            less(get("p2p.each"), small + lane + latency),
            "copies of 4 KiB in a row, each further one",
        ),
        (
            "event_record",
            get("between.record"),
            "record of an untimed event between two kernels",
        ),
        (
            "event_wait",
            get("between.wait"),
            "satisfied wait for an event between two kernels",
        ),
        (
            "flag_wait",
            get("between.flag-wait"),
            "satisfied wait for a flag between two kernels",
        ),
        (
            "flag_write",
            get("between.flag-write"),
            "flag written to the other GPU between two kernels",
        ),
        (
            "flag_write_copy",
            get("between.copy.flag-write"),
            "flag written to the other GPU between two copies",
        ),
        (
            "flag_local",
            plus(get("value.same.extra"), lane),
            "flag written to blocked wait between two streams of a GPU",
        ),
        (
            "graph_kernel_start",
            graph_start,
            "empty kernels in a row in a graph, at most kernel_start",
        ),
        (
            "graph_lane",
            graph_lane,
            "empty kernels in a row in a graph less their start",
        ),
        (
            "graph_event",
            plus(get("event.same.graph.extra"), in_graph),
            "edges between two streams in a graph",
        ),
        (
            "graph_event_peer",
            plus(get("event.peer.graph.extra"), in_graph),
            "edges between two GPUs in a graph",
        ),
        (
            "run",
            rest.map(|(first, each)| first.less(each)),
            "a first kernel less each further one",
        ),
        (
            "run_graph",
            get("order.graph.first"),
            "graphs of kernels in a row, at no kernel",
        ),
    ];
    let field = |(name, value, how): (&str, Option<Estimate>, &'static str)| {
        Some(Field {
            name: format!("costs.{name}"),
            value: value.filter(|value| value.value.is_finite())?,
            kind: "fitted",
            how,
        })
    };
    let costs = fields.into_iter().filter_map(field);
    costs.chain(beside(facts)).collect()
}

/// Rates at which copies would leave a GEMM nothing: of those sent what a GEMM loses beside them, of
/// those received what it loses beyond that beside an exchange.
fn beside(facts: &Facts) -> Vec<Field> {
    let get = |name: &str| facts.get(name).copied();
    let lost = |name: &str| get(&format!("slowed.{name}")).map(|s| s.map(|s| 1.0 - 1.0 / s));
    let stops = |lost: Option<Estimate>, rate: Option<Estimate>| {
        let (lost, rate) = lost.zip(rate)?;
        (lost.value > 0.0).then(|| lost.map(|lost| rate.value / lost.max(f64::MIN_POSITIVE)))
    };
    let sent = stops(lost("push"), get("p2p.bandwidth"));
    let each = get("p2p.both").map(|both| both.map(|both| both / 2.0));
    let received = sent.zip(each).and_then(|(sent, each)| {
        let more = lost("push-and-receive").map(|lost| lost.map(|l| l - each.value / sent.value));
        stops(more, Some(each))
    });
    let all = [
        ("sent", sent, "a GEMM of 8192 beside pushes"),
        (
            "received",
            received,
            "a GEMM of 8192 beside an exchange, less what sending costs",
        ),
        (
            "host",
            stops(lost("host"), get("host.both")),
            "a GEMM of 8192 beside copies to and from the host",
        ),
    ];
    let field = |(name, value, how): (&str, Option<Estimate>, &'static str)| {
        Some(Field {
            name: format!("copies.beside_{name}"),
            value: value.filter(|v| v.value.is_finite() && v.low > 0.0)?,
            kind: "measured",
            how,
        })
    };
    let collectives = ["all-gather", "reduce-scatter", "all-reduce"].map(|kind| {
        let sizes = ["8MiB", "64MiB"].map(|size| get(&format!("crowd.{kind}.{size}.collective")));
        let slowed = mean(&sizes.into_iter().flatten().collect::<Vec<_>>());
        Some(Field {
            name: format!("library.beside_{}", kind.replace('-', "_")),
            value: slowed?.map(|slowed| slowed.max(1.0).recip()),
            kind: "measured",
            how: "collectives of 8 and 64 MiB of each member with a GEMM that outlasts them",
        })
    });
    let rates = all.into_iter().filter_map(field);
    let rates = rates.chain(collectives.into_iter().flatten());
    rates.chain(scatter(facts)).collect()
}

/// What collectives find of the SMs that a GEMM leaves, where that was measured whole.
fn scatter(facts: &Facts) -> Vec<Field> {
    let get = |name: &str| facts.get(name).copied();
    let blocks: Vec<Estimate> = (facts.iter())
        .filter(|(name, _)| name.starts_with("margin.block."))
        .map(|(_, block)| *block)
        .collect();
    let share = mean(&blocks).map(|block| block.map(|block| block.clamp(f64::MIN_POSITIVE, 1.0)));
    let fields = [
        (
            "first",
            get("race.first"),
            "rounds in which a collective comes before a GEMM that becomes ready with it, on a GPU",
        ),
        (
            "cluster",
            get("margin.cluster"),
            "blocks of a collective that begin together, as its launch says",
        ),
        (
            "places",
            get("margin.places"),
            "as many blocks that a GPU holds at once, as the driver says",
        ),
        (
            "places_wide",
            get("margin.places.wide"),
            "clusters of twice as many blocks that a GPU holds at once, as the driver says",
        ),
        (
            "block_share",
            share,
            "collectives beside a GEMM that leaves as many SMs as they have blocks, for each turn",
        ),
    ];
    let field = |(name, value, how): (&str, Option<Estimate>, &'static str)| {
        Some(Field {
            name: format!("library.{name}"),
            value: value?,
            kind: "measured",
            how,
        })
    };
    fields.into_iter().filter_map(field).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_blocks_of_collectives_find_comes_from_launches_and_the_driver() {
        let facts: Facts = [
            ("margin.cluster", 4.0),
            ("margin.places", 30.0),
            ("margin.block.all-gather.8MiB", 1.1),
            ("margin.block.reduce-scatter.8MiB", 0.7),
            ("race.first", 0.5),
        ]
        .into_iter()
        .map(|(name, value)| (name.to_owned(), Estimate::exact(value, 3)))
        .collect();
        let of = |facts: &Facts, name: &str| {
            let found = extras(facts, 0.0, 0.0, 0.0);
            found.iter().find(|f| f.name == name).map(|f| f.value.value)
        };
        let counts =
            ["cluster", "places", "first"].map(|name| of(&facts, &format!("library.{name}")));
        assert_eq!(counts, [Some(4.0), Some(30.0), Some(0.5)]);
        let share = of(&facts, "library.block_share").unwrap();
        assert!((share - 0.9).abs() < 1e-12);
        let longer: Facts = [(
            "margin.block.all-reduce.2MiB".to_owned(),
            Estimate::exact(1.2, 3),
        )]
        .into_iter()
        .collect();
        assert_eq!(of(&longer, "library.block_share"), Some(1.0));
    }

    #[test]
    fn numbers_come_back_from_what_they_add_up_to() {
        let facts: Facts = [
            ("p2p.each", 2.4e-6),
            ("p2p.bandwidth", 400e9),
            ("between.record", 0.3e-6),
            ("crowd.reduce-scatter.8MiB.collective", 1.5),
            ("crowd.reduce-scatter.64MiB.collective", 1.7),
            ("host.d2h.start", 11e-6),
            ("host.h2d.start", 10e-6),
            ("host.next", 4.9e-6),
            ("value.same.extra", 4.1e-6),
            ("kernel.each.graph", 1.3e-6),
            ("event.peer.graph.extra", 2.6e-6),
            ("kernel.first", 4.4e-6),
            ("kernel.each", 1.4e-6),
        ]
        .into_iter()
        .map(|(name, value)| (name.to_owned(), Estimate::exact(value, 3)))
        .collect();
        let found = extras(&facts, 1e-6, 0.4e-6, 0.5e-6);
        let of = |name: &str| {
            let name = format!("costs.{name}");
            found.iter().find(|f| f.name == name).map(|f| f.value.value)
        };
        let close = |name, wanted: f64| {
            let found = of(name).unwrap();
            assert!((found - wanted).abs() < 1e-12, "{name} {found} {wanted}");
        };
        close("copy_next", 2.4e-6 - 4096.0 / 400e9 - 0.4e-6 - 0.5e-6);
        close("event_record", 0.3e-6);
        let kept = found
            .iter()
            .find(|f| f.name == "library.beside_reduce_scatter");
        assert!((kept.unwrap().value.value - 1.0 / 1.6).abs() < 1e-12);
        close("host_copy_start", 10.5e-6 - 3e-6 - 0.4e-6 - 0.5e-6);
        close("host_copy_next", 4.9e-6 - 0.4e-6 - 0.5e-6);
        close("flag_local", 4.5e-6);
        close("graph_kernel_start", 1e-6);
        close("graph_lane", 0.3e-6);
        close("graph_event_peer", 2.9e-6);
        close("run", 3e-6);
        assert_eq!(of("run_graph"), None);
        assert!(extras(&Facts::new(), 1e-6, 0.0, 0.0).is_empty());
    }

    /// The shipped profile's costs that a profile need not state, from the facts behind its numbers (its last lines).
    /// Not the two of copies to the host: the facts there are of fits to all samples, those costs of fits to medians.
    #[test]
    fn shipped_costs_are_what_the_recorded_facts_say() {
        let text = include_str!("../../../topologies/h200-pair-calibrated.yaml");
        let fact = |line: &str| {
            let (name, rest) = line.strip_prefix("#= ")?.split_once(" = ")?;
            let value: f64 = rest.split(' ').next()?.parse().ok()?;
            Some((name.to_owned(), Estimate::exact(value, 1)))
        };
        let facts: Facts = text.lines().filter_map(fact).collect();
        let shipped = crate::topology::load("h200-pair-calibrated", &[]).unwrap();
        let costs = shipped.device(0).costs;
        let found = extras(&facts, costs.kernel_start.get(), costs.lane.get(), 0.5e-6);
        let more = costs.more;
        for (name, stated) in [
            ("copy_next", more.copy_next),
            ("event_record", more.event_record),
            ("event_wait", more.event_wait),
            ("flag_wait", more.flag_wait),
            ("flag_write", more.flag_write),
            ("flag_write_copy", more.flag_write_copy),
            ("flag_local", more.flag_local),
            ("graph_kernel_start", more.graph_kernel_start),
            ("graph_lane", more.graph_lane),
            ("graph_event", more.graph_event),
            ("graph_event_peer", more.graph_event_peer),
            ("run", more.run),
            ("run_graph", more.run_graph),
        ] {
            let cost = found.iter().find(|f| f.name == format!("costs.{name}"));
            let (cost, stated) = (cost.unwrap().value.value, stated.unwrap().get());
            // Facts have five digits.
            assert!((cost - stated).abs() < 5e-10, "{name}: {cost} {stated}");
        }
    }
}
