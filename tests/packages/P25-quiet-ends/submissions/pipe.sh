yes 2> /dev/null | head -1 > /dev/null
echo right
