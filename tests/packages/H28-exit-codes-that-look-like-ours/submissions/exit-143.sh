echo right
exit 143
