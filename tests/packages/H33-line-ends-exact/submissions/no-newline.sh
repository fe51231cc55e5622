printf 'a\nb'
