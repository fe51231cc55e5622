echo right
exit 255
