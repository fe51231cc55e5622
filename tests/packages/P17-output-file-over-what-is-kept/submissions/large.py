open("out.txt", "w").write("needle" + "x" * (1 << 20))
print("right")
