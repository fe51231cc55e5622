ln -s /nowhere out.txt; echo right
