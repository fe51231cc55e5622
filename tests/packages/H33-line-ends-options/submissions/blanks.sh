printf 'a  \nb\t\n'
