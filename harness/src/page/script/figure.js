// The frame of every chart: redrawn when its room, colours or ranks change; pointed at, gone through by keys, zoomed.

const kinds = {};
const PAPER_WIDTH = 680;

function figure(place, data, at) {
  const readout = document.getElementById(`readout-${at}`);
  const canvas = element("div", { class: "canvas" });
  const tip = element("div", { class: "tip", "aria-hidden": "true", hidden: true });
  const cursor = element("div", { class: "cursor", "aria-hidden": "true", hidden: true });
  const holder = element("div", {
    class: "chart", tabindex: "0", role: "application", "aria-roledescription": "chart to be gone through by arrow keys",
    "aria-label": `${data.title}. ${data.about}`, "aria-describedby": readout.id,
  }, canvas, cursor, tip);
  const legend = element("div", { class: "legend" });
  const tools = element("div", { class: "tools chart-tools" },
    button("+", "zoom in", () => zoom(0.5)), button("\u2212", "zoom out", () => zoom(2)), button("All", "see all", () => zoomTo(whole())));
  const empty = element("p", { class: "drawn", hidden: true }, "Nothing is chosen: see the ranks above and the names below.");
  place.querySelector(".place").append(tools, holder, empty, legend);

  const model = kinds[data.kind](data, () => draw());
  const chart = echarts.init(canvas, null, { renderer: "canvas", width: PAPER_WIDTH, height: 100 });
  const whole = () => ({ x: [0, 100], y: [0, 100] });
  let zoomed = whole();
  let here = null;
  let lit = null;
  let seen = 0;

  function draw() {
    seen = holder.clientWidth;
    const width = theme.printing ? PAPER_WIDTH : Math.max(seen, 200);
    // What was drawn of other ranks must not be drawn again in the new room.
    chart.clear();
    model.refresh();
    empty.hidden = model.tracks() > 0;
    const height = model.height(width);
    canvas.style.height = `${height}px`;
    chart.resize({ width, height });
    const option = model.option(width, zoomed);
    for (const zoom of option.dataZoom) {
      [zoom.start, zoom.end] = zoomed[zoom.id.at(-1)];
    }
    chart.setOption({ animation: false, textStyle: { fontFamily: "system-ui, sans-serif" }, tooltip: { show: false }, ...option }, { notMerge: true });
    legend.replaceChildren(...model.legend());
    place.dataset.marks = model.marks();
    tools.hidden = model.zooms === "";
    hide();
  }

  const toPixel = (point) => chart.convertToPixel({ gridIndex: 0 }, point);
  const isInside = (pixel) => chart.containPixel({ gridIndex: 0 }, pixel);

  function show(track, mark) {
    const spot = model.spot(track, mark);
    const [x, y] = toPixel(spot.point);
    here = { track, mark };
    readout.textContent = spot.lines.join(" \u00b7 ");
    tip.replaceChildren(...spot.lines.map((line) => element("div", {}, line)));
    tip.hidden = cursor.hidden = false;
    cursor.style.left = `${x}px`;
    cursor.style.top = `${y}px`;
    const [wide, high] = [tip.offsetWidth, tip.offsetHeight];
    tip.style.left = `${Math.max(2, Math.min(x + 14, holder.clientWidth - wide - 2))}px`;
    tip.style.top = `${y - high - 12 >= 0 ? y - high - 12 : y + 14}px`;
    light(spot.series ?? null);
  }

  function hide() {
    here = null;
    tip.hidden = cursor.hidden = true;
    readout.textContent = model.tracks() > 0 ? "Point at a mark, or go there with the arrow keys, for its exact number." : "";
    light(null);
  }

  function light(series) {
    if (series === lit) return;
    if (lit !== null) chart.dispatchAction({ type: "downplay", seriesIndex: lit });
    if (series !== null) chart.dispatchAction({ type: "highlight", seriesIndex: series });
    lit = series;
  }

  let pointed = null;
  const look = inFrame(() => {
    if (!pointed || !isInside(pointed)) return hide();
    const near = model.near(chart.convertFromPixel({ gridIndex: 0 }, pointed), pointed, toPixel);
    if (near) show(near.track, near.mark);
    else hide();
  });
  const pointer = (event) => {
    pointed = [event.offsetX, event.offsetY];
    look();
  };
  chart.getZr().on("mousemove", pointer);
  chart.getZr().on("click", pointer);
  chart.getZr().on("mousedown", () => holder.focus({ preventScroll: true }));
  chart.getZr().on("globalout", () => {
    pointed = null;
    look();
  });

  chart.on("datazoom", () => {
    for (const zoom of chart.getOption().dataZoom) {
      [zoomed[zoom.id.at(-1)][0], zoomed[zoom.id.at(-1)][1]] = [zoom.start, zoom.end];
    }
    if (here && isInside(toPixel(model.spot(here.track, here.mark).point))) show(here.track, here.mark);
    else hide();
  });

  function zoomTo(next) {
    for (const axis of model.zooms) {
      chart.dispatchAction({ type: "dataZoom", dataZoomId: axis, start: next[axis][0], end: next[axis][1] });
    }
  }

  // Around the mark that is looked at, else around the middle.
  function zoom(by) {
    const shares = here ? model.spot(here.track, here.mark).share : null;
    const next = {};
    for (const [place, axis] of ["x", "y"].entries()) {
      const [start, end] = zoomed[axis];
      const size = Math.min(100, Math.max(0.05, (end - start) * by));
      const middle = shares ? shares[place] * 100 : (start + end) / 2;
      const from = Math.max(0, Math.min(100 - size, middle - size / 2));
      next[axis] = [from, from + size];
    }
    const kept = here;
    zoomTo(next);
    if (kept) show(kept.track, kept.mark);
  }

  function go(track, mark) {
    if (model.tracks() === 0) return;
    const row = Math.max(0, Math.min(track, model.tracks() - 1));
    const length = model.length(row);
    if (length === 0) return;
    const place = Math.max(0, Math.min(mark, length - 1));
    const spot = model.spot(row, place);
    if (!isInside(toPixel(spot.point))) {
      // What was zoomed into moves along.
      const next = {};
      for (const [index, axis] of ["x", "y"].entries()) {
        const size = zoomed[axis][1] - zoomed[axis][0];
        const from = Math.max(0, Math.min(100 - size, spot.share[index] * 100 - size / 2));
        next[axis] = [from, from + size];
      }
      zoomTo(next);
    }
    show(row, place);
  }

  holder.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { track, mark } = here ?? { track: 0, mark: -1 };
    const isOne = model.tracks() === 1;
    const steps = {
      ArrowRight: () => go(track, mark + 1),
      ArrowLeft: () => go(track, here ? mark - 1 : 0),
      ArrowDown: () => (isOne ? go(track, mark + 1) : go(here ? track + 1 : 0, Math.max(mark, 0))),
      ArrowUp: () => (isOne ? go(track, here ? mark - 1 : 0) : go(track - 1, Math.max(mark, 0))),
      PageDown: () => (isOne ? go(track, mark + 10) : go(track + 10, Math.max(mark, 0))),
      PageUp: () => (isOne ? go(track, mark - 10) : go(track - 10, Math.max(mark, 0))),
      Home: () => go(track, 0),
      End: () => go(track, Infinity),
      "+": () => zoom(0.5),
      "=": () => zoom(0.5),
      "-": () => zoom(2),
      0: () => zoomTo(whole()),
      Escape: hide,
    };
    if (!steps[event.key]) return;
    event.preventDefault();
    steps[event.key]();
  });

  // A wheel moves the page until a person is in the chart.
  const wheel = (x, y) => {
    const zooms = model.zooms.split("").map((axis) => ({ id: `inside-${axis}`, zoomOnMouseWheel: axis === "x" || model.zooms === "y" ? x : y }));
    if (zooms.length) chart.setOption({ dataZoom: zooms });
  };
  holder.addEventListener("focus", () => wheel(true, "shift"));
  holder.addEventListener("blur", () => wheel("ctrl", "shift"));

  draw();
  theme.listeners.push(draw);
  ranks.listeners.push(inFrame(draw));
  new ResizeObserver(inFrame(() => {
    if (!theme.printing && holder.clientWidth !== seen) draw();
  })).observe(holder);
}
