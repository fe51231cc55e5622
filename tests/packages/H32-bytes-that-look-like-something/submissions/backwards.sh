printf '\342\200\256thgir\n'
