echo right
exit 1
