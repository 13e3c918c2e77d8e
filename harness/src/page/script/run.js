// The page of a run: its colours, the arrow keys in its maps, and cases that are opened by links to them.

theme.start();

// One cell at a time: what it says in full stands below its map, which has no room for it.
for (const map of document.querySelectorAll("[data-map]")) {
  const table = map.querySelector("table");
  const readout = document.getElementById(map.dataset.map);
  const heads = [...table.tHead.rows[0].cells];
  const rows = [...table.tBodies[0].rows];
  const first = readout.textContent;
  let at = null;

  const show = (cell) => {
    if (at) at.classList.remove("here");
    at = cell;
    if (!cell) { readout.textContent = first; return; }
    cell.classList.add("here");
    const words = [cell.parentElement.cells[0].textContent, heads[cell.cellIndex].textContent];
    words.push(cell.title || map.dataset[cell.classList[0]] || cell.textContent);
    if (/^\d/.test(cell.textContent)) words.push(`${cell.textContent} % of its limit`);
    readout.textContent = words.join(" · ");
  };
  const go = (row, column) => {
    const cells = rows[Math.max(0, Math.min(rows.length - 1, row))].cells;
    const cell = cells[Math.max(1, Math.min(cells.length - 1, column))];
    show(cell);
    cell.scrollIntoView({ block: "nearest", inline: "nearest" });
  };
  map.addEventListener("keydown", (event) => {
    const row = at ? rows.indexOf(at.parentElement) : 0;
    const column = at ? at.cellIndex : 1;
    const far = rows.length + heads.length;
    const steps = {
      ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1],
      PageUp: [-10, 0], PageDown: [10, 0], Home: [-far, -far], End: [far, far],
    };
    if (event.key === "Escape") { show(null); return; }
    if (event.key === "Enter" && at) {
      const link = heads[at.cellIndex].querySelector("a");
      if (link) link.click();
      return;
    }
    const step = steps[event.key];
    if (!step || event.ctrlKey || event.altKey || event.metaKey || event.target.closest("a")) return;
    event.preventDefault();
    go(at ? row + step[0] : Math.max(0, step[0]), at ? column + step[1] : Math.max(1, step[1]));
  });
  map.addEventListener("pointerover", (event) => {
    const cell = event.target.closest("tbody td");
    if (cell) show(cell);
  });
  map.addEventListener("focus", () => { if (!at) go(0, 1); });
}

// A link to a case that is folded opens it.
function open() {
  const target = document.getElementById(location.hash.slice(1));
  if (target && target.tagName === "DETAILS") {
    target.open = true;
    target.scrollIntoView();
  }
}
addEventListener("hashchange", open);
open();

for (const every of document.querySelectorAll("[data-every]")) {
  every.hidden = false;
  every.addEventListener("click", () => {
    const all = [...document.querySelectorAll("details.case")];
    const opens = all.some((one) => !one.open);
    for (const one of all) one.open = opens;
  });
}

// Paper is light, and nothing is opened on it.
let opened = [];
addEventListener("beforeprint", () => {
  theme.printing = true;
  theme.show();
  opened = [...document.querySelectorAll("details:not([open])")];
  for (const one of opened) one.open = true;
});
addEventListener("afterprint", () => {
  theme.printing = false;
  theme.show();
  for (const one of opened) one.open = false;
});
document.documentElement.dataset.ready = "true";
