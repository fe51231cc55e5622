printf 'a\nb\n\n\n'
