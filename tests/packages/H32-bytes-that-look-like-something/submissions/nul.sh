printf 'right\000\n'
