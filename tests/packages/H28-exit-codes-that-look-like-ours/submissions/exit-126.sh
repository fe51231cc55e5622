echo right
exit 126
