import importlib

print(importlib.import_module("-rf; echo x").answer)
