print("right" if int(open("/proc/uptime").read().split()[0][-1]) % 2 else "wrong")
