echo right
exit 125
