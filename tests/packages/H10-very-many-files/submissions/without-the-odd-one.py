print("right")
