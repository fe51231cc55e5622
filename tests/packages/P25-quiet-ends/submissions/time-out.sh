echo right
timeout 0.05 sleep 5
