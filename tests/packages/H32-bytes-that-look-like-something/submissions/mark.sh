printf '\357\273\277right\n'
