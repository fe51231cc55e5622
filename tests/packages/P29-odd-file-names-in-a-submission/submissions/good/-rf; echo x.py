answer = "right"
