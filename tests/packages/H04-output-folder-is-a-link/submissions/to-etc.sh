ln -s /etc out; echo right
