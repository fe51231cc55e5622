cat /dev/stdin
echo out > /dev/stdout
echo err > /dev/stderr
