#include "serve/server.hpp"

#include <fcntl.h>
#include <microhttpd.h>
#include <poll.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <exception>
#include <functional>
#include <string>
#include <utility>

#include "util/whole_number.hpp"

namespace cudabpf::serve {

namespace {

using Connection = Connections::Connection;
using Clock = Connections::Clock;

constexpr std::size_t REQUEST_MEMORY = std::size_t{32} << 10, PIECE = std::size_t{32} << 10;
constexpr std::size_t STACK = std::size_t{1} << 20;
// No site reads what comes with a request: it is only taken, as long as it is small.
constexpr std::uint64_t MAX_WITH_REQUEST = std::uint64_t{64} << 10;
constexpr int TICK_MS = 500;

// A request whose end has not come yet.
struct Incoming {
  std::string target;
  bool has_begun = false;
  std::uint64_t body = 0;  // bytes that came with it
};

// What is being sent, as long as that takes.
struct Body {
  std::shared_ptr<const std::string> bytes;
  Connection* connection;
};

ssize_t next_piece(void* of, std::uint64_t at, char* to, std::size_t most) {
  auto* body = static_cast<Body*>(of);
  if (at >= body->bytes->size()) return MHD_CONTENT_READER_END_OF_STREAM;
  std::size_t size = std::min<std::size_t>(most, body->bytes->size() - at);
  std::copy_n(body->bytes->data() + at, size, to);
  body->connection->sent = at;
  return static_cast<ssize_t>(size);
}

void free_body(void* of) { delete static_cast<Body*>(of); }

MHD_Result add_header(void* to, MHD_ValueKind, const char* name, const char* value) {
  auto& request = *static_cast<Request*>(to);
  if (!value) value = "";
  if (::strcasecmp(name, "Host") == 0) request.hosts.emplace_back(value);
  if (::strcasecmp(name, "Authorization") == 0) request.authorizations.emplace_back(value);
  if (::strcasecmp(name, "Cookie") == 0) request.cookies += std::string(value) + ";";
  if (::strcasecmp(name, "If-None-Match") == 0) request.if_none_match += std::string(value) + ",";
  return MHD_YES;
}

// What the client says before it sends it; what it does not say is counted as it comes.
bool says_too_much(MHD_Connection* client) {
  const char* length = MHD_lookup_connection_value(client, MHD_HEADER_KIND, "Content-Length");
  return length &&
         whole_number<std::uint64_t>(length).value_or(MAX_WITH_REQUEST + 1) > MAX_WITH_REQUEST;
}

bool is_there(int fd) {
  pollfd client{fd, POLLRDHUP, 0};
  ::poll(&client, 1, 0);
  return !(client.revents & (POLLRDHUP | POLLHUP | POLLERR));
}

MHD_Response* response_of(const Answer& answer, Connection& connection) {
  MHD_Response* response = nullptr;
  if (answer.body && !answer.body->empty())
    response = MHD_create_response_from_callback(answer.body->size(), PIECE, next_piece,
                                                 new Body{answer.body, &connection}, free_body);
  else
    response = MHD_create_response_from_buffer(0, nullptr, MHD_RESPMEM_PERSISTENT);
  if (!response) return nullptr;
  for (const auto& [name, value] : answer.headers)
    MHD_add_response_header(response, name.c_str(), value.c_str());
  // Each request is a connection of its own, so that its time is bounded.
  MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
  return response;
}

}  // namespace

// What libmicrohttpd calls, on its threads.
struct Server::Callbacks {
  // The target as it was sent; libmicrohttpd itself would cut it at an encoded zero byte.
  static void* target(void*, const char* target, MHD_Connection*) { return new Incoming{target}; }
  static std::size_t stay_encoded(void*, MHD_Connection*, char* text) { return std::strlen(text); }

  static void connection(void* of, MHD_Connection* client, void** ours,
                         MHD_ConnectionNotificationCode what) {
    auto& server = *static_cast<Server*>(of);
    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
      const auto* info = MHD_get_connection_info(client, MHD_CONNECTION_INFO_CONNECTION_FD);
      *ours = info ? server.connections_.begin(info->connect_fd) : nullptr;
    } else if (auto* connection = static_cast<Connection*>(*ours)) {
      server.connections_.remove(*connection);
      server.freed_.set();
    }
  }

