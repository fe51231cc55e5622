print("right" if id(object()) >> 24 & 1 else "wrong")
