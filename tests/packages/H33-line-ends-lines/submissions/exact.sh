printf 'a\nb\n'
