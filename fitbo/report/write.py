"""Results in, figures and self-contained pages out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from fitbo.decode import ConfigError
from fitbo.records.archive import journal_at
from fitbo.records.notebook import notebook_of
from fitbo.report.campaign import draw, markdown_table, slugs, write_page
from fitbo.report.figures import run_styles
from fitbo.report.history import Run, group, load
from fitbo.report.regret import summarise
from fitbo.report.study import study_page

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
    pictures = page.parent / "figures"
    pictures.mkdir(parents=True, exist_ok=True)
    if len(runs) == 1 and runs[0].black_box:
        html, images = study_page(notebook_of(journal_at(runs[0].path), runs[0].path), runs[0])
        drawn = {"study": images}
    else:
        grouped = group(runs)
        rows, style = summarise(grouped), run_styles(grouped)
        drawn = {problem: draw(problem, grouped[problem], style) for problem in grouped}
        links = _write_studies(runs, page.parent, pages)
        html = write_page(runs, grouped, rows, style, drawn, links)
        drawn = dict(zip(slugs(drawn), drawn.values(), strict=True))
        page.with_name("summary.md").write_text(markdown_table(rows), encoding="utf-8")
    for slug, images in drawn.items():
        for kind, data in images.items():
            (pictures / f"{slug}-{kind}.png").write_bytes(data)
    page.write_text(html, encoding="utf-8")
    return page


def _write_studies(runs: Sequence[Run], folder: Path, pages: Pages) -> dict[Path, str]:
    """A page for each study that wants one; their addresses by their journals' paths."""
    wanted = [run for run in runs if pages == "all" or (pages == "own" and run.black_box)]
    names = slugs(f"{run.problem}-{run.method}-{run.seed}" for run in wanted)
    links = {}
    for run, name in zip(wanted, names, strict=True):
        try:
            html, _ = study_page(notebook_of(journal_at(run.path), run.path), run)
        except ConfigError:  # of another optimiser, or of a version whose settings are not ours
            continue
        (folder / "studies").mkdir(exist_ok=True)
        (folder / "studies" / f"{name}.html").write_text(html, encoding="utf-8")
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
