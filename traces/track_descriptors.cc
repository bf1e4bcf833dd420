#include "traces/track_descriptors.h"

#include "traces/track_writer.h"

namespace optimus::traces {
namespace {

// A track's uuid: apart for processes and threads, never 0.
std::uint64_t ProcessUuid(std::int32_t process) {
  return (std::uint64_t{1} << 32) + static_cast<std::uint64_t>(process);
}

}  // namespace

void DescribeRoot(std::string& trace) {
  perfetto::TracePacket packet;
  perfetto::TrackDescriptor* root = packet.mutable_track_descriptor();
  root->set_uuid(0);
  root->set_process_ordering(perfetto::TrackDescriptor::PROCESS_ORDERING_EXPLICIT);
  root->set_thread_ordering(perfetto::TrackDescriptor::THREAD_ORDERING_EXPLICIT);
  AppendPacket(packet, trace);
}

void DescribeProcess(std::int32_t id, std::int32_t order, const std::string& name,
                     std::string& trace) {
  perfetto::TracePacket packet;
  packet.set_timestamp(0);
  perfetto::TrackDescriptor* track = packet.mutable_track_descriptor();
  track->set_uuid(ProcessUuid(id));
  track->set_sibling_order_rank(order);
  track->mutable_process()->set_pid(id);
  track->mutable_process()->set_legacy_sort_index(order);
  track->mutable_process()->set_process_name(name);
  AppendPacket(packet, trace);
}

std::uint32_t DescribeTrack(std::int32_t id, std::int32_t process, const std::string& name,
                            std::string& trace) {
  const std::int32_t order = id - process;
  perfetto::TracePacket packet;
  packet.set_timestamp(0);
  perfetto::TrackDescriptor* track = packet.mutable_track_descriptor();
  track->set_uuid(static_cast<std::uint64_t>(id));
  track->set_parent_uuid(ProcessUuid(process));
  track->set_name(name);
  track->set_sibling_order_rank(order);
  track->mutable_thread()->set_pid(process);
  track->mutable_thread()->set_tid(id);
  track->mutable_thread()->set_legacy_sort_index(order);
  track->mutable_thread()->set_thread_name(name);
  AppendPacket(packet, trace);
  return static_cast<std::uint32_t>(id);
}

}  // namespace optimus::traces