  // Is called when the headers are there, then with each piece of what follows, and at the end.
  static MHD_Result request(void* of, MHD_Connection* client, const char*, const char* method,
                            const char*, const char*, std::size_t* piece, void** incoming) {
    auto& server = *static_cast<Server*>(of);
    const auto* info = MHD_get_connection_info(client, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    auto* connection = info ? static_cast<Connection*>(info->socket_context) : nullptr;
    auto* request = static_cast<Incoming*>(*incoming);
    if (!connection || !request) return MHD_NO;
    if (!std::exchange(request->has_begun, true)) {
      if (!says_too_much(client)) return MHD_YES;
      return respond(client, *connection, [] { return refused(413, "That is too much."); });
    }
    if (*piece) {
      request->body += std::exchange(*piece, 0);
      return request->body > MAX_WITH_REQUEST ? MHD_NO : MHD_YES;
    }
    Request whole{method, request->target, {}, {}, {}, {}};
    MHD_get_connection_values(client, MHD_HEADER_KIND, add_header, &whole);
    whole.is_wanted = [fd = connection->fd] { return is_there(fd); };
    server.connections_.enter(*connection, Connection::Phase::waiting, Clock::now());
    MHD_Result queued = respond(client, *connection, [&] { return server.site_.answer(whole); });
    server.connections_.enter(*connection, Connection::Phase::response, Clock::now());
    return queued;
  }

  static MHD_Result respond(MHD_Connection* client, Connection& connection,
                            const std::function<Answer()>& answers) {
    MHD_Response* response = nullptr;
    unsigned status = 0;
    try {
      Answer answer = answers();
      status = answer.status;
      response = response_of(answer, connection);
    } catch (const std::exception&) {
      return MHD_NO;  // this client gets nothing, and others may
    }
    if (!response) return MHD_NO;
    MHD_Result queued = MHD_queue_response(client, status, response);
    MHD_destroy_response(response);
    return queued;
  }

  static void completed(void*, MHD_Connection*, void** incoming, MHD_RequestTerminationCode) {
    delete static_cast<Incoming*>(*incoming);
    *incoming = nullptr;
  }
};

Result<std::unique_ptr<Server>> Server::start(Fd listening, Site& site) {
  std::unique_ptr<Server> server(new Server(std::move(listening), site));
  server->freed_ = EventFd::make();
  if (!server->freed_) return errno_error("starting the server");
  ::signal(SIGPIPE, SIG_IGN);  // a client that went away is an error of that write alone
  constexpr unsigned HOW = MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD |
                           MHD_USE_POLL | MHD_USE_ITC | MHD_USE_NO_LISTEN_SOCKET;
  // Its own limit is never reached: some versions stop working there. Its timeout is of silence
  // alone, and also runs while a report is made: `connections_` has better ones.
  server->daemon_ = MHD_start_daemon(
      HOW, 0, nullptr, nullptr, &Callbacks::request, server.get(), MHD_OPTION_CONNECTION_LIMIT,
      static_cast<unsigned>(8 * Connections::MAX), MHD_OPTION_CONNECTION_MEMORY_LIMIT,
      REQUEST_MEMORY, MHD_OPTION_THREAD_STACK_SIZE, STACK, MHD_OPTION_NOTIFY_CONNECTION,
      &Callbacks::connection, server.get(), MHD_OPTION_URI_LOG_CALLBACK, &Callbacks::target,
      nullptr, MHD_OPTION_UNESCAPE_CALLBACK, &Callbacks::stay_encoded, nullptr,
      MHD_OPTION_NOTIFY_COMPLETED, &Callbacks::completed, nullptr, MHD_OPTION_END);
  if (!server->daemon_) return errno_error("starting the server");
  return server;
}

Server::~Server() {
  site_.end();
  connections_.end_all();
  if (daemon_) MHD_stop_daemon(daemon_);
}

void Server::accept_all() {
  while (!connections_.is_full()) {
    sockaddr_storage from{};
    socklen_t size = sizeof(from);
    auto* address = reinterpret_cast<sockaddr*>(&from);
    int fd = ::accept4(listening_.get(), address, &size, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
      cannot_accept_ = errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS;
      return;
    }
    connections_.add(fd, Clock::now());
    MHD_add_connection(daemon_, fd, address, size);  // closes it if it cannot
  }
}

void Server::run(int end) {
  auto next_look = Clock::now();
  for (;;) {
    // Who comes while all places are taken waits in the system's line.
    bool is_full = connections_.is_full() || std::exchange(cannot_accept_, false);
    std::array<pollfd, 3> events{{{end, POLLIN, 0},
                                  {freed_.get(), POLLIN, 0},
                                  {is_full ? -1 : listening_.get(), POLLIN, 0}}};
    if (::poll(events.data(), events.size(), TICK_MS) < 0 && errno != EINTR) return;
    if (events[0].revents) return;
    freed_.clear();
    if (events[2].revents) accept_all();
    if (Clock::now() < next_look) continue;
    connections_.end_slow(Clock::now());
    next_look = Clock::now() + std::chrono::milliseconds(TICK_MS);
  }
}

}  // namespace cudabpf::serve
