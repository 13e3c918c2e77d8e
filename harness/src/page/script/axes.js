// What all charts share: axes with their units, zoom, lines that others are compared with, and labels that fit.

const LETTER = 6.6; // about as wide as a letter of an axis is

// In the middle, because names of kernels differ at both ends.
function fitted(label, letters) {
  if (label.length <= letters) return label;
  const kept = Math.max(letters - 1, 2);
  return `${label.slice(0, Math.ceil(kept / 2))}\u2026${label.slice(label.length - Math.floor(kept / 2))}`;
}

// Names that would look alike are cut behind what they begin with alike, until no two do that differ.
function fittedApart(labels, letters) {
  const fit = labels.map((label) => fitted(label, letters));
  for (let round = 0; round < 8; round += 1) {
    const alike = new Map();
    fit.forEach((short, at) => alike.set(short, [...(alike.get(short) ?? []), at]));
    const groups = [...alike.values()].filter((group) => new Set(group.map((at) => labels[at])).size > 1);
    if (groups.length === 0) break;
    for (const group of groups) {
      const names = group.map((at) => labels[at]);
      let begin = 0;
      while (names.every((name) => name[begin] === names[0][begin])) begin += 1;
      for (const at of group) fit[at] = `${labels[at].slice(0, 6)}\u2026${fitted(labels[at].slice(Math.max(0, begin - 4)), letters - 7)}`;
    }
  }
  return fit;
}

const isNarrow = (width) => width < 500;

// How many letters labels may have, and how much room they take.
function room(labels, width) {
  const most = Math.floor(Math.min(width * 0.36, 400) / LETTER);
  const longest = labels.reduce((longest, label) => Math.max(longest, label.length), 4);
  const letters = Math.min(most, longest);
  return { letters, left: Math.ceil(letters * LETTER) + 18 };
}

// The least and the most of numbers, and on a logarithmic axis of those above zero.
function extent(values, log) {
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) {
    if (value === null || (log && value <= 0)) continue;
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return low <= high ? [low, high] : log ? [1, 10] : [0, 1];
}

// Zero belongs to what is measured from it, unless all lies far away from it.
function framed([low, high], log) {
  if (log) return low === high ? [low / 2, high * 2] : [low, high];
  if (low >= 0 && low <= high / 2) low = 0;
  if (high <= 0 && high >= low / 2) high = 0;
  if (low === high) return low === 0 ? [0, 1] : [low - Math.abs(low) / 10, high + Math.abs(high) / 10];
  const margin = (high - low) / 25;
  return [low === 0 ? 0 : low - margin, high === 0 ? 0 : high + margin];
}

function valueAxis(shape, [min, max], more = {}) {
  const ink = theme.colour("ink");
  const span = Math.max(Math.abs(min), Math.abs(max));
  const { axisLabel, ...others } = more;
  return {
    type: shape.log ? "log" : "value",
    min,
    max,
    name: shape.name,
    nameTextStyle: { color: ink, fontSize: 12 },
    axisLine: { show: true, lineStyle: { color: theme.colour("line") } },
    axisLabel: {
      color: ink,
      fontSize: 11,
      hideOverlap: true,
      // Ends of an axis are where the data ends, and no round numbers.
      showMinLabel: shape.log ? null : min === 0 ? null : false,
      showMaxLabel: shape.log ? null : false,
      formatter: (value) => short(value, shape.quantity, shape.log ? value : span),
      ...axisLabel,
    },
    splitLine: { lineStyle: { color: theme.colour("grid") } },
    ...others,
  };
}

// As many names as there is room for, where a part of them is zoomed into too.
function nameAxis(labels, letters, view, height) {
  const step = () => Math.max(1, Math.ceil((labels.length * (view.y[1] - view.y[0]) * 0.14) / height));
  return {
    type: "category",
    data: fittedApart(labels, letters),
    inverse: true,
    axisTick: { show: false },
    axisLine: { lineStyle: { color: theme.colour("line") } },
    axisLabel: { color: theme.colour("ink"), fontSize: 11, interval: (at) => at % step() === 0 },
  };
}

// Where a number stands on an axis, from 0 to 1.
function share(value, [min, max], log) {
  const place = (number) => (log ? Math.log(Math.max(number, min)) : number);
  const span = place(max) - place(min);
  return span > 0 ? (place(value) - place(min)) / span : 0.5;
}

// There is no room for sliders beside a narrow chart: its buttons do the same.
function zooms(which, width) {
  const slider = {
    type: "slider",
    filterMode: "none",
    show: !theme.printing,
    showDataShadow: false,
    brushSelect: false,
    showDetail: false,
    borderColor: theme.colour("line"),
    fillerColor: theme.colour("filler"),
    handleStyle: { color: theme.colour("paper"), borderColor: theme.colour("accent") },
    moveHandleStyle: { color: theme.colour("line") },
  };
  const zooms = [];
  const inside = { type: "inside", filterMode: "none", disabled: matchMedia("(pointer: coarse)").matches };
  if (which.includes("x")) {
    zooms.push({ ...slider, id: "x", xAxisIndex: 0, height: 16, bottom: 6 });
    zooms.push({ ...inside, id: "inside-x", xAxisIndex: 0, zoomOnMouseWheel: "ctrl" });
  }
  if (which.includes("y")) {
    zooms.push({ ...slider, id: "y", yAxisIndex: 0, width: 16, right: 8, show: !theme.printing && !isNarrow(width) });
    zooms.push({ ...inside, id: "inside-y", yAxisIndex: 0, zoomOnMouseWheel: "shift" });
  }
  return zooms;
}

// Marks as a series of their own, so that no choice of ranks takes them away.
function markSeries(marks, shapes, extents, axisOf = (mark) => mark.along, top = "end") {
  // Beside an edge the words go the other way.
  const align = (mark) => {
    const place = share(mark.at, extents[axisOf(mark)], shapes[axisOf(mark)].log);
    return place > 0.8 ? "right" : place < 0.2 ? "left" : "center";
  };
  const text = (mark) => `${fitted(mark.label, 40)}: ${short(mark.at, shapes[axisOf(mark)].quantity)}`;
  return {
    type: "line",
    data: [],
    silent: true,
    markLine: {
      silent: true,
      symbol: "none",
      animation: false,
      lineStyle: { type: "dashed", width: 2, color: theme.colour("mark") },
      data: marks.map((mark) => ({
        [`${axisOf(mark)}Axis`]: mark.at,
        label: {
          formatter: () => text(mark), color: theme.colour("ink"), fontSize: 11,
          ...(axisOf(mark) === "x" ? { position: top, align: align(mark) } : { position: "insideEndTop" }),
        },
      })),
    },
  };
}

// The same marks in words, exact.
function markLegend(marks, shapes, axisOf = (mark) => mark.along) {
  return marks.map((mark) => element("span", { class: "key" },
    element("i", { class: "swatch dashed" }), `${mark.label}: ${said(mark.at, shapes[axisOf(mark)].quantity)}`));
}

// Names that can be taken away and brought back by a press.
function toggles(labels, hidden, colours, changed) {
  return labels.map((label, at) => {
    const swatch = element("i", { class: "swatch" });
    swatch.style.background = colours(at);
    const press = () => {
      if (!hidden.delete(label)) hidden.add(label);
      changed();
    };
    return element("button", { type: "button", class: "key", "aria-pressed": String(!hidden.has(label)), click: press }, swatch, fitted(label, 60));
  });
}
