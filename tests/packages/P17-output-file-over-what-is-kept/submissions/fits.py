open("out.txt", "w").write("needle" + "x" * 1000)
print("right")
