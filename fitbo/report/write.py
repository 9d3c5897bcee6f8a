"""Results in, figures and self-contained pages out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal
from uuid import uuid4

from fitbo.decode import ConfigError
from fitbo.records.archive import journal_at
from fitbo.records.notebook import notebook_of
from fitbo.report.campaign import campaign_page, draw, markdown_table, slugs
from fitbo.report.figures import run_styles
from fitbo.report.history import Run, group, load
from fitbo.report.picture import picture_of
from fitbo.report.regret import summarise
from fitbo.report.study import study_images, study_page, study_view

Pages = Literal["own", "all", "none"]


def write_report(
    paths: Sequence[Path],
    output: Path | None = None,
    pages: Pages = "own",
    minima: Mapping[str, float] | None = None,
) -> Path:
    """Write the report of the results below ``paths``; returns the path of ``report.html``.

    For several studies it is a campaign's page, with ``summary.md``, the table in Markdown, and
    ``studies/*.html``, a page for each study of a black box (``pages``: or for all, or for none).
    For one study of a black box it is the study's own page. Figures go to ``figures/``.

    output   a folder, or the page itself if it ends in .html; by default the one path given, or
             a folder beside the first of several, named after them all
    minima   known minima by the problems' labels, for journals whose headers do not have them
    """
    runs = load(paths, minima)
    page = _destination(paths, output)
    pictures = _folder(page.parent / "figures")
    if len(runs) == 1 and runs[0].black_box:
        view = study_view(notebook_of(journal_at(runs[0].path), runs[0].path), runs[0])
        html, drawn = study_page(view).html(), {"study": study_images(view)}
    else:
        grouped, links = group(runs), _write_studies(runs, page.parent, pages)
        style, shown = run_styles(grouped), {p: picture_of(m) for p, m in grouped.items()}
        html = campaign_page(runs, shown, links).html()
        images = [draw(p, methods, style, shown[p]) for p, methods in grouped.items()]
        drawn = dict(zip(slugs(grouped), images, strict=True))
        _put(page.with_name("summary.md"), markdown_table(summarise(grouped)))
    for slug, kinds in drawn.items():
        for kind, data in kinds.items():
            _put(pictures / f"{slug}-{kind}.png", data)
    _put(page, html)
    return page


def _put(path: Path, what: str | bytes) -> None:
    """Write a file whole or not at all; a link of that name is replaced, and not followed."""
    data = what if isinstance(what, bytes) else what.encode("utf-8", "replace")
    part = path.with_name(f"{path.name}.{uuid4().hex}.part")
    try:
        with part.open("xb") as file:
            file.write(data)
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def _folder(path: Path) -> Path:
    """A folder of the report, made if need be; a link may lead anywhere, and is refused."""
    if path.is_symlink():
        raise ValueError(f"{path} must be a folder, and is a link: remove it, or give --output")
    path.mkdir(parents=True, exist_ok=True)
    return path


def _write_studies(runs: Sequence[Run], folder: Path, pages: Pages) -> dict[Path, str]:
    """A page for each study that wants one; their addresses by their journals' paths."""
    wanted = [run for run in runs if pages == "all" or (pages == "own" and run.black_box)]
    names = slugs(f"{run.problem}-{run.method}-{run.seed}" for run in wanted)
    links = {}
    for run, name in zip(wanted, names, strict=True):
        try:
            view = study_view(notebook_of(journal_at(run.path), run.path), run)
        except ConfigError:  # of another optimiser, or of a version whose settings are not ours
            continue
        _put(_folder(folder / "studies") / f"{name}.html", study_page(view).html())
        links[run.path] = f"studies/{name}.html"
    return links


def _destination(paths: Sequence[Path], output: Path | None) -> Path:
    if output is None and len(paths) > 1:
        names = dict.fromkeys(path.resolve().name for path in paths)
        output = paths[0].resolve().parent / "-vs-".join(names)
    elif output is None:
        output = paths[0].parent if paths[0].is_file() else paths[0]
    page = output if output.suffix == ".html" else output / "report.html"
    page.parent.mkdir(parents=True, exist_ok=True)
    return page
