ln -s out.txt out.txt; echo right
