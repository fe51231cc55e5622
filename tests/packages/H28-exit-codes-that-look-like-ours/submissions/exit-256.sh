echo right
# The kernel keeps the low byte: this is 0.
exit 256
