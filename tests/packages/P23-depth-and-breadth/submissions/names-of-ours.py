import os

# The names under which folders are lifted when they are removed.
for i in range(300):
    os.makedirs(f"/tmp/.scrub-{i}/.scrub-{i}/.scrub-{i + 1}", exist_ok=True)
    open(f"/tmp/.scrub-{i}/f", "w").close()
print("right")
