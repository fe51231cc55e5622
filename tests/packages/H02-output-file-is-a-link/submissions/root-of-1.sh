ln -s /proc/1/root/etc/passwd out.txt; echo right
