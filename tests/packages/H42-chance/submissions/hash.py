print("right" if hash("a") % 2 else "wrong")
