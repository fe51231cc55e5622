printf 'a\r\nb\r\n'
