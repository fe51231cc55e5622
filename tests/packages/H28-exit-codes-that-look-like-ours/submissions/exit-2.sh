echo right
exit 2
