printf 'a\n\nb\n'
