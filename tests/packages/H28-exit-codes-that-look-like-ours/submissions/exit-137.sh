echo right
exit 137
