echo right
exec >&- 2>&- <&-
sleep 0.2
