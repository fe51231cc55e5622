echo right
exit 124
