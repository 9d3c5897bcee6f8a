"""How a study chooses, as a file describes it: acquisition, entropy, surrogate, sampler.

A campaign lists methods and a study's file has one; what their files share besides, the first
points and where things run, is here too. The keys of an entropy are the fields of its dataclass in
``fitbo.entropy.BACKENDS``. What is None after loading is left to the library.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal

from fitbo import decode
from fitbo.acquisition import ACQUISITIONS
from fitbo.decode import Choice, Key, Pattern, Range, Registry, check
from fitbo.entropy import BACKENDS
from fitbo.inference.settings import Settings
from fitbo.space import DESIGNS
from fitbo.surrogate import DEFAULT_KERNELS, KERNELS

LABEL = Pattern(
    r"[A-Za-z0-9][A-Za-z0-9._+=-]{0,99}",
    "letters, digits and . _ + = -, at most 100, a letter or digit first",
)
PRINTABLE = Pattern(r"[^\x00-\x1f\x7f-\x9f\ud800-\udfff]{1,400}", "1 to 400 printable characters")
MOST = 10**6  # no option of a registry is larger: MC draws that many numbers when it is made
SEED = Range(0, 2**53)  # what every JSON reader keeps exactly
# Bounds of options by their names, since types state none; the constructors agree.
RANGES = {
    "n_moments": Range(2, 1000),
    "windows": Range(0, 100),
    "n_samples": Range(1, MOST),
    "seed": SEED,
    "split": Range(1, 16),
    "tol": Range(1e-13, 0.1),
}


def entropy_keys(name: str) -> dict[str, Key]:
    """The options of a backend, with their bounds."""
    if name not in BACKENDS:
        hint = decode.nearest(name, BACKENDS)
        raise ValueError(
            f"name must be one of {', '.join(BACKENDS)}, got {decode.shown(name)}{hint}"
        )
    kind = BACKENDS[name]
    keys: dict[str, Key] = decode.keys_of(kind) if dataclasses.is_dataclass(kind) else {}
    return {
        option: dataclasses.replace(key, hint=bounded(option, key.hint))
        for option, key in keys.items()
    }


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
        names=lambda: tuple(BACKENDS),
        keys=entropy_keys,
        about=lambda name: (BACKENDS[name].__doc__ or "").split("\n")[0],
    )

    def __post_init__(self) -> None:
        check(self)
        keys = entropy_keys(self.name)
        for option in self.options:
            if option not in keys:
                raise ValueError(f"options must be among {', '.join(keys)}, got {option!r}")
        options = {name: key.default for name, key in keys.items()} | self.options
        for name, value in options.items():
            decode.check_value(name, value, keys[name].hint)
        object.__setattr__(self, "options", options)
        BACKENDS[self.name](**options)

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
        Annotated[str, PRINTABLE] | None,
        "additive, matern52, matern32 or rbf, for gpy an expression, such as matern52 + "
        "periodic*linear; left out: additive, for gpy matern52",
    ] = None
    bare: ClassVar[str] = "kernel"

    def __post_init__(self) -> None:
        check(self)
        if self.kernel is None:
            object.__setattr__(self, "kernel", DEFAULT_KERNELS[self.kind])
        if self.kind == "batched":
            if self.kernel not in KERNELS:
                raise ValueError(
                    f"kernel must be one of {', '.join(KERNELS)} (or an expression with kind: "
                    f"gpy), got {decode.shown(self.kernel)}"
                    f"{decode.nearest(str(self.kernel), KERNELS)}"
                )
            _ = KERNELS[str(self.kernel)]  # a package that adds it may be broken
        if self.kind == "gpy":
            from fitbo.surrogate.gpy import kernel_from  # GPy takes two seconds to import

            kernel_from(self.kernel, 1)


@dataclass(frozen=True)
class Sampler:
    """How long the Markov chains run; None is the default of ``fitbo.Settings``."""

    thin: Annotated[
        Annotated[int, Range(1, MOST)] | None, "steps between the states that are kept"
    ] = None
    min_burn_in: Annotated[
        Annotated[int, Range(1, MOST)] | None, "steps of burn-in before it may end"
    ] = None
    max_burn_in: Annotated[
        Annotated[int, Range(1, MOST)] | None, "steps after which burn-in ends though it drifts"
    ] = None

    def __post_init__(self) -> None:
        check(self)
        low, high = (
            getattr(Settings if getattr(self, name) is None else self, name)
            for name in ("min_burn_in", "max_burn_in")
        )
        if low > high:
            name = "min_burn_in" if self.max_burn_in is None else "max_burn_in"
            raise ValueError(f"{name} must leave min_burn_in <= max_burn_in, got {low} and {high}")


@dataclass(frozen=True)
class MethodConfig:
    """How the next point is chosen; a bare name is the acquisition: ``random``."""

    label: Annotated[
        Annotated[str, LABEL] | None,
        "its directory and its name in legends; left out: made of acquisition and entropy",
    ] = None
    acquisition: Annotated[str, "what is maximised to choose a point", Choice(ACQUISITIONS)] = (
        "fitbo"
    )
    entropy: Annotated[
        EntropyConfig | None, "for fitbo: how the mixture's entropy is computed; left out: memel"
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
        Annotated[float, Range(0)] | None,
        "for fitbo: the share of the gap y_min - eta below which details are blurred; "
        "left out: the library's",
    ] = None
    etas: Annotated[
        Annotated[int, Range(1, 1000)] | None,
        "values of the minimum for each sample of the kernel's parameters: several make fitbo ask "
        "about the minimum alone, 1 is the paper's; left out: the library's",
    ] = None
    exploit: Annotated[
        Annotated[int, Range(0, MOST)] | None,
        "after each evaluation that the acquisition chose, how many go to the largest expected "
        "improvement; left out: 3 for fitbo, else 0",
    ] = None
    beta: Annotated[
        Annotated[float, Range(0)] | None,
        "for lcb: the weight of the variance, mean - sqrt(beta) deviation; left out: 4",
    ] = None
    bare: ClassVar[str] = "acquisition"

    def __post_init__(self) -> None:
        check(self)
        _ = ACQUISITIONS[self.acquisition]  # a package that adds it may be broken
        for name, owner, usual in (
            ("entropy", "fitbo", EntropyConfig()),
            ("resolution", "fitbo", None),
            ("beta", "lcb", 4.0),
        ):
            if self.acquisition == owner:
                if getattr(self, name) is None:
                    object.__setattr__(self, name, usual)
            elif getattr(self, name) is not None:
                raise ValueError(
                    f"{name} must be left out: it is for acquisition {owner}, "
                    f"and this is {self.acquisition}"
                )
        if self.label is None:
            label = self.acquisition.upper()
            label += f"-{self.entropy.title}" if self.entropy else ""
            object.__setattr__(self, "label", label)
        decode.check_value("label", self.label, Annotated[str, LABEL])


@dataclass(frozen=True)
class Initial:
    """The points evaluated before any is chosen, the same for every method of a seed."""

    design: Annotated[str, "how they are spread", Choice(DESIGNS)] = "sobol"
    n: Annotated[
        Annotated[int, Range(1, MOST)] | None, "how many; left out: twice the dimension"
    ] = None
    bare: ClassVar[str] = "design"

    def __post_init__(self) -> None:
        check(self)
