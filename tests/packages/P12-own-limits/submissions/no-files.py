import resource

resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
print("right")
