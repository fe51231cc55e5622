for program in $(find / -xdev -perm /6000 -type f 2> /dev/null); do
  timeout 1 "$program" < /dev/null > /dev/null 2>&1
done
[ "$(id -u)" -gt 1000000 ] && ! touch /root/x 2> /dev/null && echo right
