"""Stands in for torch where a training of no more than its steps is enough: optimizers, and a GPU that writes down what it is asked."""

from . import autograd, cuda, optim
