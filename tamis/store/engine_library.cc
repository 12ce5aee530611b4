// Empty: the shared library is made of the static ones, and a target wants a file.
