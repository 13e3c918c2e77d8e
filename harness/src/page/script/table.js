// A table: sorted by its headings, filtered by what is typed and by rank, so many rows at a time.

const ROWS_AT_A_TIME = 100;
const ROWS_ON_PAPER = 1000;

function table(section, data, at) {
  const columns = data.columns.map((column) => {
    if (column.texts) {
      const places = unpacked(column.texts.rows, data.rows);
      const text = (row) => (places[row] === null ? "" : column.texts.words[places[row]]);
      const isLong = column.texts.words.some((word) => word.length > 48);
      return { heading: column.heading, isText: true, kind: isLong ? "text long" : "text", text, key: text };
    }
    const digits = data.rows === 0 ? [] : column.numbers.split(",");
    const key = (row) => (digits[row] === "" ? null : Number(digits[row]));
    return { heading: column.heading, isText: false, kind: "number", text: (row) => digits[row], key, digits };
  });
  const rankColumn = columns.find((column) => !column.isText && column.heading === "Rank");
  const collator = new Intl.Collator("en", { numeric: true });
  let sorted = null;
  let rows = [];
  let first = 0;
  let size = ROWS_AT_A_TIME;

  const filter = element("input", { id: `filter-${at}`, type: "search", autocomplete: "off" });
  const status = element("span", { class: "status", role: "status" });
  const before = button("\u2039", "rows before these", () => turn(-1));
  const next = button("\u203a", "rows behind these", () => turn(1));
  const body = element("tbody");
  const paper = element("caption", { class: "paper" });
  const heads = columns.map((column, index) => {
    const press = element("button", { type: "button", click: () => sort(index) }, column.heading, element("span", { class: "arrow", "aria-hidden": "true" }));
    return element("th", { scope: "col", class: column.kind, "aria-sort": "none" }, press);
  });
  const grid = element("table", {}, paper, element("thead", {}, element("tr", {}, ...heads)), body);
  const scroller = element("div", { class: "scroller", tabindex: "0", role: "region", "aria-label": `${data.title}, ${data.name}` }, grid);
  section.querySelector(".place").append(
    element("div", { class: "tools" }, element("label", { for: `filter-${at}` }, "Filter"), filter, status, before, next),
    scroller,
  );

  // The rest of a number behind what a script's numbers hold decides where these are equal.
  function compare(column, a, b) {
    if (column.isText) return collator.compare(column.key(a), column.key(b));
    return column.key(a) - column.key(b) || collator.compare(column.digits[a], column.digits[b]);
  }

  function select() {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    const matches = (row) => words.every((word) => columns.some((column) => {
      const text = column.text(row).toLowerCase();
      return text.includes(word) || (!column.isText && grouped(text).includes(word));
    }));
    rows = [];
    for (let row = 0; row < data.rows; row += 1) {
      if (rankColumn && !ranks.has(rankColumn.key(row))) continue;
      if (words.length === 0 || matches(row)) rows.push(row);
    }
    if (sorted) {
      const { index, down } = sorted;
      const column = columns[index];
      // Cells without a value stand below whichever way it goes.
      const isEmpty = (row) => column.text(row) === "";
      rows.sort((a, b) => isEmpty(a) - isEmpty(b) || (isEmpty(a) ? a - b : (down ? compare(column, b, a) : compare(column, a, b)) || a - b));
    }
    first = 0;
    show();
  }

  // Numbers from the greatest first, words from the first; then the other way, then as the table came.
  function sort(index) {
    const starts = !columns[index].isText;
    if (!sorted || sorted.index !== index) sorted = { index, down: starts };
    else if (sorted.down === starts) sorted.down = !starts;
    else sorted = null;
    heads.forEach((head, other) => {
      const isIt = sorted && sorted.index === other;
      head.setAttribute("aria-sort", isIt ? (sorted.down ? "descending" : "ascending") : "none");
      head.querySelector(".arrow").textContent = isIt ? (sorted.down ? " \u2193" : " \u2191") : "";
    });
    select();
  }

  function turn(by) {
    first = Math.max(0, Math.min(first + by * size, Math.floor(Math.max(rows.length - 1, 0) / size) * size));
    show();
    scroller.scrollTop = 0;
  }

  function show() {
    const last = Math.min(first + size, rows.length);
    const cell = (column, row) => {
      const text = column.text(row);
      return element("td", { class: column.kind }, column.isText || text === "" ? text : grouped(text));
    };
    body.replaceChildren(...rows.slice(first, last).map((row) => element("tr", {}, ...columns.map((column) => cell(column, row)))));
    const of = rows.length === data.rows ? "" : ` of ${GROUPED.format(data.rows)}`;
    const span = rows.length > size ? `${GROUPED.format(first + 1)}\u2013${GROUPED.format(last)} of ` : "";
    status.textContent = `${span}${counted(rows.length, "row", "rows")}${of}`;
    paper.textContent = rows.length === data.rows && !span ? "" : status.textContent;
    before.hidden = next.hidden = rows.length <= size;
    before.disabled = first === 0;
    next.disabled = last >= rows.length;
  }

  filter.addEventListener("input", inFrame(select));
  if (rankColumn) ranks.listeners.push(select);
  select();
  return {
    print(isOn) {
      size = isOn ? ROWS_ON_PAPER : ROWS_AT_A_TIME;
      first = 0;
      show();
    },
  };
}
