use super::*;
use crate::calibrate::machine::kernels::Kernel;
use crate::{device, topology};

fn machine(gpus: u32) -> Machine {
    Machine {
        name: "box".to_owned(),
        gpus,
        model: "NVIDIA \"H200\"".to_owned(),
        hashes: vec!["00ff".to_owned()],
        peers: true,
        nvlink: true,
        sms: 132,
        memory: 150_000_000_001,
        l2: 60 << 20,
        software: "driver 580.1".to_owned(),
        date: "2026-11-30".to_owned(),
    }
}

fn facts() -> Facts {
    [
        ("kernel.each", 1.912_34e-6),
        ("kernel.first", 4.9e-6),
        ("between.record", 0.4e-6),
        ("nccl.time.all-gather.4096", 9e-6),
        ("nccl.time.all-gather.1048576", 20e-6),
        ("p2p.start", 9.567_89e-6),
        ("p2p.bandwidth", 393.456_78e9),
        ("host.d2h", 55.1e9),
        ("host.h2d", 54.3e9),
        ("host.both", 99.9e9),
        ("host.exchange", 43.2e9),
        ("nccl.rate", 250e9),
        ("p2p.engines", 2.0),
        ("odd", 1.5),
    ]
    .into_iter()
    .map(|(name, value)| {
        let spread = Estimate {
            value,
            low: 0.99 * value,
            high: 1.01 * value,
            n: 9,
        };
        (name.to_owned(), spread)
    })
    .collect()
}

fn products() -> Vec<Product> {
    let mut all = Vec::new();
    for (k, n) in [(8192, 8192), (4096, 4096)] {
        for m in [128, 1024, 8192_u64] {
            let seconds = 10e-6 + 2.0 * (m * n * k) as f64 / 700e12;
            let time = Estimate {
                value: seconds,
                low: 0.99 * seconds,
                high: 1.02 * seconds,
                n: 5,
            };
            let tile = if m < 1024 { (64, 128) } else { (128, 256) };
            all.push(Product {
                m,
                n,
                k,
                time,
                alone: time,
                kernel: Some(Kernel {
                    tile,
                    split: 1,
                    cluster: (1, 2),
                }),
            });
        }
    }
    all
}

fn choices() -> Choices {
    let kernel = |tile, split| Kernel {
        tile,
        split,
        cluster: (1, 2),
    };
    let rows = [
        (64, kernel((64, 64), 4)),
        (128, kernel((64, 64), 4)),
        (256, kernel((64, 128), 1)),
    ];
    [((1024, 512), rows.into_iter().collect())]
        .into_iter()
        .collect()
}

fn load(text: &str) -> topology::Topology {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("box.yaml");
    std::fs::write(&path, text).unwrap();
    topology::load(path.to_str().unwrap(), &[]).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

#[test]
fn what_is_written_is_read_back() {
    let base = device::load("h200").unwrap();
    for gpus in [1, 2, 8] {
        let machine = machine(gpus);
        let (text, refused) = text(
            &machine,
            &base,
            &facts(),
            (&products(), &choices(), &Beside::default()),
            &["a: note\nof two lines".to_owned()],
        );
        assert!(refused.is_empty(), "{refused:?}");
        let found = load(&text);
        let all = fields(&facts(), &base, machine.latency(), machine.kind());
        let (wanted, _) = apply(&base, &all, machine.kind());
        let gpu = found.device(0);
        for (one, two) in device::numbers(gpu)
            .into_iter()
            .zip(device::numbers(&wanted))
        {
            assert_eq!(one.name, two.name);
            let own = [
                "memory.size",
                "memory.l2",
                "compute.sustained",
                "gemm.overhead",
            ];
            if !own.contains(&one.name.as_str()) {
                let close = (one.value - two.value).abs() <= 1e-9 * two.value;
                assert!(close, "{one:?} {two:?}");
            }
        }
        assert_eq!(
            (gpu.memory.get(), gpu.l2.get()),
            (150_000_000_001, 60 << 20)
        );
        assert_eq!(gpu.gemm_table.len(), 6);
        let run = gpu.costs.more.run.unwrap().get();
        assert!((run - (4.9e-6 - 1.912_34e-6)).abs() < 1e-10);
        assert!((gpu.costs.more.event_record.unwrap().get() - 0.4e-6).abs() < 1e-12);
        let known = gpu.library.table.points[0].len();
        assert_eq!(known, if gpus > 1 { 2 } else { known });
        let library = gpu.gemm_library.as_deref().unwrap();
        assert_eq!((library.algorithms.len(), library.choices.len()), (3, 3));
        let asked = library.choices.iter().find(|c| (c.n, c.k) == (512, 1024));
        assert_eq!(asked.unwrap().rows, [(128, 0), (256, 1)]);
        let launch = gpu.costs.lane.get() + gpu.costs.kernel_start.get();
        for product in products() {
            let same =
                |p: &&device::MeasuredGemm| (p.m, p.n, p.k) == (product.m, product.n, product.k);
            let point = gpu.gemm_table.iter().find(same).unwrap();
            let error = (point.time.get() + launch) / product.time.value - 1.0;
            assert!(error.abs() < 1e-4, "{error}");
        }
        assert!(text.contains("#= odd = 1.5000e0 from 1.4850e0 to 1.5150e0, n 9"));
        assert!(text.contains("kept from profile `h200`"));
    }
}

#[test]
fn a_calibration_of_nothing_is_the_profile_it_began_with() {
    let base = device::load("h100-sxm").unwrap();
    let (text, _) = text(
        &machine(2),
        &base,
        &Facts::new(),
        (&[], &Choices::new(), &Beside::default()),
        &[],
    );
    let found = load(&text);
    assert_eq!(found.device(0).costs, base.costs);
    assert_eq!(found.device(0).tiles, base.tiles);
    // No bandwidth between GPUs was measured, so they meet in host memory.
    assert!(found.kinds.iter().all(|kind| !kind.starts_with("nvlink")));
}

#[test]
fn memory_is_written_by_the_bytes_staged() {
    // Exchanges in which memory carries 4 · 45 GB/s with rings of 8 MiB and 4 · 30 with rings of 32:
    // a chunk takes 2·g + (s − b·g)/x with g = 5 us and b the mean of both ways.
    let mut facts = facts();
    let exact = |value| Estimate::exact(value, 5);
    let (start, link) = (5e-6, 54.7e9);
    facts.insert("host.next".to_owned(), exact(start));
    for (ring, chunk, x) in [(8_u64, 2_u64, 45e9), (32, 4, 30e9), (32, 8, 29e9)] {
        let bytes = (chunk << 20) as f64;
        let seconds = 2.0 * start + (bytes - link * start) / x;
        let name = format!("host.exchange.{chunk}MiB.{ring}MiB");
        facts.insert(name, exact(bytes / seconds));
    }
    // Two slots keep no two ends busy.
    facts.insert("host.exchange.8MiB.16MiB".to_owned(), exact(1e9));
    let base = device::load("h200").unwrap();
    let products = (&products()[..], &choices(), &Beside::default());
    let (text, _) = text(&machine(2), &base, &facts, products, &[]);
    let found = load(&text);
    let dram = found.shared.iter().find(|s| s.name == "dram0").unwrap();
    let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-3 * b, "{a} {b}");
    near(dram.bandwidth.get(), 180e9);
    near(dram.capacity((16 << 20) as f64), 180e9);
    near(dram.capacity((64 << 20) as f64), 120e9);
    let port = found.shared.iter().find(|s| s.name == "port0").unwrap();
    near(port.bandwidth.get(), 99.9e9);
}
