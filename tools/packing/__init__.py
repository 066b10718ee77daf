"""Packages of a release, made from one binary. The same inputs give the same bytes."""
