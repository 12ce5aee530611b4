#include "tamis/server/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <system_error>

#include "tamis/base/testing/limited_address_space.h"
#include "tamis/server/testing/http_client.h"
#include "tamis/server/worker_threads.h"

namespace tamis::server {
namespace {

using testing::HasSubstr;

class HttpServerTest : public testing::Test {
 protected:
  void Start(Handler handler, HttpServer::Options options = {}) {
    auto server = HttpServer::Listen(options);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    server_->Serve(std::move(handler));
  }
  // Answers with what it was asked.
  static void Echo(const ExchangePtr& exchange) {
    const Request& request = exchange->request();
    exchange->Send({.content_type = "text/plain",
                    .body = request.method + " " + request.path + " ?" + request.query + " " +
                            request.Header("x-test") + " " + request.body});
  }

  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpServerTest, AnswersOneRequestAfterTheOtherOnOneConnection) {
  Start(Echo);
  HttpClient client(server_->port());
  EXPECT_EQ(client.Ask("POST", "/a/b?c=d", "body", {{"X-Test", "1"}}).body,
            "POST /a/b ?c=d 1 body");
  const auto second = client.Get("/e");
  EXPECT_EQ(second.status, 200);
  EXPECT_EQ(second.body, "GET /e ?  ");
  EXPECT_EQ(second.headers.at("Content-Type"), "text/plain");
  EXPECT_EQ(second.headers.at("X-Content-Type-Options"), "nosniff");
  EXPECT_EQ(server_->connections(), 1);
}

TEST_F(HttpServerTest, RequestsSentTogetherAreAnsweredInOrder) {
  Start(Echo);
  HttpClient client(server_->port());
  client.SendRaw("GET /1 HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_EQ(client.Receive().body, "GET /1 ?  ");
  EXPECT_EQ(client.Receive().body, "GET /2 ?  ");
}

TEST_F(HttpServerTest, HeadHasTheLengthAndNoBody) {
  Start(Echo);
  HttpClient client(server_->port());
  const auto head = client.Ask("HEAD", "/a");
  EXPECT_EQ(head.headers.at("Content-Length"), std::to_string(std::string("HEAD /a ?  ").size()));
  EXPECT_EQ(head.body, "");
  EXPECT_EQ(client.Get("/b").body, "GET /b ?  ");
}

TEST_F(HttpServerTest, OldClientsGetNoChunks) {
  Start([](const ExchangePtr& exchange) {
    exchange->Begin({.content_type = "text/plain"});
    exchange->Write("part", [exchange](bool) { exchange->End(); });
  });
  HttpClient client(server_->port());
  client.SendRaw("GET / HTTP/1.0\r\n\r\n");
  const auto answer = client.Receive();
  EXPECT_EQ(answer.body, "part");
  EXPECT_FALSE(answer.headers.contains("Transfer-Encoding"));
}

TEST_F(HttpServerTest, BytesThatAreNoHttpAreAnsweredAndTheConnectionCloses) {
  Start(Echo);
  HttpClient client(server_->port());
  client.SendRaw("\x16\x03\x01 nonsense\r\n\r\n");
  const auto answer = client.Receive();
  EXPECT_EQ(answer.status, 400);
  EXPECT_THAT(answer.body, HasSubstr("cannot read the request as HTTP"));
  EXPECT_TRUE(client.IsClosed());
}

TEST_F(HttpServerTest, LongBodiesAndHeadsAreRefused) {
  Start(Echo, {.max_body_bytes = 100, .max_head_bytes = 1000});
  const auto body = HttpClient(server_->port()).Ask("POST", "/", std::string(101, 'x'));
  EXPECT_EQ(body.status, 413);
  EXPECT_THAT(body.body, HasSubstr("longer than 100 bytes"));
  EXPECT_EQ(HttpClient(server_->port()).Ask("POST", "/", std::string(100, 'x')).status, 200);
  const auto head = HttpClient(server_->port()).Ask("GET", "/" + std::string(2000, 'x'));
  EXPECT_EQ(head.status, 431);
}

TEST_F(HttpServerTest, ARefusedRequestIsAnsweredBeforeItsBodyComes) {
  server_ = *HttpServer::Listen({});
  server_->Serve(Echo, [](const Request& head) -> std::optional<Response> {
    if (head.Header("x-test") == "good") return std::nullopt;
    return Response{.status = 401, .body = "no"};
  });
  HttpClient bad(server_->port());
  bad.SendRaw("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n");
  EXPECT_EQ(bad.Receive().status, 401);
  bad.Close();
  const auto good = HttpClient(server_->port()).Ask("POST", "/", "body", {{"X-Test", "good"}});
  EXPECT_EQ(good.body, "POST / ? good body");
}

// Otherwise a client could show one head to the admission and another to the handler.
TEST_F(HttpServerTest, FieldsBehindTheBodyAreNotOfTheHead) {
  Start(Echo);
  HttpClient client(server_->port());
  client.SendRaw(
      "POST / HTTP/1.1\r\nHost: a\r\nX-Test: head\r\nTrailer: X-Test\r\n"
      "Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nX-Test: tail\r\n\r\n");
  EXPECT_EQ(client.Receive().body, "POST / ? head hi");
}

TEST_F(HttpServerTest, TheBodiesOfAllRequestsTogetherAreBounded) {
  Start(Echo, {.max_bodies_bytes = 100});
  HttpClient first(server_->port());
  first.SendRaw("POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 60\r\n\r\n");
  EXPECT_EQ(first.Receive().status, 100);
  EXPECT_EQ(HttpClient(server_->port()).Ask("POST", "/", std::string(60, 'x')).status, 503);
  EXPECT_EQ(HttpClient(server_->port()).Ask("POST", "/", std::string(40, 'x')).status, 200);
  first.SendRaw(std::string(60, 'x'));
  EXPECT_EQ(first.Receive().status, 200);
  EXPECT_EQ(HttpClient(server_->port()).Ask("POST", "/", std::string(60, 'x')).status, 200);
}

// A client that sends all before it reads sees the answer.
TEST_F(HttpServerTest, TheRefusalOfALongBodyIsNotLost) {
  Start(Echo, {.max_body_bytes = 100});
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(HttpClient(server_->port()).Ask("POST", "/", std::string(4 << 20, 'x')).status, 413);
  }
}

TEST_F(HttpServerTest, ExpectContinueIsAnswered) {
  Start(Echo);
  HttpClient client(server_->port());
  client.SendRaw("POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
  EXPECT_EQ(client.Receive().status, 100);
  client.SendRaw("hi");
  EXPECT_THAT(client.Receive().body, HasSubstr(" hi"));
}

TEST_F(HttpServerTest, StreamsPartsInOrder) {
  Start([](const ExchangePtr& exchange) {
    exchange->Begin({.content_type = "text/plain"});
    exchange->Write("one ", [exchange](bool sent) {
      EXPECT_TRUE(sent);
      exchange->Write(
          "", [exchange](bool) { exchange->Write("two", [exchange](bool) { exchange->End(); }); });
    });
  });
  HttpClient client(server_->port());
  for (int i = 0; i < 2; ++i) {
    const auto answer = client.Get("/");
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.headers.at("Transfer-Encoding"), "chunked");
    EXPECT_EQ(answer.body, "one two");
  }
}

TEST_F(HttpServerTest, AnAbortedStreamIsSeenToBeCut) {
  Start([](const ExchangePtr& exchange) {
    exchange->Begin({});
    exchange->Write("part", [exchange](bool) { exchange->Abort(); });
  });
  const auto answer = HttpClient(server_->port()).Get("/");
  EXPECT_EQ(answer.status, 0);
  EXPECT_EQ(answer.body, "part");
}

TEST_F(HttpServerTest, NoticesAClientThatDisconnectsWhileItWaits) {
  std::promise<void> asked;
  std::promise<void> gone;
  Start([&](const ExchangePtr& exchange) {
    exchange->OnDisconnect([&] { gone.set_value(); });
    asked.set_value();
  });
  HttpClient client(server_->port());
  client.Send("GET", "/");
  asked.get_future().wait();
  client.Close();
  gone.get_future().wait();
}

// Over TLS the bytes of a polite end stand there in the same way.
TEST_F(HttpServerTest, NoticesADisconnectBehindBytesOfTheNextRequest) {
  std::promise<void> asked;
  std::promise<void> gone;
  Start([&](const ExchangePtr& exchange) {
    exchange->OnDisconnect([&] { gone.set_value(); });
    asked.set_value();
  });
  HttpClient client(server_->port());
  client.SendRaw("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  asked.get_future().wait();
  client.SendRaw("GET /next HTTP/1.1\r\n");
  client.Close();
  EXPECT_EQ(gone.get_future().wait_for(std::chrono::seconds(30)), std::future_status::ready);
}

// The first client takes nothing: the server can send it no more than the sockets hold.
TEST_F(HttpServerTest, AClientThatTakesNothingIsCutAndDelaysNoOther) {
  std::promise<void> cut;
  std::function<void(ExchangePtr)> fill = [&](ExchangePtr exchange) {
    exchange->Write(std::string(1 << 20, 'x'),
                    [&, exchange](bool sent) { sent ? fill(exchange) : cut.set_value(); });
  };
  Start(
      [&](const ExchangePtr& exchange) {
        if (exchange->request().path != "/endless") return Echo(exchange);
        exchange->Begin({});
        fill(exchange);
      },
      {.threads = 1, .idle_time = std::chrono::seconds(1)});
  HttpClient slow(server_->port());
  slow.Send("GET", "/endless");
  EXPECT_EQ(HttpClient(server_->port()).Get("/quick").status, 200);
  cut.get_future().wait();
}

TEST_F(HttpServerTest, MoreConnectionsThanPermittedAreClosed) {
  Start(Echo, {.max_connections = 1});
  HttpClient first(server_->port());
  EXPECT_EQ(first.Get("/").status, 200);
  EXPECT_TRUE(HttpClient(server_->port()).IsClosed());
  EXPECT_EQ(first.Get("/").status, 200);
}

TEST_F(HttpServerTest, DrainClosesIdleConnectionsAndWaitsForAnswers) {
  std::promise<ExchangePtr> asked;
  Start([&](const ExchangePtr& exchange) { asked.set_value(exchange); });
  HttpClient idle(server_->port());
  HttpClient busy(server_->port());
  busy.Send("GET", "/");
  ExchangePtr exchange = asked.get_future().get();
  EXPECT_FALSE(server_->Drain(std::chrono::milliseconds(1)));
  EXPECT_TRUE(idle.IsClosed());
  exchange->Send({.body = "done"});
  exchange = nullptr;
  EXPECT_EQ(busy.Receive().body, "done");
  EXPECT_TRUE(busy.IsClosed());
  EXPECT_TRUE(server_->Drain(std::chrono::minutes(1)));
  EXPECT_THROW(HttpClient(server_->port()), boost::system::system_error);
}

TEST_F(HttpServerTest, RequestsThatComeBeforeServeWait) {
  server_ = *HttpServer::Listen({});
  HttpClient early(server_->port());
  early.Send("GET", "/early");
  server_->Serve(Echo);
  EXPECT_EQ(early.Receive().body, "GET /early ?  ");
}

TEST_F(HttpServerTest, NoRequestIsHandledOnceTheServerIsClosed) {
  std::atomic<int> handled = 0;
  Start([&](const ExchangePtr& exchange) {
    ++handled;
    Echo(exchange);
  });
  HttpClient client(server_->port());
  EXPECT_EQ(client.Get("/").status, 200);
  client.SendRaw("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbo");
  server_->Close();
  client.SendRaw("dy");
  EXPECT_EQ(client.Receive().status, 0);
  EXPECT_EQ(handled, 1);
  EXPECT_EQ(server_->connections(), 0);
}

TEST_F(HttpServerTest, AHandlerWithoutMemoryEndsItsConnectionOnly) {
  Start([](const ExchangePtr& exchange) {
    if (exchange->request().path == "/none") throw std::bad_alloc();
    Echo(exchange);
  });
  EXPECT_EQ(HttpClient(server_->port()).Get("/none").status, 0);
  EXPECT_EQ(HttpClient(server_->port()).Get("/other").status, 200);
}

TEST(WorkerThreadsTest, WorkWithoutMemoryEndsNoThread) {
  WorkerThreads workers(1);
  workers.Post([] { throw std::bad_alloc(); });
  std::promise<void> done;
  workers.Post([&] { done.set_value(); });
  done.get_future().wait();
}

TEST(WorkerThreadsTest, ThreadsThatWereStartedEndWhereOneCannotBe) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizer needs the address space";
#endif
  const LimitedAddressSpace limit(size_t{64} << 20);  // a thread's stack takes 8 MB
  ASSERT_TRUE(limit.is_set());
  EXPECT_THROW(WorkerThreads(100), std::system_error);
}

TEST_F(HttpServerTest, CannotListenTwiceOnOnePort) {
  Start(Echo);
  const auto second = HttpServer::Listen({.port = server_->port()});
  EXPECT_THAT(second.status().message(), HasSubstr("cannot listen on 127.0.0.1:"));
  EXPECT_THAT(HttpServer::Listen({.host = "no address"}).status().message(),
              HasSubstr("it is no address"));
  EXPECT_THAT(HttpServer::Listen({.tls_cert_file = "/none"}).status().message(),
              HasSubstr("cannot read the certificate in \"/none\""));
}

}  // namespace
}  // namespace tamis::server
