import resource

resource.setrlimit(resource.RLIMIT_CPU, (1, 1))
print("right")
