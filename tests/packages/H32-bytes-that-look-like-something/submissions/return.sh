printf 'wrong\rright\n'
