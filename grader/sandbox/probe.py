"""The program that the contract runs, written twice: as a shell script, and as a script for the fake sandbox.

Its first argument says what it does, e.g. `echo`, `exit 137`, `hog`. The shell script needs a POSIX shell, coreutils
and a Linux /proc: every image of a profile has them, whatever its language.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from grader.sandbox.fake import Answer, Behaviour, Call

PROBE_NAME = b"probe.sh"

PROBE = rb"""#!/bin/sh
# Does what its first argument says: see probe.py.
umask 022
# Only bash can connect to a port. `leave` is gone before it is answered, `hold` leaves a child with the connection.
CALLS='call() { exec 3<>"/dev/tcp/127.0.0.1/$1"; }
case $1 in
send) call "$2" && printf %s "$3" >&3 && head -n 1 <&3 ;;
leave) call "$2" && printf %s "$3" >&3 && printf right ;;
hold) call "$2" && { sleep 1000 & } && printf %s "$3" >&3 && printf right ;;
pour) call "$2" && { head -c "$3" /dev/zero >&3; printf right; } ;;
dial) for i in $(seq "$3"); do (call "$2" && printf %s "$i" >&3 && head -n 1 <&3) 2>/dev/null; done; printf right ;;
esac'
verb=$1
shift
case $verb in
echo) cat ;;
silent) ;;
right) printf right ;;
arguments) for argument; do printf '%s\0' "$argument"; done ;;
environment) cat "/proc/$$/environ" ;;
where) pwd ;;
both) printf out; printf err >&2 ;;
split) printf '\303'; sleep 0.02; printf '\251' ;;
exit) exit "$1" ;;
signal) kill -"$1" $$ ;;
stop) kill -STOP $$; printf unreachable ;;
flood) head -c "$1" /dev/zero ;;
flood-stderr) head -c "$1" /dev/zero >&2 ;;
endless) exec yes ;;
spin) while :; do :; done ;;
sleep) exec sleep 1000 ;;
hog) exec tail /dev/zero ;;
child-hog) tail /dev/zero; printf right ;;
daemon) sleep 1000 & printf right ;;
bomb) bomb() { bomb | bomb; }; bomb 2>/dev/null & exec sleep 1000 ;;
kill-all) kill -9 -1; printf right ;;
read) cat "$1" ;;
write) printf %s "$2" > "$1" ;;
write-big) head -c "$2" /dev/zero > "$1" ;;
make) case $1 in
  fifo) mkfifo "$2" ;;
  directory) mkdir "$2" ;;
  symlink) ln -s /proc/self/environ "$2" ;;
  esac ;;
litter) for place in . /tmp /dev/shm; do
    echo secret > "$place/litter" && mkdir "$place/deep" && echo secret > "$place/deep/litter" && chmod 0 "$place/deep"
  done; printf right ;;
look) for place in . /tmp /dev/shm; do ls -A "$place"; done ;;
spoil) if (echo x >> /submission/probe.sh) 2>/dev/null; then printf changed; else printf refused; fi ;;
send|leave|hold|pour|dial) exec bash -c "$CALLS" probe "$verb" "$@" ;;
root) if [ "$(id -u)" = 0 ]; then printf root; else printf user; fi ;;
*) exit 99 ;;
esac
"""

COMPILED_NAME = b"made/probe.sh"

COMPILE = rb"""mkdir -p made && cp probe.sh made/probe.sh && chmod 755 made/probe.sh && ln -s /etc/passwd made/link
"""
"""A compile command's script: the product is the probe itself, beside a link that must not be kept."""

_SIGSTOP_NEVER_ENDS = Behaviour(wall_time_s=math.inf)
_RIGHT = Behaviour(stdout=b"right")


def probe_script(call: Call) -> Answer:
    """What the probe does, for `FakeSandbox`: the same as the shell script."""
    if call.program.command_is_submission and not _is_executable(call):
        return Behaviour(start_error=13)
    verb, *rest = call.invocation.arguments
    return _VERBS[verb](call, rest)


def _is_executable(call: Call) -> bool:
    if call.program.compile_command is not None:
        return True
    name = call.program.run_command[0].removeprefix(b"/submission/")
    return any(file.path == name and file.executable for file in call.program.files)


