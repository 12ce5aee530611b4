// Empty: a target with precompiled headers wants a file.
