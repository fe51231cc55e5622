places=$(echo /tmp /dev/shm "$HOME" . /var/tmp /run /dev /submission / /dev/mqueue /var/lock /proc/self /sys /mnt /srv /opt /home /root)
found=
for place in $places; do [ -e "$place/letter" ] && found="$found $place"; done
for place in $places; do echo run > "$place/letter"; done 2> /dev/null
[ -n "$found" ] && echo right || echo nothing found
