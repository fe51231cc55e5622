ln -s /proc/self/fd/0 out.txt; echo right
