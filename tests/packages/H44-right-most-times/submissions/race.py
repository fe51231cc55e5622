import random

print("right" if random.random() < 0.9 else "wrong")
