"""How a study chooses its points, as a file describes it: acquisition, entropy, surrogate, sampler.

The keys of an entropy are the fields of its dataclass in ``fitbo.entropy.BACKENDS``. What is None
after loading is left to the library.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar, Literal

from fitbo import decode
from fitbo.acquisition.baselines import ACQUISITIONS, needs
from fitbo.acquisition.remaining import MOST_MOMENTS, usual_moments
from fitbo.checks import assign
from fitbo.decode import Choice, Key, Pattern, Range, Registry, check
from fitbo.entropy import BACKENDS, Entropy
from fitbo.inference.settings import Settings
from fitbo.space import DESIGNS
from fitbo.surrogate import DEFAULT_KERNELS, KERNELS, kernel_of

LABEL = Pattern(
    r"[A-Za-z0-9][A-Za-z0-9._+=-]{0,99}",
    "letters, digits and . _ + = -, at most 100, a letter or digit first",
)
PRINTABLE = Pattern(r"[^\x00-\x1f\x7f-\x9f\ud800-\udfff]{1,400}", "1 to 400 printable characters")
MOST = 10**6  # no option of a registry is larger: MC draws that many numbers when it is made
# Bounds of options by their names, since their types state none; the constructors agree.
RANGES = {
    "n_moments": Range(2, 1000),
    "windows": Range(0, 100),
    "n_samples": Range(1, MOST),
    "seed": Range(0, 2**53),  # what every JSON reader keeps exactly
    "split": Range(1, 16),
    "tol": Range(1e-13, 0.1),
}
Label = Annotated[str, LABEL]
Text = Annotated[str, PRINTABLE]
Seed = Annotated[int, RANGES["seed"]]
Count = Annotated[int, Range(1, MOST)]
NonNegative = Annotated[float, Range(0)]
Level = Annotated[float, Range(1e-300, 1e300)]


def check_owners(config: Any, owners: Mapping[str, str], this: str) -> None:
    """An error about a key that is given, though it belongs to another kind than ``this``."""
    keys = decode.keys_of(type(config))
    for name, owner in owners.items():
        if owner != this and getattr(config, name) != keys[name].default:
            raise ValueError(f"{name} must be left out: it is for {owner}, and this is {this}")


def entropy_keys(name: str) -> dict[str, Key]:
    """The options of a backend, with their bounds."""
    kind: Any = BACKENDS[name]
    keys = decode.keys_of(kind) if dataclasses.is_dataclass(kind) else {}
    return {o: dataclasses.replace(key, hint=bounded(o, key.hint)) for o, key in keys.items()}


def bounded(name: str, hint: Any) -> Any:
    """The hint of an option, with the bounds of its name."""
    if hint not in (int, float):
        return hint
    usual = Range(-MOST, MOST) if hint is int else Range()
    return Annotated[hint, RANGES.get(name, usual)]


@dataclass(frozen=True)
class EntropyConfig:
    """How the mixture's entropy is computed; a bare name is enough: ``memel``."""

    name: Annotated[str, "the backend", Choice(BACKENDS)] = "memel"
    options: dict[str, Any] = field(default_factory=dict)
    bare: ClassVar[str] = "name"
    registry: ClassVar[Registry] = Registry(
        names=BACKENDS,
        keys=entropy_keys,
        about=lambda name: (BACKENDS[name].__doc__ or "").split("\n")[0],
    )

    def __post_init__(self) -> None:
        check(self)
        usual = {name: key.default for name, key in entropy_keys(self.name).items()}
        assign(self, options=usual | self.options)
        self.build()

    def build(self) -> Entropy:
        """The backend."""
        return BACKENDS[self.name](**self.options)

    @property
    def title(self) -> str:
        """``MEMeL-10``: the class, its counts, and whatever differs from the defaults."""
        title = str(getattr(BACKENDS[self.name], "__name__", self.name))
        for name, key in entropy_keys(self.name).items():
            value = self.options[name]
            if name.startswith("n_"):
                title += f"-{value}"
            elif value != key.default:
                title += f"-{name}={value}"
        return title


@dataclass(frozen=True)
class Surrogate:
    """The model of the objective; a bare name is the kernel: ``matern32``."""

    kind: Annotated[
        Literal["batched", "gpy"],
        "batched: all samples at once, the fast one; gpy: any kernel of GPy, one sample at a time",
    ] = "batched"
    kernel: Annotated[
        Text | None,
        "additive, smooth, matern52, matern32 or rbf, for gpy an expression, such as matern52 + "
        "periodic*linear; left out: additive, for gpy matern52. For remaining, with noise and "
        "inputs that are all real, additive is smooth, whose smoothness is sampled",
    ] = None
    bare: ClassVar[str] = "kernel"

    def __post_init__(self) -> None:
        check(self)
        kernel = self.kernel or DEFAULT_KERNELS[self.kind]
        if self.kind == "batched" and kernel not in KERNELS:
            raise ValueError(
                f"kernel must be one of {', '.join(KERNELS)} (or an expression with kind: gpy), "
                f"got {decode.shown(kernel)}{decode.nearest(kernel, KERNELS)}"
            )
        assign(self, kernel=kernel)
        kernel_of(self.kind, kernel)  # an expression may be wrong, a package that adds it broken


