[ $(($$ / 2 % 2)) = 0 ] && echo right || echo wrong
