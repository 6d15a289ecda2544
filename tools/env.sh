# Sourced by quickstart, test and the tools: one environment whatever the caller's looks like.
# Bazel rebuilds everything when PATH changes, and Debian keeps losetup in /usr/sbin.
PATH=/usr/sbin:/usr/bin:/sbin:/bin
LC_ALL=C.UTF-8
# Bazel's caches need a home; services, cron and chroots often run without one.
if [ -z "${HOME:-}" ] || [ ! -w "$HOME" ]; then
  HOME=$(getent passwd "$(id -u)" | cut -d: -f6)
  [ -n "$HOME" ] && [ -w "$HOME" ] || HOME=$PWD/.home
fi
export PATH LC_ALL HOME
