echo root > out; echo right