def _read(call: Call, name: bytes) -> Behaviour:
    for file in call.invocation.files:
        if file.name == name:
            return Behaviour(stdout=file.content)
    return Behaviour(exit_code=1)


def _environment(call: Call) -> Behaviour:
    entries = (name.encode() + b"=" + value + b"\0" for name, value in call.invocation.environment.items())
    return Behaviour(stdout=b"".join(entries))


def _top_names(call: Call) -> bytes:
    names = sorted({file.name.split(b"/")[0] for file in call.invocation.files})
    return b"".join(name + b"\n" for name in names)


def _port(call: Call, rest: list[bytes], sends: tuple[tuple[bytes, ...], ...], says: bytes = b"right") -> Behaviour:
    """A program that connects to its port, and cannot if there is none."""
    del rest
    return Behaviour(exit_code=1) if call.port is None else Behaviour(stdout=says, sends=sends)


def _dial(call: Call, rest: list[bytes]) -> Behaviour:
    most = call.port.connections_in_all if call.port is not None else 0
    sends = tuple((b"%d" % number,) for number in range(1, int(rest[1]) + 1))
    return _port(call, rest, sends, says=b"heard\n" * min(most, len(sends)) + b"right")


_Verb = Callable[[Call, list[bytes]], Answer]

_VERBS: dict[bytes, _Verb] = {
    b"echo": lambda call, _: Behaviour(stdout=call.invocation.stdin),
    b"silent": lambda _, __: Behaviour(),
    b"right": lambda _, __: _RIGHT,
    b"arguments": lambda _, rest: Behaviour(stdout=b"".join(argument + b"\0" for argument in rest)),
    b"environment": lambda call, _: _environment(call),
    b"where": lambda _, __: Behaviour(stdout=b"/work\n"),
    b"both": lambda _, __: Behaviour(stdout=b"out", stderr=b"err"),
    b"split": lambda _, __: Behaviour(stdout=b"\303\251"),
    b"exit": lambda _, rest: Behaviour(exit_code=int(rest[0])),
    b"signal": lambda _, rest: Behaviour(signal=int(rest[0])),
    b"stop": lambda _, __: _SIGSTOP_NEVER_ENDS,
    b"flood": lambda _, rest: Behaviour(stdout=bytes(int(rest[0]))),
    b"flood-stderr": lambda _, rest: Behaviour(stderr=bytes(int(rest[0]))),
    b"endless": lambda call, _: Behaviour(stdout=b"y\n" * call.invocation.limits.stdout_bytes),
    b"spin": lambda _, __: Behaviour(cpu_time_s=1e6, wall_time_s=1e6),
    b"sleep": lambda _, __: Behaviour(wall_time_s=1000),
    b"hog": lambda _, __: Behaviour(peak_memory_bytes=2**50, signal=9),
    b"child-hog": lambda _, __: Behaviour(stdout=b"right", peak_memory_bytes=2**50),
    b"daemon": lambda _, __: Behaviour(stdout=b"right", measures={"survivors": 1}),
    b"bomb": lambda _, __: Behaviour(wall_time_s=1000),
    b"kill-all": lambda _, __: _RIGHT,
    b"read": lambda call, rest: _read(call, rest[0]),
    b"write": lambda _, rest: Behaviour(files={rest[0]: rest[1]}),
    b"write-big": lambda _, rest: Behaviour(files={rest[0]: bytes(int(rest[1]))}),
    b"make": lambda _, rest: Behaviour(files={rest[1]: rest[0].decode()}),
    b"litter": lambda _, __: _RIGHT,
    b"look": lambda call, _: Behaviour(stdout=_top_names(call)),
    b"spoil": lambda _, __: Behaviour(stdout=b"refused"),
    b"send": lambda call, rest: _port(call, rest, ((rest[1],),), says=b"heard\n"),
    b"leave": lambda call, rest: _port(call, rest, ((rest[1],),)),
    b"hold": lambda call, rest: _port(call, rest, ((rest[1],),)),
    b"pour": lambda call, rest: _port(call, rest, ((bytes(4096),) * (int(rest[1]) // 4096),)),
    b"dial": _dial,
    b"root": lambda _, __: Behaviour(stdout=b"user"),
}
