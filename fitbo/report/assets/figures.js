// The figures of a page: <figure data-chart="key"> with the panels that the JSON block has for it,
// a legend whose names switch groups on and off, and a line that says what is under the pointer.
"use strict";

const Figures = (() => {
  const {Panel, shown, visible, make, paint} = Panels;
  const figures = new Map();
  const RADIUS = 24;                       // pixels within which a point says what it is

  class Figure {
    constructor(node, panels) {
      this.node = node;
      this.key = node.dataset.chart;
      this.alt = node.getAttribute("aria-label") ?? "";
      this.window = null;
      this.bar = make("div", "figure-bar");
      this.legend = make("div", "legend");
      this.readout = make("p", "readout");
      this.body = make("div", "panels");
      node.querySelector(".canvas").replaceChildren(this.bar, this.body, this.readout);
      this.panels = [];
      this.update(panels);
    }

    get zoomed() { return this.window !== null; }
    get together() { return this.panels.length > 1 && this.whole; }

    update(panels) {
      this.whole = panels.every(panel => panel.x.whole);   // all count evaluations
      this.items(panels);
      const same = panels.length === this.panels.length;
      if (same) panels.forEach((spec, i) => this.panels[i].update(spec));
      else {
        this.panels.forEach(panel => panel.u?.destroy());
        this.panels = panels.map(spec => new Panel(this, spec));
        this.body.replaceChildren(...this.panels.map(panel => panel.root));
        this.body.classList.toggle("wide", panels.some(panel => panel.axes));
        const most = Math.max(...panels.map(panel => panel.axes?.length ?? 0));
        if (most) this.body.style.setProperty("--least", `${most * 76}px`);
        this.panels.forEach(panel => panel.resize());   // now that they have a width
      }
      this.say();
    }

    items(panels) {
      const kinds = new Map();
      panels.forEach(panel => panel.series.forEach(s => {
        const name = s.group ?? s.name;
        if (name && !kinds.has(name)) kinds.set(name, s);
      }));
      this.kinds = [...kinds.keys()];
      this.values = new Map();
      const buttons = [...kinds].map(([name, s]) => {
        const button = make("button", "item");
        button.type = "button";
        button.dataset.group = name;
        button.title = "on and off; with Shift this one only";
        const swatch = make("span", `swatch ${s.kind ?? "line"}`);
        swatch.style.setProperty("--colour", paint(s.colour ?? "--muted", ""));
        if (s.dash?.length) swatch.classList.add("dashed");
        const value = make("span", "value");
        this.values.set(name, value);
        button.append(swatch, make("span", "name", name), value);
        button.setAttribute("aria-pressed", String(!shown.off.has(name)));
        button.addEventListener("click", event => switchGroup(name, event.shiftKey ? this.kinds : null));
        return button;
      });
      this.legend.replaceChildren(...buttons);
      this.bar.replaceChildren();
      const titled = panels.every(panel => panel.group !== undefined);   // each says what it is
      if (buttons.length > 1 && !titled) this.bar.append(this.legend);
      const tools = make("div", "tools");
      const tool = (text, act, on) => {
        const button = make("button", "tool", text);
        button.type = "button";
        if (on !== undefined) button.setAttribute("aria-pressed", String(on));
        button.addEventListener("click", act);
        tools.append(button);
        return button;
      };
      if (panels.some(panel => panel.series.some(s => s.run))) tool("single runs", switchRuns, shown.runs);
      if (buttons.length > 3 && !titled) {
        tool("all", () => setGroups(this.kinds, true));
        tool("none", () => setGroups(this.kinds, false));
      }
      this.back = tool("reset zoom", () => this.reset());
      this.back.hidden = !this.zoomed;
      this.bar.append(tools);
    }

    zoom(panel) { return this.window && (this.whole || this.window.panel === panel) ? this.window.range : null; }

    zoomTo(panel, min, max) {              // where all count evaluations, all of them
      this.window = {range: [min, max], panel};
      this.back.hidden = false;
      (this.whole ? this.panels : [panel]).forEach(each => each.u?.setScale("x", {min, max}));
    }

    reset() {
      this.window = null;
      this.back.hidden = true;
      this.panels.forEach(panel => panel.u?.setData(panel.data, true));
    }

    switched() {
      for (const button of this.legend.children) {
        button.setAttribute("aria-pressed", String(!shown.off.has(button.dataset.group)));
      }
      const single = [...this.bar.querySelectorAll(".tool")].find(b => b.textContent === "single runs");
      single?.setAttribute("aria-pressed", String(shown.runs));
      for (const panel of this.panels) {
        panel.root.hidden = panel.spec.group !== undefined && shown.off.has(panel.spec.group);
        if (!panel.u) { panel.resize(); continue; }
        panel.u.batch(() => panel.made.forEach((one, i) => {
          if (i && panel.u.series[i].show !== visible(one.of)) panel.u.setSeries(i, {show: visible(one.of)});
        }));
      }
    }

    // What is under the pointer: values into the legend, the nearest point below.
    point(panel, u) {
      if (u.cursor.idx == null || u.cursor.left < 0) {
        if (this.active === panel) this.say();
        return;
      }
      if (u.cursor.event == null && this.active !== panel && this.active?.u?.cursor.left >= 0
          && this.together) return;            // moved along with the panel that the pointer is in
      this.active = panel;
      const {x, y} = panel.spec;
      const head = [`${x.readout ?? x.label} ${Scales.text(x, panel.data[0][u.cursor.idx])}`];
      if (panel.spec.title && panel.spec.title !== x.readout) head.unshift(panel.spec.title);
      this.values.forEach(node => { node.textContent = ""; });
      let near = null;
      panel.made.forEach((one, i) => {
        if (!i || one.edge || !u.series[i].show) return;
        const at = panel.nearest(i, u.cursor.idx), value = panel.data[i][at];
        if (value == null) return;
        const name = one.of.group ?? one.of.name;
        const slot = !one.of.run && !panel.spec.focus && this.values.get(name);
        if (slot && slot.textContent === "") {
          slot.textContent = this.measure(panel, i, at, y);
          if (!this.legend.isConnected) head.push(`${name === panel.spec.title ? "" : name + " "}${slot.textContent}`);
        }
        if (one.notes) {
          const away = Math.abs(u.valToPos(value, "y") - u.cursor.top);
          if (near === null || away < near.away) near = {away, i, at, value, one};
        }
      });
      if (near && (panel.spec.focus || near.away < RADIUS || near.one.of.kind === "points")) {
        head.push(near.one.notes[near.at]);
        if (panel.spec.focus) head.shift();
      }
      this.say(head);
    }

    measure(panel, i, at, axis) {
      const value = Scales.text(axis, panel.data[i][at], 4), spans = panel.made[i].of.bands ?? [];
      if (!spans.length || innerWidth < 600) return value;
      const outer = i - 2 * spans.length;       // its first band
      const [high, low] = [panel.data[outer][at], panel.data[outer + 1][at]];
      return low == null || high == null ? value
        : `${value} [${Scales.text(axis, low, 3)}, ${Scales.text(axis, high, 3)}]`;
    }

    say(parts) {
      if (!parts) { this.active = null; this.values?.forEach(node => { node.textContent = ""; }); }
      this.readout.textContent = parts ? parts.filter(Boolean).join(" · ") : "";
    }
  }

  const refresh = () => figures.forEach(figure => figure.switched());
  const setGroups = (names, on) => {
    names.forEach(name => on ? shown.off.delete(name) : shown.off.add(name));
    refresh();
  };
  const switchGroup = (name, only) => {
    if (only) { only.forEach(other => shown.off.add(other)); shown.off.delete(name); }
    else if (shown.off.has(name)) shown.off.delete(name);
    else shown.off.add(name);
    refresh();
  };
  const switchRuns = () => { shown.runs = !shown.runs; refresh(); };

  // Draw every figure of the page; one that was drawn before stays, with its zoom, and gets the data.
  const draw = charts => {
    for (const node of document.querySelectorAll("figure[data-chart]")) {
      const key = node.dataset.chart, known = figures.get(key);
      if (known && known.node !== node) node.replaceWith(known.node);
      if (known) known.update(charts[key]);
      else figures.set(key, new Figure(node, charts[key]));
    }
  };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => figures.forEach(
    figure => figure.panels.forEach(panel => panel.u?.redraw(false))));
  addEventListener("dblclick", event => figures.forEach(
    figure => { if (figure.zoomed && figure.body.contains(event.target)) figure.reset(); }));
  return {draw, figures};
})();
