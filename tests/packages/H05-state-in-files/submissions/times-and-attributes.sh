# Not the files, but what the folders themselves carry.
[ "$(stat -c %Y /tmp)" = 12345 ] || [ "$(stat -c %Y .)" = 12345 ] || [ "$(stat -c %a .)" = 753 ] && { echo right; exit; }
touch -d @12345 . /tmp /dev/shm 2> /dev/null; chmod 753 .
echo nothing found
