mkdir out; echo root > out/passwd; echo right
