echo aaa > real.txt; ln -s real.txt out.txt; echo right
