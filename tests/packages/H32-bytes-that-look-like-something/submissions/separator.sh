printf 'right\342\200\250'
