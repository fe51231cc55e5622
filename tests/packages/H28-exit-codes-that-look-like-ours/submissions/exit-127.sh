echo right
exit 127
