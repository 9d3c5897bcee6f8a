// The page: its tables sort by a click on a heading, its figures are drawn, and where `fitbo watch`
// serves it, it asks for what is new.
"use strict";

(() => {
  const order = new Map();                 // table -> [column, down]: kept when its rows change
  const tables = () => [...document.querySelectorAll("table.sortable")];

  const sort = (table, column, down) => {
    const headings = [...table.tHead.rows[0].cells];
    headings.forEach(other => other.removeAttribute("aria-sort"));
    headings[column].setAttribute("aria-sort", down ? "descending" : "ascending");
    const numeric = headings[column].classList.contains("number");
    const key = row => row.cells[column].dataset.value;
    const compare = (a, b) => numeric ? a - b : a.localeCompare(b, "en", {numeric: true});
    const rows = [...table.tBodies[0].rows].sort((a, b) => {
      const [left, right] = [key(a), key(b)];
      if (left === "" || right === "") return (left === "") - (right === "");  // no value: last
      return down ? compare(right, left) : compare(left, right);
    });
    table.tBodies[0].append(...rows);
  };

  const wire = () => tables().forEach((table, number) => {
    [...table.tHead.rows[0].cells].forEach((heading, column) =>
      heading.firstChild.addEventListener("click", () => {
        const down = heading.getAttribute("aria-sort") === "ascending";
        order.set(number, [column, down]);
        sort(table, column, down);
      }));
    if (order.has(number)) sort(table, ...order.get(number));
  });

  const show = state => {
    const open = [...document.querySelectorAll("details")].map(each => each.open);
    document.querySelector("main").innerHTML = state.main;   // escaped where it was made
    document.querySelectorAll("details").forEach((each, i) => { each.open = open[i] ?? false; });
    document.title = state.title;
    wire();
    Figures.draw(state.charts);
  };

  const say = (words, gone) => {
    const light = document.getElementById("live");   // each state brings its own
    light.textContent = words;
    light.classList.toggle("gone", gone);
  };

  const follow = async ({every, version, over}) => {
    const standing = () => say(over ? "ended" : "live", false);
    standing();
    for (;;) {
      await new Promise(resolve => setTimeout(resolve, 1000 * every));
      try {
        const answer = await fetch(`state?since=${encodeURIComponent(version)}`, {cache: "no-store"});
        if (!answer.ok) throw new Error(answer.statusText);
        if (answer.status === 200) {
          const state = await answer.json();
          ({version, over} = state);
          show(state);
        }
        standing();
      } catch (error) {
        say("fitbo watch has ended: this is what it showed last", true);
      }
    }
  };

  const block = JSON.parse(document.getElementById("data").textContent);
  wire();
  Figures.draw(block.charts);
  if (block.every) follow(block);
})();
