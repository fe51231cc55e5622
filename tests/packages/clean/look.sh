#!/bin/bash
# Prints `clean`, or what an earlier run has left in this box.
left=
for place in /tmp /work /dev/shm /dev/mqueue; do
  [ -d "$place" ] && [ -n "$(ls -A "$place")" ] && left="$left $place: $(ls -A "$place")"
done
for process in /proc/[0-9]*; do
  owner=$(stat -c %u "$process" 2> /dev/null) || continue
  command=$(tr '\0' ' ' 2> /dev/null < "$process/cmdline")
  case "$owner:$command" in
    0:* | "$UID:"* | *:/.grader/supervisor*) ;;
    *) left="$left $process of $owner: $command" ;;
  esac
done
for table in /proc/sysvipc/shm /proc/sysvipc/sem /proc/sysvipc/msg /proc/net/tcp /proc/net/tcp6 /proc/net/udp; do
  [ -r "$table" ] && [ "$(wc -l < "$table")" -gt 1 ] && left="$left $table: $(tail -n +2 "$table")"
done
grep -q @ /proc/net/unix && left="$left $(grep @ /proc/net/unix)"
echo "${left:-clean}"
