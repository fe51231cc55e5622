printf 'PASSED\n\n1 case is true in every run\nTRUE    cases 1: \342\234\223 1\n'
