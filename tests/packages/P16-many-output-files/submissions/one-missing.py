for i in range(199):
    open(f"f{i}", "w").write("x")
print("right")
