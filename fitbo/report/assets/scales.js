// Numbers and axes. On a logarithmic axis data are log10 of the values, so 10 ** v is shown.
"use strict";

const Scales = (() => {
  const SUPERSCRIPTS = {"-": "⁻", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶", 7: "⁷",
    8: "⁸", 9: "⁹"};

  const digits = (value, most = 4) => {
    const size = Math.abs(value);
    if (size !== 0 && (size < 1e-3 || size >= 1e6)) {
      const [mantissa, power] = value.toExponential(Math.min(most - 1, 2)).split("e");
      return `${Number(mantissa)}e${Number(power)}`;
    }
    return String(Number(value.toPrecision(most)));
  };

  const power = exponent => "10" + [...String(exponent)].map(c => SUPERSCRIPTS[c]).join("");

  // Round values from low to high, about `count` of them, 1, 2 or 5 times a power of ten apart.
  const even = (low, high, count, whole) => {
    const raw = (high - low) / Math.max(1, count);
    if (!(raw > 0)) return [low];
    const size = 10 ** Math.floor(Math.log10(raw));
    let step = size * [1, 2, 5, 10].find(k => k * size >= raw * 0.999);
    if (whole) step = Math.max(1, Math.round(step));
    const ticks = [];
    for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; i++) ticks.push(i * step);
    return ticks;
  };

  // Places of round values on an axis of logarithms: powers of ten; within two decades 1, 2 and 5.
  const decades = (low, high, count) => {
    if (high - low > 2) {
      const step = Math.max(1, Math.ceil((high - low) / count));
      return even(low, high, count, true).filter(k => k % step === 0 || step === 1);
    }
    const ticks = [];
    for (let k = Math.floor(low); k <= Math.ceil(high); k++) {
      for (const m of [1, 2, 5]) ticks.push(k + Math.log10(m));
    }
    const shown = ticks.filter(t => t >= low && t <= high);
    if (shown.length > 1) return shown;
    return even(10 ** low, 10 ** high, count).filter(v => v > 0).map(Math.log10);
  };

  // What a place on an axis means: a category, a number, or 10 to it.
  const text = (axis, place, most) => {
    if (axis.names) return axis.names[Math.round(place)] ?? "";
    return axis.log ? digits(10 ** place, most ?? 3) : digits(place, most ?? 5);
  };

  const ticks = (axis, low, high, room) => {
    if (axis.names) {
      const every = Math.ceil(axis.names.length / Math.max(1, room));
      return axis.names.map((_, i) => i).filter(i => i % every === 0 && i >= low && i <= high);
    }
    return axis.log ? decades(low, high, room) : even(low, high, room, axis.whole);
  };

  const label = (axis, places) => {
    const wide = axis.log && places.length > 1 && places.every(p => Number.isInteger(p)) &&
      (Math.abs(places[0]) > 2 || Math.abs(places[places.length - 1]) > 3);
    return places.map(p => wide ? power(p) : shorten(text(axis, p), 14));
  };

  const shorten = (words, most) => words.length > most ? words.slice(0, most - 1) + "…" : words;

  // The range of the data with room at both ends; one of length 1 where it is empty.
  const padded = (low, high, share) => {
    if (low == null || high == null) return [0, 1];
    const room = share * (high - low) || 0.5;
    return [low - room, high + room];
  };

  return {digits, text, ticks, label, padded, shorten};
})();
