// `cudabpf top` on a terminal: a thread that reads keys and draws the page. The thread may wait for
// the terminal, but nothing waits for the thread: neither the ring's reader nor the end of the
// program.
#pragma once

#include <memory>
#include <string>
#include <thread>

#include "sink/top/top_model.hpp"
#include "sink/top/top_view.hpp"
#include "util/console/full_screen.hpp"
#include "util/console/screen.hpp"

namespace cudabpf::cli {

class TopScreen {
 public:
  // Messages to `messages` are kept while it shows; the last one is on the page.
  explicit TopScreen(Screen& messages);
  ~TopScreen();
  TopScreen(const TopScreen&) = delete;
  TopScreen& operator=(const TopScreen&) = delete;

  void start();
  // False: earlier intervals were not yet shown. The last one is always taken. Never waits.
  bool take(const TopInterval& interval, bool last);

  // Requests of keys to the session: then asked_fd() is readable.
  int asked_fd() const;
  struct Asks {
    bool end = false, write = false;
  };
  Asks asked();

  // Restores the terminal. Returns what is printed at the end, as text.
  std::string close();

 private:
  struct Shared;  // with the thread, which may outlive this if the terminal stays stopped
  class Drawing;

  ScreenSignals signals_;  // first: threads inherit what it blocks
  Screen& messages_;
  std::shared_ptr<Shared> shared_;
  std::thread thread_;
};

}  // namespace cudabpf::cli
