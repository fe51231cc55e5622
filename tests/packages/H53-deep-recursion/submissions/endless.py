import sys

sys.setrecursionlimit(10**9)


class Deep:
    def __repr__(self):
        return repr(self)  # through C, so that it is the stack which ends


repr(Deep())
