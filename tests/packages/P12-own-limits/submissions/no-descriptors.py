import resource

resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))
print("right")
