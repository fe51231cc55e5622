for i in range(200):
    open(f"f{i}", "w").write("x")
print("right")
