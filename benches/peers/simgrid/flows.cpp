// Performs one file of flows with SimGrid and writes when each of them ends.
//
//   flows PLATFORM.flows FINISH.txt --cfg=...
//
// Lines of the input (`#` starts a comment; numbers in B/s, seconds and bytes):
//   weights latency|one                    how Duet weighs the flows; SimGrid's CM02 always divides
//                                          by the route's latency, which `one` makes equal
//   hosts N
//   link BANDWIDTH LATENCY                 links are numbered from 0 in order of appearance
//   route FROM TO LINK LINK ...            one way
//   flow START FROM TO BYTES
// Output: one finish time [s] per flow, in file order.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

#include <simgrid/s4u.hpp>

namespace sg4 = simgrid::s4u;

struct Flow {
  double start;
  size_t from, to;
  uint64_t bytes;
};

[[noreturn]] static void fail(const std::string& message)
{
  std::cerr << "flows: " << message << "\n";
  std::exit(3);
}

int main(int argc, char** argv)
{
  sg4::Engine engine(&argc, argv);
  if (argc != 3)
    fail("usage: flows PLATFORM.flows FINISH.txt");

  std::ifstream in(argv[1]);
  if (!in)
    fail(std::string("cannot read ") + argv[1]);

  auto* zone = sg4::create_full_zone("platform");
  std::vector<sg4::Host*> hosts;
  std::vector<sg4::Link*> links;
  std::vector<Flow> flows;

  std::string text;
  for (int number = 1; std::getline(in, text); number++) {
    std::istringstream line(text.substr(0, text.find('#')));
    std::string word;
    if (!(line >> word) || word == "weights")
      continue;
    std::string a, b;
    if (word == "hosts") {
      size_t count = 0;
      line >> count;
      for (size_t h = 0; h < count; h++)
        hosts.push_back(zone->create_host("h" + std::to_string(h), 1e9)->seal());
    } else if (word == "link") {
      line >> a >> b; // strtod, because streams round shortest decimals differently on some systems
      links.push_back(zone->create_link("l" + std::to_string(links.size()), std::strtod(a.c_str(), nullptr))
                          ->set_latency(std::strtod(b.c_str(), nullptr))
                          ->seal());
    } else if (word == "route") {
      size_t from = 0, to = 0, link = 0;
      std::vector<sg4::LinkInRoute> route;
      line >> from >> to;
      while (line >> link)
        route.emplace_back(links.at(link));
      line.clear();
      zone->add_route(hosts.at(from)->get_netpoint(), hosts.at(to)->get_netpoint(), nullptr, nullptr, route, false);
    } else if (word == "flow") {
      Flow flow{};
      line >> a >> flow.from >> flow.to >> flow.bytes;
      flow.start = std::strtod(a.c_str(), nullptr);
      flows.push_back(flow);
    } else {
      fail("line " + std::to_string(number) + ": unknown word `" + word + "`");
    }
    if (line.fail())
      fail("line " + std::to_string(number) + ": too few values");
  }
  zone->seal();

  std::vector<size_t> order(flows.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](size_t x, size_t y) { return flows[x].start < flows[y].start; });

  std::vector<sg4::CommPtr> comms(flows.size());
  sg4::Actor::create("starter", hosts.at(0), [&]() {
    for (size_t i : order) {
      const Flow& flow = flows[i];
      if (flow.start > sg4::Engine::get_clock())
        sg4::this_actor::sleep_until(flow.start);
      comms[i] = sg4::Comm::sendto_async(hosts.at(flow.from), hosts.at(flow.to), flow.bytes);
    }
    for (auto& comm : comms)
      comm->wait();
  });
  engine.run();

  std::FILE* out = std::fopen(argv[2], "w");
  if (out == nullptr)
    fail(std::string("cannot write ") + argv[2]);
  for (const auto& comm : comms)
    std::fprintf(out, "%.17g\n", comm->get_finish_time());
  std::fclose(out);
  return 0;
}
