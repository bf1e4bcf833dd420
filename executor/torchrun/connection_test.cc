#include "executor/torchrun/connection.h"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace optimus::executor {
namespace {

struct Pair {
  std::unique_ptr<Connection> a, b;
};

Pair Connected() {
  std::array<int, 2> sockets = {};
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets.data()), 0);
  return {std::make_unique<Connection>(sockets[0]), std::make_unique<Connection>(sockets[1])};
}

TEST(Connection, FramesArriveWholeAndInOrder) {
  const Pair pair = Connected();
  pair.a->Send(FrameKind::kNote, "first");
  pair.a->Send(FrameKind::kBarrier, "");
  pair.a->Send(FrameKind::kGather, std::string("\0\xff\n", 3));
  pair.a->Pump();
  EXPECT_EQ(pair.a->unsent(), 0U);
  pair.b->Pump();
  const auto first = pair.b->Take();
  ASSERT_TRUE(first);
  EXPECT_EQ(first->kind, FrameKind::kNote);
  EXPECT_EQ(first->text, "first");
  const auto second = pair.b->Take();
  ASSERT_TRUE(second);
  EXPECT_EQ(second->kind, FrameKind::kBarrier);
  EXPECT_EQ(second->text, "");
  const auto third = pair.b->Take();
  ASSERT_TRUE(third);
  EXPECT_EQ(third->text, std::string("\0\xff\n", 3));
  EXPECT_FALSE(pair.b->Take());
}

// More than a socket's buffer holds: neither side blocks, and nothing is lost.
TEST(Connection, LargeFramesTakeSeveralPumps) {
  const Pair pair = Connected();
  std::string text(8 << 20, 'x');
  for (std::size_t i = 0; i < text.size(); i += 1000) text[i] = static_cast<char>(i / 1000);
  pair.a->Send(FrameKind::kGather, text);
  pair.a->Pump();
  EXPECT_GT(pair.a->unsent(), 0U);
  pair.b->Pump();
  EXPECT_FALSE(pair.b->Take());
  for (int i = 0; i < 100000 && pair.a->unsent() > 0; ++i) {
    pair.a->Pump();
    pair.b->Pump();
  }
  pair.b->Pump();
  const auto frame = pair.b->Take();
  ASSERT_TRUE(frame);
  EXPECT_EQ(frame->text, text);
}

TEST(Connection, WhatCameBeforeTheEndCanBeTaken) {
  Pair pair = Connected();
  pair.a->Send(FrameKind::kNote, "last words");
  pair.a->Pump();
  pair.a.reset();
  pair.b->Send(FrameKind::kNote, "to nobody");
  pair.b->Pump();
  EXPECT_FALSE(pair.b->open());
  const auto frame = pair.b->Take();
  ASSERT_TRUE(frame);
  EXPECT_EQ(frame->text, "last words");
}

TEST(Connection, EndsWhereTheOtherSideIsNotOneOfOurs) {
  for (const std::string& bytes :
       {std::string("GET / HTTP/1.1\r\n\r\n"), std::string("\x01\0\0\0\x63z", 6)}) {
    const Pair pair = Connected();
    pair.b->SetLargestFrame(4096);
    ASSERT_EQ(write(pair.a->socket(), bytes.data(), bytes.size()),
              static_cast<ssize_t>(bytes.size()));
    pair.b->Pump();
    EXPECT_FALSE(pair.b->open()) << bytes;
    EXPECT_FALSE(pair.b->Take());
  }
}

TEST(Connection, ListensAndConnects) {
  const auto listening = Listen(0);
  ASSERT_TRUE(listening.ok()) << listening.status();
  const int port = PortOf(*listening);
  ASSERT_GT(port, 0);
  const auto again = Listen(port);
  EXPECT_EQ(again.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(again.status().message()),
              ::testing::HasSubstr("port " + std::to_string(port)));
  for (const char* address : {"127.0.0.1", "localhost"}) {
    const auto connected = ConnectOnce(address, port);
    ASSERT_TRUE(connected.ok()) << connected.status();
    close(*connected);
  }
  close(*listening);
  const auto refused = ConnectOnce("127.0.0.1", port);
  EXPECT_THAT(std::string(refused.status().message()), ::testing::HasSubstr("cannot connect: "));
  const auto unknown = ConnectOnce("no.such.host.invalid", port);
  EXPECT_EQ(unknown.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(unknown.status().message()),
              ::testing::HasSubstr("cannot find no.such.host.invalid: "));
}

}  // namespace
}  // namespace optimus::executor
