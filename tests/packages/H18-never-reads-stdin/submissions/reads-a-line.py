input()
print("right")
