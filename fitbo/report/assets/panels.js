// Panels: one coordinate system each, drawn by uPlot from the page's block of JSON.
//
// panel    {title, group, x, y, at, series, strip, level, mark, foot, axes, focus, gaps}
// axis     {label, log, whole, names, range}     log: data are log10; names: places are 0, 1, ...
// series   {name, group, colour, dash, width, kind, at, y, bands, notes, run}
//          kind: line, step, points, bars; at: its own x; bands: [[low, high], ...]; notes: what the
//          nearest point says when the pointer is near; run: shown only if single runs are wanted
// A group, such as a method, is switched on and off on the whole page. Text is only ever textContent.
"use strict";

const Panels = (() => {
  const shown = {off: new Set(), runs: false};   // groups switched off; whether single runs are on
  const colour = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const FONT = '12px system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif';

  const make = (tag, css, text) => {
    const node = document.createElement(tag);
    if (css) node.className = css;
    if (text !== undefined) node.textContent = text;
    return node;
  };
  const paint = (hex, alpha) => hex.startsWith("--") ? colour(hex) : hex + alpha;
  const inkOf = series => () => paint(series.colour ?? "--muted", series.fade ?? "");

  // One table for uPlot: all x in order, and for each series its values there, null elsewhere.
  const columns = panel => {
    const own = panel.series.filter(s => s.at).flatMap(s => s.at);
    const xs = own.length ? [...new Set([...panel.at, ...own])].sort((a, b) => a - b) : panel.at;
    const place = own.length ? new Map(xs.map((x, i) => [x, i])) : null;
    const filled = (at, values) => {
      if (!place) return values;
      const column = new Array(xs.length).fill(null);
      values.forEach((v, i) => { column[place.get(at[i])] = v; });
      return column;
    };
    const data = [xs], made = [{}], bands = [];
    for (const series of panel.series) {
      const at = series.at ?? panel.at;
      const spans = series.bands ?? [];
      spans.forEach(([low, high], k) => {
        if (series.kind !== "bars") {
          bands.push({series: [data.length, data.length + 1], depth: k, of: series});
        }
        data.push(filled(at, high), filled(at, low));
        made.push({of: series, edge: true}, {of: series, edge: true});
      });
      data.push(filled(at, series.y));
      made.push({of: series, notes: series.notes && filled(at, series.notes)});
    }
    return {data, made, bands};
  };

  const upright = (u, i) => {              // low to high, as a bar, about each place
    const path = new Path2D();
    const [high, low] = [u.data[i - 2], u.data[i - 1]];
    u.data[0].forEach((x, k) => {
      if (low[k] == null) return;
      const left = u.valToPos(x, "x", true);
      path.moveTo(left, u.valToPos(low[k], "y", true));
      path.lineTo(left, u.valToPos(high[k], "y", true));
    });
    return {stroke: path, fill: null, clip: null, flags: 1};
  };

  const seriesOf = (one, panel) => {
    if (!one.of) return {};
    const {of: s, edge} = one;
    if (edge) return {show: visible(s), points: {show: false}, spanGaps: true};  // no stroke
    const points = s.kind === "points" || s.kind === "bars";
    return {
      label: s.name, show: visible(s), spanGaps: !panel.gaps, dash: s.dash ?? [],
      stroke: s.kind === "bars" ? () => paint(s.colour, "55") : inkOf(s),
      width: s.kind === "bars" ? 6 : s.width ?? 2,
      paths: s.kind === "points" ? () => null : s.kind === "bars" ? upright
        : s.kind === "step" ? uPlot.paths.stepped({align: 1}) : undefined,
      points: points ? {show: true, size: s.size ?? 6, width: 1, fill: inkOf(s), stroke: inkOf(s)}
        : {show: s.y.length === 1},
    };
  };
  const visible = s => !shown.off.has(s.group ?? s.name) && (!s.run || shown.runs);

  class Panel {
    constructor(figure, spec) {
      this.figure = figure;
      this.root = make("div", "panel");
      this.title = make("p", "panel-title");
      this.plot = make("div", "plot");
      this.plot.tabIndex = 0;
      this.plot.setAttribute("role", "img");
      this.root.append(this.title, this.plot);
      this.adopt(spec);
      new ResizeObserver(() => this.resize()).observe(this.plot);
      this.plot.addEventListener("keydown", event => this.key(event));
    }

    adopt(spec) {
      this.spec = spec;
      this.root.hidden = spec.group !== undefined && shown.off.has(spec.group);
      this.title.textContent = spec.title ?? "";
      this.plot.setAttribute("aria-label", `${this.figure.alt}: ${spec.title ?? ""}`);
      Object.assign(this, columns(spec));
    }

    get shape() { return JSON.stringify(this.made.map(m => [m.of?.name, m.of?.kind, m.edge])); }

    // New data of the same series keep zoom and pointer; others are drawn afresh.
    update(spec) {
      const before = this.shape;
      this.adopt(spec);
      if (!this.u || before !== this.shape) { this.u?.destroy(); this.u = null; this.draw(); return; }
      this.u.setData(this.data, !this.figure.zoomed);
      if (this.figure.zoomed) this.u.redraw();
    }

    get size() {
      const width = Math.max(this.plot.clientWidth, 40);
      return {width, height: Math.round(Math.min(320, Math.max(210, width * 0.55)))};
    }

    resize() {
      if (this.plot.clientWidth === 0) return;
      if (!this.u) this.draw();
      else if (this.u.width !== this.size.width) this.u.setSize(this.size);
    }

    draw() {
      if (this.plot.clientWidth === 0) return;   // hidden: when it is shown
      const axis = which => {
        const spec = () => this.spec[which];
        const across = which === "x";
        return {
          scale: which, label: spec().label || null, labelFont: FONT, font: FONT, labelSize: 20, gap: 4,
          stroke: () => colour("--muted"), grid: {stroke: () => colour("--grid"), width: 1},
          ticks: {show: false},
          splits: (u, i, low, high) => Scales.ticks(spec(), low, high,
            across ? Math.max(2, Math.floor(u.width / (spec().names ? 78 : 64))) : 6),
          values: (u, places) => Scales.label(spec(), places),
          size: across ? 34 : (u, texts) =>
            12 + 7 * Math.max(2, ...(texts ?? []).map(text => String(text).length)),
        };
      };
      const options = {
        ...this.size, legend: {show: false}, padding: [10, 12, 0, 0],
        focus: {alpha: this.spec.focus ? 0.35 : 1},
        series: this.made.map(one => seriesOf(one, this.spec)),
        bands: this.bands.map(band => ({series: band.series,
          fill: () => paint(band.of.colour, band.depth ? "3d" : "26")})),
        scales: {
          x: {time: false, range: (u, low, high) => this.figure.zoom(this) ?? this.across(low, high)},
          y: {range: (u, low, high) => !this.figure.zoomed && this.spec.y.range
            || Scales.padded(low, high, 0.07)},
        },
        axes: [axis("x"), axis("y")],
        cursor: {
          x: !this.spec.focus, y: !this.spec.focus,
          points: {show: !this.spec.focus, size: 8, width: 2, stroke: (u, i) => paint(
            this.made[i].of.colour ?? "--muted", ""), fill: () => colour("--card")},
          drag: {x: true, y: false, dist: 8, setScale: false},
          focus: {prox: this.spec.focus ? 1e6 : -1},
          sync: this.figure.together ? {key: this.figure.key, setSeries: false, scales: ["x", null],
            filters: {pub: type => ["mousemove", "mouseleave", "mouseenter"].includes(type)}} : {},
          dataIdx: (u, i, at) => this.nearest(i, at),
        },
        hooks: {
          drawClear: [u => this.behind(u)],
          draw: [u => this.inFront(u)],
          setCursor: [u => this.figure.point(this, u)],
          setSelect: [u => this.selected(u)],
        },
      };
      this.u = new uPlot(options, this.data, this.plot);
      this.touch(this.u);
    }

    across(low, high) {
      if (this.spec.x.range) return this.spec.x.range;
      if (low == null) return [0, 1];
      if (this.spec.x.names) return [-0.4, this.spec.x.names.length - 0.6];
      return low === high ? [low - 0.5, high + 0.5] : [low, high];
    }

    // The index that a series has a value at: of steps the last one before, else the nearest.
    nearest(i, at) {
      const column = this.data[i], one = this.made[i];
      const still = i === 0 || one.edge || one.of.kind === "points";
      if (at == null || still || column[at] != null) return at;
      for (let d = 1; d < column.length; d++) {
        if (column[at - d] != null) return at - d;
        if (!one.of.run && column[at + d] != null) return at + d;
      }
      return at;
    }

    behind(u) {
      const {ctx, bbox} = u, {strip, level, mark, foot} = this.spec;
      const ratio = uPlot.pxRatio;
      ctx.save();
      ctx.beginPath();
      ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
      ctx.clip();
      const across = x => u.valToPos(x, "x", true), upward = y => u.valToPos(y, "y", true);
      if (strip) {
        ctx.fillStyle = colour("--strip");
        const left = across(strip[0]);
        ctx.fillRect(left, bbox.top, across(strip[1]) - left, bbox.height);
      }
      const stroke = (dash, width, name) => {
        ctx.strokeStyle = colour(name); ctx.lineWidth = width * ratio; ctx.setLineDash(dash);
        ctx.stroke();
      };
      const line = (x0, y0, x1, y1) => {
        ctx.beginPath(); ctx.moveTo(x0, y0); ctx.lineTo(x1, y1); };
      const [right, low] = [bbox.left + bbox.width, bbox.top + bbox.height];
      if (level != null) { const y = upward(level); line(bbox.left, y, right, y); stroke([6, 4], 1.2, "--ink"); }
      if (mark != null) { const x = across(mark); line(x, bbox.top, x, low); stroke([4, 4], 1, "--ink"); }
      for (const x of foot ?? []) { line(across(x), low - 9 * ratio, across(x), low - 2); stroke([], 1, "--muted"); }
      for (const {at} of this.spec.axes ?? []) {   // of parallel coordinates
        line(across(at), bbox.top, across(at), low);
        stroke([], 1, "--muted");
      }
      ctx.restore();
    }

    inFront({ctx, bbox, valToPos}) {         // what is written on the axes of parallel coordinates
      const ratio = uPlot.pxRatio;
      ctx.save();
      ctx.font = FONT.replace("12px", `${11 * ratio}px`);
      [ctx.fillStyle, ctx.strokeStyle, ctx.lineWidth] = [colour("--muted"), colour("--card"), 4 * ratio];
      for (const {at, labels} of this.spec.axes ?? []) {
        const x = valToPos(at, "x", true), last = x > bbox.left + 0.9 * bbox.width;
        ctx.textAlign = last ? "right" : "left";
        for (const [height, text] of labels) {
          const place = [x + (last ? -4 : 4) * ratio, valToPos(height, "y", true) + 4 * ratio];
          ctx.strokeText(Scales.shorten(text, 9), ...place);
          ctx.fillText(Scales.shorten(text, 9), ...place);
        }
      }
      ctx.restore();
    }

    key(event) {
      if (!this.u) return;
      const step = {ArrowLeft: -1, ArrowRight: 1}[event.key];
      if (event.key === "Escape") this.figure.reset();
      if (!step) return;
      event.preventDefault();
      const xs = this.data[0], last = xs.length - 1;
      const at = Math.min(last, Math.max(0, (this.u.cursor.idx ?? (step > 0 ? -1 : last + 1)) + step));
      this.u.setCursor({left: this.u.valToPos(xs[at], "x"), top: this.u.over.clientHeight / 2});
    }

    selected(u) {
      const {left, width} = u.select;
      if (!width) return;
      u.setSelect({left: 0, top: 0, width: 0, height: 0}, false);
      this.figure.zoomTo(this, u.posToVal(left, "x"), u.posToVal(left + width, "x"));
    }

    // One finger moves the pointer, two zoom; the page still scrolls up and down.
    touch(u) {
      let grip = null;
      const lefts = event => [...event.touches].map(t => t.clientX - u.over.getBoundingClientRect().left);
      u.over.addEventListener("touchstart", event => {
        grip = event.touches.length === 2 ? lefts(event).map(left => u.posToVal(left, "x")) : null;
      }, {passive: true});
      u.over.addEventListener("touchmove", event => {
        const at = lefts(event);
        if (at.length === 1 && !grip) {
          const top = event.touches[0].clientY - u.over.getBoundingClientRect().top;
          u.setCursor({left: at[0], top});
        } else if (at.length === 2 && grip && Math.abs(at[1] - at[0]) > 5) {
          const unit = (grip[1] - grip[0]) / (at[1] - at[0]);
          const low = grip[0] - at[0] * unit;
          if (unit > 0) this.figure.zoomTo(this, low, low + unit * u.over.clientWidth);
        }
      }, {passive: true});
    }
  }

  return {Panel, shown, visible, make, paint};
})();
