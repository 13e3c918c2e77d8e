from .optimizer import SGD, Adam, Optimizer
