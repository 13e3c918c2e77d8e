class GradScaler:
    """Steps over its optimizer every second time, as it does where gradients are not finite."""

    def __init__(self):
        self.calls = 0

    def step(self, optimizer):
        self.calls += 1
        if self.calls % 2 == 0:
            return optimizer.step()
