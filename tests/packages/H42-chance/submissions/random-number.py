import random

print("right" if random.random() < 0.5 else "wrong")
