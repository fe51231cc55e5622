bash -c 'cat < /dev/stdin; echo out | tee /dev/stderr > /dev/fd/1' 2> /dev/null; echo err > /dev/stderr
