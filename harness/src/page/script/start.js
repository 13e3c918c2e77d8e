// Puts a page together, and says when all of it is there.

const data = JSON.parse(document.getElementById("data").textContent);
theme.start();

const known = new Set();
for (const chart of data.charts) {
  for (const mark of chart.rows ?? chart.lines ?? chart.series ?? chart.bars ?? chart.boxes) {
    if (mark.rank !== null) known.add(mark.rank);
  }
}
for (const { columns, rows } of data.tables) {
  const column = columns.find(({ heading, numbers }) => heading === "Rank" && numbers !== undefined);
  for (const rank of column ? unpacked(column.numbers, rows) : []) if (rank !== null) known.add(rank);
}
ranks.start(document.getElementById("ranks"), known, data.reports);

// One that cannot be drawn takes nothing else along.
function attempt(place, act) {
  try {
    act();
  } catch (error) {
    place.append(element("p", { class: "warning" }, `this cannot be shown: ${error.message}`));
    console.error(error);
  }
}

data.charts.forEach((chart, at) => {
  const place = document.getElementById(`figure-${at + 1}`);
  attempt(place, () => figure(place, chart, at + 1));
});
const tables = [];
data.tables.forEach((data, at) => {
  const place = document.getElementById(`table-${at + 1}`);
  attempt(place, () => tables.push(table(place, data, at + 1)));
});

window.addEventListener("beforeprint", () => {
  theme.printing = true;
  theme.show();
  for (const shown of tables) shown.print(true);
});
window.addEventListener("afterprint", () => {
  theme.printing = false;
  theme.show();
  for (const shown of tables) shown.print(false);
});
document.documentElement.dataset.ready = "true";
