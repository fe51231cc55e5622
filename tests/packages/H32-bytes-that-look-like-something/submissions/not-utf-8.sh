printf 'right\377\n'
