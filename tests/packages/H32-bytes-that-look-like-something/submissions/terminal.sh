printf '\033[2J\033[H\033]0;title\007\033[32mright\033[0m\n'
