// Times SimGrid on collectives: N hosts, 1 MiB per message, links of 50 GB/s and 500 ns.
//
//   collectives ring N --cfg=...     all-gather: N - 1 steps, each host to the next, one link each
//   collectives star N --cfg=...     all-to-all: all N(N - 1) flows at once through a switch
//
// Prints the simulated time [s] and the number of messages.

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <simgrid/s4u.hpp>

namespace sg4 = simgrid::s4u;

constexpr double bandwidth = 50e9;
constexpr double latency = 500e-9;
constexpr uint64_t bytes = 1 << 20;

static sg4::Link* link(sg4::NetZone* zone, const char* name, size_t number)
{
  return zone->create_link(name + std::to_string(number), bandwidth)->set_latency(latency)->seal();
}

int main(int argc, char** argv)
{
  sg4::Engine engine(&argc, argv);
  if (argc != 3) {
    std::fprintf(stderr, "usage: collectives ring|star N\n");
    return 2;
  }
  const bool ring = std::strcmp(argv[1], "ring") == 0;
  const size_t n = std::strtoul(argv[2], nullptr, 10);

  // A star zone stores two routes per host; the ring needs one per host of a full zone.
  auto* zone = ring ? sg4::create_full_zone("ring") : sg4::create_star_zone("star");
  std::vector<sg4::Host*> hosts;
  for (size_t i = 0; i < n; i++)
    hosts.push_back(zone->create_host("h" + std::to_string(i), 1e9)->seal());
  for (size_t i = 0; i < n; i++) {
    if (ring) {
      sg4::LinkInRoute edge(link(zone, "edge", i));
      zone->add_route(hosts[i]->get_netpoint(), hosts[(i + 1) % n]->get_netpoint(), nullptr, nullptr, {edge}, false);
    } else {
      sg4::LinkInRoute up(link(zone, "up", i));
      sg4::LinkInRoute down(link(zone, "down", i));
      zone->add_route(hosts[i]->get_netpoint(), nullptr, nullptr, nullptr, {up}, false);
      zone->add_route(nullptr, hosts[i]->get_netpoint(), nullptr, nullptr, {down}, false);
    }
  }
  zone->seal();

  if (ring) {
    for (size_t i = 0; i < n; i++)
      sg4::Actor::create("rank", hosts[i], [i, n]() {
        auto* in = sg4::Mailbox::by_name("to" + std::to_string(i));
        auto* out = sg4::Mailbox::by_name("to" + std::to_string((i + 1) % n));
        int token = 0;
        for (size_t step = 1; step < n; step++) {
          auto sent = out->put_async(&token, bytes);
          in->get<int>();
          sent->wait();
        }
      });
  } else {
    sg4::Actor::create("starter", hosts[0], [&]() {
      std::vector<sg4::CommPtr> flows;
      for (size_t i = 0; i < n; i++)
        for (size_t k = 1; k < n; k++)
          flows.push_back(sg4::Comm::sendto_async(hosts[i], hosts[(i + k) % n], bytes));
      for (auto& flow : flows)
        flow->wait();
    });
  }
  engine.run();
  std::printf("%.9g s, %zu messages\n", sg4::Engine::get_clock(), n * (n - 1));
  return 0;
}