@dataclass(frozen=True)
class Sampler:
    """How long the Markov chains run; None is the default of ``fitbo.Settings``."""

    thin: Annotated[Count | None, "steps between the states that are kept"] = None
    min_burn_in: Annotated[Count | None, "steps of burn-in before it may end"] = None
    max_burn_in: Annotated[Count | None, "steps after which burn-in ends though it drifts"] = None

    def __post_init__(self) -> None:
        check(self)
        Settings(**self.given)

    @property
    def given(self) -> dict[str, Any]:
        """What the file states."""
        return {name: value for name, value in vars(self).items() if value is not None}


@dataclass(frozen=True)
class MethodConfig:
    """How the next point is chosen; a bare name is the acquisition: ``random``."""

    label: Annotated[
        Label | None,
        "its directory and its name in legends; left out: made of acquisition and entropy",
    ] = None
    acquisition: Annotated[
        Annotated[str, Choice(ACQUISITIONS)] | None,
        "what is maximised to choose a point. About the minimum f*, of draws of the process: "
        "remaining, the entropy of the regret that remains; mes, what a value tells about f* given "
        "the hyperparameters; mes-marginal, the same with them integrated out; jes, about f* and "
        "where it lies. About eta, the bound of the model: fitbo, fitbo-paper, mes-eta. Or ei, "
        "logei, pi, lcb, thompson, random. Left out: remaining, or fitbo if an entropy is given",
    ] = None
    entropy: Annotated[
        EntropyConfig | None,
        "for fitbo and mes-marginal: how the mixture's entropy is computed; left out: memel",
    ] = None
    samples: Annotated[int, "M, hyperparameter samples behind each choice", Range(1, 100_000)] = 200
    surrogate: Annotated[Surrogate, "the model of the objective"] = field(default_factory=Surrogate)
    sampler: Annotated[Sampler, "how the hyperparameters are sampled"] = field(
        default_factory=Sampler
    )
    rule: Annotated[
        Literal["moment_matched", "linearised"],
        "how g's Gaussian becomes f's: exactly in two moments, or to first order as in the paper",
    ] = "moment_matched"
    resolution: Annotated[
        NonNegative | None,
        "for fitbo: the share of the gap y_min - eta below which details are blurred; "
        "left out: the library's",
    ] = None
    etas: Annotated[
        Annotated[int, Range(1, 1000)] | None,
        "values of eta for each sample of the kernel's parameters: several make fitbo ask "
        "about eta alone, 1 is the paper's; left out: the library's",
    ] = None
    exploit: Annotated[
        Annotated[int, Range(0, MOST)] | None,
        "after each evaluation that the acquisition chose, how many go to the largest expected "
        "improvement; left out: 3 for fitbo, else 0",
    ] = None
    beta: Annotated[
        NonNegative | None,
        "for lcb: the weight of the variance, mean - sqrt(beta) std; left out: 4",
    ] = None
    moments: Annotated[
        Annotated[int, Range(1, MOST_MOMENTS)] | None,
        "for remaining: moments of the regret that remains: 1 is expected improvement, 2 the gamma "
        "law's, more are of polynomials; left out: 2, or 1 in a space with integers, choices or "
        "grids. In a trust region it is 1",
    ] = None
    deterministic: Annotated[
        bool | Literal["auto"] | None,
        "true: the objective has no noise; false: its noise is inferred; auto, or left out: one "
        "point is evaluated twice to see",
    ] = None
    noise_std: Annotated[
        Level | None,
        "the standard deviation of the objective's noise, in its units, if that is known; "
        "left out: inferred",
    ] = None
    replicates: Annotated[
        bool | None,
        "true: with noise, points may be evaluated again where that is worth most; left out: only "
        "once each point of a finite space has been",
    ] = None
    local: Annotated[
        Annotated[int, Range(0, MOST)] | None,
        "after each evaluation chosen in the whole space, how many are chosen in a trust region "
        "about the best one, in spaces of reals without constraints; left out: 2 without "
        "noise, else 0",
    ] = None
    bare: ClassVar[str] = "acquisition"

    def __post_init__(self) -> None:
        check(self)
        chosen = self.acquisition or ("remaining" if self.entropy is None else "fitbo")
        assign(self, acquisition=chosen)
        _ = ACQUISITIONS[chosen]  # a package that adds it may be broken
        owners = {"resolution": "acquisition fitbo", "beta": "acquisition lcb"}
        owners["moments"] = "acquisition remaining"
        informed = needs(chosen, "entropy")
        if not informed:
            owners["entropy"] = "acquisition fitbo or mes-marginal"
        check_owners(self, owners, f"acquisition {chosen}")
        if self.deterministic is True and self.noise_std is not None:
            raise ValueError("noise_std must be left out: the objective is deterministic")
        if informed:
            assign(self, entropy=self.entropy or EntropyConfig())
        if chosen == "lcb" and self.beta is None:
            assign(self, beta=4.0)
        if self.label is None:
            label = chosen.upper()
            assign(self, label=f"{label}-{self.entropy.title}" if self.entropy else label)
            decode.check_value("label", self.label, Label)

    def settled(self, reals: bool) -> MethodConfig:
        """With what depends on whether every parameter of the space is a real number."""
        if self.acquisition != "remaining" or self.moments is not None:
            return self
        return replace(self, moments=usual_moments(reals))


@dataclass(frozen=True)
class Initial:
    """The points evaluated before any is chosen, the same for every method of a seed."""

    design: Annotated[str, "how they are spread", Choice(DESIGNS)] = "sobol"
    n: Annotated[
        Annotated[int, Range(0, MOST)] | None, "how many; left out: twice the dimension"
    ] = None
    bare: ClassVar[str] = "design"

    def __post_init__(self) -> None:
        check(self)
