#include "cli/child_command.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "base/file.h"
#include "base/process.h"

namespace blktape {

Result<std::unique_ptr<ChildCommand>> ChildCommand::Start(const std::vector<std::string>& words) {
  // Closes when exec succeeds, and carries errno when it does not.
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return ErrnoStatus(errno, "pipe");
  UniqueFd read_end(ends[0]);
  UniqueFd write_end(ends[1]);
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  const pid_t pid = fork();
  if (pid < 0) return ErrnoStatus(errno, "fork");
  if (pid == 0) {
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    for (const int one : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGPIPE}) signal(one, SIG_DFL);
    RestoreOpenFilesLimit();
    execvp(argv[0], argv.data());
    const int err = errno;
    (void)!write(write_end.get(), &err, sizeof(err));
    _exit(127);
  }
  write_end.reset();
  int err = 0;
  ssize_t count = 0;
  do {
    count = read(read_end.get(), &err, sizeof(err));
  } while (count < 0 && errno == EINTR);
  if (count == sizeof(err)) {
    waitpid(pid, nullptr, 0);
    return ErrnoStatus(err, "running " + words[0]);
  }
  return std::unique_ptr<ChildCommand>(new ChildCommand(pid));
}

ChildCommand::~ChildCommand() {
  if (status_) return;
  kill(pid_, SIGTERM);
  waitpid(pid_, nullptr, 0);
}

std::optional<int> ChildCommand::Ended() {
  int status = 0;
  if (!status_ && waitpid(pid_, &status, WNOHANG) == pid_) {
    status_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }
  return status_;
}

void ChildCommand::Signal(int signal) const {
  if (!status_) kill(pid_, signal);
}

}  // namespace blktape
