"""The documents as a site: reference pages from the program, and their commands run."""
