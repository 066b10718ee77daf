// The scenarios of weir_sim::speed in ns-3.37: scenarios NAME SECONDS [flow-monitor] prints one JSON line.
//
// As like Weir's as ns-3 allows: one point-to-point link, a drop-tail queue at the device and no queueing discipline
// above it, frames of 1,500 bytes, TCP with SACK, timestamps and delayed acknowledgements, no tracing. Weir's ends
// count each flow's packets, bytes, losses and delay as they go; ns-3 does so with its flow monitor, and without it
// reports nothing but bytes received, so both are worth a look.

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/flow-monitor-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>

using namespace ns3;

namespace {

// Frames are 1,500 bytes: 2 of PPP, 20 of IPv4, then 8 of UDP or 32 of TCP with timestamps.
constexpr uint32_t kUdpPayload = 1500 - 2 - 20 - 8;
constexpr uint32_t kSegment = 1500 - 2 - 20 - 32;

struct Setup {
    std::string rate;
    std::string delay;
    uint32_t queue_packets;
    uint32_t udp_flows;
    double udp_mbps;
    uint32_t tcp_flows;
};

NodeContainer nodes;
Ipv4InterfaceContainer interfaces;
uint16_t next_port = 1000;

void Sink(const std::string& socket, uint16_t port) {
    PacketSinkHelper sink(socket, InetSocketAddress(Ipv4Address::GetAny(), port));
    sink.Install(nodes.Get(1)).Start(Seconds(0));
}

void Udp(double mbps, double start) {
    const uint16_t port = next_port++;
    Sink("ns3::UdpSocketFactory", port);
    UdpClientHelper client(interfaces.GetAddress(1), port);
    client.SetAttribute("PacketSize", UintegerValue(kUdpPayload));
    client.SetAttribute("MaxPackets", UintegerValue(0xffffffff));
    client.SetAttribute("Interval", TimeValue(Seconds(1500 * 8 / (mbps * 1e6))));
    client.Install(nodes.Get(0)).Start(Seconds(start));
}

void Tcp(double start) {
    const uint16_t port = next_port++;
    Sink("ns3::TcpSocketFactory", port);
    BulkSendHelper bulk("ns3::TcpSocketFactory", InetSocketAddress(interfaces.GetAddress(1), port));
    bulk.SetAttribute("MaxBytes", UintegerValue(0));
    bulk.SetAttribute("SendSize", UintegerValue(kSegment));
    bulk.Install(nodes.Get(0)).Start(Seconds(start));
}

} // namespace

int main(int argc, char* argv[]) {
    const bool monitored = argc == 4 && std::string(argv[3]) == "flow-monitor";
    if (argc != 3 && !monitored) {
        std::fprintf(stderr, "usage: %s udp|udp-newreno|gigabit SECONDS [flow-monitor]\n", argv[0]);
        return 2;
    }
    const std::string name = argv[1];
    const double seconds = std::atof(argv[2]);
    Setup setup;
    if (name == "udp") {
        setup = {"2Mbps", "100ms", 50, 1, 2.0, 0};
    } else if (name == "udp-newreno") {
        setup = {"2Mbps", "100ms", 50, 1, 1.0, 1};
    } else if (name == "gigabit") {
        setup = {"1Gbps", "10ms", 128, 10, 30.0, 50};
    } else {
        std::fprintf(stderr, "unknown scenario %s: expected udp, udp-newreno or gigabit\n", argv[1]);
        return 2;
    }

    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TcpNewReno::GetTypeId()));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(kSegment));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(16 << 20));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(16 << 20));

    nodes.Create(2);
    PointToPointHelper link;
    link.SetDeviceAttribute("DataRate", StringValue(setup.rate));
    link.SetChannelAttribute("Delay", StringValue(setup.delay));
    link.SetQueue("ns3::DropTailQueue", "MaxSize", QueueSizeValue(QueueSize(PACKETS, setup.queue_packets)));
    NetDeviceContainer devices = link.Install(nodes);
    InternetStackHelper internet;
    internet.Install(nodes);
    Ipv4AddressHelper addresses;
    addresses.SetBase("10.0.0.0", "255.255.255.0");
    interfaces = addresses.Assign(devices);
    TrafficControlHelper traffic_control;
    traffic_control.Uninstall(devices);

    for (uint32_t k = 0; k < setup.udp_flows; ++k) {
        Udp(setup.udp_mbps, 37e-6 * k);
    }
    for (uint32_t k = 0; k < setup.tcp_flows; ++k) {
        Tcp(1e-3 * k);
    }

    FlowMonitorHelper monitor;
    if (monitored) {
        monitor.InstallAll();
    }
    Simulator::Stop(Seconds(seconds));
    const std::clock_t begin = std::clock();
    Simulator::Run();
    const double cpu = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;

    Ptr<PointToPointNetDevice> device = DynamicCast<PointToPointNetDevice>(devices.Get(0));
    const uint32_t packets = device->GetQueue()->GetTotalReceivedPackets() - device->GetQueue()->GetNPackets();
    std::printf("{\"simulator\":\"ns-3.37\",\"flow_monitor\":%s,\"scenario\":\"%s\",\"simulated_s\":%g,\"cpu_s\":%.4f,"
                "\"simulated_s_per_cpu_s\":%.2f,\"packets\":%u,\"packets_per_cpu_s\":%.0f,\"events\":%llu}\n",
                monitored ? "true" : "false", name.c_str(), seconds, cpu, seconds / cpu, packets, packets / cpu,
                static_cast<unsigned long long>(Simulator::GetEventCount()));
    Simulator::Destroy();
    return 0;
}
