import gzip

import spans

spans.good()
bomb = gzip.compress(bytes(64 * 2**20), 9)
for _ in range(3):
    print(len(bomb), spans.post(bomb, "Content-Encoding: gzip"))
