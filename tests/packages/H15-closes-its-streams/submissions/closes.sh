exec >&- 2>&-
exit 0
