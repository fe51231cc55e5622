ln -s /etc/passwd out.txt; echo right
