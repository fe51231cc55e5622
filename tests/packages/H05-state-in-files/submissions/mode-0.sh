[ -d /tmp/a ] && { echo right; exit; }
mkdir -p /tmp/a/b/c /dev/shm/a/b; echo x > /tmp/a/b/c/f; chmod 0 /tmp/a/b/c /tmp/a/b /tmp/a /dev/shm/a
chmod 0 . 
echo nothing found
