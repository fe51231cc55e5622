mkdir real; echo root > real/passwd; ln -s real out; echo right
