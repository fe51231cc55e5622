echo right
bash -c 'kill -9 $$'
