"""Starts and stops the CUDA profiler around steps of a training, without a change of its source.

Python imports a module of this name by itself. This one first imports the one that it hides, then waits for torch, counts
steps of optimizers, and calls the profiler in one process of each session of nsys. Whatever goes wrong is reported in one line
on stderr and in the mark that it leaves; the training goes on.

  HARNESS_WINDOW        the steps, counted from 0, both ends included: 70..75
  HARNESS_WINDOW_MARK   the file that reports what was done, one line of JSON
  HARNESS_WINDOW_KNOWN  the variables of local ranks that were set before the session began
"""

import sys


def _uncover():
    """Imports the module that this one stands before; what it raises, Python reports as always."""
    import importlib.machinery
    import importlib.util
    import os

    own = os.path.dirname(os.path.realpath(__file__))
    path = [entry for entry in sys.path if os.path.realpath(entry or os.curdir) != own]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", path)
    if spec is None or spec.loader is None:
        return
    hidden = importlib.util.module_from_spec(spec)
    this = sys.modules.get("sitecustomize")
    sys.modules["sitecustomize"] = hidden
    try:
        spec.loader.exec_module(hidden)
    except BaseException:
        sys.modules["sitecustomize"] = this
        raise


def _arm():
    import os

    asked = os.environ.get("HARNESS_WINDOW")
    if asked is None:
        return
    mark = os.environ.get("HARNESS_WINDOW_MARK")
    # Of the ways in which a process learns its place on its node; the launcher nearest to it comes first.
    places = (
        "LOCAL_RANK",
        "OMPI_COMM_WORLD_LOCAL_RANK",
        "MPI_LOCALRANKID",
        "PALS_LOCAL_RANKID",
        "SLURM_LOCALID",
    )

    class Window:
        """What is known of the steps of this process."""

        def __init__(self):
            self.first = self.last = None
            self.steps = 0
            self.opened = self.closed = self.error = None
            # Nothing until it is known whether this process is the one of its session.
            self.leads = None
            self.pid = os.getpid()
            # Optimizers by id: those that are there, those of an iteration, and those that stepped in this one.
            self.alive = {}
            self.expected = set()
            self.stepped = set()
            self.stranger = None
            self.inside = {}
            # Backward passes so far; those and the parameters at the last call of each optimizer; those at the end of the last step.
            self.passes = self.repeats = 0
            self.is_blind = False
            self.passes_at = {}
            self.passes_before = 0
            # Those of the last three steps.
            self.passes_of = []
            # Parameters that each optimizer owns, and how often smaller ones stepped while the largest did not.
            self.sizes = {}
            self.waited = 0
            self.range = None
            # Only then it is known how many steps there were: a process that is killed reports no number.
            self.is_over = False

        def fail(self, what, error):
            """Once: the window is done with, the training is not."""
            if self.error is not None:
                return
            text = "%s: %s: %s" % (what, type(error).__name__, error)
            self.error = " ".join(text.split())[:300]
            try:
                sys.stderr.write(
                    "harness-window: %s; the training goes on, its window does not open or close\n" % self.error
                )
                sys.stderr.flush()
            except Exception:
                pass
            self.write()

        def write(self):
            """The mark, there whole or not at all."""
            if not mark or os.getpid() != self.pid or (self.leads is False and self.error is None):
                return
            try:
                import json

                report = {
                    "way": "hook",
                    "opened": self.opened,
                    "closed": self.closed,
                    "steps": self.steps if self.is_over else None,
                    "error": self.error,
                }
                part = "%s.%d" % (mark, self.pid)
                with open(part, "w") as file:
                    file.write(json.dumps(report) + "\n")
                os.replace(part, mark)
            except Exception:
                pass

        def claims(self):
            """Whether this process is the lowest of its session; several that cannot be distinguished settle it by a file."""
            if self.leads is None:
                self.leads = False
                known = os.environ.get("HARNESS_WINDOW_KNOWN", "").split()
                nested = [name for name in places if name in os.environ and name not in known]
                try:
                    lowest = not nested or int(os.environ[nested[0]]) == 0
                except ValueError:
                    raise ValueError("%s is not a number: %r" % (nested[0], os.environ[nested[0]]))
                if lowest and mark:
                    try:
                        os.close(os.open(mark + ".lead", os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
                    except FileExistsError:
                        lowest = False
                    except OSError:
                        # Without a place for its mark it is a window all the same, and the trace shows it.
                        pass
                self.leads = lowest
            return self.leads

        def call(self, name):
            """The profiler's own call, with nothing of the GPU's outstanding."""
            import torch

            if not torch.cuda.is_available():
                raise RuntimeError("torch sees no GPU in this process")
            torch.cuda.synchronize()
            code = getattr(torch.cuda.cudart(), name)()
            code = getattr(code, "value", code)
            if isinstance(code, tuple):
                code = code[0]
            if code is not None and int(code) != 0:
                raise RuntimeError("%s: error %d of CUDA" % (name, int(code)))

        def mark_step(self):
            """A range around each step of the window, which shows its number in the trace. It is no part of any stack."""
            try:
                from torch.cuda import nvtx

                if self.range is not None:
                    nvtx.range_end(self.range)
                    self.range = None
                if self.opened is not None and self.closed is None:
                    self.range = nvtx.range_start("harness step %d" % self.steps)
            except Exception:
                self.range = None

        def created(self, optimizer):
            import weakref

            key = id(optimizer)

            def forget(_):
                for known in (self.expected, self.stepped):
                    known.discard(key)
                for known in (self.alive, self.passes_at, self.sizes):
                    known.pop(key, None)

            self.alive[key] = weakref.ref(optimizer, forget)
            self.sizes[key] = self.size(optimizer)
            if self.first == 0 and self.opened is None and self.steps == 0 and self.claims():
                self.open()

        def size(self, optimizer):
            """How many parameters it owns; 0 where that cannot be known yet."""
            try:
                groups = getattr(optimizer, "param_groups", ())
                return sum(getattr(one, "numel", lambda: 1)() for group in groups for one in group["params"])
            except Exception:
                return 0

        def went_back(self):
            """A backward pass begins. Steps before the first one only made the state of an optimizer."""
            if self.passes == 0 and self.is_warm_up():
                self.restart()
            self.passes += 1
            self.repeats = 0

        def is_warm_up(self):
            # PyTorch's own recipe warms up 11 iterations at most, before it captures a graph.
            return 0 < self.steps <= 11 and self.opened is None

        def restart(self):
            self.steps = 0
            self.expected = set()
            self.stepped = set()
            self.passes_of = []
            self.passes_before = self.passes

        def waits(self):
            """Whether a larger optimizer ends this iteration: some step several times for each step of another. One that does
            not come at all is not waited for."""

            def largest(keys):
                return max((self.sizes.get(key, 0) for key in keys), default=0)

            self.waited += 1
            return self.waited <= 16 and largest(self.expected - self.stepped) > largest(self.stepped)

        def skipped(self):
            """Steps that a loss scaler of the program's own left out. Their backward passes are counted with those of the step that
            follows: it has a multiple of what the steps on either side have, or of the next two where it is the first."""
            self.passes_of = self.passes_of[-2:] + [self.passes - self.passes_before]
            self.passes_before = self.passes
            if len(self.passes_of) < 3 or self.passes_of[2] == 0:
                return 0
            before, between, last = self.passes_of
            many = 0
            if before == last:
                many = between
            elif between == last and self.steps == 3:
                many = before
            return many // last - 1 if many > last and many % last == 0 else 0

        def is_part(self, key, optimizer):
            """Whether it goes on with the step that it made last: no backward pass lies between them. DeepSpeed steps so for each
            group of parameters, which it swaps in. The same ones many times over are steps whose passes cannot be seen, as in
            a graph that is replayed."""
            groups = getattr(optimizer, "param_groups", ())
            now = (self.passes, tuple(id(one) for group in groups for one in group["params"][:1]))
            before = self.passes_at.get(key)
            self.passes_at[key] = now
            if self.is_blind or not self.passes or before is None or before[0] != now[0]:
                return False
            if before[1] != now[1] or self.repeats < 64:
                self.repeats += before[1] == now[1]
                return True
            self.is_blind = True
            self.steps += self.repeats
            return False

        def stepped_by(self, optimizer):
            """An optimizer has stepped. Of several that step in one iteration the last one ends it."""
            key = id(optimizer)
            if self.is_part(key, optimizer):
                return
            if not self.expected:
                if self.is_warm_up():
                    # All that stepped so far are gone.
                    self.restart()
                self.expected = set(self.alive) | {key}
            if key not in self.expected:
                # One that steps now and then belongs to the iterations of the others; one that steps alone has taken over.
                if self.stranger != key:
                    self.stranger = key
                    return
                self.expected = {key}
                self.stepped = set()
                self.steps += 1
            elif key in self.stepped and self.waits():
                return
            elif key in self.stepped:
                # It steps again, and the others did not come: they are no part of an iteration, and one ended before.
                self.expected = set(self.stepped)
                self.stepped = set()
                self.steps += self.waited
            self.waited = 0 if not self.stepped else self.waited
            self.stranger = None
            self.stepped.add(key)
            if self.expected <= self.stepped:
                self.stepped = set()
                self.waited = 0
                self.steps += 1
                self.steps += self.skipped()
                self.ended()

        def ended(self):
            """A step has ended just now. After a failure steps are counted, and nothing else is done."""
            if not self.claims() or self.error is not None:
                return
            if self.opened is None:
                if self.first <= self.steps <= self.last:
                    self.open()
                elif self.steps == 1:
                    self.write()
            elif self.closed is None:
                if self.steps > self.last:
                    self.close()
                else:
                    self.mark_step()

        def open(self):
            self.call("cudaProfilerStart")
            self.opened = self.steps
            self.mark_step()
            self.write()

        def close(self):
            self.closed = self.steps - 1
            self.mark_step()
            try:
                self.call("cudaProfilerStop")
            except Exception:
                self.closed = None
                raise
            self.write()

    window = Window()

    def guarded(function):
        """Nothing that is done here may end the training."""

        def call(optimizer):
            try:
                function(optimizer)
            except Exception as error:
                after = "after step %d" % (window.steps - 1) if window.steps else "before the first step"
                window.fail(after, error)

        return call

    try:
        first, last = asked.split("..")
        window.first, window.last = int(first), int(last)
        if not 0 <= window.first <= window.last:
            raise ValueError("a window that ends before it begins")
    except Exception as error:
        window.fail("HARNESS_WINDOW=%r" % asked, error)
        return

    created = guarded(window.created)
    stepped = guarded(window.stepped_by)
    went_back = guarded(lambda _: window.went_back())

    def wrap_step(owner):
        """Counts calls of `step` of a class; those that a call makes in turn are part of it."""
        import functools

        plain = owner.__dict__.get("step")
        if plain is None or not callable(plain) or getattr(plain, "_harness_window", False):
            return

        @functools.wraps(plain)
        def step(self, *args, **kwargs):
            outermost = not window.inside.get(id(self))
            if outermost:
                window.inside[id(self)] = True
            try:
                result = plain(self, *args, **kwargs)
            finally:
                if outermost:
                    window.inside.pop(id(self), None)
            if outermost:
                stepped(self)
            return result

        step._harness_window = True
        owner.step = step

    def wrap_optimizer(module):
        import functools

        base = module.Optimizer
        plain = base.__init__

        @functools.wraps(plain)
        def init(self, *args, **kwargs):
            plain(self, *args, **kwargs)
            try:
                for owner in type(self).__mro__:
                    if owner is not object:
                        wrap_step(owner)
            except Exception as error:
                window.fail("the step of %s" % type(self).__name__, error)
            created(self)

        base.__init__ = init

    def wrap_scaler(module):
        """A scaler that finds gradients that are not finite steps over its optimizer: the iteration counts all the same."""
        import functools

        scaler = getattr(module, "GradScaler", None)
        plain = scaler.__dict__.get("step") if scaler is not None else None
        if plain is None:
            return

        @functools.wraps(plain)
        def step(self, optimizer, *args, **kwargs):
            outermost = not window.inside.get(id(optimizer))
            if outermost:
                window.inside[id(optimizer)] = True
            try:
                result = plain(self, optimizer, *args, **kwargs)
            finally:
                if outermost:
                    window.inside.pop(id(optimizer), None)
            if outermost:
                stepped(optimizer)
            return result

        scaler.step = step

    def wrap_autograd(module):
        """Counts backward passes; one within another is part of it, as that of an activation that is computed twice."""
        import functools

        plain = module.backward

        @functools.wraps(plain)
        def backward(*args, **kwargs):
            if window.inside.get(module):
                return plain(*args, **kwargs)
            went_back(None)
            window.inside[module] = True
            try:
                return plain(*args, **kwargs)
            finally:
                window.inside.pop(module, None)

        module.backward = backward

    wrappers = {
        "torch.autograd": wrap_autograd,
        "torch.optim.optimizer": wrap_optimizer,
        "torch.amp.grad_scaler": wrap_scaler,
        "torch.cuda.amp.grad_scaler": wrap_scaler,
    }

    class Finder:
        """Lets others find the modules of torch, and looks at them once they were read."""

        def find_spec(self, name, path=None, target=None):
            wrapper = wrappers.get(name)
            if wrapper is None:
                return None
            others = (finder for finder in sys.meta_path if finder is not self)
            found = (finder.find_spec(name, path, target) for finder in others if hasattr(finder, "find_spec"))
            spec = next((spec for spec in found if spec is not None), None)
            plain = getattr(spec.loader, "exec_module", None) if spec is not None else None
            if plain is None:
                return spec

            def exec_module(module):
                plain(module)
                if module.__name__ != name:
                    return
                try:
                    wrapper(module)
                except Exception as error:
                    window.fail("%s is not as expected" % name, error)

            try:
                spec.loader.exec_module = exec_module
            except Exception as error:
                window.fail("%s cannot be watched" % name, error)
            return spec

    sys.meta_path.insert(0, Finder())

    def left():
        # A process that has no optimizer, such as a launcher, says nothing over one that has.
        if os.getpid() == window.pid and (window.leads or window.error is not None):
            window.is_over = True
            window.write()

    import atexit

    atexit.register(left)


try:
    _uncover()
finally:
    try:
        _arm()
    except Exception as error:
        try:
            sys.stderr.write("harness-window: not armed: %s: %s\n" % (type(error).__name__, error))
        except Exception:
            pass
