echo right
no-such-command 2> /dev/null
