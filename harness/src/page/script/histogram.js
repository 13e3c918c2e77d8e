// How many values lie between two edges: of few series side by side, of many all together.

const FEW_SERIES = 6;

kinds.histogram = (data, changed) => {
  const edges = unpacked(data.edges, 1);
  const bins = Math.max(edges.length - 1, 0);
  const all = data.series.map((series, place) => ({ ...series, place, values: unpacked(series.values, bins) }));
  const isFew = all.length <= FEW_SERIES;
  const hidden = new Set();
  const count = { name: "values", quantity: "plain", log: false };
  const marks = data.marks.filter((mark) => mark.along === "x");
  let chosen = all;
  let tracks = [];
  let [xs, ys] = [[0, 1], [0, 1]];

  // On a logarithmic axis the first edge may be zero.
  const drawnEdge = (edge) => (data.x.log && edge <= 0 ? xs[0] : edge);

  return {
    zooms: "x",
    refresh() {
      chosen = all.filter((series) => ranks.has(series.rank) && !hidden.has(series.label));
      const total = Array.from({ length: bins }, (_, bin) => chosen.reduce((sum, series) => sum + (series.values[bin] ?? 0), 0));
      tracks = chosen.length > 1 && !isFew
        ? [{ label: `all ${counted(chosen.length, "series", "series")} together`, values: total }, ...chosen]
        : chosen;
      xs = framed([...extent(edges.concat(marks.map((mark) => mark.at)), data.x.log)], data.x.log);
      if (!data.x.log) xs = extent(edges.concat(marks.map((mark) => mark.at)), false);
      if (data.x.log && edges[0] <= 0) xs[0] /= 2;
      const drawn = isFew ? tracks : tracks.slice(0, 1);
      ys = [0, Math.max(1, ...drawn.flatMap((track) => track.values)) * 1.06];
    },
    marks: () => bins * chosen.length,
    tracks: () => (bins ? tracks.length : 0),
    length: () => bins,
    height: (width) => (isNarrow(width) ? 300 : 380),

    spot(track, bin) {
      const { label, values } = tracks[track];
      const [from, to] = [drawnEdge(edges[bin]), drawnEdge(edges[bin + 1])];
      const middle = data.x.log ? Math.sqrt(from * to) : (from + to) / 2;
      const top = Math.min(values[bin], ys[1]);
      const lines = [label, `${data.x.name}: ${said(edges[bin], data.x.quantity)} to ${said(edges[bin + 1], data.x.quantity)}`, counted(values[bin], "value", "values")];
      if (!isFew && track === 0 && values[bin] > 0 && tracks.length > 1) {
        const most = chosen.reduce((most, series) => (series.values[bin] > most.values[bin] ? series : most));
        lines.push(`most of them: ${most.label}, ${whole(most.values[bin])}`);
      }
      if (isFew && tracks.length > 1) {
        for (const other of tracks) if (other.label !== label) lines.push(`${other.label}: ${whole(other.values[bin])}`);
      }
      return { lines, point: [middle, top], share: [share(middle, xs, data.x.log), share(top, ys, false)] };
    },

    near([x, y]) {
      const bin = edges.findIndex((edge, at) => at < bins && x >= drawnEdge(edge) && x <= drawnEdge(edges[at + 1]));
      if (bin < 0) return null;
      if (!isFew) return { track: 0, mark: bin };
      // The lowest bar that reaches up to the pointer, else the highest.
      const order = tracks.map((_, track) => track).sort((a, b) => tracks[a].values[bin] - tracks[b].values[bin]);
      return { track: order.find((track) => tracks[track].values[bin] >= y) ?? order.at(-1), mark: bin };
    },

    option(width) {
      const drawn = isFew ? tracks : tracks.slice(0, 1);
      const bars = (track) => {
        const colour = lineColour(track.place ?? 0, isFew ? all.length : 1);
        // Of many that lie upon each other the outlines are seen, of two their colours.
        const areMany = drawn.length > 2;
        return {
          type: "custom",
          silent: true,
          clip: true,
          data: track.values.map((value, bin) => [edges[bin], value]),
          renderItem: ({ dataIndex: bin }, api) => {
            const [left, top] = api.coord([drawnEdge(edges[bin]), track.values[bin]]);
            const [right, bottom] = api.coord([drawnEdge(edges[bin + 1]), 0]);
            const wide = Math.max(right - left - (right - left > 4 ? 1 : 0), 0.5);
            const bar = { type: "rect", shape: { x: left, y: top, width: areMany ? right - left : wide, height: Math.max(bottom - top, 0) }, style: { fill: colour, opacity: areMany ? 0.1 : drawn.length > 1 ? 0.55 : 0.9 } };
            if (!areMany) return bar;
            const before = bin > 0 ? api.coord([drawnEdge(edges[bin]), track.values[bin - 1]])[1] : bottom;
            const points = [[left, before], [left, top], [right, top], ...(bin === bins - 1 ? [[right, bottom]] : [])];
            return { type: "group", children: [bar, { type: "polyline", shape: { points }, style: { stroke: colour, fill: "none", lineWidth: 2 } }] };
          },
        };
      };
      return {
        grid: { left: isNarrow(width) ? 56 : 66, right: 28, top: 40, bottom: 78 },
        xAxis: valueAxis(data.x, xs, { nameLocation: "middle", nameGap: 26, splitLine: { show: false } }),
        yAxis: valueAxis(count, ys, { minInterval: 1, nameTextStyle: { align: "left", color: theme.colour("ink"), padding: [0, 0, 0, -50] } }),
        dataZoom: zooms("x", width),
        series: [...drawn.map(bars), markSeries(marks, { x: data.x }, { x: xs })],
      };
    },

    legend() {
      const keys = markLegend(marks, { x: data.x });
      if (!isFew) return [element("span", { class: "key" }, `bars are all chosen ranks together; the arrow keys go through each of ${whole(all.length)}`), ...keys];
      if (all.length < 2) return keys;
      return [...toggles(all.map((series) => series.label), hidden, (at) => lineColour(at, all.length), changed), ...keys];
    },
  };
};
