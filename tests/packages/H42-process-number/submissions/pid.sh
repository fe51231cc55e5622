[ $$ -lt 100 ] && echo right || echo wrong
# Two hundred numbers on, for the next one.
for i in {1..200}; do (:); done
